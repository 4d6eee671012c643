// Histograms above the table: the episodes that the filter leaves, in bins of the whole run. Chosen bins are a filter.
import { useMemo } from "preact/hooks";
import type { Column, Columns } from "./columns";
import { go } from "./run";
import { clear, count, known, sum } from "./text";
import { part, slid, useLatest } from "./ui";
import { type Bound, parted } from "./where";

const NAMES = ["score", "turns", "errors", "seconds", "tokens", "version"];
const MOST = 24;
// Rows that bins are made from; what is beyond them is rare.
const SAMPLE = 4000;
const HIGH = 40;
// More than what a division is off by, in bins.
const INEXACT = 1e-3;

// The first bin holds what is below it, too, and the last one what is above.
// `places` has the bin of each row; the one after the last holds rows without a value.
interface Bins { name: string; column: Column; starts: number[]; places: Uint8Array }

type Range = [from: number, to: number];

// Bins as wide as 1, 2 or 5 times a power of ten; whole numbers have none that are narrower than 1.
function bins(columns: Columns, name: string): Bins[] {
  const column = columns.find(name);
  const every = Math.ceil(columns.rows / SAMPLE) || 1;
  const rows = Array.from({ length: Math.ceil(columns.rows / every) }, (_, n) => n * every);
  const sample = known(rows.map((row) => column?.number(row) ?? NaN)).sort((a, b) => a - b);
  const [least = 0, most = 0] = [sample[0], sample.at(-1)];
  if (column === undefined || sample.length === 0) return [];
  // One episode that is far longer than the others must not put these into one bin. A score of 1 may be rare.
  const end = name === "score" ? Math.max(1, most) : Math.min(most, Math.max(least + MOST - 1, sample[Math.floor(0.98 * sample.length)] ?? most));
  const start = name === "score" ? Math.min(0, least) : least;
  const narrow = Math.max((end - start) / MOST || 1, sample.every(Number.isInteger) ? 1 : 0);
  const power = 10 ** Math.floor(Math.log10(narrow));
  const step = power * ([1, 2, 5].find((one) => one * power >= narrow) ?? 10);
  const first = Math.floor(start / step);
  const starts = Array.from({ length: Math.floor(end / step) - first + 1 }, (_, n) => Number(((first + n) * step).toPrecision(9)));
  return starts.length > 1 ? [{ name, column, starts, places: placed(column, columns.rows, step, starts) }] : [];
}

function placed(column: Column, rows: number, step: number, starts: number[]): Uint8Array {
  // Of one type for all columns, so that the browser compiles the loop once.
  const data = new Float64Array(column.data);
  // Where the next bin starts, in the precision in which a filter compares.
  const ends = Float32Array.from([...starts.slice(1), Infinity]);
  const [first, last] = [starts[0] ?? 0, starts.length - 1];
  const places = new Uint8Array(rows);
  for (let row = 0; row < rows; row++) {
    const value = data[row] ?? NaN;
    const exact = (value - first) / step - INEXACT;
    const near = exact > 0 ? (exact < last ? exact | 0 : last) : 0;
    places[row] = Number.isNaN(value) ? last + 1 : near + Number(value >= (ends[near] ?? 0));
  }
  return places;
}

function counted({ starts, places }: Bins, rows: Uint32Array): Uint32Array {
  const found = new Uint32Array(starts.length + 1);
  for (let at = 0; at < rows.length; at++) {
    const bin = places[rows[at] ?? 0] ?? 0;
    found[bin] = (found[bin] ?? 0) + 1;
  }
  return found.subarray(0, starts.length);
}

// The bins that terms leave; undefined if there is no term.
function left(terms: Bound[], starts: number[]): Range | undefined {
  const place = (fits: (start: number) => boolean) => Math.max(0, starts.filter(fits).length - 1);
  const from = terms.filter(({ sign }) => !sign.startsWith("<")).map(({ value }) => place((start) => start <= value));
  const to = terms.filter(({ sign }) => !sign.startsWith(">")).map(({ sign, value }) => place((start) => start < value || (sign !== "<" && start === value)));
  return terms.length ? [Math.max(0, ...from), Math.min(starts.length - 1, ...to)] : undefined;
}

const ordered = ([a, b]: Range): Range => [Math.min(a, b), Math.max(a, b)];

