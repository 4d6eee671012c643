// One episode: its verdicts on top, then all turns. The same for the studio and for the file that is sent.
import { Fragment } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Binding } from "./keys";
import type { Criterion, Environment, Message, Reward, Step, Trace, Turn } from "./record";
import { component } from "./record";
import { clear, figure, Said, Shown } from "./text";

const BLOCK = 25;

// A verdict with its weight and reason. Grey: it was skipped, or the phase was not reached.
export function Verdict({ reward, criterion }: { reward: Reward; criterion?: Criterion | undefined }) {
  const value = reward.value;
  const best = criterion && (criterion.normalize ? 1 : criterion.high);
  const style = value === null ? "skipped" : value >= (best ?? 1) ? "good" : value <= (criterion?.low ?? 0) ? "bad" : "some";
  const weight = reward.weight === undefined || reward.weight === 1 ? "" : ` × ${figure(reward.weight)}`;
  return (
    <span class={`verdict ${style}`}>
      <b>{clear(reward.name)}</b> {value === null ? "no verdict" : figure(value)}
      {weight}
      {reward.reason && <span class="why">{clear(reward.reason)}</span>}
    </span>
  );
}

interface HeaderProps {
  trace: Trace;
  environment: Environment | null;
  link?: (turn: number) => string;
}

export function Header({ trace, environment, link = (turn) => `#t${turn}` }: HeaderProps) {
  const criteria = new Map(environment?.criteria.map((one) => [one.name, one]));
  const last = trace.rewards ?? [];
  const reached = (trace.turns ?? []).flatMap((turn) => turn.rewards ?? []).filter((one) => one.level === "phase");
  const tags = Object.entries(trace.tags ?? {}).map(([name, value]) => `${name}: ${value}`);
  return (
    <header class="episode">
      <h1>
        {clear(trace.task)} <small>member {trace.member ?? 0}</small>
        {trace.attempt ? <small> attempt {trace.attempt}</small> : null}
      </h1>
      <p class="facts">
        {[trace.environment, trace.agent, trace.split, ...tags, `seed ${trace.seed}`].filter(Boolean).map((fact) => (
          <span>{clear(String(fact))}</span>
        ))}
      </p>
      <p class="facts">
        <strong>score {figure(trace.score)}</strong>
        <span>
          {trace.end ?? "not ended"}
          {trace.reason ? `: ${clear(trace.reason)}` : ""}
        </span>
      </p>
      {trace.failure && (
        <div class="failure" role="note">
          <p>
            <strong>Invalid, no score.</strong> {trace.failure.kind} of component {component(trace.failure.part)}, during{" "}
            {trace.failure.stage}, after {trace.failure.turn} turns
          </p>
          <Said text={`${trace.failure.type}: ${trace.failure.message}`} error />
        </div>
      )}
      {(["trajectory", "group", "phase"] as const).map((level) => {
        const shown = [...(level === "phase" ? reached : []), ...last.filter((one) => one.level === level)];
        return (
          shown.length > 0 && (
            <div class="verdicts">
              <span class="label">{level}</span>
              {shown.map((one) => (
                <span>
                  <Verdict reward={one} criterion={criteria.get(one.name)} />
                  {one.turn != null && <a href={link(one.turn)}>turn {one.turn}</a>}
                </span>
              ))}
            </div>
          )
        );
      })}
    </header>
  );
}

interface TurnsProps {
  trace: Trace | undefined;
  environment: Environment | null;
  raw: boolean;
  link?: (turn: number) => string;
}

// The element of all turns; the same one as long as what it shows is the same, so that moving about draws nothing anew.
export function useTurns({ trace, environment, raw, link }: TurnsProps) {
  return useMemo(
    () => trace && <Turns trace={trace} environment={environment} raw={raw} {...(link && { link })} />,
    [trace, environment, raw],
  );
}

function Turns({ trace, environment, raw, link }: TurnsProps & { trace: Trace }) {
  const turns = trace.turns ?? [];
  const criteria = useMemo(() => new Map(environment?.criteria.map((one) => [one.name, one])), [environment]);
  const blocks = useMemo(() => {
    const found: { turn: Turn; moved: boolean }[][] = [];
    turns.forEach((turn, n) => {
      const before = turns[n - 1];
      const moved = before !== undefined && before.state_digest !== turn.state_digest;
      if (n % BLOCK === 0) found.push([]);
      found.at(-1)?.push({ turn, moved });
    });
    return found;
  }, [turns]);
  return (
    <div class="turns">
      {blocks.map((block) => (
        <div class="block">
          {block.map(({ turn, moved }) => (
            <OneTurn turn={turn} moved={moved} raw={raw} criteria={criteria} link={link?.(turn.index)} />
          ))}
        </div>
      ))}
    </div>
  );
}

interface OneTurnProps {
  turn: Turn;
  moved: boolean;
  raw: boolean;
  criteria: Map<string, Criterion>;
  link: string | undefined;
}

