// Two runs side by side: episodes joined by task and member, and what is certain about the difference.
import { useMemo, useState } from "preact/hooks";
import type { Columns } from "./columns";
import { useKeys } from "./keys";
import { address, go, type Run } from "./run";
import { clear, figure, sum } from "./text";
import { count, Notice, Sheet, Title, useRuns } from "./ui";

const DRAWS = 2000;
const MOST = 100;
const SIDE = 260;

interface Pairs {
  // By task: the sums of both runs over pairs with two scores, and their number.
  tasks: { name: string; a: number; b: number; n: number }[]; better: number; worse: number; same: number;
  // Pairs without a score on one side at least, and episodes that only one run has.
  open: number; missing: number;
}

// The rows by member and task; of several attempts the last one counts.
const keyed = (columns: Columns): Map<string, number> =>
  new Map(Array.from({ length: columns.rows }, (_, row) => [`${columns.number("member", row)} ${columns.text("task", row)}`, row]));

function paired(a: Columns, b: Columns): Pairs {
  const [left, right] = [keyed(a), keyed(b)];
  const pairs = [...left].flatMap(([key, row]) => {
    const other = right.get(key);
    return other === undefined ? [] : [{ task: a.text("task", row), a: a.number("score", row), b: b.number("score", other) }];
  });
  const scored = pairs.filter((one) => !Number.isNaN(one.a + one.b));
  const tasks = [...Map.groupBy(scored, (one) => one.task)].map(([name, all]) => ({
    name, a: sum(all.map((one) => one.a)), b: sum(all.map((one) => one.b)), n: all.length,
  }));
  const [better, worse] = [scored.filter((one) => one.b > one.a).length, scored.filter((one) => one.b < one.a).length];
  const [open, missing] = [pairs.length - scored.length, left.size + right.size - 2 * pairs.length];
  return { tasks, better, worse, same: scored.length - better - worse, open, missing };
}

// The mean difference over pairs, and the interval that 95 % of draws of whole tasks give; the seed is fixed.
function difference(tasks: Pairs["tasks"]): { mean: number; low: number; high: number } {
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

export function Compare({ a, b }: { a: Run; b: Run }) {
  useRuns(a, b);
  const [every, setEvery] = useState(false);
  const ready = [a, b].every((one) => one.columns.head?.done);
  const found = useMemo(() => (ready ? paired(a.columns, b.columns) : undefined), [ready, a.columns.rows, b.columns.rows]);
  const certain = useMemo(() => found && difference(found.tasks), [found]);
  const help = useKeys([["x", "exchange the runs", () => go(address.compare(b.name, a.name))], ["Escape", "all runs", () => go("#/")]]);
  if (a.error || b.error) return <Notice words={a.error || b.error} />;
  if (found === undefined || certain === undefined) return <p>Loading both runs …</p>;
  const pairs = found.better + found.worse + found.same;
  const sorted = [...found.tasks].sort((x, y) => Math.abs(y.b - y.a) / y.n - Math.abs(x.b - x.a) / x.n);
  const shown = sorted.filter((one) => every || one.a !== one.b).slice(0, MOST);
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
        <h2>Tasks that differ most</h2>
        <label><input type="checkbox" checked={every} onChange={(event) => setEvery(event.currentTarget.checked)} /> equal ones, too</label>
      </div>
      <Sheet name="tasks"
        heads={["task", clear(a.name), clear(b.name), "difference", "pairs"]}
        rows={shown.map((one) => [
          clear(one.name), <a href={address.group(a.name, one.name, 0)}>{figure(one.a / one.n)}</a>,
          <a href={address.group(b.name, one.name, 0)}>{figure(one.b / one.n)}</a>, figure((one.b - one.a) / one.n),
          one.n,
        ])}
      />
      {sorted.length > shown.length && <p class="dim">{shown.length} of {count(sorted.length)} tasks are listed.</p>}
    </>
  );
}

// Means of tasks in both runs: above the diagonal the second run is better. The table below has the same.
function Scatter({ tasks, a, b }: { tasks: Pairs["tasks"]; a: string; b: string }) {
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
