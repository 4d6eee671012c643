// Two runs side by side: episodes joined by task and member, and what is certain about the difference.
import { useMemo, useState } from "preact/hooks";
import { Beside } from "./group";
import { useKeys } from "./keys";
import { address, ask, go, type Run } from "./run";
import { SEPARATOR } from "./shapes";
import { clear, count, figure, sum } from "./text";
import { Notice, Sheet, Title, useAsk, useChosen, useRuns } from "./ui";

const DRAWS = 2000;
const MOST = 100;
const SIDE = 260;

// Sums over n pairs: of scores, or of episodes for which something holds.
interface Part { name: string; a: number; b: number; n: number }

interface Compared {
  better: number; worse: number; same: number;
  // Pairs without a score on one side at least, and episodes that only one run has.
  open: number; missing: number;
  // Those that differ most come first.
  parts: Record<string, Part[]>;
}

const MEAN = "Mean scores.";
const quoted = (name: string) => (value: string) => `${name}:${JSON.stringify(value)}`;

// What the runs are compared by, what its numbers are, and the filter that leaves the episodes of a part.
const BY: Record<string, [means: string, where: (name: string) => string]> = {
  task: [MEAN, quoted("task")],
  tag: [MEAN, (name) => name],
  tool: ["Mean scores of the pairs in which one run at least called the tool.", quoted("tool")],
  phase: ["Shares of episodes that reached the phase.", (name) => `${name}>0`],
  shape: ["Shares of episodes that failed in this way.", (name) => quoted("shape")(`${name}${SEPARATOR}*`)],
};
const BYS = Object.keys(BY);

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
  if (task === null) return <Whole a={a} b={b} by={by in BY ? by : "task"} />;
  if (![a, b].every((one) => one.columns.head?.done)) return <p>Loading both runs …</p>;
  const members = new Set([a, b].flatMap((one) => one.columns.group(task, 0).map((row) => one.columns.number("member", row))));
  const of = [...members].sort((x, y) => x - y).flatMap((member) => [a, b].map((one): [Run, number] => [one, one.columns.row(task, member, 0)]));
  return <Beside words={task} of={of.filter(([, row]) => row >= 0)} back={() => go(address.compare(a.name, b.name))} />;
}

function Whole({ a, b, by }: { a: Run; b: Run; by: string }) {
  const [every, setEvery] = useState(false);
  const ready = [a, b].every((one) => one.columns.head?.done);
  // Asked anew when the runs have grown by a hundredth.
  const size = Math.floor(100 * Math.log(a.columns.rows + b.columns.rows));
  const path = `compare?a=${encodeURIComponent(a.name)}&b=${encodeURIComponent(b.name)}`;
  const [found, error] = useAsk(() => (ready ? ask<Compared>(path) : undefined), [path, ready, size]);
  const tasks = found?.parts.task ?? [];
  const certain = useMemo(() => difference(tasks), [found]);
  const parts = found?.parts[by] ?? [];
  const shown = parts.filter((one) => every || one.a !== one.b).slice(0, MOST);
  const { place, at, choose, keys } = useChosen(shown.length, by);
  const there = (by: string) => address.compare(a.name, b.name, by);
  const episodes = (run: Run, one: Part) => address.episodes(run.name, BY[by]?.[1](one.name));
  const open = (one: Part) => (by === "task" ? address.compare(a.name, b.name, "", one.name) : episodes(b, one));
  const help = useKeys([
    ...keys,
    ["Enter", "the episodes of both runs side by side; of another part than a task, those of the second run", () => shown[at()] && go(open(shown[at()] as Part))],
    ["b", `compare by ${BYS.join(", ")}`, () => go(there(BYS[(BYS.indexOf(by) + 1) % BYS.length] ?? "task"))],
    ["x", "exchange the runs", () => go(address.compare(b.name, a.name, by))], ["Escape", "all runs", () => go("#/")],
  ]);
  if (a.error || b.error || error) return <Notice words={a.error || b.error || error} />;
  if (found === undefined) return <p>Loading both runs …</p>;
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
          95 % of draws over {count(tasks.length)} tasks: {figure(certain.low)} to {figure(certain.high)}
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
      <Scatter tasks={tasks} a={a.name} b={b.name} />
      <div class="bar">
        <h2>What differs most</h2>
        {BYS.map((one) => <a href={there(one)} aria-current={one === by ? "true" : undefined}>by {one}</a>)}
        <label><input type="checkbox" checked={every} onChange={(event) => setEvery(event.currentTarget.checked)} /> equal ones, too</label>
      </div>
      <p class="dim">{BY[by]?.[0]}</p>
      <Sheet name={`by ${by}`} current={place} choose={choose}
        heads={[by, clear(a.name), clear(b.name), "difference", "pairs"]}
        rows={shown.map((one) => {
          const of = (run: Run, sum: number) =>
            <a href={by === "task" ? address.group(run.name, one.name, 0) : episodes(run, one)}>{figure(sum / one.n)}</a>;
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
