// The studio: which screen an address names.
import { render, type VNode } from "preact";
import { useEffect, useErrorBoundary, useState } from "preact/hooks";
import { AgreementOf } from "./agreement";
import { Compare } from "./compare";
import { Curves } from "./curves";
import { goTo, useEpisode } from "./episode";
import { Findings } from "./findings";
import { Beside, Group } from "./group";
import { useKeys } from "./keys";
import { Live, Watch } from "./live";
import { selected } from "./marks";
import type { Line } from "./record";
import { ReviewHome, SampleReview, TableReview, useSaid } from "./review";
import { address, ask, go, type Run, run, screenKeys, SCREENS } from "./run";
import { Ask, focusSearch, Found } from "./search";
import { Shapes } from "./shapes";
import { Table } from "./table";
import { Tasks } from "./tasks";
import { clear, count, figure } from "./text";
import { Notice, reason, Sheet, Title, toggled, useAnswer, useAsk, useChosen, useRuns } from "./ui";

interface Place {
  run: Run; rest: string[]; query: URLSearchParams;
  // What an episode's address names.
  task: string; member: number; attempt: number;
}

const DRAWN: Record<string, (place: Place) => VNode> = {
  episodes: ({ run, query }) => <Table run={run} where={query.get("where") ?? ""} sort={query.get("sort") ?? ""} by={query.get("by") ?? ""} />,
  e: ({ query, rest, ...place }) => (query.has("review") ? <TableReview key={rest.join("/")} {...place} /> : <Episode {...place} turn={Number(query.get("t") ?? -1)} />),
  g: ({ run, task, query }) => <Group run={run} task={task} attempt={Number(query.get("attempt") ?? 0)} by={query.get("by") ?? ""} />,
  beside: ({ run, rest }) => <Beside words="Side by side" of={rest.flatMap((task, n) => (n % 2 ? [] : [[run, run.columns.row(task, ...numbers(rest[n + 1]))]]))} back={() => history.back()} />,
  live: ({ query: _query, rest, ...place }) => (place.task ? <Watch key={rest.join("/")} {...place} /> : <Live run={place.run} />),
  curves: ({ run, query }) => <Curves run={run} x={query.get("x") ?? ""} />,
  review: ({ run }) => <ReviewHome run={run} />,
  agreement: ({ run, query }) => <AgreementOf run={run} of={query.get("of") ?? ""} />,
  shapes: ({ run }) => <Shapes run={run} />,
  tasks: ({ run }) => <Tasks run={run} />,
  findings: ({ run }) => <Findings run={run} />,
  search: ({ run, query }) => <Search run={run.name} query={query} />,
};

