// One episode: its verdicts, labels and lanes on top, then all turns, and the panel beside them. The same for the studio
// and for the file that is sent.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Changes, costs } from "./changes";
import type { Binding } from "./keys";
import type { Finding, Review } from "./labels";
import { Lanes, MEASURES } from "./lanes";
import { highlight } from "./marks";
import { type Kind, Panel } from "./panel";
import { component, type Criterion, criteria, type Environment, type Reward, type Step, type Trace, type Turn } from "./record";
import { Flags, flagged, type Said as Label, SaidLabels, Verdict, Verdicts } from "./said";
import { clear, figure, Said, Shown } from "./text";
import { Tokens } from "./tokens";
import { useAsk, useLatest } from "./ui";

const BLOCK = 25;
// Browsers draw blocks up to so many screens outside of the view; Chromium's margin is 1.5.
const DRAWN = 2;

export type Link = (turn: number) => string;

interface HeaderProps {
  trace: Trace; environment: Environment | null; link?: Link;
  // The address of the episode that this one was forked from.
  parent?: string | undefined;
}

export function Header({ trace, environment, link = (turn) => `#t${turn}`, parent }: HeaderProps) {
  const known = criteria(environment);
  const last = trace.rewards ?? [];
  const reached = (trace.turns ?? []).flatMap((turn) => turn.rewards ?? []).filter((one) => one.level === "phase");
  const tags = Object.entries(trace.tags ?? {}).map(([name, value]) => `${name}: ${value}`);
  const [, member, attempt, turn] = trace.forked ?? [];
  const origin = `forked from member ${member}${attempt ? `, attempt ${attempt}` : ""}, before turn ${turn}`;
  return (
    <header class="episode">
      <h1>
        {clear(trace.task)} <small>member {trace.member ?? 0}</small>
        {trace.attempt ? <small> attempt {trace.attempt}</small> : null}
      </h1>
      <p class="facts">
        {[trace.environment, trace.agent, trace.split, ...tags, `seed ${trace.seed}`].filter(Boolean).map((fact) => <span>{clear(String(fact))}</span>)}
        {trace.forked && <span>{parent ? <a href={parent}>{origin}</a> : origin}</span>}
      </p>
      <p class="facts">
        <strong>score {figure(trace.score)}</strong>
        <span>{trace.end ?? "not ended"}{trace.reason ? `: ${clear(trace.reason)}` : ""}</span>
      </p>
      {trace.failure && (
        <div class="failure" role="note">
          <p>
            <strong>Invalid, no score.</strong> {trace.failure.kind} of component {component(trace.failure.part)}, during{" "}
            {trace.failure.stage}, after {trace.failure.turn} turns
          </p>
          <Said text={`${trace.failure.type}: ${trace.failure.message}`} style="error" />
        </div>
      )}
      {["trajectory", "group", "phase"].map((level) => {
        const shown = [...(level === "phase" ? reached : []), ...last.filter((one) => one.level === level)];
        return <Verdicts of={level} all={shown.map((one) => (
          <>
            <Verdict reward={one} criterion={known.get(one.name)} />
            {one.turn != null && <a href={link(one.turn)}>turn {one.turn}</a>}
          </>
        ))} />;
      })}
    </header>
  );
}

interface TurnsProps {
  environment: Environment | null; raw: boolean; link?: Link | undefined;
  // The thread that is shown alone.
  thread?: number | undefined;
  // Tools with findings of an audit.
  flags?: Set<string>;
  // Where the texts of tokens are answered.
  tokens?: string | undefined;
}

// The element of all turns; the same one as long as what it shows is the same, so that moving about draws nothing anew.
export function useTurns({ trace, ...rest }: TurnsProps & { trace: Trace | undefined }) {
  return useMemo(() => trace && <Turns trace={trace} {...rest} />, [trace, rest.environment, rest.raw, rest.thread, rest.flags, rest.tokens]);
}

