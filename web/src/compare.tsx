// Two runs side by side: episodes joined by task and member, and what is certain about the difference.
import { useMemo, useState } from "preact/hooks";
import type { Columns } from "./columns";
import { Beside } from "./group";
import { useKeys } from "./keys";
import { address, go, type Run } from "./run";
import { SEPARATOR } from "./shapes";
import { clear, count, figure, sum } from "./text";
import { Notice, Sheet, Title, useChosen, useRuns } from "./ui";

const DRAWS = 2000;
const MOST = 100;
const SIDE = 260;

// Rows of one task and member in both runs, both with a score.
interface Pair { left: number; right: number; a: number; b: number }

// Sums over n pairs: of scores, or of episodes for which something holds.
interface Part { name: string; a: number; b: number; n: number }

interface Pairs {
  all: Pair[]; tasks: Part[]; better: number; worse: number; same: number;
  // Pairs without a score on one side at least, and episodes that only one run has.
  open: number; missing: number;
}

// The rows by member and task; of several attempts the last one counts.
const keyed = (columns: Columns): Map<string, number> =>
  new Map(Array.from({ length: columns.rows }, (_, row) => [`${columns.number("member", row)} ${columns.text("task", row)}`, row]));

function paired(a: Columns, b: Columns): Pairs {
  const [lefts, rights] = [keyed(a), keyed(b)];
  const pairs = [...lefts].flatMap(([key, left]) => {
    const right = rights.get(key);
    return right === undefined ? [] : [{ left, right, a: a.number("score", left), b: b.number("score", right) }];
  });
  const all = pairs.filter((one) => !Number.isNaN(one.a + one.b));
  const [better, worse] = [all.filter((one) => one.b > one.a).length, all.filter((one) => one.b < one.a).length];
  const [open, missing] = [pairs.length - all.length, lefts.size + rights.size - 2 * pairs.length];
  return { all, tasks: PARTS.task(a, b, all), better, worse, same: all.length - better - worse, open, missing };
}

// Adds up scores by what a pair is about.
function scores(pairs: Pair[], of: (pair: Pair) => Iterable<string>): Part[] {
  const found = new Map<string, Part>();
  for (const pair of pairs) for (const name of of(pair)) {
    const part = found.get(name) ?? { name, a: 0, b: 0, n: 0 };
    found.set(name, part);
    part.a += pair.a;
    part.b += pair.b;
    part.n += 1;
  }
  return [...found.values()];
}

// Counts the pairs for which something holds in the first run, and in the second one.
function shares(pairs: Pair[], names: Iterable<string>, holds: (name: string, pair: Pair) => [boolean, boolean]): Part[] {
  return Array.from(new Set(names), (name) => {
    const held = pairs.map((pair) => holds(name, pair));
    return { name, a: held.filter(([one]) => one).length, b: held.filter(([, one]) => one).length, n: pairs.length };
  });
}

const levels = (columns: Columns, level: string): string[] => [...columns.byName.values()].filter((one) => one.level === level).map((one) => one.name.replace(/^reward\./, ""));
const failure = (columns: Columns, row: number): string => columns.text("shape", row).split(SEPARATOR)[0] ?? "";

