// Lanes: the whole episode at a glance, a column a turn. A slider: arrows or [ ] move along it, Enter goes to the turn.
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Environment, Trace, Turn } from "./record";
import { clear, figure, mean } from "./text";
import { Details, Sheet, slid, useSize } from "./ui";

const LABEL = 58;
const LANE = 17;
const MOST = 1500;
const WIDEST = 34;
export const MEASURES = ["tokens", "seconds", "logprob", "least logprob"] as const;
export type Measure = (typeof MEASURES)[number];

// One column: a turn, or several of which the worst counts.
interface Column {
  first: number; turns: number; calls: number; refused: boolean; fault: boolean; moved: boolean;
  step: number | undefined; sum: number; phases: string[]; measure: number | undefined;
  marks: number;
}

function measured(turn: Turn, measure: Measure, seconds: number[][] | undefined): number | undefined {
  const { usage, tokens } = turn.reply;
  if (measure === "tokens") return (usage?.prompt ?? 0) + (usage?.completion ?? 0);
  if (measure === "seconds") return seconds?.[turn.index]?.reduce((sum, one) => sum + one, 0);
  const drawn = tokens?.logprobs ?? [];
  return drawn.length === 0 ? undefined : measure === "logprob" ? mean(drawn) : drawn.reduce((least, one) => Math.min(least, one));
}

// What the lanes show: turns, put together where there are more than fit.
export function columns(trace: Trace, bins: number, measure: Measure, seconds?: number[][], marks: number[] = []): Column[] {
  const turns = trace.turns ?? [];
  const each = Math.ceil(turns.length / Math.max(1, Math.min(bins, MOST)));
  const found: Column[] = [];
  let [sum, before]: [number, string | undefined] = [0, undefined];
  turns.forEach((turn, n) => {
    const rewards = turn.rewards ?? [];
    const steps = turn.steps ?? [];
    const judged = rewards.filter((one) => one.level === "step" && one.value !== null).map((one) => one.value ?? 0);
    for (const one of rewards) if (one.level === "turn") sum += (one.value ?? 0) * (one.weight ?? 1);
    if (n % each === 0) {
      const empty = { calls: 0, refused: false, fault: false, moved: false, step: undefined, phases: [], measure: undefined, marks: 0 };
      found.push({ first: turn.index, turns: 0, sum, ...empty });
    }
    const column = found.at(-1) as Column;
    column.turns += 1;
    column.calls = Math.max(column.calls, steps.length);
    column.refused ||= steps.some((one) => one.is_error);
    column.fault ||= steps.some((one) => one.fault);
    column.moved ||= before !== undefined && turn.state_digest !== before;
    if (judged.length) column.step = Math.min(column.step ?? Infinity, ...judged);
    column.sum = sum;
    column.phases.push(...rewards.filter((one) => one.level === "phase").map((one) => one.name));
    const value = measured(turn, measure, seconds);
    // Of logprobs the least is the worst.
    if (value !== undefined) column.measure = measure.endsWith("logprob") ? Math.min(column.measure ?? 0, value) : Math.max(column.measure ?? 0, value);
    column.marks += marks.filter((one) => one === turn.index).length;
    before = turn.state_digest;
  });
  return found;
}

interface LanesProps { trace: Trace; marks: number[]; environment: Environment | null; measure: Measure; seconds: number[][] | undefined; turn: number; go: (turn: number) => void }

export function Lanes({ trace, marks, environment, measure, seconds, turn, go }: LanesProps) {
  const box = useRef<HTMLDivElement>(null);
  const turns = trace.turns?.length ?? 0;
  const room = Math.max(100, useSize(box)[0] - LABEL - 4);
  const found = useMemo(() => columns(trace, Math.floor(room / 2), measure, seconds, marks), [trace, room, measure, seconds, marks]);
  const wide = Math.min(WIDEST, room / Math.max(1, found.length));
  const names = [
    "calls", "world", ...(found.some((one) => one.step !== undefined) ? ["step"] : []),
    ...(found.some((one) => one.sum !== 0) ? ["turn Σ"] : []),
    ...(found.some((one) => one.phases.length > 0) ? ["phase"] : []), ...(marks.length ? ["marks"] : []), measure,
  ];
  const drawn = useMemo(() => <Drawn found={found} names={names} wide={wide} environment={environment} />, [found, wide, environment]);
  const per = found[0]?.turns ?? 1;
  const [place, setPlace] = useState(turn);
  // Keys may be faster than the next drawing.
  const latest = useRef(turn);
  const move = (to: number) => setPlace((latest.current = to));
  useLayoutEffect(() => move(turn), [turn]);
  const height = names.length * LANE;
  const column = found[Math.floor(place / per)];
  const pressed = (event: KeyboardEvent) => {
    const to = slid(event, latest.current, turns - 1, per);
    if (to === undefined && event.key !== "Enter") return;
    event.preventDefault();
    event.stopPropagation();
    if (to === undefined) go(latest.current);
    else move(to);
  };
  if (turns === 0) return null;
  return (
    <div class="lanes" ref={box}>
      <div
        role="slider" tabIndex={0} aria-label="turn, with lanes of calls, changes and rewards"
        aria-valuemin={0} aria-valuemax={Math.max(turns - 1, 0)} aria-valuenow={place}
        aria-valuetext={`turn ${place}${column ? `: ${said(column)}` : ""}`}
        onKeyDown={pressed}
        onClick={(event) => {
          const x = event.clientX - event.currentTarget.getBoundingClientRect().left - LABEL;
          if (x >= 0 && x < wide * found.length) go(Math.min(turns - 1, Math.floor(x / wide) * per));
        }}
      >
        <svg width={LABEL + Math.ceil(wide * found.length) + 2} height={height + 16} aria-hidden="true">
          <rect class="cursor" x={LABEL + Math.floor(place / per) * wide} y={0} width={Math.max(2, wide)} height={height} />
          {drawn}
          <text x={LABEL + Math.min(Math.floor(place / per) * wide, Math.max(0, wide * found.length - 50))} y={height + 12}>turn {place}</text>
        </svg>
      </div>
      <Details name={`the lanes as a table${per > 1 ? `, ${per} turns a row` : ""}`}>{() => <Behind found={found} measure={measure} />}</Details>
    </div>
  );
}

