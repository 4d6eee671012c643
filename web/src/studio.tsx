// The studio: which screen an address names.
import { render } from "preact";
import { useEffect, useErrorBoundary, useReducer, useRef, useState } from "preact/hooks";
import { AgreementOf } from "./agreement";
import { useAids } from "./aids";
import { Compare } from "./compare";
import { Curves } from "./curves";
import { goTo, Header, useReading, useTurns } from "./episode";
import { Group } from "./group";
import { useKeys } from "./keys";
import { Live, Watch } from "./live";
import type { Line } from "./record";
import { Labels, ReviewHome, SampleReview, TableReview } from "./review";
import { address, ask, type Run, run, type Summary } from "./run";
import { Shapes } from "./shapes";
import { opened, Table } from "./table";
import { Tasks } from "./tasks";
import { clear, figure } from "./text";

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
  const two = new URLSearchParams(query);
  const [a, b] = [two.get("a"), two.get("b")];
  const compared = path === "compare" && a !== null && b !== null && <OfTwo key={query} a={run(a)} b={run(b)} />;
  return (
    <>
      <nav class="bar" aria-label="place">
        <a href="#/">Studio</a>
        {name && !compared && <a href={address.episodes(name)}>{clear(name)}</a>}
        {name && !compared && <a href={address.live(name)}>in play</a>}
        {name && !compared && ["curves", "shapes", "tasks", "review", "agreement"].map((one) => <a href={`#/${encodeURIComponent(name)}/${one}`}>{one}</a>)}
      </nav>
      <main>{compared ? compared : screen === "review" && rest[0] ? <SampleReview run={name} name={rest[0]} /> : name ? <OfRun key={name} run={run(name)} screen={screen} rest={rest} query={new URLSearchParams(query)} /> : <Runs />}</main>
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

function OfRun({ run, screen, rest, query }: { run: Run; screen: string; rest: string[]; query: URLSearchParams }) {
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  useEffect(() => run.listen(() => redraw(undefined as never)), [run]);
  const [problem, forget] = useErrorBoundary();
  const [task = "", place = ""] = rest;
  const here = `${screen} ${task} ${place}`;
  useEffect(forget, [here]);
  const [member = 0, attempt = 0] = place.split(".").map(Number);
  let shown = <Table run={run} where={query.get("where") ?? ""} sort={query.get("sort") ?? ""} />;
  if (screen === "g") shown = <Group run={run} task={task} attempt={Number(query.get("attempt") ?? 0)} />;
  if (screen === "curves") shown = <Curves run={run} x={query.get("x") ?? ""} />;
  if (screen === "live") {
    shown = task ? <Watch key={here} run={run} task={task} member={member} attempt={attempt} /> : <Live run={run} />;
  }
  if (screen === "e") {
    const turn = query.has("t") ? Number(query.get("t")) : -1;
    shown = <Episode run={run} task={task} member={member} attempt={attempt} turn={turn} />;
  }
  if (screen === "review") shown = query.has("of") ? <TableReview key={query.get("of")} run={run} row={reviewed(run, query.get("of") ?? "")} /> : <ReviewHome run={run} />;
  if (screen === "agreement") shown = <AgreementOf run={run} of={query.get("of") ?? ""} />;
  if (screen === "shapes") shown = <Shapes run={run} />;
  if (screen === "tasks") shown = <Tasks run={run} />;
  if (problem) shown = <p class="notice" role="alert">{clear(`${task || "the table"} cannot be drawn: ${problem}`)}</p>;
  return (
    <>
      {[run.error, ...(run.facts?.warnings ?? [])].filter(Boolean).map((words) => (
        <p class="notice" role="alert">
          {clear(words)}
        </p>
      ))}
      {shown}
    </>
  );
}

// The row of an episode's address.
function reviewed(run: Run, of: string): number {
  const [, task = "", place = ""] = /\/e\/([^/]*)\/([\d.]*)/.exec(of) ?? [];
  const [member = 0, attempt = 0] = place.split(".").map(Number);
  return run.columns.row(decoded(task), member, attempt);
}

function OfTwo({ a, b }: { a: Run; b: Run }) {
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  useEffect(() => {
    const ends = [a, b].map((one) => one.listen(() => redraw(undefined as never)));
    return () => ends.forEach((end) => end());
  }, [a, b]);
  const wrong = [a.error, b.error].find(Boolean);
  return wrong ? <p class="notice" role="alert">{clear(wrong)}</p> : <Compare a={a} b={b} />;
}

function Runs() {
  const [chosen, setChosen] = useState<string[]>([]);
  const [runs, setRuns] = useState<Summary[]>();
  const [error, setError] = useState("");
  useEffect(() => {
    ask<Summary[]>("runs").then(setRuns, (problem: unknown) => setError(String(problem)));
  }, []);
  const [first, second] = chosen;
  const help = useKeys([["c", "compare the two runs that are chosen", () => second && (location.hash = address.compare(first ?? "", second))]]);
  if (error) return <p class="notice" role="alert">{error}</p>;
  return (
    <>
      <div class="bar">
        <h1>Runs</h1>
        {second ? <a href={address.compare(first ?? "", second)}>compare {clear(`${first} → ${second}`)}</a> : <span class="dim">choose two to compare them</span>}
        {help}
      </div>
      <table class="runs">
        <thead>
          <tr>
            {["run", "environment", "agent", "split", "episodes", "failed", "mean"].map((word) => (
              <th scope="col">{word}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {(runs ?? []).map((one) => (
            <tr>
              <th scope="row">
                <input
                  type="checkbox"
                  aria-label={`compare ${clear(one.name)}`}
                  checked={chosen.includes(one.name)}
                  onChange={() => setChosen(chosen.includes(one.name) ? chosen.filter((name) => name !== one.name) : [...chosen, one.name].slice(-2))}
                />{" "}
                <a href={address.episodes(one.name)}>{clear(one.name)}</a> {one.active && <span title="is being written">●</span>}
              </th>
              <td>{clear(one.environment ?? "")}</td>
              <td>{clear(one.agent ?? "")}</td>
              <td>{clear(one.split ?? "")}</td>
              <td>
                {one.episodes.toLocaleString("en")}
                {!one.done && " read so far"}
              </td>
              <td>{one.failed.toLocaleString("en")}</td>
              <td>{figure(one.mean)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

interface EpisodeProps {
  run: Run;
  task: string;
  member: number;
  attempt: number;
  turn: number;
}

function Episode({ run, task, member, attempt, turn }: EpisodeProps) {
  const { columns } = run;
  const row = columns.row(task, member, attempt);
  const [line, setLine] = useState<Line>();
  const [error, setError] = useState("");
  useEffect(() => {
    if (row < 0) return;
    let wanted = true;
    opened.set(run.name, row);
    run.line(row).then(
      (found) => wanted && setLine(found),
      (problem: unknown) => wanted && setError(String(problem)),
    );
    return () => {
      wanted = false;
    };
  }, [run, row]);
  const trace = line?.trace;
  const fits = trace?.task === task && (trace.member ?? 0) === member && (trace.attempt ?? 0) === attempt;
  const { raw, keys, at } = useReading(trace);
  useEffect(() => {
    if (fits && turn >= 0) goTo(turn);
    else if (fits) scrollTo(0, 0);
  }, [fits, turn, line]);
  const rows = run.view ?? Uint32Array.from({ length: columns.rows }, (_, n) => n);
  const place = rows.indexOf(row);
  const members = columns.group(task, attempt);
  // Keys may be faster than the next drawing.
  const latest = useRef(row);
  latest.current = row;
  const other = (list: Uint32Array | number[], by: number) => () => {
    const found = list[list.indexOf(latest.current) + by];
    if (found === undefined) return;
    latest.current = found;
    location.hash = address.row(run, found);
  };
  const go = (address: string) => () => {
    location.hash = address;
  };
  const environment = run.facts?.environment ?? null;
  const link = (index: number) => address.episode(run.name, task, member, attempt, index);
  const turns = useTurns({ trace, environment, raw, link });
  const here = () => address.episode(run.name, task, member, attempt, Math.max(0, at()));
  const aids = useAids({ trace, environment, at, changes: () => run.changes(row), seconds: () => run.seconds(row) });
  const file = `api/${run.address}/export?n=${row}`;
  const help = useKeys([
    ...keys,
    ...aids.keys,
    ["J", "next episode of the table", other(rows, 1)],
    ["K", "previous episode of the table", other(rows, -1)],
    ["]", "next member of the group", other(members, 1)],
    ["[", "previous member of the group", other(members, -1)],
    ["g g", "the group", go(address.group(run.name, task, attempt))],
    ["x", "review the episode", go(address.review(run, row))],
    ["g e", "all episodes", go(address.episodes(run.name))],
    ["g r", "samples and reviews", go(address.reviews(run.name))],
    ["g l", "what is in play", go(address.live(run.name))],
    ["y", "copy the address of this turn", () => void navigator.clipboard.writeText(new URL(here(), location.href).href)],
    ["Escape", "back to the table", () => history.back()],
  ]);
  if (error) return <p class="notice" role="alert">{clear(error)}</p>;
  const done = columns.head?.done;
  if (row < 0 && done) return <p class="notice" role="alert">The run has no episode of task {clear(task)}, member {member}.</p>;
  if (trace === undefined || !fits) return <p>Loading {clear(task)} …</p>;
  return (
    <>
      <p class="bar">
        <a href={address.group(run.name, task, attempt)}>
          group of {members.length}
        </a>
        <span>
          {place >= 0 && `${(place + 1).toLocaleString("en")} of ${rows.length.toLocaleString("en")} in the table`}
        </span>
        <a href={file} download>
          save as one file
        </a>
        {help}
      </p>
      <Header trace={trace} environment={environment} link={link} />
      <Labels run={run} row={row} />
      {aids.lanes}
      <div class="reading">
        {turns}
        {aids.panel}
      </div>
    </>
  );
}

const place = document.getElementById("app");
if (place) render(<App />, place);