// A bar for each number, in one shape; the chosen ones stand on a ground.
export function Bars({ counts, label, chosen: [from, to] = [0, -1] }: { counts: Iterable<number>; label?: string; chosen?: Range | undefined }) {
  const all = [...counts];
  const most = Math.max(...all);
  // However few there are, they are seen.
  const height = (held: number) => Math.max(1.5, ((HIGH - 2) * held) / most).toFixed(1);
  return (
    <svg viewBox={`0 0 ${all.length} ${HIGH}`} role={label ? "img" : undefined} aria-label={label} aria-hidden={!label} preserveAspectRatio="none">
      <rect x={from} width={to - from + 1} height={HIGH} />
      <path d={all.map((held, n) => (held ? `M${n + 0.05} ${HIGH}h.9v-${height(held)}h-.9z` : "")).join("")} />
    </svg>
  );
}

const TALLIES = ["end", "component", "owner", "label"];
const MOST_TALLIED = 6;

// How often the texts of a column occur in the rows, each a link that filters by it; nothing if they are all alike.
function Tally({ name, columns, rows, where, there }: HistogramsProps & { name: string }) {
  const column = columns.find(name);
  const found = useMemo(() => (column?.values.some(Boolean) ? column.counted(rows).slice(0, MOST_TALLIED) : []), [column, rows]);
  if (column === undefined || found.length < 2) return null;
  const [, others] = parted(columns, where, column);
  return <span>{name}: {found.map(([value, held], n) => <>{n > 0 && " · "}<a href={there(`${others} ${name}:${JSON.stringify(value)}`.trim())}>{clear(value)}</a> {count(held)}</>)}</span>;
}

interface HistogramsProps { columns: Columns; rows: Uint32Array; where: string; there: (where: string) => string }

export function Histograms(props: HistogramsProps) {
  const { columns } = props;
  const all = useMemo(() => NAMES.flatMap((name) => bins(columns, name)), [columns, columns.rows]);
  return (
    <>
      <div class="histograms">{all.map((one) => <Histogram key={one.name} of={one} {...props} />)}</div>
      <p class="facts tallies">{TALLIES.map((name) => <Tally key={name} name={name} {...props} />)}</p>
    </>
  );
}

// A slider: arrows move along its bins, with Shift they choose several. Or one drags, or clicks the first and the last.
function Histogram({ of, columns, rows, where, there }: HistogramsProps & { of: Bins }) {
  const { name, column, starts } = of;
  const last = starts.length - 1;
  const counts = useMemo(() => counted(of, rows), [of, rows]);
  const [chosen, at, choose] = useLatest<Range | undefined>(undefined);
  const [own, others] = parted(columns, where, column);
  const filtered = left(own, starts);
  const apply = (range: Range | undefined) => {
    const [from, to] = ordered(range ?? [0, last]);
    choose(undefined);
    go(there([others, from > 0 && `${name}>=${starts[from]}`, to < last && `${name}<${starts[to + 1]}`].filter(Boolean).join(" ")));
  };
  const pressed = (event: KeyboardEvent) => {
    const [first, place] = at() ?? filtered ?? [-1, -1];
    const to = slid(event, place, last);
    const act = to !== undefined ? () => choose([event.shiftKey ? Math.max(0, first) : to, to])
      : event.key === "Delete" ? () => apply(undefined)
      : at() && { Enter: () => apply(at()), Escape: () => choose(undefined) }[event.key];
    if (act === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  };
  const released = () => {
    const range = at();
    if (range === undefined) return;
    const [first, place] = range;
    const [from, to] = filtered ?? range;
    // A click beside the range that is filtered by takes it on to there, and a click in it takes it away.
    if (first === place && filtered) apply(place < from ? [place, to] : place > to ? [from, place] : undefined);
    else apply(range);
  };
  const words = (range: Range) => {
    const [from, to] = ordered(range);
    return `${from > 0 ? `${starts[from]} ≤ ` : ""}${name}${to < last ? ` < ${starts[to + 1]}` : ""}: ${count(sum(counts.subarray(from, to + 1)))}`;
  };
  const shown = chosen ?? filtered;
  return (
    <figure>
      <div role="slider" tabIndex={0} aria-label={`${name} of the episodes`} onKeyDown={pressed}
        title="Drag, or press arrows with Shift and Enter, to filter by a range; Delete takes it away"
        aria-valuemin={0} aria-valuemax={last} aria-valuenow={shown ? shown[1] : 0} aria-valuetext={words(shown ?? [0, last])}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          if (event.button === 0) choose([part(event, starts.length), part(event, starts.length)]);
        }}
        onPointerMove={(event) => event.buttons > 0 && at() && choose([at()?.[0] ?? 0, part(event, starts.length)])}
        onPointerUp={released} onPointerCancel={() => choose(undefined)}>
        <Bars counts={counts} chosen={shown && ordered(shown)} />
      </div>
      <figcaption>{shown ? words(shown) : `${name} ${starts[0]} … ${starts[last]}`}</figcaption>
    </figure>
  );
}