function Turns({ trace, thread, ...rest }: TurnsProps & { trace: Trace }) {
  const known = useMemo(() => criteria(rest.environment), [rest.environment]);
  const blocks = useMemo(() => {
    let before: string | undefined;
    // Messages of the context, by thread.
    const sizes = new Map<number, number>();
    const all = (trace.turns ?? []).map((turn) => {
      const moved = before !== undefined && before !== turn.state_digest;
      before = turn.state_digest;
      const [thread, kept] = [turn.thread ?? 0, sizes.get(turn.thread ?? 0) ?? 0];
      sizes.set(thread, (turn.keep ?? kept) + (turn.added?.length ?? 0) + 1 + (turn.steps?.length ?? 0));
      return { turn, moved, dropped: kept - (turn.keep ?? kept) };
    });
    const shown = all.filter(({ turn }) => thread === undefined || (turn.thread ?? 0) === thread);
    return Array.from({ length: Math.ceil(shown.length / BLOCK) }, (_, n) => shown.slice(n * BLOCK, (n + 1) * BLOCK));
  }, [trace.turns, thread]);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => layOutAll(box.current?.firstElementChild), [blocks]);
  return (
    <div class="turns" ref={box}>
      {blocks.map((block) => <div class="block">{block.map(({ turn, moved, dropped }) => oneTurn(turn, moved, dropped, known, rest))}</div>)}
    </div>
  );
}

// Lays out a block that nobody has seen, and gives it the height that it will have when it is drawn.
function layOut(block: HTMLElement): void {
  const end = block.lastElementChild?.getBoundingClientRect().bottom ?? 0;
  block.style.containIntrinsicHeight = `auto ${end - block.getBoundingClientRect().top}px`;
}

// Lays out all blocks while the browser is idle, so that find-in-page need not. Returns how to stop.
function layOutAll(block: Element | null | undefined): () => void {
  const next = (idle: IdleDeadline) => {
    // While the page moves, less time remains.
    for (; block && idle.timeRemaining() > 20; block = block.nextElementSibling) layOut(block as HTMLElement);
    if (block) asked = requestIdleCallback(next);
  };
  let asked = window.requestIdleCallback?.(next);
  return () => window.cancelIdleCallback?.(asked);
}

const COLOURS = 4;

// What a turn and its parts draw: functions, not components, because a long episode has 100,000 of them.
function oneTurn(turn: Turn, moved: boolean, dropped: number, known: Map<string, Criterion>, { raw, link, flags, tokens }: TurnsProps) {
  const { message, usage } = turn.reply;
  const steps = turn.steps ?? [];
  const rewards = turn.rewards ?? [];
  const name = `turn ${turn.index}`;
  const facts = [
    turn.role ?? "agent", turn.thread ? `thread ${turn.thread}` : "", turn.branch ? `branch ${turn.branch}` : "",
    usage?.prompt || usage?.completion ? `${usage.prompt ?? 0} + ${usage.completion ?? 0} tokens` : "",
    turn.reply.policy_version != null ? `version ${turn.reply.policy_version}` : "",
    turn.reply.finish_reason === "length" ? "cut off: too long" : "", moved ? "changed the world" : "",
  ];
  const verdicts = (fits: (one: Reward) => boolean, label: string) => {
    const shown = rewards.filter(fits);
    return shown.length > 0 && <div data-label={label}>{shown.map((reward) => Verdict({ reward, criterion: known.get(reward.name) }))}</div>;
  };
  const style = turn.thread ? `turn thread-${turn.thread % COLOURS}` : "turn";
  return (
    <section id={`t${turn.index}`} class={style} tabIndex={-1} aria-label={name} data-event={isEvent(turn, moved)}>
      {turn.keep != null && <p class="rewritten">context rewritten: {turn.keep} messages kept, {dropped} dropped</p>}
      {turn.added?.map(({ role, content }) => Shown({ content, raw, style: "added", label: role }))}
      <h2>
        {link ? <a href={link(turn.index)}>{name}</a> : name}
        <small>{facts.filter(Boolean).join(" · ")}</small>
      </h2>
      {message.reasoning && Said({ text: message.reasoning, label: "thinks" })}
      {message.content && Shown({ content: message.content, raw, label: "says" })}
      {steps.map((step, n) => [
        Shown({ content: step.call.arguments, raw, before: called(step, flags?.has(step.call.name)), label: "calls" }),
        Shown({ content: step.observation, raw, style: step.is_error ? "error" : undefined, label: "sees" }),
        verdicts((one) => one.step === n, "step"),
      ])}
      {message.calls?.slice(steps.length).map((call) => (
        Shown({ content: call.arguments, raw, before: <span class="call">{`${clear(call.name)} (not played) `}</span>, label: "calls" })
      ))}
      {verdicts((one) => one.step == null, "rewards")}
      {tokens && turn.reply.tokens?.completion?.length ? <Tokens key={tokens} address={`${tokens}?turn=${turn.index}`} /> : null}
    </section>
  );
}

