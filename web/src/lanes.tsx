// Lanes: the whole episode at a glance, a column a turn. A slider: arrows or [ ] move along it, Enter goes to the turn.
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { Environment, Trace, Turn } from "./record";
import { clear, figure, mean, sum } from "./text";
import { Details, Sheet, slid, useLatest, useSize } from "./ui";

const LABEL = 58;
const LANE = 17;
const MOST = 1500;
const WIDEST = 34;
export const MEASURES = ["tokens", "seconds", "logprob", "least logprob"] as const;
export type Measure = (typeof MEASURES)[number];

// One column: a turn, or several of which the worst counts.
type Column = ReturnType<typeof columns>[number];

const worst = (values: number[], of = Math.min): number | undefined => (values.length ? values.reduce((all, one) => of(all, one)) : undefined);

function measured(turn: Turn, measure: Measure, seconds: number[][] | undefined): number | undefined {
  const { usage, tokens } = turn.reply;
  if (measure === "tokens") return (usage?.prompt ?? 0) + (usage?.completion ?? 0);
  if (measure === "seconds") return seconds?.[turn.index] && sum(seconds[turn.index] ?? []);
  const drawn = tokens?.logprobs ?? [];
  return measure === "logprob" && drawn.length ? mean(drawn) : worst(drawn);
}

// What the lanes show: turns, put together where there are more than fit.
function columns(trace: Trace, bins: number, measure: Measure, seconds: number[][] | undefined, marks: number[]) {
  const turns = trace.turns ?? [];
  const each = Math.ceil(turns.length / Math.max(1, Math.min(bins, MOST)));
  let total = 0;
  return Array.from({ length: Math.ceil(turns.length / each) || 0 }, (_, n) => {
    const some = turns.slice(n * each, (n + 1) * each);
    const steps = some.flatMap((turn) => turn.steps ?? []);
    const rewards = some.flatMap((turn) => turn.rewards ?? []);
    const of = (level: string) => rewards.filter((one) => one.level === level);
    total += sum(of("turn").map((one) => (one.value ?? 0) * (one.weight ?? 1)));
    return {
      first: some[0]?.index ?? 0, turns: some.length, calls: Math.max(...some.map((turn) => turn.steps?.length ?? 0)),
      refused: steps.some((one) => one.is_error), fault: steps.some((one) => one.fault),
      moved: some.some((turn, k) => n + k > 0 && turn.state_digest !== turns[n * each + k - 1]?.state_digest),
      step: worst(of("step").flatMap((one) => one.value ?? [])), sum: total, phases: of("phase").map((one) => one.name),
      // Of logprobs the least is the worst.
      measure: worst(some.flatMap((turn) => measured(turn, measure, seconds) ?? []), measure.endsWith("logprob") ? Math.min : Math.max),
      marks: marks.filter((one) => some.some((turn) => turn.index === one)).length,
    };
  });
}

interface LanesProps { trace: Trace; marks: number[]; environment: Environment | null; measure: Measure; seconds: number[][] | undefined; turn: number; go: (turn: number) => void }

