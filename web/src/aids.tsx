// One episode with all that helps to read it: labels, flags, lanes, turns, marks, and the panel beside the turns.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useMemo, useState } from "preact/hooks";
import { type Changes, costs } from "./changes";
import { goTo, Header, type Link, useReading, useTurns } from "./episode";
import type { Binding } from "./keys";
import type { Finding, Review } from "./labels";
import { Lanes, MEASURES } from "./lanes";
import { highlight } from "./marks";
import { type Kind, Panel } from "./panel";
import type { Environment, Trace } from "./record";
import { Flags, flagged, type Said, SaidLabels } from "./said";
import { clear, figure } from "./text";
import { useAsk } from "./ui";

interface EpisodeProps {
  trace: Trace | undefined; environment: Environment | null; changes: () => Promise<Changes>;
  seconds: () => Promise<number[][]>; reviews?: Review[] | undefined; said?: Said[] | undefined;
  findings?: Finding[] | undefined; link?: Link; parent?: string | undefined;
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
  const turns = useTurns({ trace, environment, raw, thread, link: props.link, flags: tools });
  useLayoutEffect(() => highlight(marks), [turns, JSON.stringify(marks)]);
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
      <Lanes trace={trace} environment={environment} measure={measure} seconds={spent} turn={turn} go={goTo} />
      <div class="reading">
        {turns}
        {kind && <Panel kind={kind} trace={trace} environment={environment} changes={world ?? (problem || undefined)} turn={turn} go={goTo} close={() => setKind(undefined)} />}
      </div>
    </>
  );
  return { keys: all, at, shown };
}
