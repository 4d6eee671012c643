// A group: its members side by side, and the call at which they part.
import { useKeys } from "./keys";
import type { Step, Trace } from "./record";
import { address, type Run, screenKeys } from "./run";
import { clear, figure, known, mean, short } from "./text";
import { Notice, Sheet, Title, useAsk } from "./ui";

const MOST = 16;
const MOST_CALLS = 1500;

interface Node { name: string; members: Trace[]; next: Node[] }

type Cells = (Step | undefined)[];

const calls = (trace: Trace): Step[] => (trace.turns ?? []).flatMap((turn) => turn.steps ?? []);
const same = (step: Step): string => `${step.call.name} ${step.call.arguments}`;

// The members by what they called, as a tree: each node is a call, with all members that made it there.
function tree(members: Trace[]): Node {
  const root: Node = { name: "", members, next: [] };
  for (const trace of members) {
    let at = root;
    for (const step of calls(trace)) {
      const name = same(step);
      let next = at.next.find((one) => one.name === name);
      if (next === undefined) at.next.push((next = { name, members: [], next: [] }));
      next.members.push(trace);
      at = next;
    }
  }
  return root;
}

const score = (members: Trace[]): number => mean(members.flatMap((one) => one.score ?? []));

// Members of a node that make no further call.
const ended = (node: Node): Trace[] => node.members.filter((one) => !node.next.some((next) => next.members.includes(one)));

// The node at which the mean score changes most between the ways on; those that end there are a way of their own.
function decisive(node: Node): { node: Node; spread: number } {
  const ways = [...node.next.map((one) => one.members), ended(node)];
  const means = known(ways.map(score));
  const own = { node, spread: means.length > 1 ? Math.max(...means) - Math.min(...means) : 0 };
  return node.next.map(decisive).reduce((best, one) => (one.spread > best.spread ? one : best), own);
}

function Branch({ node, decides }: { node: Node; decides: Node | undefined }) {
  // Calls that all members of a node share are one line.
  const chain = [node];
  let last = node;
  while (last.next.length === 1 && last.next[0]?.members.length === last.members.length) chain.push((last = last.next[0]));
  const done = last.next.length ? ended(last).length : 0;
  return (
    <li>
      <span class="count">{node.members.length} × mean {figure(score(node.members))}</span>{" "}
      {chain.map((one) => one.name && <span class="call">{short(clear(one.name), 70)}</span>)}
      {decides && chain.includes(decides) && last.next.length > 0 && <strong class="decides"> ← here the scores part most</strong>}
      {done > 0 && <span class="dim"> {done} end here</span>}
      {last.next.length > 0 && <ul>{last.next.map((one) => <Branch node={one} decides={decides} />)}</ul>}
    </li>
  );
}

// Rows of corresponding calls: the longest common subsequence with the first member; a call without a partner stands
// beside one of the first member's that has none either, or in a row of its own.
function aligned(members: Step[][]): Cells[] {
  const [first = [], ...others] = members;
  const gaps: Cells[][] = Array.from({ length: first.length + 1 }, () => []);
  const rows = first.map((step): Cells => [step, ...others.map(() => undefined)]);
  others.forEach((other, n) => {
    const pairs = matched(first, other);
    let [free, gap] = [0, 0];
    pairs.forEach(([partner, step], at) => {
      const until = partner >= 0 ? partner : (pairs.slice(at).find(([later]) => later >= 0)?.[0] ?? first.length);
      const row = partner >= 0 ? rows[partner] : free < until ? rows[free] : undefined;
      if (row) {
        row[n + 1] = step;
        [free, gap] = [(partner >= 0 ? partner : free) + 1, 0];
      } else {
        const lines = gaps[free] ?? [];
        (lines[gap++] ??= members.map(() => undefined))[n + 1] = step;
      }
    });
  });
  return gaps.flatMap((lines, place) => [...lines, ...(rows[place] ? [rows[place]] : [])]);
}

// Each step of `other` with its place in `first`, -1 where it has none.
function matched(first: Step[], other: Step[]): [number, Step][] {
  const [a, b] = [first.map(same), other.map(same)];
  if (a.length > MOST_CALLS || b.length > MOST_CALLS) return other.map((step, n) => [a[n] === b[n] ? n : -1, step]);
  const width = b.length + 1;
  const longest = new Uint16Array((a.length + 1) * width);
  const at = (i: number, j: number) => longest[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      longest[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  let i = 0;
  return other.map((step, j) => {
    while (i < a.length && a[i] !== b[j] && at(i + 1, j) > at(i, j + 1)) i++;
    return [i < a.length && a[i] === b[j] ? i++ : -1, step];
  });
}

export function Group({ run, task, attempt }: { run: Run; task: string; attempt: number }) {
  const rows = run.columns.group(task, attempt);
  const load = () => Promise.all(rows.slice(0, MOST).map((row) => run.line(row)));
  const [lines, error] = useAsk(() => (rows.length ? load() : undefined), [run, task, attempt, rows.length]);
  const help = useKeys(screenKeys(run.name));
  if (error) return <Notice words={error} />;
  if (lines === undefined) return <p>Loading {clear(task)} …</p>;
  const members = lines.map((line) => line.trace);
  const [root, average] = [tree(members), score(members)];
  const found = decisive(root);
  const cell = (step: Step | undefined, first: Step | undefined) => {
    const equal = step && first && same(step) === same(first);
    return step && <span class={equal ? "dim" : ""}>{equal ? "=" : short(clear(same(step)), 160)}{step.is_error && <span class="refused"> ✗</span>}</span>;
  };
  return (
    <>
      <Title words={task} help={help}><span>{rows.length} members</span></Title>
      <p class="facts">
        <strong>mean score {figure(average)}</strong>
        {rows.length > MOST && <span>the first {MOST} members are shown</span>}
      </p>
      <h2>Where they part</h2>
      <p class="dim">By what they called; calls that all members of a branch made stand in one line.</p>
      <ul class="tree"><Branch node={root} decides={found.spread > 0 ? found.node : undefined} /></ul>
      <h2>Side by side</h2>
      <Sheet plain name="members side by side"
        heads={members.map((one) => (
          <>
            <a href={address.episode(run.name, task, one.member ?? 0, attempt)}>member {one.member ?? 0}</a>
            <br />
            score {figure(one.score)}{one.score != null && <span class="dim"> ({figure(one.score - average)})</span>}
          </>
        ))}
        rows={aligned(members.map(calls)).map(([first, ...others]) => [cell(first, undefined), ...others.map((step) => cell(step, first))])}
        foot={members.map((one) => (
          <>
            {one.end}{one.failure ? `, ${one.failure.part}: ${one.failure.kind}` : ""}
            {one.rewards?.map((reward) => (
              <div>{clear(reward.name)} {figure(reward.value)} <span class="dim">{short(clear(reward.reason ?? ""), 120)}</span></div>
            ))}
          </>
        ))}
      />
    </>
  );
}