export function Lanes({ trace, marks, environment, measure, seconds, turn, go }: LanesProps) {
  const box = useRef<HTMLDivElement>(null);
  const turns = trace.turns?.length ?? 0;
  const room = Math.max(100, useSize(box)[0] - LABEL - 4);
  const found = useMemo(() => columns(trace, Math.floor(room / 2), measure, seconds, marks), [trace, room, measure, seconds, marks]);
  const wide = Math.min(WIDEST, room / Math.max(1, found.length));
  const lanes = useMemo(() => lanesOf(found, environment, measure), [found, environment]);
  const drawn = useMemo(() => <Drawn found={found} lanes={lanes} wide={wide} />, [lanes, wide]);
  const per = found[0]?.turns ?? 1;
  const [place, at, move] = useLatest(turn);
  useLayoutEffect(() => move(turn), [turn]);
  const height = lanes.length * LANE;
  const column = found[Math.floor(place / per)];
  const pressed = (event: KeyboardEvent) => {
    const to = slid(event, at(), turns - 1, per);
    if (to === undefined && event.key !== "Enter") return;
    event.preventDefault();
    event.stopPropagation();
    if (to === undefined) go(at());
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

// The block of a column in a lane: its kind, and its height as a share.
type Lane = [name: string, block: (one: Column) => [kind: string, share: number] | false];

// Lanes that may be empty are shown if they are not.
function lanesOf(found: Column[], environment: Environment | null, measure: Measure): Lane[] {
  const most = (of: (one: Column) => number) => Math.max(0, ...found.map(of));
  const [calls, high, low, all] = [most((one) => one.calls), most((one) => one.sum), most((one) => -one.sum), most((one) => Math.abs(one.measure ?? 0))];
  const steps = environment?.criteria.filter((one) => one.level === "step") ?? [];
  const full = steps.length ? Math.min(...steps.map((one) => (one.normalize ? 1 : one.high))) : 1;
  const lanes: Lane[] = [
    ["calls", (one) => one.calls > 0 && [one.refused ? "bad" : one.fault ? "fault" : "call", one.calls / calls]],
    ["world", (one) => one.moved && ["moved", 1]],
    ["step", (one) => one.step !== undefined && [one.step >= full ? "good" : one.step <= 0 ? "bad" : "some", Math.max(0.15, one.step / full)]],
    ["turn Σ", (one) => high + low > 0 && [one.sum < 0 ? "bad" : "some", (one.sum + low) / (high + low)]],
    ["phase", (one) => one.phases.length > 0 && ["good", 1]],
    ["marks", (one) => one.marks > 0 && ["mark", 1]],
    [measure, (one) => one.measure !== undefined && all > 0 && ["some", Math.abs(one.measure) / all]],
  ];
  return lanes.filter(([name, block]) => ["calls", "world", measure].includes(name) || found.some(block));
}

// The shapes, a path for each kind: thousands of turns are a dozen elements.
function Drawn({ found, lanes, wide }: { found: Column[]; lanes: Lane[]; wide: number }) {
  const size = Math.min(9, Math.max(1, wide - 1));
  const [middle, half] = [size / 2, Math.min(5, size / 2 + 1)];
  const x = (n: number) => LABEL + n * wide + (wide - size) / 2;
  const shape = (lane: string, x: number, top: number, share: number): string => {
    if (lane === "world") return `M${(x + middle).toFixed(1)} ${top + LANE / 2 - half}l${half} ${half}l-${half} ${half}l-${half}-${half}z`;
    if (lane === "phase") return `M${x} ${top + 2}h1v2l6 3l-6 3v${LANE - 12}h-1z`;
    const tall = Math.max(1.5, share * (LANE - 5));
    return `M${x.toFixed(1)} ${(top + LANE - 2 - tall).toFixed(1)}h${size.toFixed(1)}v${tall.toFixed(1)}h-${size.toFixed(1)}z`;
  };
  const paths = new Map<string, string>();
  lanes.forEach(([name, block], lane) => found.forEach((one, n) => {
    const [kind, share] = block(one) || ["", 0];
    if (kind) paths.set(kind, (paths.get(kind) ?? "") + shape(name, x(n), lane * LANE, share));
  }));
  let free = 0;
  const phases = lanes.findIndex(([name]) => name === "phase") * LANE;
  return (
    <>
      {lanes.map(([name], lane) => <text x={0} y={lane * LANE + LANE - 4}>{name}</text>)}
      {[...paths].map(([kind, shape]) => <path class={kind} d={shape} />)}
      {found.map((one, n) => {
        // Labels that would overlap are in the table.
        if (one.phases.length === 0 || x(n) < free) return null;
        const label = one.phases.map(clear).join(", ");
        free = x(n) + 8 + label.length * 6.5;
        return <text x={x(n) + 8} y={phases + LANE - 4}>{label}</text>;
      })}
    </>
  );
}

function Behind({ found, measure }: { found: Column[]; measure: Measure }) {
  const turns = (one: Column) => (one.turns > 1 ? `${one.first}–${one.first + one.turns - 1}` : one.first);
  const rows = found.map((one) => [turns(one), one.calls, said(one), figure(one.sum), figure(one.measure)]);
  return <Sheet heads={["turn", "calls", "what", "turn Σ", measure]} rows={rows} />;
}
