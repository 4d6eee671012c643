// A group: its members side by side, and the call at which they part.
import { useEffect, useState } from "preact/hooks";
import { useKeys } from "./keys";
import type { Step, Trace } from "./record";
import { address, type Run } from "./run";
import { clear, figure, short } from "./text";

const MOST = 16;
const MOST_CALLS = 1500;

interface Node {
  name: string;
  members: Trace[];
  next: Node[];
}

function calls(trace: Trace): Step[] {
  return (trace.turns ?? []).flatMap((turn) => turn.steps ?? []);
}

function same(step: Step): string {
  return `${step.call.name} ${step.call.arguments}`;
}

// The members by what they called, as a tree: each node is a call, with all members that made it there.
export function tree(members: Trace[]): Node {
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

export function mean(members: Trace[]): number {
  const scores = members.flatMap((one) => (one.score == null ? [] : [one.score]));
  return scores.reduce((sum, score) => sum + score, 0) / scores.length;
}

// Members that go on in one way each: those that end here are a way of their own.
function ways(node: Node): Trace[][] {
  const ended = node.members.filter((one) => !node.next.some((next) => next.members.includes(one)));
  return [...node.next.map((one) => one.members), ...(ended.length ? [ended] : [])];
}

// The node at which the mean score changes most between the ways on.
export function decisive(node: Node): { node: Node; spread: number } {
  const means = ways(node).map(mean).filter((one) => !Number.isNaN(one));
  let best = { node, spread: means.length > 1 ? Math.max(...means) - Math.min(...means) : 0 };
  for (const next of node.next) {
    const found = decisive(next);
    if (found.spread > best.spread) best = found;
  }
  return best;
}

function Branch({ node, decides }: { node: Node; decides: Node }) {
  // Calls that all members of a node share are one line.
  const chain = [node];
  let last = node;
  while (last.next.length === 1 && last.next[0]?.members.length === last.members.length) {
    last = last.next[0];
    chain.push(last);
  }
  const ended = ways(last).length > last.next.length ? last.members.length - last.next.reduce((n, one) => n + one.members.length, 0) : 0;
  return (
    <li>
      <span class="count">
        {node.members.length} × mean {figure(mean(node.members))}
      </span>{" "}
      {chain.map((one) => one.name && <span class="call">{short(clear(one.name), 70)}</span>)}
      {chain.includes(decides) && last.next.length > 0 && <strong class="decides"> ← here the scores part most</strong>}
      {ended > 0 && last.next.length > 0 && <span class="dim"> {ended} end here</span>}
      {last.next.length > 0 && (
        <ul>
          {last.next.map((one) => (
            <Branch node={one} decides={decides} />
          ))}
        </ul>
      )}
    </li>
  );
}

// Rows of corresponding calls: the longest common subsequence with the first member; a call without a partner stands
// beside one of the first member's that has none either, or in a row of its own.
export function aligned(members: Step[][]): (Step | undefined)[][] {
  const first = members[0] ?? [];
  const gaps: (Step | undefined)[][][] = Array.from({ length: first.length + 1 }, () => []);
  const rows = first.map((step) => [step, ...members.slice(1).map(() => undefined)] as (Step | undefined)[]);
  members.slice(1).forEach((other, n) => {
    const pairs = matched(first, other);
    let [free, gap] = [0, 0];
    pairs.forEach(([partner, step], at) => {
      const until = partner >= 0 ? partner : (pairs.slice(at).find(([later]) => later >= 0)?.[0] ?? first.length);
      const row = partner >= 0 ? rows[partner] : free < until ? rows[free] : undefined;
      if (row) {
        row[n + 1] = step;
        [free, gap] = [(partner >= 0 ? partner : free) + 1, 0];
      } else {
        const lines = gaps[free] as (Step | undefined)[][];
        const line = (lines[gap++] ??= members.map(() => undefined));
        line[n + 1] = step;
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
  const found: [number, Step][] = [];
  let i = 0;
  other.forEach((step, j) => {
    while (i < a.length && a[i] !== b[j] && at(i + 1, j) > at(i, j + 1)) i++;
    while (i < a.length && a[i] !== b[j] && at(i + 1, j) === at(i, j) && at(i, j + 1) < at(i, j)) i++;
    if (a[i] === b[j] && i < a.length) found.push([i++, step]);
    else found.push([-1, step]);
  });
  return found;
}

export function Group({ run, task, attempt }: { run: Run; task: string; attempt: number }) {
  const [members, setMembers] = useState<Trace[]>();
  const [error, setError] = useState("");
  const rows = run.columns.group(task, attempt);
  useEffect(() => {
    let wanted = true;
    Promise.all(rows.slice(0, MOST).map((row) => run.line(row)))
      .then((lines) => wanted && setMembers(lines.map((line) => line.trace)))
      .catch((problem: unknown) => wanted && setError(String(problem)));
    return () => {
      wanted = false;
    };
  }, [run, task, attempt, rows.length]);
  const help = useKeys([
    ["Escape", "back to the table", () => history.back()],
    ["g e", "all episodes", () => (location.hash = address.episodes(run.name))],
  ]);
  if (error) return <p class="notice" role="alert">{error}</p>;
  if (members === undefined || rows.length === 0) return <p>Loading {clear(task)} …</p>;
  const root = tree(members);
  const found = decisive(root);
  const lines = aligned(members.map(calls));
  const average = mean(members);
  return (
    <>
      <p class="bar">
        <a href={address.episodes(run.name)}>all episodes</a>
        {help}
      </p>
      <header class="episode">
        <h1>
          {clear(task)} <small>{rows.length} members</small>
        </h1>
        <p class="facts">
          <strong>mean score {figure(average)}</strong>
          {rows.length > MOST && <span>the first {MOST} members are shown</span>}
        </p>
      </header>
      <h2>Where they part</h2>
      <p class="dim">By what they called; calls that all members of a branch made stand in one line.</p>
      <ul class="tree">
        <Branch node={root} decides={found.spread > 0 ? found.node : { ...root }} />
      </ul>
      <h2>Side by side</h2>
      <div class="sides" tabIndex={0} role="region" aria-label="members side by side">
        <table>
          <thead>
            <tr>
              {members.map((one) => (
                <th scope="col">
                  <a href={address.episode(run.name, task, one.member ?? 0, attempt)}>member {one.member ?? 0}</a>
                  <br />
                  score {figure(one.score)}
                  {one.score != null && <span class="dim"> ({figure(one.score - average)})</span>}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {lines.map((line) => (
              <tr>
                {line.map((step, n) => {
                  const equal = n > 0 && step && line[0] && same(step) === same(line[0]);
                  return (
                    <td class={equal ? "same" : ""}>
                      {step && (equal ? "=" : short(clear(same(step)), 160))}
                      {step?.is_error && <span class="refused"> ✗</span>}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
          <tfoot>
            <tr>
              {members.map((one) => (
                <td>
                  {one.end}
                  {one.failure ? `, ${one.failure.part}: ${one.failure.kind}` : ""}
                  {(one.rewards ?? []).map((reward) => (
                    <div>
                      {clear(reward.name)} {figure(reward.value)} <span class="dim">{short(clear(reward.reason ?? ""), 120)}</span>
                    </div>
                  ))}
                </td>
              ))}
            </tr>
          </tfoot>
        </table>
      </div>
    </>
  );
}