// The name of a call, and what is notable about it.
const called = (step: Step, flagged: boolean | undefined) => [
  <b class="call">{`${clear(step.call.name)} `}</b>,
  step.is_error && <span class="refused">✗ refused </span>,
  step.fault && <span class="refused">~ planned fault {clear(step.fault)} </span>,
  flagged && <span class="flag" title="a finding of the audit">⚑ </span>,
];

// A turn at which `n` and `p` stop: a refusal, a planned fault, another world, a reward that is not full.
function isEvent(turn: Turn, moved: boolean): true | undefined {
  const refused = turn.steps?.some((step) => step.is_error || step.fault);
  const rewarded = turn.rewards?.some((one) => one.level !== "step" || (one.value ?? 1) <= 0);
  return moved || refused || rewarded || undefined;
}

// Scrolls to a turn. Blocks above it that will be drawn, too, get their height before, so that they do not move it.
export function goTo(index: number): void {
  const section = document.getElementById(`t${index}`);
  if (section === null) return;
  section.focus({ preventScroll: true });
  let block = section.parentElement;
  while (block && section.getBoundingClientRect().top - block.getBoundingClientRect().bottom < DRAWN * innerHeight) {
    layOut(block);
    block = block.previousElementSibling as HTMLElement | null;
  }
  section.scrollIntoView();
}

export interface Reading {
  raw: boolean; thread: number | undefined;
  // The turn that has the focus, or had it last; `at()` is -1 before, and newer than `turn`, for keys may be faster.
  turn: number; at: () => number; keys: Binding[];
}

// Keys and state that all pages of an episode share. `stops` are further turns at which `n` and `p` stop.
export function useReading(trace: Trace | undefined, stops: number[] = []): Reading {
  const [raw, setRaw] = useState(false);
  const [thread, setThread] = useState<number>();
  const [turn, at, setTurn] = useLatest(-1);
  // Before the next key can come, which an effect after the paint would miss.
  useLayoutEffect(() => {
    setTurn(-1);
    setThread(undefined);
    const focused = (event: FocusEvent) => {
      const section = (event.target as HTMLElement).closest<HTMLElement>("section.turn");
      if (section) setTurn(Number(section.id.slice(1)));
    };
    addEventListener("focusin", focused);
    return () => removeEventListener("focusin", focused);
  }, [trace?.task, trace?.member, trace?.attempt]);
  const step = (direction: number, selector: string, more: number[] = []) => () => {
    const drawn = [...document.querySelectorAll<HTMLElement>(`section.turn${selector}`)].map((one) => Number(one.id.slice(1)));
    const all = more.length ? [...drawn, ...more].sort((a, b) => a - b) : drawn;
    const next = direction > 0 ? all.find((n) => n > at()) : all.findLast((n) => n < at());
    if (next !== undefined) goTo(next);
  };
  const own = () => trace?.turns?.find((one) => one.index === at())?.thread ?? 0;
  const keys: Binding[] = [
    ["j", "next turn", step(1, "")],
    ["k", "previous turn", step(-1, "")],
    ["n", "next event: a refusal, another world, a reward, a mark, a finding", step(1, "[data-event]", stops)],
    ["p", "previous event", step(-1, "[data-event]", stops)],
    ["r", "JSON laid out, or as it was written", () => setRaw(!raw)],
    ["t", "the thread of this turn alone, or all", () => setThread(thread === undefined ? own() : undefined)],
  ];
  return { raw, thread, turn: Math.max(0, turn), at, keys };
}