function said(column: Column): string {
  const words = [
    `${column.calls} ${column.calls === 1 ? "call" : "calls"}`, column.refused && "refused",
    column.fault && "planned fault", column.moved && "changed the world",
    column.step !== undefined && `step ${figure(column.step)}`, ...column.phases.map((name) => `phase ${name}`), column.marks > 0 && `${column.marks} marked`,
  ];
  return clear(words.filter(Boolean).join(", "));
}

// The shapes, a path for each kind: thousands of turns are a dozen elements.
function Drawn(props: { found: Column[]; names: string[]; wide: number; environment: Environment | null }) {
  const { found, names, wide, environment } = props;
  const size = Math.min(9, Math.max(1, wide - 1));
  const top = (lane: string) => names.indexOf(lane) * LANE;
  const x = (n: number) => LABEL + n * wide + (wide - size) / 2;
  const paths = new Map<string, string>();
  const add = (kind: string, shape: string) => paths.set(kind, (paths.get(kind) ?? "") + shape);
  const block = (kind: string, n: number, lane: string, share: number) => {
    const tall = Math.max(1.5, share * (LANE - 5));
    add(kind, `M${x(n).toFixed(1)} ${(top(lane) + LANE - 2 - tall).toFixed(1)}h${size.toFixed(1)}v${tall.toFixed(1)}h-${size.toFixed(1)}z`);
  };
  const most = (of: (one: Column) => number) => Math.max(0, ...found.map(of));
  const [calls, high, low] = [most((one) => one.calls), most((one) => one.sum), most((one) => -one.sum)];
  const measure = most((one) => Math.abs(one.measure ?? 0));
  const steps = environment?.criteria.filter((one) => one.level === "step") ?? [];
  const full = steps.length ? Math.min(...steps.map((one) => (one.normalize ? 1 : one.high))) : 1;
  found.forEach((one, n) => {
    if (one.calls) block(one.refused ? "bad" : one.fault ? "fault" : "call", n, "calls", one.calls / calls);
    if (one.moved) {
      const [middle, half] = [x(n) + size / 2, Math.min(5, size / 2 + 1)];
      const y = top("world") + LANE / 2;
      add("moved", `M${middle.toFixed(1)} ${y - half}l${half} ${half}l-${half} ${half}l-${half}-${half}z`);
    }
    if (one.step !== undefined) block(one.step >= full ? "good" : one.step <= 0 ? "bad" : "some", n, "step", Math.max(0.15, one.step / full));
    if (names.includes("turn Σ")) block(one.sum < 0 ? "bad" : "some", n, "turn Σ", (one.sum + low) / (high + low || 1));
    if (one.marks) block("mark", n, "marks", 1);
    if (one.measure !== undefined && measure) block("some", n, names.at(-1) ?? "", Math.abs(one.measure) / measure);
  });
  let free = 0;
  return (
    <>
      {names.map((name) => <text x={0} y={top(name) + LANE - 4}>{name}</text>)}
      {[...paths].map(([kind, shape]) => <path class={kind} d={shape} />)}
      {found.map((one, n) => {
        if (one.phases.length === 0) return null;
        // Labels that would overlap are in the table.
        const label = x(n) >= free ? one.phases.map(clear).join(", ") : "";
        if (label) free = x(n) + 8 + label.length * 6.5;
        return (
          <>
            <path class="good" d={`M${x(n)} ${top("phase") + 2}h1v2l6 3l-6 3v${LANE - 12}h-1z`} />
            <text x={x(n) + 8} y={top("phase") + LANE - 4}>{label}</text>
          </>
        );
      })}
    </>
  );
}

function Behind({ found, measure }: { found: Column[]; measure: Measure }) {
  const turns = (one: Column) => (one.turns > 1 ? `${one.first}–${one.first + one.turns - 1}` : one.first);
  const rows = found.map((one) => [turns(one), one.calls, said(one), figure(one.sum), figure(one.measure)]);
  return <Sheet heads={["turn", "calls", "what", "turn Σ", measure]} rows={rows} />;
}
