// A group, or other episodes: their calls side by side, and where the members of a group part.
import type { ComponentChildren } from "preact";
import { words } from "./changes";
import { useKeys } from "./keys";
import { plain, type Step, type Trace } from "./record";
import { address, BESIDE, go, type Run, screenKeys } from "./run";
import { clear, figure, known, mean, short } from "./text";
import { Notice, Sheet, Title, useAsk } from "./ui";

const MOST_CALLS = 1500;

// `name` tells ways apart, `label` is what is shown of it.
interface Move { name: string; label: string }
interface Node extends Move { members: Trace[]; next: Node[] }

type Cells = (Step | undefined)[];

const calls = (trace: Trace): Step[] => (trace.turns ?? []).flatMap((turn) => turn.steps ?? []);
const same = (step: Step): string => `${step.call.name} ${step.call.arguments}`;

// What members are told apart by: their calls, their exact replies, or the worlds that these led to.
const MOVES: Record<string, (trace: Trace) => Move[]> = {
  calls: (trace) => calls(trace).map((step) => ({ name: same(step), label: same(step) })),
  replies: (trace) => (trace.turns ?? []).map(({ thread, reply: { message } }) => {
    const made = message.calls?.map((one) => `${one.name} ${one.arguments}`) ?? [];
    return { name: JSON.stringify([thread, message]), label: [plain(message.content), ...made].filter(Boolean).join(" · ") };
  }),
  worlds: (trace) => (trace.turns ?? []).flatMap((turn, n, all) => {
    const name = turn.state_digest ?? "";
    const made = turn.steps?.map((one) => one.call.name) ?? [];
    return name === all[n - 1]?.state_digest ? [] : [{ name, label: `${name.slice(0, 8)}${made.length ? ` after ${made.join(", ")}` : ""}` }];
  }),
};

// The members by their moves, as a tree: each node is a move, with all members that made it there.
function tree(members: Trace[], by: string): Node {
  const root: Node = { name: "", label: "", members, next: [] };
  for (const trace of members) {
    let at = root;
    for (const move of MOVES[by]?.(trace) ?? []) {
      let next = at.next.find((one) => one.name === move.name);
      if (next === undefined) at.next.push((next = { ...move, members: [], next: [] }));
      next.members.push(trace);
      at = next;
    }
  }
  return root;
}

// How many nodes have a name: worlds at which several ways meet again have more than one.
function met(node: Node, found = new Map<string, number>()): Map<string, number> {
  found.set(node.name, (found.get(node.name) ?? 0) + 1);
  node.next.forEach((one) => met(one, found));
  return found;
}

const scores = (members: Trace[]): number[] => members.flatMap((one) => one.score ?? []);
const score = (members: Trace[]): number => mean(scores(members));

// A mean score, with its standard error where several members went on.
function average(members: Trace[]): string {
  const [found, middle] = [scores(members), score(members)];
  const error = Math.sqrt(mean(found.map((one) => (one - middle) ** 2)) / (found.length - 1));
  return `mean ${figure(middle)}${found.length > 1 ? ` ± ${figure(error)}` : ""}`;
}

// Members of a node that make no further call.
const ended = (node: Node): Trace[] => node.members.filter((one) => !node.next.some((next) => next.members.includes(one)));

// The node at which the mean score changes most between the ways on; those that end there are a way of their own.
function decisive(node: Node): { node: Node; spread: number } {
  const ways = [...node.next.map((one) => one.members), ended(node)];
  const means = known(ways.map(score));
  const own = { node, spread: means.length > 1 ? Math.max(...means) - Math.min(...means) : 0 };
  return node.next.map(decisive).reduce((best, one) => (one.spread > best.spread ? one : best), own);
}