// What the runs are compared by, besides as a whole.
const PARTS = {
  task: (a: Columns, _: Columns, all: Pair[]) => scores(all, (one) => [a.text("task", one.left)]),
  tag: (a: Columns, _: Columns, all: Pair[]) => {
    const tags = [...a.byName.keys()].filter((name) => name.startsWith("tag."));
    return scores(all, (one) => tags.map((name) => a.text(name, one.left) && `${name.slice(4)}:${JSON.stringify(a.text(name, one.left))}`).filter(Boolean));
  },
  tool: (a: Columns, b: Columns, all: Pair[]) => scores(all, (one) => new Set([...a.list("tool", one.left), ...b.list("tool", one.right)])),
  phase: (a: Columns, b: Columns, all: Pair[]) =>
    shares(all, [...levels(a, "phase"), ...levels(b, "phase")], (name, one) => [(a.find(name)?.number(one.left) ?? 0) > 0, (b.find(name)?.number(one.right) ?? 0) > 0]),
  shape: (a: Columns, b: Columns, all: Pair[]) => {
    const failures = all.flatMap((one) => [failure(a, one.left), failure(b, one.right)]).filter(Boolean);
    return shares(all, failures, (name, one) => [failure(a, one.left) === name, failure(b, one.right) === name]);
  },
};
type By = keyof typeof PARTS;
const BYS = Object.keys(PARTS) as By[];
const MEANS: Record<By, string> = {
  task: "Mean scores.", tag: "Mean scores.", tool: "Mean scores of the pairs in which one run at least called the tool.",
  phase: "Shares of episodes that reached the phase.", shape: "Shares of episodes that failed in this way.",
};
// The filter that leaves the episodes of a part.
const WHERE: Record<By, (name: string) => string> = {
  task: (name) => `task:${JSON.stringify(name)}`, tag: (name) => name, tool: (name) => `tool:${JSON.stringify(name)}`,
  phase: (name) => `${name}>0`, shape: (name) => `shape:${JSON.stringify(`${name}${SEPARATOR}*`)}`,
};

// The mean difference over pairs, and the interval that 95 % of draws of whole tasks give; the seed is fixed.
function difference(tasks: Part[]): { mean: number; low: number; high: number } {
  const gaps = Float64Array.from(tasks, (one) => one.b - one.a);
  const sizes = Float64Array.from(tasks, (one) => one.n);
  const mean = sum(gaps) / sum(sizes);
  let state = 7;
  const draws = Float64Array.from({ length: tasks.length > 1 ? DRAWS : 0 }, () => {
    let [gap, size] = [0, 0];
    for (let n = 0; n < gaps.length; n++) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      const place = Math.floor((state / 2 ** 32) * gaps.length);
      gap += gaps[place] ?? 0;
      size += sizes[place] ?? 0;
    }
    return gap / size;
  }).sort();
  return { mean, low: draws[Math.floor(0.025 * draws.length)] ?? NaN, high: draws[Math.ceil(0.975 * draws.length) - 1] ?? NaN };
}

export function Compare({ a, b, by, task }: { a: Run; b: Run; by: string; task: string | null }) {
  useRuns(a, b);
  if (task === null) return <Whole a={a} b={b} by={BYS.find((one) => one === by) ?? "task"} />;
  if (![a, b].every((one) => one.columns.head?.done)) return <p>Loading both runs …</p>;
  const members = new Set([a, b].flatMap((one) => one.columns.group(task, 0).map((row) => one.columns.number("member", row))));
  const of = [...members].sort((x, y) => x - y).flatMap((member) => [a, b].map((one): [Run, number] => [one, one.columns.row(task, member, 0)]));
  return <Beside words={task} of={of.filter(([, row]) => row >= 0)} back={() => go(address.compare(a.name, b.name))} />;
}

