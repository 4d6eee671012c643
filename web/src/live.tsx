// What is in play: a row an episode, and one episode as it grows. Nothing here can stop or change a run.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useAids } from "./aids";
import { Header, useReading, useTurns } from "./episode";
import { useKeys } from "./keys";
import type { Trace, Turn } from "./record";
import { address, ask, type Run } from "./run";
import { Sheet } from "./sheet";
import { clear, figure } from "./text";

const WAIT_S = 20;
const RECENT = 500;
const RETRY_MS = 3000;
// So near to the end of the page, in pixels, a reader counts as being at it.
const NEAR = 120;

interface InPlay {
  key: [task: string, member: number, attempt: number];
  turns: number;
  began: number;
  at: number;
  call: string;
  errors: number;
}

interface Playing {
  version: number;
  now: number;
  playing: InPlay[];
}

// Asks again and again, each time from where the last answer ended. False from `take` ends it.
function useFeed<Answer>(path: () => string, take: (answer: Answer) => boolean, again: unknown[]): string {
  const [error, setError] = useState("");
  useEffect(() => {
    let wanted = true;
    const follow = async () => {
      while (wanted) {
        try {
          const answer = await ask<Answer>(path());
          setError("");
          if (!wanted || !take(answer)) return;
        } catch (problem) {
          if (wanted) setError(`the studio does not answer: ${problem instanceof Error ? problem.message : problem}`);
          await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
        }
      }
    };
    void follow();
    return () => {
      wanted = false;
    };
  }, again);
  return error;
}

export function Live({ run }: { run: Run }) {
  const [found, setFound] = useState<Playing>();
  const [chosen, setChosen] = useState(0);
  const version = useRef(0);
  const [asked, setAsked] = useState(Date.now());
  const [, tick] = useState(0);
  const error = useFeed<Playing>(
    () => `${run.address}/live?from=${version.current}&wait=${version.current ? WAIT_S : 0}`,
    (answer) => {
      version.current = answer.version;
      setFound(answer);
      setAsked(Date.now());
      return true;
    },
    [run],
  );
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  const rows = found?.playing ?? [];
  const go = (one: InPlay | undefined) => {
    if (one) location.hash = address.live(run.name, ...one.key);
  };
  const move = (by: number) => () => setChosen((n) => Math.max(0, Math.min(rows.length - 1, n + by)));
  const help = useKeys([
    ["j", "next episode", move(1)],
    ["k", "previous episode", move(-1)],
    ["Enter", "watch the episode", () => go(rows[chosen])],
    ["f", "watch the newest", () => go([...rows].sort((a, b) => b.began - a.began)[0])],
    ["g e", "all episodes", () => (location.hash = address.episodes(run.name))],
    ["Escape", "back", () => history.back()],
  ]);
  // Clocks of the browser and of the server may differ.
  const now = (found?.now ?? 0) + (Date.now() - asked) / 1000;
  const { columns } = run;
  const last = Array.from({ length: Math.min(RECENT, columns.rows) }, (_, n) => columns.number("score", columns.rows - 1 - n));
  const scores = last.filter((one) => !Number.isNaN(one));
  const mean = scores.reduce((sum, one) => sum + one, 0) / scores.length;
  return (
    <>
      <div class="bar">
        <h1>In play</h1>
        <span role="status">{rows.length} in play</span>
        <span>{columns.rows.toLocaleString("en")} finished</span>
        {last.length > 0 && (
          <span>
            the last {last.length.toLocaleString("en")}: mean {figure(mean)}, failed {figure((100 * (last.length - scores.length)) / last.length)} %
          </span>
        )}
        {help}
      </div>
      {error && <p class="notice" role="alert">{clear(error)}</p>}
      {found !== undefined && rows.length === 0 && (
        <p>Nothing is in play. Rows appear here while `quintain run` plays, or a Recorder watches.</p>
      )}
      {rows.length > 0 && (
        <Sheet
          heads={["task", "member", "turns", "last call", "refused", "playing for", "since the last turn"]}
          rows={rows.map((one, n) => [
            <>
              {n === chosen && "▸ "}
              <a href={address.live(run.name, ...one.key)}>{clear(one.key[0])}</a>
              {one.key[2] > 0 && ` attempt ${one.key[2]}`}
            </>,
            one.key[1],
            one.turns,
            clear(one.call),
            one.errors || "",
            seconds(now - one.began),
            `${seconds(now - one.at)}${n === 0 && rows.length > 1 ? " ← longest" : ""}`,
          ])}
        />
      )}
    </>
  );
}

function seconds(value: number): string {
  const whole = Math.max(0, Math.round(value));
  return whole < 120 ? `${whole} s` : whole < 7200 ? `${Math.round(whole / 60)} min` : `${Math.round(whole / 3600)} h`;
}

interface Growing {
  head: Trace | null;
  turns: Turn[];
}

export function Watch({ run, task, member, attempt }: { run: Run; task: string; member: number; attempt: number }) {
  const [trace, setTrace] = useState<Trace>();
  const [ended, setEnded] = useState(false);
  const grown = useRef<Trace | undefined>(undefined);
  const stays = useRef(true);
  const place = new URLSearchParams({ task, member: String(member), attempt: String(attempt) }).toString();
  const error = useFeed<Growing>(
    () => `${run.address}/live/turns?${place}&from=${grown.current?.turns?.length ?? 0}&wait=${WAIT_S}`,
    (answer) => {
      if (answer.head === null) {
        setEnded(true);
        return false;
      }
      if (answer.turns.length || grown.current === undefined) {
        stays.current = innerHeight + scrollY >= document.documentElement.scrollHeight - NEAR;
        grown.current = { ...answer.head, turns: [...(grown.current?.turns ?? []), ...answer.turns] };
        setTrace(grown.current);
      }
      return true;
    },
    [run, place],
  );
  // A reader who has scrolled up is left where they are.
  useLayoutEffect(() => {
    if (stays.current) scrollTo(0, document.documentElement.scrollHeight);
  }, [trace]);
  const environment = run.facts?.environment ?? null;
  const { raw, keys, at } = useReading(undefined);
  const turns = useTurns({ trace, environment, raw });
  const unknown = async () => {
    throw new Error("What the steps changed is known once the episode has ended.");
  };
  const aids = useAids({ trace, environment, at, changes: unknown, seconds: async () => [] });
  const record = address.episode(run.name, task, member, attempt);
  const help = useKeys([
    ...keys,
    ...aids.keys,
    ["g l", "all that is in play", () => (location.hash = address.live(run.name))],
    ["Escape", "back", () => history.back()],
  ]);
  return (
    <>
      <p class="bar">
        <a href={address.live(run.name)}>all that is in play</a>
        <span role="status">{ended ? "not in play any more" : trace ? `turn ${trace.turns?.length ?? 0}, going on` : "waiting"}</span>
        {ended && <a href={record}>open the record</a>}
        {help}
      </p>
      {error && <p class="notice" role="alert">{clear(error)}</p>}
      {trace && <Header trace={trace} environment={environment} />}
      {aids.lanes}
      <div class="reading">
        {turns}
        {aids.panel}
      </div>
    </>
  );
}
