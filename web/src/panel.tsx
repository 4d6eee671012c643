// The panel beside the turns: what a turn changed in the world, why the score is not 1, or what the model saw.
import { useState } from "preact/hooks";
import { type ChangeText, type Changes, costs, lastNamed, names, type StepChange } from "./changes";
import type { Environment, Message, Trace } from "./record";
import { Verdict } from "./said";
import { clear, count, figure, marked, Said, Shown } from "./text";

export type Kind = "changes" | "why" | "seen";

export interface PanelProps {
  kind: Kind; trace: Trace; environment: Environment | null; changes: Changes | string | undefined; turn: number;
  go: (turn: number) => void; close: () => void;
}

const TITLES: Record<Kind, string> = { changes: "What the world became", why: "Why not 1", seen: "What the model saw" };

export function Panel(props: PanelProps) {
  const { kind, trace, changes, turn } = props;
  return (
    <aside class="panel" aria-label={TITLES[kind]} tabIndex={0}>
      <p class="bar">
        <strong>{TITLES[kind]}</strong>
        {kind !== "why" && <span>turn {turn}</span>}
        <button type="button" onClick={props.close}>close</button>
      </p>
      {kind !== "seen" && typeof changes === "string" && <p class="notice">{clear(changes)}</p>}
      {kind !== "seen" && changes === undefined && <p class="dim">Replaying the episode …</p>}
      {kind === "changes" && typeof changes === "object" && <World {...props} changes={changes} />}
      {kind === "why" && <Why {...props} changes={typeof changes === "object" ? changes : undefined} />}
      {kind === "seen" && <Context key={turn} trace={trace} turn={turn} />}
    </aside>
  );
}

function World({ trace, changes, turn }: PanelProps & { changes: Changes }) {
  const reasons = (trace.rewards ?? []).filter((one) => one.reason);
  const diverged = changes.diverged != null && turn >= changes.diverged;
  const steps = changes.steps.filter((one) => one.turn === turn);
  const calls = trace.turns?.find((one) => one.index === turn)?.steps ?? [];
  return (
    <>
      {changes.stale && <p class="notice">The environment's code is not the one that made this record.</p>}
      {diverged && <p class="notice">The environment answers otherwise from turn {changes.diverged} on, so nothing is shown from there.</p>}
      {!diverged && steps.every((one) => one.changes.length === 0) && <p class="dim">The same world as before.</p>}
      {steps.map((one) => (
        <div>
          {steps.length > 1 && <p class="call">step {one.step} {clear(calls[one.step]?.call.name ?? "")}</p>}
          {grouped(one.changes).map(([place, found]) => (
            <dl class="places">
              {place && <dt>{clear(place)}</dt>}
              {found.map((change) => (
                <Side leaf={leaf(change.path)} change={change} named={reasons.filter((one) => names(one.reason ?? "", change.path)).map((one) => one.name)} />
              ))}
            </dl>
          ))}
          {one.more !== undefined && <p class="dim">and {count(one.more)} more</p>}
        </div>
      ))}
    </>
  );
}

function Side({ leaf, change, named }: { leaf: string; change: ChangeText; named: string[] }) {
  return (
    <dd>
      <span class="leaf">{clear(leaf)}</span>{" "}
      {change.before !== undefined && <del>{marked(change.before)}</del>}
      {change.before === undefined ? "+ " : " → "}
      {change.after === undefined ? <span class="dim">removed</span> : <ins>{marked(change.after)}</ins>}
      {named.map((name) => <span class="decides"> ← {clear(name)}</span>)}
    </dd>
  );
}

// Changes by the place that they share: all fields of one row stand together.
function grouped(changes: ChangeText[]): [place: string, ChangeText[]][] {
  return [...Map.groupBy(changes, (one) => one.path.slice(0, one.path.length - leaf(one.path).length).replace(/\.$/, ""))];
}

const leaf = (path: string): string => /([^.\]]*|\["(?:[^"\\]|\\.)*"\])$/.exec(path)?.[0] ?? path;

