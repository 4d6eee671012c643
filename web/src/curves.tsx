// Curves of a run over policy versions, or over its episodes in the order in which they ended.
import { useMemo } from "preact/hooks";
import type { Columns } from "./columns";
import { grouped } from "./groups";
import { useKeys } from "./keys";
import { address, go, type Run, screenKeys } from "./run";
import { clear, figure, known, mean } from "./text";
import { Details, Notice, part, Sheet, Title, useAnswer } from "./ui";
import { compile, matching } from "./where";

const MOST = 60;
const MOST_TOOLS = 8;
const WIDE = 280;
const HIGH = 96;
const Z = 1.96;

// Some consecutive versions or episodes.
interface Bin { first: number; last: number; rows: number[] }

interface Curve {
  name: string;
  // By bin; NaN where nothing was measured.
  values: number[]; low?: number[]; high?: number[];
}

// The rows by version, or by their order; neighbours are put together where there are too many to draw.
function bins(columns: Columns, by: "version" | "episode"): Bin[] {
  const data = by === "version" ? columns.byName.get("version")?.data : undefined;
  const at = (row: number) => (data ? (data[row] ?? NaN) : row);
  const rows = Array.from({ length: columns.rows }, (_, row) => row).filter((row) => !Number.isNaN(at(row)));
  const places = [...Map.groupBy(rows, at)].sort(([a], [b]) => a - b);
  const each = Math.ceil(places.length / MOST) || 1;
  return Array.from({ length: Math.ceil(places.length / each) }, (_, n) => {
    const some = places.slice(n * each, (n + 1) * each);
    return { first: some[0]?.[0] ?? NaN, last: some.at(-1)?.[0] ?? NaN, rows: some.flatMap(([, rows]) => rows) };
  });
}

function curves(columns: Columns, all: Bin[]): Curve[] {
  const number = (name: string) => (row: number) => columns.number(name, row);
  const over = (name: string, of: (rows: number[]) => number): Curve => ({ name, values: all.map((one) => of(one.rows)) });
  const average = (name: string, value: (row: number) => number) => over(name, (rows) => mean(known(rows.map(value))));
  const holding = (name: string, where: string) => {
    const kept = new Set(matching(columns, compile(columns, where, () => new Set())));
    return over(name, (rows) => mean(rows.map((row) => Number(kept.has(row)))));
  };
  // The scores of each group, without failed members.
  const groups = all.map((one) => grouped(columns, one.rows).flatMap(({ scores }) => (scores.length ? [scores] : [])));
  const share = (name: string, fits: (scores: number[]) => boolean): Curve => ({
    name, values: groups.map((found) => found.filter(fits).length / found.length),
  });
  // Members of a group have the same task, so the interval is that of the means of groups.
  const errors = groups.map((found) => {
    const means = found.map(mean);
    const middle = mean(means);
    return Z * Math.sqrt(mean(means.map((one) => (one - middle) ** 2)) / (means.length - 1));
  });
  const score = average("score", number("score"));
  score.low = score.values.map((value, n) => value - (errors[n] ?? NaN));
  score.high = score.values.map((value, n) => value + (errors[n] ?? NaN));
  const rewards = [...columns.byName.values()].filter((one) => one.level);
  const named = (one: { name: string }) => one.name.replace(/^reward\./, "");
  const found = [
    score,
    holding("failed", "score:none"),
    ...(columns.byName.get("component")?.values ?? []).filter(Boolean).map((letter) => holding(`failed: component ${letter}`, `component:${letter}`)),
    ...rewards.filter((one) => one.level === "trajectory").map((one) => average(named(one), (row) => one.number(row))),
    ...rewards
      .filter((one) => one.level === "phase")
      .map((one) => over(`reached ${named(one)}`, (rows) => rows.filter((row) => one.number(row) > 0).length / rows.length)),
    share("groups that are all 0", (scores) => scores.length > 1 && scores.every((one) => one <= 0)),
    share("groups that are all 1", (scores) => scores.length > 1 && scores.every((one) => one >= 1)),
    share("groups with several scores", (scores) => new Set(scores).size > 1),
    average("turns", number("turns")),
    average("completion tokens", number("completion")),
    ...(columns.byName.get("tool")?.values ?? []).slice(0, MOST_TOOLS).map((tool) => holding(`episodes with ${tool}`, `tool:${JSON.stringify(tool)}`)),
    average("refused calls", (row) => columns.number("errors", row) / columns.number("steps", row)),
    average("mean logprob", number("logprob")),
    average("versions in an episode", (row) => columns.number("last_version", row) - columns.number("version", row) + 1),
    average("seconds", number("total_s")),
  ];
  return found.filter((one) => known(one.values).some((value) => value !== 0));
}