function OneTurn({ turn, moved, raw, criteria, link }: OneTurnProps) {
  const { message, usage } = turn.reply;
  const steps = turn.steps ?? [];
  const unplayed = (message.calls ?? []).slice(steps.length);
  const rewards = turn.rewards ?? [];
  const label = `turn-${turn.index}`;
  const facts = [
    turn.role ?? "agent",
    turn.thread ? `thread ${turn.thread}` : "",
    turn.branch ? `branch ${turn.branch}` : "",
    usage?.prompt || usage?.completion ? `${usage.prompt ?? 0} + ${usage.completion ?? 0} tokens` : "",
    turn.reply.policy_version != null ? `version ${turn.reply.policy_version}` : "",
    turn.reply.finish_reason === "length" ? "cut off: too long" : "",
    moved ? "changed the world" : "",
  ];
  return (
    <section id={`t${turn.index}`} class="turn" tabIndex={-1} aria-labelledby={label} data-event={isEvent(turn, moved)}>
      {turn.keep != null && <p class="rewritten">context rewritten: {turn.keep} messages kept</p>}
      {(turn.added ?? []).map((one) => (
        <Added message={one} raw={raw} />
      ))}
      <h2 id={label}>
        {link ? <a href={link}>turn {turn.index}</a> : `turn ${turn.index}`}
        <small>{facts.filter(Boolean).join(" · ")}</small>
      </h2>
      {message.reasoning && (
        <Row label="thinks">
          <Said text={message.reasoning} />
        </Row>
      )}
      {message.content !== undefined && message.content !== "" && (
        <Row label="says">
          <Shown content={message.content} raw={raw} />
        </Row>
      )}
      {steps.map((step, n) => (
        <OneStep step={step} raw={raw} rewards={rewards.filter((one) => one.step === n)} criteria={criteria} />
      ))}
      {unplayed.map((call) => (
        <Row label="calls">
          <span class="call">{clear(call.name)}</span> <span class="dim">not played</span>
          <Shown content={call.arguments} raw={raw} />
        </Row>
      ))}
      {rewards.some((one) => one.step == null) && (
        <Row label="rewards">
          {rewards
            .filter((one) => one.step == null)
            .map((one) => (
              <Verdict reward={one} criterion={criteria.get(one.name)} />
            ))}
        </Row>
      )}
    </section>
  );
}

function OneStep(props: { step: Step; raw: boolean; rewards: Reward[]; criteria: Map<string, Criterion> }) {
  const { step, raw, rewards, criteria } = props;
  return (
    <Fragment>
      <Row label="calls">
        <span class="call">{clear(step.call.name)}</span> {step.is_error && <span class="refused">✗ refused</span>}
        {step.fault && <span class="refused">~ planned fault {clear(step.fault)}</span>}
        <Shown content={step.call.arguments} raw={raw} />
      </Row>
      <Row label="sees">
        <Shown content={step.observation} raw={raw} error={step.is_error ?? false} />
      </Row>
      {rewards.length > 0 && (
        <Row label="step">
          {rewards.map((one) => (
            <Verdict reward={one} criterion={criteria.get(one.name)} />
          ))}
        </Row>
      )}
    </Fragment>
  );
}

function Added({ message, raw }: { message: Message; raw: boolean }) {
  return (
    <Row label={message.role} style="added">
      <Shown content={message.content} raw={raw} />
    </Row>
  );
}

function Row(props: { label: string; style?: string; children: preact.ComponentChildren }) {
  return (
    <div class={`row ${props.style ?? ""}`}>
      <span class="label">{props.label}</span>
      <div>{props.children}</div>
    </div>
  );
}

// A turn at which `n` and `p` stop: a refusal, a planned fault, another world, a reward that is not full.
function isEvent(turn: Turn, moved: boolean): true | undefined {
  const refused = (turn.steps ?? []).some((step) => step.is_error || step.fault);
  const rewarded = (turn.rewards ?? []).some((one) => one.level !== "step" || (one.value ?? 1) <= 0);
  return moved || refused || rewarded || undefined;
}

// Scrolls to a turn, and again until it stays: blocks outside of the view have an estimated height until they are drawn.
export function goTo(index: number): void {
  const section = document.getElementById(`t${index}`);
  if (section === null) return;
  section.focus({ preventScroll: true });
  let [before, steady, frames] = [NaN, 0, 0];
  const settle = () => {
    section.scrollIntoView({ block: "start" });
    const place = section.getBoundingClientRect().top;
    steady = Math.abs(place - before) < 2 ? steady + 1 : 0;
    before = place;
    if (steady < 3 && ++frames < 40 && document.activeElement === section) requestAnimationFrame(settle);
  };
  settle();
}

// Keys and state that both pages of an episode share: the turn one is at, and how JSON is shown.
export function useReading(trace: Trace | undefined): { raw: boolean; keys: Binding[]; at: () => number } {
  const [raw, setRaw] = useState(false);
  const current = useRef(-1);
  // Before the next key can come, which an effect after the paint would miss.
  useLayoutEffect(() => {
    current.current = -1;
    const focused = (event: FocusEvent) => {
      const section = (event.target as HTMLElement).closest<HTMLElement>("section.turn");
      if (section) current.current = Number(section.id.slice(1));
    };
    addEventListener("focusin", focused);
    return () => removeEventListener("focusin", focused);
  }, [trace]);
  const step = (direction: number, selector: string) => () => {
    const all = [...document.querySelectorAll<HTMLElement>(`section.turn${selector}`)].map((one) => Number(one.id.slice(1)));
    const next = direction > 0 ? all.find((n) => n > current.current) : all.findLast((n) => n < current.current);
    if (next !== undefined) goTo(next);
  };
  const keys: Binding[] = [
    ["j", "next turn", step(1, "")],
    ["k", "previous turn", step(-1, "")],
    ["n", "next event: a refusal, another world, a reward", step(1, "[data-event]")],
    ["p", "previous event", step(-1, "[data-event]")],
    ["r", "JSON laid out, or as it was written", () => setRaw(!raw)],
  ];
  return { raw, keys, at: () => current.current };
}