function Why({ trace, environment, changes, go }: PanelProps & { changes: Changes | undefined }) {
  const product = environment?.combine === "product";
  const found = costs(trace, environment);
  return (
    <>
      {trace.score == null && <p>{trace.failure ? "The episode failed, so it has no score." : "There is no score yet."}</p>}
      {environment === null && <p class="dim">The run has no environment.json, so how these make the score is not known.</p>}
      {environment && <p class="dim">The score is the {product ? "product of these" : "sum of these, each times its weight"}.</p>}
      {found.map(({ reward, best, cost }) => {
        const missed = cost !== undefined && cost > 0;
        const last = missed && reward.reason && changes ? lastNamed(changes, reward.reason) : undefined;
        return (
          <div class="judged">
            <p><Verdict reward={reward} criterion={environment?.criteria.find((one) => one.name === reward.name)} /></p>
            {cost === undefined && <p class="dim">skipped: it does not count</p>}
            {cost !== undefined && cost <= 0 && <p class="dim">full marks</p>}
            {missed && <p class="dim">{product ? `a factor of ${figure(reward.value)},` : `cost ${figure(cost)}`} of at most {figure(best)}</p>}
            {last && <Last {...last} trace={trace} go={go} />}
            {missed && changes && !last && reward.reason && <p class="dim">No step changed what the reason names.</p>}
          </div>
        );
      })}
      {found.length === 0 && <p class="dim">No criterion judged the whole episode.</p>}
    </>
  );
}

function Last({ at, change, trace, go }: { at: StepChange; change: ChangeText; trace: Trace; go: (turn: number) => void }) {
  const step = trace.turns?.find((one) => one.index === at.turn)?.steps?.[at.step];
  return (
    <div>
      <button type="button" class="fold" onClick={() => go(at.turn)}>
        last touched in turn {at.turn}, step {at.step} ({clear(step?.call.name ?? "")})
      </button>
      <dl class="places"><Side leaf={change.path} change={change} named={[]} /></dl>
    </div>
  );
}

const MOST = 60;

interface Heard { message: Message; dropped: boolean }

// The context before the reply of a turn, as Trace.context() puts it together; what a rewrite dropped is still there.
function context(trace: Trace, index: number): Heard[] {
  const turns = trace.turns ?? [];
  const thread = turns[index]?.thread ?? 0;
  const found: Heard[] = [];
  let kept: Heard[] = [];
  for (const turn of turns.slice(0, index + 1)) {
    if ((turn.thread ?? 0) !== thread) continue;
    if (turn.keep != null) {
      for (const one of kept.slice(turn.keep)) one.dropped = true;
      kept = kept.slice(0, turn.keep);
    }
    const produced = turn.index === index ? [] : [turn.reply.message, ...(turn.steps ?? []).map((step) => ({ role: "tool" as const, content: step.observation }))];
    const added = [...(turn.added ?? []), ...produced].map((message) => ({ message, dropped: false }));
    found.push(...added);
    kept.push(...added);
  }
  return found;
}

function Context({ trace, turn }: { trace: Trace; turn: number }) {
  const [all, setAll] = useState(false);
  const found = context(trace, turn);
  const dropped = found.filter((one) => one.dropped).length;
  const shown = all ? found : found.slice(-MOST);
  return (
    <>
      <p class="dim">{found.length - dropped} messages{dropped > 0 && `, and ${dropped} that were dropped before`}</p>
      {shown.length < found.length && (
        <button type="button" class="fold" onClick={() => setAll(true)}>show the first {found.length - shown.length}, too</button>
      )}
      {shown.map(({ message, dropped }) => (
        <div class={`heard ${dropped ? "dropped" : ""}`}>
          <span class="label">{message.role}{dropped && ", dropped"}</span>
          <Shown content={message.content} raw={false} />
          {message.calls?.map((call) => <Said text={call.arguments} before={`${clear(call.name)} `} />)}
        </div>
      ))}
    </>
  );
}