// Numbers of the trainer: by file and name, pairs of step and value.
type Metrics = Record<string, Record<string, [step: number, value: number][]>>;

export function Curves({ run, x }: { run: Run; x: string }) {
  const { columns } = run;
  const [metrics, error] = useAnswer<Metrics>(`${run.address}/metrics`);
  const versions = columns.byName.get("version")?.data.some((one) => !Number.isNaN(one)) ?? false;
  const by = versions && x !== "episode" ? "version" : "episode";
  const all = useMemo(() => bins(columns, by), [columns, columns.rows, by]);
  const found = useMemo(() => curves(columns, all), [all]);
  const other = by === "version" ? "episode" : "version";
  const there = `${address.screen(run.name, "curves")}?x=${other}`;
  const help = useKeys([["x", "over versions, or over episodes", () => go(there)], ...screenKeys(run.name)]);
  if (columns.rows === 0) return <p>Loading {clear(run.name)} …</p>;
  const episodes = (one: Bin) => address.episodes(run.name, `version>=${one.first} version<=${one.last}`);
  const label = (one: Bin) => (one.first === one.last ? one.first : `${one.first}–${one.last}`);
  return (
    <>
      <Title words="Curves" help={help}>
        <span>
          over {by === "version" ? "the version that drew an episode's first reply" : "episodes in the order in which they ended"},{" "}
          {all.length} {all.length === 1 ? "point" : "points"}
        </span>
        {versions && <a href={there}>over {other}s</a>}
      </Title>
      <div class="curves">{found.map((one) => <Chart curve={one} open={(n) => by === "version" && all[n] && go(episodes(all[n]))} />)}</div>
      <Details name="the curves as a table">
        {() => (
          <Sheet name="curves as a table"
            heads={[by, "episodes", ...found.map((one) => clear(one.name))]}
            rows={all.map((one, n) => [
              by === "version" ? <a href={episodes(one)}>{label(one)}</a> : label(one), one.rows.length,
              ...found.map((curve) => figure(curve.values[n])),
            ])}
          />
        )}
      </Details>
      <Notice words={error} />
      {Object.entries(metrics ?? {}).map(([file, names]) => (
        <>
          <h2>Training, by {clear(file)}</h2>
          <div class="curves">
            {Object.entries(names).map(([name, points]) => <Chart curve={{ name, values: points.map(([, value]) => value) }} steps={points} />)}
          </div>
        </>
      ))}
    </>
  );
}

interface ChartProps {
  curve: Curve; open?: (n: number) => void;
  // Where its points lie, if not side by side.
  steps?: [step: number, value: number][];
}

function Chart({ curve, open, steps }: ChartProps) {
  const { name, values, low = values, high = values } = curve;
  const finite = known([...values, ...low, ...high]);
  const [least, most] = [Math.min(...finite), Math.max(...finite)];
  const [from, to] = [steps?.[0]?.[0] ?? 0, steps?.at(-1)?.[0] ?? values.length - 1];
  const x = (n: number) => 4 + (((steps?.[n]?.[0] ?? n) - from) / Math.max(1, to - from)) * (WIDE - 8);
  const y = (value: number) => 6 + (1 - (value - least) / (most - least || 1)) * (HIGH - 12);
  const point = (value: number, n: number) => `${x(n).toFixed(1)} ${y(value).toFixed(1)}`;
  // A line breaks where nothing was measured.
  const line = values.map((value, n) => (Number.isNaN(value) ? "" : `${n && !Number.isNaN(values[n - 1]) ? "L" : "M"}${point(value, n)}`));
  const band = low.flatMap((value, n) => (Number.isNaN(value) || Number.isNaN(high[n]) ? [] : [n]));
  const edge = [...band.map((n) => point(high[n] ?? NaN, n)), ...band.toReversed().map((n) => point(low[n] ?? NaN, n))];
  const dots = values.map((value, n) => (Number.isNaN(value) || steps ? "" : `M${x(n) - 1.5} ${y(value) - 1.5}h3v3h-3z`));
  const last = known(values).at(-1);
  const words = clear(`${name}: from ${figure(known(values)[0])} to ${figure(last)}, between ${figure(least)} and ${figure(most)}`);
  return (
    <figure>
      <figcaption>{clear(name)} <span class="dim">last {figure(last)}</span></figcaption>
      <svg width={WIDE} height={HIGH} role="img" aria-label={words} onClick={(event) => open?.(part(event, values.length))}>
        {curve.low && edge.length > 2 && <path class="band" d={`M${edge.join("L")}z`} />}
        <path class="line-of" d={line.join("")} />
        <path class="dots" d={dots.join("")} />
      </svg>
      <p class="dim">{figure(least)} to {figure(most)}{steps && `, steps ${from} to ${to}`}</p>
    </figure>
  );
}