function Whole({ a, b, by }: { a: Run; b: Run; by: By }) {
  const [every, setEvery] = useState(false);
  const ready = [a, b].every((one) => one.columns.head?.done);
  const found = useMemo(() => (ready ? paired(a.columns, b.columns) : undefined), [ready, a.columns.rows, b.columns.rows]);
  const certain = useMemo(() => found && difference(found.tasks), [found]);
  const parts = useMemo(() => {
    const all = found && (by === "task" ? found.tasks : PARTS[by](a.columns, b.columns, found.all));
    return [...(all ?? [])].sort((x, y) => Math.abs(y.b - y.a) / y.n - Math.abs(x.b - x.a) / x.n);
  }, [found, by]);
  const shown = parts.filter((one) => every || one.a !== one.b).slice(0, MOST);
  const { place, at, choose, keys } = useChosen(shown.length, by);
  const there = (by: By) => address.compare(a.name, b.name, by);
  const open = (one: Part) => (by === "task" ? address.compare(a.name, b.name, "", one.name) : address.episodes(b.name, WHERE[by](one.name)));
  const help = useKeys([
    ...keys,
    ["Enter", "the episodes of both runs side by side; of another part than a task, those of the second run", () => shown[at()] && go(open(shown[at()] as Part))],
    ["b", `compare by ${BYS.join(", ")}`, () => go(there(BYS[(BYS.indexOf(by) + 1) % BYS.length] ?? "task"))],
    ["x", "exchange the runs", () => go(address.compare(b.name, a.name, by))], ["Escape", "all runs", () => go("#/")],
  ]);
  if (a.error || b.error) return <Notice words={a.error || b.error} />;
  if (found === undefined || certain === undefined) return <p>Loading both runs …</p>;
  const pairs = found.better + found.worse + found.same;
  // Each pair without a score may hide a whole point in either direction.
  const hidden = found.open / Math.max(1, pairs + found.open);
  const title = <Title words={`${a.name} → ${b.name}`} help={help} />;
  if (pairs === 0) return <>{title}<p class="notice">The runs have no episode of the same task and member with a score in both.</p></>;
  return (
    <>
      {title}
      <p class="facts">
        <strong>{certain.mean > 0 ? "+" : ""}{figure(certain.mean)}</strong>
        <span>
          95 % of draws over {count(found.tasks.length)} tasks: {figure(certain.low)} to {figure(certain.high)}
          {certain.low <= 0 && certain.high >= 0 && ", which holds 0: the runs may be alike"}
        </span>
      </p>
      <p class="facts">
        {(["better", "worse", "same"] as const).map((kind) => <span>{count(found[kind])} {kind}</span>)}
        <span>{count(found.open)} without a score in one</span>
        <span>{count(found.missing)} in one run only</span>
      </p>
      {found.open > 0 && hidden >= Math.abs(certain.mean) && (
        <p class="notice">
          The difference is smaller than what the episodes without a score leave open ({figure(hidden)}, where scores lie between 0 and 1).
        </p>
      )}
      <Scatter tasks={found.tasks} a={a.name} b={b.name} />
      <div class="bar">
        <h2>What differs most</h2>
        {BYS.map((one) => <a href={there(one)} aria-current={one === by ? "true" : undefined}>by {one}</a>)}
        <label><input type="checkbox" checked={every} onChange={(event) => setEvery(event.currentTarget.checked)} /> equal ones, too</label>
      </div>
      <p class="dim">{MEANS[by]}</p>
      <Sheet name={`by ${by}`} current={place} choose={choose}
        heads={[by, clear(a.name), clear(b.name), "difference", "pairs"]}
        rows={shown.map((one) => {
          const of = (run: Run, sum: number) =>
            <a href={by === "task" ? address.group(run.name, one.name, 0) : address.episodes(run.name, WHERE[by](one.name))}>{figure(sum / one.n)}</a>;
          return [clear(one.name), of(a, one.a), of(b, one.b), figure((one.b - one.a) / one.n), by === "task" ? <a href={open(one)} title="side by side">{one.n} side by side</a> : count(one.n)];
        })}
      />
      {parts.length > shown.length && <p class="dim">{shown.length} of {count(parts.length)} are listed.</p>}
    </>
  );
}

// Means of tasks in both runs: above the diagonal the second run is better. The table below has the same.
function Scatter({ tasks, a, b }: { tasks: Part[]; a: string; b: string }) {
  const values = tasks.flatMap((one) => [one.a / one.n, one.b / one.n]);
  const low = values.reduce((least, one) => Math.min(least, one), 0);
  const high = values.reduce((most, one) => Math.max(most, one), 1);
  const place = (value: number) => 10 + ((value - low) / (high - low)) * (SIDE - 20);
  const dots = tasks.map((one) => `M${(place(one.a / one.n) - 2).toFixed(1)} ${(SIDE - place(one.b / one.n) - 2).toFixed(1)}h4v4h-4z`);
  return (
    <figure class="scatter">
      <svg width={SIDE} height={SIDE} role="img" aria-label={clear(`mean score of each task, ${a} to the right, ${b} upwards`)}>
        <path class="frame" d={`M10 10V${SIDE - 10}H${SIDE - 10}M10 ${SIDE - 10}L${SIDE - 10} 10`} />
        <path class="dots" d={[...new Set(dots)].join("")} />
      </svg>
      <figcaption class="dim">A dot a task: its mean in {clear(a)} to the right, in {clear(b)} upwards; above the line {clear(b)} is better.</figcaption>
    </figure>
  );
}