interface EpisodeProps {
  trace: Trace | undefined; environment: Environment | null; changes: () => Promise<Changes>;
  seconds: () => Promise<number[][]>; reviews?: Review[] | undefined; said?: Label[] | undefined;
  findings?: Finding[] | undefined; link?: Link; parent?: string | undefined; tokens?: string | undefined;
  // The screen of all findings.
  audit?: string; mine?: string; remove?: (mark: Review) => void;
}

const NONE: Finding[] = [];

export function useEpisode(props: EpisodeProps): { keys: Binding[]; at: () => number; shown: ComponentChildren } {
  const { trace, environment, changes, seconds, reviews = [], said = [], findings = NONE, link = (turn) => `#t${turn}`, parent, audit, mine = "", remove } = props;
  const [kind, setKind] = useState<Kind>();
  const [place, setPlace] = useState(0);
  const measure = MEASURES[place % MEASURES.length] ?? "tokens";
  const replayed = kind === "changes" || kind === "why";
  const [world, problem] = useAsk(() => (trace && replayed ? changes() : undefined), [trace, replayed]);
  const [spent] = useAsk(() => (trace && measure === "seconds" ? seconds() : undefined), [trace, measure]);
  const marks = reviews.flatMap((one) => (one.mark && !one.stale ? [one.mark] : []));
  const tools = useMemo(() => new Set(trace && flagged(trace, findings).flatMap(({ finding }) => finding.tools)), [trace, findings]);
  const calls = (trace?.turns ?? []).filter((turn) => turn.steps?.some((step) => tools.has(step.call.name)));
  const { raw, thread, turn, at, keys } = useReading(trace, [...marks.map((one) => one.turn), ...calls.map((one) => one.index)]);
  const turns = useTurns({ trace, environment, raw, thread, link: props.link, flags: tools, tokens: props.tokens });
  const marked = JSON.stringify(marks);
  const places = useMemo(() => marks.map((one) => one.turn), [marked]);
  useLayoutEffect(() => highlight(marks), [turns, marked]);
  const toggle = (one: Kind) => () => setKind(kind === one ? undefined : one);
  const all: Binding[] = [
    ...keys,
    ["d", "what a turn changed in the world", toggle("changes")],
    ["w", "why the score is not 1", toggle("why")],
    ["v", "what the model saw before a turn", toggle("seen")],
    ["l", "lanes with tokens, seconds or logprobs", () => setPlace(place + 1)],
  ];
  if (trace === undefined) return { keys: all, at, shown: null };
  const missed = costs(trace, environment).filter((one) => (one.cost ?? 0) > 0);
  const shown = (
    <>
      <Header trace={trace} environment={environment} link={link} parent={parent} />
      <SaidLabels reviews={reviews} said={said} link={link} mine={mine} remove={remove} />
      <Flags trace={trace} findings={findings} link={link} all={audit} />
      {missed.length > 0 && trace.score != null && (
        <p class="facts">
          <button type="button" onClick={toggle("why")}>why not 1 <kbd>w</kbd></button>
          {missed.map(({ reward, cost }) => (
            <span>{clear(reward.name)}: {environment?.combine === "product" ? `factor ${figure(reward.value)}` : `cost ${figure(cost)}`}</span>
          ))}
        </p>
      )}
      {thread !== undefined && <p class="notice">Only thread {thread} is shown; <kbd>t</kbd> shows all.</p>}
      <Lanes trace={trace} marks={places} environment={environment} measure={measure} seconds={spent} turn={turn} go={goTo} />
      <div class="reading">
        {turns}
        {kind && <Panel kind={kind} trace={trace} environment={environment} changes={world ?? (problem || undefined)} turn={turn} go={goTo} close={() => setKind(undefined)} />}
      </div>
    </>
  );
  return { keys: all, at, shown };
}