function App() {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = () => setHash(location.hash);
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const parts = path.split("/").map(decoded);
  const [name = "", screen = "episodes", ...rest] = parts;
  useEffect(() => {
    document.title = ["Studio", ...parts.filter(Boolean).map(clear)].join(" · ");
  }, [path]);
  const given = new URLSearchParams(query);
  const [a, b] = [given.get("a"), given.get("b")];
  const compared = path === "compare" && a !== null && b !== null && <Compare key={`${a} ${b}`} a={run(a)} b={run(b)} by={given.get("by") ?? ""} task={given.get("task")} />;
  // The columns of a run hold what a sample hides, so its review does without them.
  const sampled = screen === "review" && rest[0] && <SampleReview run={name} name={rest[0]} />;
  return (
    <>
      <nav class="bar" aria-label="place">
        <a href="#/">Studio</a>
        {name && !compared && <a href={address.episodes(name)}>{clear(name)}</a>}
        {name && !compared && SCREENS.slice(1).map(([, one, means]) => <a href={address.screen(name, one)} title={means}>{one}</a>)}
      </nav>
      <main>{compared || sampled || (name ? <OfRun key={name} run={run(name)} screen={screen} rest={rest} query={given} /> : <Runs query={given} />)}</main>
    </>
  );
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

// Member and attempt of an episode, as an address has them.
const numbers = (place = ""): [member: number, attempt: number] => [parseInt(place), parseInt(place.split(".")[1] ?? "0")];

function OfRun({ run, screen, rest, query }: { run: Run; screen: string; rest: string[]; query: URLSearchParams }) {
  useRuns(run);
  const [problem, forget] = useErrorBoundary();
  const [task = "", place = ""] = rest;
  const [member, attempt] = numbers(place);
  useEffect(forget, [screen, task, place]);
  const drawn = DRAWN[screen] ?? DRAWN.episodes;
  return (
    <>
      {[run.error, ...(run.facts?.warnings ?? [])].map((words) => <Notice words={words} />)}
      {problem ? <Notice words={`${task || "the table"} cannot be drawn: ${problem}`} /> : drawn?.({ run, rest, query, task, member, attempt })}
    </>
  );
}

interface Summary {
  name: string; environment: string | null; agent: string | null; split: string | null; episodes: number;
  failed: number; mean: number | null; active: boolean; done: boolean;
  // Of the mean, if episodes without a score had the lowest or the highest one.
  interval: [low: number, high: number] | null;
  // Findings of an audit of this version; null without an audit.
  proven: number | null;
  // Episodes that people labelled, and how far two of them agree.
  labels: number; kappa: number | null;
}

// The field has the focus until something was asked for, so that the hits have the keys then.
function Search({ run, query }: { run: string; query: URLSearchParams }) {
  useEffect(() => void (query.has("q") || focusSearch()), []);
  return (
    <>
      <Ask key={query.toString()} query={query} run={run} />
      <Found runs={[run]} query={query} />
    </>
  );
}

function Runs({ query }: { query: URLSearchParams }) {
  const [runs, error] = useAnswer<Summary[]>("runs");
  if (error) return <Notice words={error} />;
  return (
    <>
      <Ask key={query.toString()} query={query} run="" />
      {query.has("q") ? runs && <Found runs={runs.map((one) => one.name)} query={query} /> : <ListOfRuns runs={runs} />}
    </>
  );
}

function ListOfRuns({ runs }: { runs: Summary[] | undefined }) {
  const [chosen, setChosen] = useState<string[]>([]);
  const [first = "", second = ""] = chosen;
  const { place, at, choose, keys } = useChosen(runs?.length ?? 0, "run");
  const toggle = (name: string) => setChosen(toggled(chosen, name).slice(-2));
  const of = (act: (name: string) => void) => () => runs?.[at()] && act(runs[at()]?.name ?? "");
  const help = useKeys([
    ...keys,
    ["Enter", "open the run", of((name) => go(address.episodes(name)))],
    ["x", "choose the run", of(toggle)],
    ["c", "compare the two runs that are chosen", () => second && go(address.compare(first, second))],
    ["/", "search in all runs", focusSearch],
  ]);
  return (
    <>
      <Title words="Runs" help={help}>
        {second ? <a href={address.compare(first, second)}>compare {clear(`${first} → ${second}`)}</a> : <span class="dim">choose two to compare them</span>}
      </Title>
      <Sheet style="runs" current={place} choose={choose}
        heads={["run", "environment", "agent", "split", "episodes", "mean", <span title="The mean if all episodes without a score had the lowest, or the highest one">interval</span>, "failed", "audit", "labels"]}
        rows={(runs ?? []).map((one) => [
          <>
            <input type="checkbox" aria-label={`compare ${clear(one.name)}`} checked={chosen.includes(one.name)} onChange={() => toggle(one.name)} />{" "}
            <a href={address.episodes(one.name)}>{clear(one.name)}</a> {one.active && <span title="is being written">●</span>}
          </>,
          ...[one.environment, one.agent, one.split].map((fact) => clear(fact ?? "")),
          `${count(one.episodes)}${one.done ? "" : " read so far"}`,
          figure(one.mean), one.interval && `${figure(one.interval[0])} … ${figure(one.interval[1])}`,
          one.failed ? `${Math.round((1000 * one.failed) / one.episodes) / 10} %` : "0",
          one.proven === null ? "none run" : <a href={address.screen(one.name, "findings")}>{one.proven > 0 && "⚑ "}{one.proven} proven</a>,
          one.labels ? <a href={address.screen(one.name, one.kappa === null ? "review" : "agreement")}>{count(one.labels)}{one.kappa !== null && ` (κ ${figure(one.kappa)})`}</a> : "–",
        ])}
      />
    </>
  );
}

function Episode({ run, task, member, attempt, turn }: Omit<Place, "rest" | "query"> & { turn: number }) {
  const { columns } = run;
  const members = columns.group(task, attempt);
  const row = members.find((one) => columns.number("member", one) === member) ?? -1;
  const [line, error] = useAsk<Line>(() => (row < 0 ? undefined : run.shown(row)), [run, row]);
  const trace = line?.trace;
  useEffect(() => {
    if (trace && turn >= 0) goTo(turn);
    else if (trace) scrollTo(0, 0);
  }, [turn, trace]);
  const place = run.rows.indexOf(row);
  if (row >= 0) run.opened = row;
  // Keys may be faster than the next drawing.
  const other = (list: Uint32Array | number[], by: number) => () => {
    const found = list[list.indexOf(run.opened) + by];
    if (found !== undefined) go(address.row(run, (run.opened = found)));
  };
  const link = (index: number) => address.episode(run.name, task, member, attempt, index);
  const { reviews, said } = useSaid(run, row);
  const mine = run.reviews?.reviewer ?? "";
  const mark = () => {
    const place = selected() ?? { turn: Math.max(0, at()), step: 0, field: "", from: 0, to: 0, quote: "" };
    const note = mine && prompt(`Note on turn ${place.turn}${place.quote && `, “${place.quote}”`}`);
    if (note === null || !mine) return;
    run.review({ kind: "mark", rows: [row], mark: place, note }).catch((problem: unknown) => fail(reason(problem)));
  };
  const [failed, fail] = useState("");
  const [origin, ...of] = trace?.forked ?? [];
  const { keys, at, shown } = useEpisode({
    trace, environment: run.facts?.environment ?? null, changes: () => run.changes(row),
    seconds: () => ask(`${run.address}/episodes/${row}/seconds`), reviews, said, findings: run.facts?.findings, link,
    tokens: run.facts?.tokenizer ? `${run.address}/episodes/${row}/tokens` : undefined,
    parent: origin === undefined ? undefined : address.episode(run.name, origin, of[0] ?? 0, of[1] ?? 0, of[2]),
    audit: address.screen(run.name, "findings"), mine,
    remove: (mark) => void run.review({ kind: "removed", of: [mark.id] }),
  });
  const help = useKeys([
    ...keys,
    ["J", "next episode of the table", other(run.rows, 1)], ["K", "previous episode of the table", other(run.rows, -1)],
    ["]", "next member of the group", other(members, 1)], ["[", "previous member of the group", other(members, -1)],
    ["g g", "the group", () => go(address.group(run.name, task, attempt))],
    ["m", "mark the selected text, or the turn", mark],
    ["x", "review the episode", () => go(address.review(run, row))],
    ["y", "copy the address of this turn", () => void navigator.clipboard.writeText(new URL(link(Math.max(0, at())), location.href).href)],
    ...screenKeys(run.name),
  ]);
  if (error || failed) return <Notice words={error || failed} />;
  if (row < 0 && columns.head?.done) return <Notice words={`The run has no episode of task ${task}, member ${member}.`} />;
  if (trace === undefined) return <p>Loading {clear(task)} …</p>;
  return (
    <>
      <p class="bar">
        <a href={address.group(run.name, task, attempt)}>group of {members.length}</a>
        <span>{place >= 0 && `${count(place + 1)} of ${count(run.rows.length)} in the table`}</span>
        <a href={`api/${run.address}/export?n=${row}`} download>save as one file</a>
        {help}
      </p>
      {shown}
    </>
  );
}

const place = document.getElementById("app");
if (place) render(<App />, place);