function Branch({ node, decides, nodes }: { node: Node; decides: Node | undefined; nodes: Map<string, number> }) {
  // Moves that all members of a node share are one line.
  const chain = [node];
  let last = node;
  while (last.next.length === 1 && last.next[0]?.members.length === last.members.length) chain.push((last = last.next[0]));
  const done = last.next.length ? ended(last).length : 0;
  return (
    <li>
      <span class="count">{node.members.length} × {average(node.members)}</span>{" "}
      {chain.map((one) => one.name && (
        <span class="call">{short(clear(one.label), 70)}{(nodes.get(one.name) ?? 0) > 1 && <span class="count"> ⤨ also on another way</span>}</span>
      ))}
      {decides && chain.includes(decides) && last.next.length > 0 && <strong class="decides"> ← here the scores part most</strong>}
      {done > 0 && <span class="dim"> {done} end here</span>}
      {last.next.length > 0 && <ul>{last.next.map((one) => <Branch node={one} decides={decides} nodes={nodes} />)}</ul>}
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
      const place = partner >= 0 ? partner : free < until ? free : -1;
      const row = rows[place] ?? ((gaps[free] ??= [])[gap++] ??= members.map(() => undefined));
      row[n + 1] = step;
      if (place >= 0) [free, gap] = [place + 1, 0];
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

interface Member { trace: Trace; run: Run }

const BYS = Object.keys(MOVES);

export function Group({ run, task, attempt, by }: { run: Run; task: string; attempt: number; by: string }) {
  const rows = run.columns.group(task, attempt);
  const load = () => Promise.all(rows.slice(0, BESIDE).map((row) => run.line(row)));
  const [lines, error] = useAsk(() => (rows.length ? load() : undefined), [run, task, attempt, rows.length]);
  const moves = BYS.includes(by) ? by : "calls";
  const there = (by: string) => address.group(run.name, task, attempt, by);
  const help = useKeys([["b", "by calls, replies or worlds", () => go(there(BYS[(BYS.indexOf(moves) + 1) % BYS.length] ?? ""))], ...screenKeys(run.name)]);
  if (error) return <Notice words={error} />;
  if (lines === undefined) return <p>Loading {clear(task)} …</p>;
  const members = lines.map((line) => line.trace);
  const root = tree(members, moves);
  const found = decisive(root);
  return (
    <>
      <Title words={task} help={help}><span>{rows.length} members</span></Title>
      <p class="facts">
        <strong>{average(members)}</strong>
        {rows.length > BESIDE && <span>the first {BESIDE} members are shown</span>}
      </p>
      <h2>Where they part</h2>
      <p class="facts" role="group" aria-label="by">
        {BYS.map((one) => <a href={there(one)} aria-current={one === moves ? "true" : undefined}>by {one}</a>)}
        <span class="dim">What all members of a branch did stands in one line.</span>
      </p>
      <ul class="tree"><Branch node={root} decides={found.spread > 0 ? found.node : undefined} nodes={moves === "worlds" ? met(root) : new Map()} /></ul>
      <h2>Side by side</h2>
      <Sides members={members.map((trace) => ({ trace, run }))} />
    </>
  );
}

// Episodes of one run or of several, which the address names; their rows are -1 where there are none.
export function Beside({ words, of, back }: { words: string; of: [run: Run, row: number][]; back: () => void }) {
  const found = of.length > 0 && of.every(([run, row]) => row >= 0 && run.columns.head);
  const load = () => Promise.all(of.slice(0, BESIDE).map(async ([run, row]) => ({ run, trace: (await run.line(row)).trace })));
  const [members, error] = useAsk(() => (found ? load() : undefined), [words, found]);
  const help = useKeys([["Escape", "back", back]]);
  if (error) return <Notice words={error} />;
  if (!found && of.every(([run]) => run.columns.head?.done)) return <Notice words="The run does not have all of these episodes." />;
  return (
    <>
      <Title words={words} help={help} />
      {members ? <Sides members={members} /> : <p>Loading the episodes …</p>}
    </>
  );
}

// A text in which words that the other one lacks are marked.
function differing(text: string, other: string | undefined): ComponentChildren {
  const known = words(other ?? text);
  return text.split(/([\p{L}\p{N}_-]+)/u).map((part, n) => (n % 2 && !known.has(part) ? <mark>{clear(part)}</mark> : clear(part)));
}

function Sides({ members }: { members: Member[] }) {
  const traces = members.map((one) => one.trace);
  const middle = score(traces);
  const cell = (step: Step | undefined, first: Step | undefined) => {
    const equal = step && first && same(step) === same(first);
    const other = step && first && step.call.name === first.call.name ? same(first) : undefined;
    return step && <span class={equal ? "dim" : ""}>{equal ? "=" : differing(short(same(step), 160), other)}{step.is_error && <span class="refused"> ✗</span>}</span>;
  };
  const several = (of: (one: Member) => string) => new Set(members.map(of)).size > 1;
  const [runs, tasks] = [several((one) => one.run.name), several((one) => one.trace.task)];
  return (
    <Sheet plain name="members side by side"
      heads={members.map(({ trace, run }) => (
        <>
          {runs && <>{clear(run.name)}<br /></>}
          {tasks && <>{clear(trace.task)}<br /></>}
          <a href={address.episode(run.name, trace.task, trace.member ?? 0, trace.attempt ?? 0)}>member {trace.member ?? 0}</a>
          <br />
          score {figure(trace.score)}{trace.score != null && <span class="dim"> ({figure(trace.score - middle)})</span>}
        </>
      ))}
      rows={aligned(traces.map(calls)).map(([first, ...others]) => [cell(first, undefined), ...others.map((step) => cell(step, first))])}
      foot={traces.map((one) => (
        <>
          {one.end}{one.failure ? `, ${one.failure.part}: ${one.failure.kind}` : ""}
          {one.rewards?.map((reward) => (
            <div>{clear(reward.name)} {figure(reward.value)} <span class="dim">{short(clear(reward.reason ?? ""), 120)}</span></div>
          ))}
        </>
      ))}
    />
  );
}
