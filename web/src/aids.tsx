// What helps to read one episode, in the studio and in the file that is sent: lanes and the panel beside the turns.
import { useEffect, useState } from "preact/hooks";
import { type Changes, costs } from "./changes";
import { goTo } from "./episode";
import type { Binding } from "./keys";
import { Lanes, MEASURES } from "./lanes";
import { type Kind, Panel } from "./panel";
import type { Environment, Trace } from "./record";
import { clear, figure } from "./text";

interface AidsProps {
  trace: Trace | undefined;
  environment: Environment | null;
  at: () => number;
  changes: () => Promise<Changes>;
  seconds: () => Promise<number[][]>;
}

// The answer for an episode, asked for once it is wanted; the reason, if there is none.
function useAnswer<Answer>(trace: Trace | undefined, wanted: boolean, ask: () => Promise<Answer>): Answer | string | undefined {
  const [found, setFound] = useState<[Trace, Answer | string]>();
  const known = found?.[0] === trace ? found?.[1] : undefined;
  useEffect(() => {
    if (trace === undefined || !wanted || known !== undefined) return;
    let current = true;
    const take = (answer: Answer | string) => current && setFound([trace, answer]);
    ask().then(take, (problem: unknown) => take(problem instanceof Error ? problem.message : String(problem)));
    return () => {
      current = false;
    };
  }, [trace, wanted]);
  return known;
}

export function useAids({ trace, environment, at, changes, seconds }: AidsProps) {
  const [kind, setKind] = useState<Kind>();
  const [place, setPlace] = useState(0);
  const measure = MEASURES[place % MEASURES.length] ?? "tokens";
  const world = useAnswer(trace, kind === "changes" || kind === "why", changes);
  const spent = useAnswer(trace, measure === "seconds", seconds);
  const toggle = (one: Kind) => () => setKind(kind === one ? undefined : one);
  const keys: Binding[] = [
    ["d", "what a turn changed in the world", toggle("changes")],
    ["w", "why the score is not 1", toggle("why")],
    ["v", "what the model saw before a turn", toggle("seen")],
    ["l", "lanes with tokens, seconds or logprobs", () => setPlace(place + 1)],
  ];
  if (trace === undefined) return { keys, lanes: null, panel: null };
  const missed = costs(trace, environment).filter((one) => (one.cost ?? 0) > 0);
  const lanes = (
    <>
      {missed.length > 0 && trace.score != null && (
        <p class="facts">
          <button type="button" onClick={toggle("why")}>
            why not 1 <kbd>w</kbd>
          </button>
          {missed.map(({ reward, cost }) => (
            <span>
              {clear(reward.name)}: {environment?.combine === "product" ? `factor ${figure(reward.value)}` : `cost ${figure(cost)}`}
            </span>
          ))}
        </p>
      )}
      <Lanes trace={trace} environment={environment} measure={measure} seconds={typeof spent === "string" ? undefined : spent} at={at} go={goTo} />
    </>
  );
  const panel = kind && (
    <Panel kind={kind} trace={trace} environment={environment} changes={world} at={at} go={goTo} close={() => setKind(undefined)} />
  );
  return { keys, lanes, panel };
}
