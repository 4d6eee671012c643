// What is in play: a row an episode, and one episode as it grows. Nothing here can stop or change a run.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useEpisode } from "./episode";
import { useKeys } from "./keys";
import type { Trace, Turn } from "./record";
import { address, ask, go, repeat, type Run, screenKeys } from "./run";
import { clear, count, figure, known, mean } from "./text";
import { Notice, Sheet, Title, useChosen } from "./ui";

const WAIT_S = 20;
const RECENT = 500;
// So near to the end of the page, in pixels, a reader counts as being at it.
const NEAR = 120;
// Refused calls of one episode that an alert names.
const REPEATED = 3;

interface InPlay {
  key: [task: string, member: number, attempt: number]; turns: number; began: number; at: number; call: string;
  errors: number;
}

interface Playing { version: number; now: number; playing: InPlay[] }

// Asks again and again, each time from where the last answer ended. False from `take` ends it.
function useFeed<Answer>(path: () => string, take: (answer: Answer) => boolean, again: unknown[]): string {
  const [error, setError] = useState("");
  useEffect(() => {
    let wanted = true;
    const more = async () => {
      const answer = await ask<Answer>(path());
      setError("");
      wanted = wanted && take(answer);
    };
    void repeat(() => wanted, more, (words) => wanted && setError(words));
    return () => { wanted = false; };
  }, again);
  return error;
}

export function Live({ run }: { run: Run }) {
  // With the time at which it came.
  const [found, setFound] = useState<Playing & { asked: number }>();
  const version = useRef(0);
  const [, tick] = useState(0);
  const error = useFeed<Playing>(
    () => `${run.address}/live?from=${version.current}&wait=${version.current ? WAIT_S : 0}`,
    (answer) => {
      version.current = answer.version;
      setFound({ ...answer, asked: Date.now() });
      return true;
    },
    [run],
  );
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  const rows = found?.playing ?? [];
  const open = (one: InPlay | undefined) => one && go(address.live(run.name, ...one.key));
  const { place, at, choose, keys } = useChosen(rows.length, "episode");
  // The number of episodes when alerts were turned on.
  const [since, setSince] = useState<number>();
  const toggle = () => setSince(since === undefined ? run.columns.rows : undefined);
  const cause = since === undefined ? undefined : alarm(run, rows, since);
  const help = useKeys([
    ...keys,
    ["Enter", "watch the episode", () => open(rows[at()])],
    ["f", "watch the newest", () => open([...rows].sort((a, b) => b.began - a.began)[0])],
    ["a", `alerts: an episode with score 0, or with ${REPEATED} refused calls`, toggle],
    ...screenKeys(run.name),
  ]);
  // Clocks of the browser and of the server may differ.
  const now = found ? found.now + (Date.now() - found.asked) / 1000 : 0;
  const { columns } = run;
  const last = Array.from({ length: Math.min(RECENT, columns.rows) }, (_, n) => columns.number("score", columns.rows - 1 - n));
  const scores = known(last);
  return (
    <>
      <Title words="In play" help={help}>
        <span role="status">{rows.length} in play</span>
        <span>{count(columns.rows)} finished</span>
        {last.length > 0 && <span>the last {count(last.length)}: mean {figure(mean(scores))}, failed {figure((100 * (last.length - scores.length)) / last.length)} %</span>}
        <button type="button" aria-pressed={since !== undefined} onClick={toggle}><kbd>a</kbd> alerts</button>
      </Title>
      <Notice words={error} />
      {cause && <p class="notice" role="alert"><a href={cause.address}>{clear(cause.words)}</a></p>}
      {found !== undefined && rows.length === 0 && <p>Nothing is in play. Rows appear here while `quintain run` plays, or a Recorder watches.</p>}
      {rows.length > 0 && (
        <Sheet
          heads={["task", "member", "turns", "last call", "refused", "playing for", "since the last turn"]}
          current={place} choose={choose}
          rows={rows.map((one, n) => [
            <>
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

// A reason to look: an episode that ended with score 0 since a row, or one in play whose calls are refused repeatedly.
function alarm(run: Run, rows: InPlay[], since: number): { words: string; address: string } | undefined {
  const { columns } = run;
  for (let row = columns.rows - 1; row >= since; row--) {
    const words = `score 0: ${columns.text("task", row)}, member ${columns.number("member", row)}`;
    if (columns.number("score", row) === 0) return { words, address: address.row(run, row) };
  }
  const one = rows.find((one) => one.errors >= REPEATED);
  return one && { words: `${one.errors} refused calls: ${one.key[0]}, member ${one.key[1]}`, address: address.live(run.name, ...one.key) };
}

function seconds(value: number): string {
  const whole = Math.max(0, Math.round(value));
  return whole < 120 ? `${whole} s` : whole < 7200 ? `${Math.round(whole / 60)} min` : `${Math.round(whole / 3600)} h`;
}

interface Growing { head: Trace | null; turns: Turn[] }

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
  const unknown = async () => { throw new Error("What the steps changed is known once the episode has ended."); };
  const { keys, shown } = useEpisode({ trace, environment: run.facts?.environment ?? null, changes: unknown, seconds: async () => [], findings: run.facts?.findings });
  const help = useKeys([...keys, ...screenKeys(run.name)]);
  return (
    <>
      <p class="bar">
        <a href={address.screen(run.name, "live")}>all that is in play</a>
        <span role="status">{ended ? "not in play any more" : trace ? `turn ${trace.turns?.length ?? 0}, going on` : "waiting"}</span>
        {ended && <a href={address.episode(run.name, task, member, attempt)}>open the record</a>}
        {help}
      </p>
      <Notice words={error} />
      {shown}
    </>
  );
}
