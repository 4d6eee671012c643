// Reviews: episode after episode, whose fault it was, how, and where it first went wrong.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Header, useReading, useTurns } from "./episode";
import { type Binding, useKeys } from "./keys";
import { label, OWNERS, type Review, type Reviews, type Taxonomy, type Verdict } from "./labels";
import type { Environment, Line } from "./record";
import { address, ask, type Run, screenKeys, send } from "./run";
import { type Said, where } from "./said";
import { clear, count } from "./text";
import { Notice, reason, Sheet, submitted, Title, toggled, useAnswer, useAsk } from "./ui";

const SURE = ["sure", "likely", "unsure"];
const LATELY = 20;

// The episodes to review, in order; `row` is null for one that is gone or has changed.
interface Queue {
  title: string; sample: string; rows: (number | null)[]; first: number; load: (row: number) => Promise<Line>;
  environment: Environment | null; hidden: string[];
}

interface SampleFacts { name: string; seed: number; blind: string[]; episodes: { n: number | null }[] }

// A sample, whose episodes the server sends without what they hide; the columns of the run are not asked for.
export function SampleReview({ run, name }: { run: string; name: string }) {
  const path = `runs/${encodeURIComponent(run)}/samples/${encodeURIComponent(name)}`;
  const [sample, error] = useAnswer<SampleFacts>(path);
  const queue = useMemo<Queue | undefined>(() => sample && {
    title: `sample ${sample.name} · seed ${sample.seed}`, sample: sample.name, rows: sample.episodes.map((one) => one.n), first: -1,
    load: (row) => ask<Line>(`${path}/${row}`), environment: null, hidden: sample.blind,
  }, [sample]);
  if (error) return <Notice words={error} />;
  return queue ? <Reviewing run={run} queue={queue} /> : <p>Loading the sample …</p>;
}

// The episodes of the table, in its order; an episode alone that is not one of them.
export function TableReview({ run, task, member, attempt }: { run: Run; task: string; member: number; attempt: number }) {
  const row = run.columns.row(task, member, attempt);
  const queue = useMemo<Queue>(() => ({
    title: "the table", sample: "", rows: run.rows.includes(row) ? [...run.rows] : [row], first: Math.max(0, run.rows.indexOf(row)), load: (row) => run.shown(row),
    environment: run.facts?.environment ?? null, hidden: [],
  }), [run, row]);
  if (row < 0) return <p>Loading the episode …</p>;
  return <Reviewing run={run.name} queue={queue} changed={() => void run.loadReviews()} />;
}

function Reviewing({ run, queue, changed }: { run: string; queue: Queue; changed?: () => void }) {
  const base = `runs/${encodeURIComponent(run)}/reviews`;
  const [reviews, setReviews] = useState<Reviews>();
  const [taxonomy, unread] = useAnswer<Taxonomy>("taxonomy");
  const [place, setPlace] = useState(-1);
  const [draft, setDraft] = useState<Verdict>({});
  const [words, say] = useState("");
  const [last, setLast] = useState<Verdict>();
  const mine = useRef(new Map<number, Review>());
  const saved = useRef<Review[]>([]);
  const since = useRef(0);
  const note = useRef<HTMLInputElement>(null);
  const failed = (problem: unknown) => say(reason(problem));

  const show = (wanted: number) => {
    const next = Math.max(0, Math.min(queue.rows.length - 1, wanted));
    const row = queue.rows[next];
    setPlace(next);
    setDraft(row == null ? {} : (mine.current.get(row) ?? {}));
    since.current = Date.now();
    scrollTo(0, 0);
  };
  useEffect(() => {
    ask<Reviews>(base + (queue.sample && `?sample=${encodeURIComponent(queue.sample)}`)).then((found) => {
      const own = found.reviews.filter((one) => one.reviewer === found.reviewer && one.kind !== "decided" && !one.mark);
      mine.current = new Map(own.flatMap((one) => (one.n === null || one.stale ? [] : [[one.n, one]])));
      setReviews(found);
      const open = queue.rows.findIndex((row) => row !== null && !mine.current.has(row));
      show(queue.first >= 0 ? queue.first : Math.max(0, open));
    }, failed);
  }, [queue]);

  const row = queue.rows[place] ?? null;
  const [line, lost] = useAsk(() => (row === null ? undefined : queue.load(row)), [queue, row]);
  const trace = line?.trace;
  const { raw, keys, at } = useReading(trace);
  const turns = useTurns({ trace, environment: queue.environment, raw });
  const change = (part: Verdict) => setDraft((before) => ({ ...before, ...part }));
  const choose = (owner: string) => change({ owner, modes: draft.owner === owner ? (draft.modes ?? []) : [] });
  const toggle = (id: string) => change({ modes: toggled(draft.modes ?? [], id) });
  const mark = () => {
    const turn = Math.max(0, at());
    const steps = trace?.turns?.[turn]?.steps?.length ?? 0;
    // The same key again marks the steps of the turn one after the other, then the whole turn.
    const step = draft.first?.turn === turn ? (draft.first.step ?? -1) + 1 : steps;
    change({ first: step < steps ? { turn, step } : { turn } });
  };
  const save = () => {
    const { owner, modes: chosen = [], first = null, sure = null, note: said = "" } = draft;
    if (row === null || (!owner && !said.trim())) return say("choose whose fault it was, or write a note");
    const seconds = Math.round((Date.now() - since.current) / 100) / 10;
    const facts = { rows: [row], first, sure, note: said, sample: queue.sample, seconds };
    const body = owner ? { kind: "verdict", owner, modes: chosen, ...facts } : { kind: "note", ...facts };
    send<Review[]>("POST", base, body).then(([made]) => {
      if (made === undefined) return;
      mine.current.set(row, made);
      saved.current.push(made);
      setLast({ ...(owner && { owner }), modes: chosen, sure });
      say(`saved: ${label(made)}`);
      changed?.();
      show(place + 1);
    }, failed);
  };
  const undo = () => {
    const gone = saved.current.pop();
    if (gone === undefined || gone.n === null) return say("nothing to undo");
    send("POST", base, { kind: "removed", of: [gone.id] }).then(() => {
      mine.current.delete(gone.n ?? -1);
      say("taken back");
      changed?.();
      show(queue.rows.indexOf(gone.n));
      setDraft(gone);
    }, failed);
  };
  const offered = (taxonomy?.modes ?? []).filter((one) => !one.merged && one.id.startsWith(`${draft.owner}.`));
  const help = useKeys([
    ...OWNERS.map((owner, n): Binding => [String(n + 1), `whose fault: ${owner}`, () => choose(owner)]),
    ...offered.filter((one) => one.key).map((one): Binding => [one.key ?? "", one.title ?? one.id, () => toggle(one.id)]),
    ["m", "mark the turn where it first went wrong; again: its steps", mark],
    ["s", "how sure", () => change({ sure: SURE[(SURE.indexOf(draft.sure ?? "") + 1) % SURE.length] ?? null })],
    ["N", "note", () => note.current?.focus()],
    [".", "the last verdict again", () => last && setDraft((before) => ({ ...before, ...last }))],
    ["Enter", "save, next episode", save],
    ["u", "take back the last verdict", undo],
    ["J", "next episode, without saving", () => show(place + 1)],
    ["K", "previous episode", () => show(place - 1)],
    ...keys,
    ...screenKeys(run),
  ]);
  if (words && reviews === undefined) return <Notice words={words} />;
  const done = queue.rows.filter((one) => one !== null && mine.current.has(one)).length;
  return (
    <>
      <p class="bar">
        <span>
          review: {clear(queue.title)} · you: {clear(reviews?.reviewer ?? "")}
          {queue.hidden.length > 0 && ` · hidden: ${queue.hidden.join(", ")}`}
        </span>
        <span>{done} of {queue.rows.length} <progress max={queue.rows.length} value={done} aria-label="reviewed" /></span>
        <span>{pace([...mine.current.values()])}</span>
        {help}
      </p>
      {row === null && place >= 0 && <p class="notice">Episode {place + 1} is gone or has changed since the sample was drawn.</p>}
      {trace && (queue.hidden.includes("reward") ? <h1>{clear(trace.task)} <small>member {trace.member ?? 0}</small></h1> : <Header trace={trace} environment={queue.environment} />)}
      {turns}
      <section class="review" aria-label="your verdict">
        <Choices name="whose fault" label="whose?" all={OWNERS.map((owner, n) => [String(n + 1), owner, owner])} chosen={[draft.owner ?? ""]} choose={choose} />
        {draft.owner && <Choices name="how" label="how?" all={offered.map((one) => [one.key ?? "", one.title ?? one.id, one.id])} chosen={draft.modes ?? []} choose={toggle} />}
        <div class="bar">
          <button type="button" onClick={mark}><kbd>m</kbd> first wrong: {where(draft.first)}</button>
          <label>
            how sure{" "}
            <select value={draft.sure ?? ""} onChange={(event) => change({ sure: event.currentTarget.value || null })}>
              {["", ...SURE].map((one) => <option value={one}>{one || "–"}</option>)}
            </select>
          </label>
          <label class="note">
            <kbd>N</kbd> note{" "}
            <input ref={note} value={draft.note ?? ""}
              onInput={(event) => change({ note: event.currentTarget.value })}
              onKeyDown={(event) => {
                if (event.key === "Enter") save();
                if (event.key === "Enter" || event.key === "Escape") event.currentTarget.blur();
              }}
            />
          </label>
          <button type="button" onClick={save}><kbd>Enter</kbd> save, next</button>
        </div>
        <p role="status">{clear(lost || unread || words)}</p>
      </section>
    </>
  );
}

function Choices(props: { name: string; label: string; all: string[][]; chosen: string[]; choose: (id: string) => void }) {
  return (
    <div class="choices" role="group" aria-label={props.name}>
      <span class="label">{props.label}</span>
      {props.all.map(([key, words = "", id = ""]) => (
        <button type="button" aria-pressed={props.chosen.includes(id)} onClick={() => props.choose(id)}>{key && <kbd>{key}</kbd>} {clear(words)}</button>
      ))}
    </div>
  );
}

// Median seconds of a review, and the modes that only the last ones have.
function pace(mine: Review[]): string {
  const read = mine.filter((one) => one.kind !== "inherited").sort((a, b) => (a.at < b.at ? -1 : 1));
  const seconds = read.flatMap((one) => one.seconds ?? []).sort((a, b) => a - b);
  const before = new Set(read.slice(0, -LATELY).flatMap((one) => one.modes ?? []));
  const fresh = new Set(read.slice(-LATELY).flatMap((one) => one.modes ?? []).filter((one) => !before.has(one)));
  if (seconds.length === 0) return "";
  return `new modes in the last ${LATELY}: ${fresh.size} · median ${Math.round(seconds[seconds.length >> 1] ?? 0)} s`;
}

// What people and programs said of an episode.
export function useSaid(run: Run, row: number): { reviews: Review[]; said: Said[] } {
  const reviews = (run.reviews?.reviews ?? []).filter((one) => one.n === row);
  const labeled = run.columns.list("owner", row).length > 0;
  const [said = [], error] = useAsk<Said[]>(() => (labeled ? ask(`${run.address}/labels/${row}`) : undefined), [run, row, labeled]);
  return { reviews, said: error ? [{ file: "error", why: error }] : said };
}

// Proposes the reviewer's last verdict on one of some rows for the others, and takes such labels back.
export function useProposals(run: Run): { words: string; propose: (rows: Iterable<number>) => void; undo: () => void } {
  const [words, say] = useState("");
  const post = (body: unknown, done: (added: Review[]) => void) => void run.review(body).then(done, (problem: unknown) => say(reason(problem)));
  const propose = (given: Iterable<number>) => {
    const rows = new Set(given);
    const own = (one: Review) => one.reviewer === run.reviews?.reviewer && one.kind === "verdict" && !one.stale && rows.has(one.n ?? -1);
    const [read] = (run.reviews?.reviews ?? []).filter(own).sort((a, b) => (a.at < b.at ? 1 : -1));
    if (read === undefined) return say("review one of these episodes first: Enter, then x");
    post({ kind: "inherited", rows: [...rows], of: [read.id] }, (added) => {
      if (added.length) run.proposed.push(added.map((one) => one.id));
      say(`${read.owner}: ${count(added.length)} ${added.length === 1 ? "episode inherits" : "episodes inherit"} it, as proposed`);
    });
  };
  const undo = () => {
    const last = run.proposed.at(-1);
    if (last === undefined) return say("nothing to take back");
    post({ kind: "removed", of: last }, () => {
      run.proposed.pop();
      say(`${count(last.length)} labels taken back`);
    });
  };
  return { words, propose, undo };
}

// All samples of a run, a form that draws one, notes that have no mode yet, and the taxonomy.
export function ReviewHome({ run }: { run: Run }) {
  const [error, setError] = useState("");
  const [taxonomy, unread, load] = useAnswer<Taxonomy>("taxonomy");
  // What was typed; the taxonomy of the server before.
  const [typed, setTyped] = useState<string>();
  const text = typed ?? taxonomy?.text ?? "";
  const help = useKeys(screenKeys(run.name));
  const failed = (problem: unknown) => setError(reason(problem));
  useEffect(() => void run.loadReviews(), [run]);
  const draw = submitted((given) => {
    const body = { name: given.get("name"), seed: Number(given.get("seed")), size: Number(given.get("size")), by: given.get("by"), blind: given.getAll("blind") };
    send("POST", `${run.address}/samples`, body).then(() => {
      setError("");
      void run.loadReviews();
    }, failed);
  });
  const write = () => {
    // Each change has a revision of its own, which the reviews name.
    const next = text.replace(/^revision = \d+/m, `revision = ${(taxonomy?.revision ?? 0) + 1}`);
    send("PUT", "taxonomy", next, { "If-Match": taxonomy?.tag ?? "" }).then(() => {
      setTyped(undefined);
      setError("");
      load();
    }, failed);
  };
  // Each chosen note becomes a verdict with that mode.
  const sort = submitted((given) => {
    const mode = String(given.get("mode"));
    const verdict = { kind: "verdict", owner: mode.split(".")[0], modes: [mode] };
    const chosen = notes.filter((one) => given.getAll("note").includes(one.id));
    Promise.all(chosen.map(({ n, first, sure, note }) => send("POST", `${run.address}/reviews`, { ...verdict, rows: [n], first, sure, note }))).then(() => run.loadReviews(), failed);
  });
  const reviews = run.reviews;
  const notes = (reviews?.reviews ?? []).filter((one) => one.note && !one.mark && !one.modes?.length);
  return (
    <>
      <Title words="Review" help={help} />
      {[error, unread, ...(reviews?.warnings ?? [])].map((words) => <Notice words={words} />)}
      <p>You review as <b>{clear(reviews?.reviewer || "no one, for this studio only reads")}</b>. {reviews?.reviews.length ?? 0} labels.</p>
      <h2>Samples</h2>
      <ul>{(reviews?.samples ?? []).map((one) => <li><a href={address.screen(run.name, "review", one)}>{clear(one)}</a></li>)}</ul>
      <form class="bar" onSubmit={draw} aria-label="draw a sample">
        <label>name <input name="name" required size={12} /></label>
        <label>episodes <input name="size" type="number" min="1" max="10000" value="40" /></label>
        <label>seed <input name="seed" type="number" value="0" /></label>
        <label>
          equal shares by{" "}
          <select name="by">{["", "score", "shape", "owner", "end"].map((one) => <option value={one}>{one || "–"}</option>)}</select>
        </label>
        <fieldset class="bar">
          <legend>hide</legend>
          {["triage", "reviewers", "reward"].map((one) => <label><input type="checkbox" name="blind" value={one} checked /> {one}</label>)}
        </fieldset>
        <button>draw</button>
      </form>
      <h2>Notes without a mode: {notes.length}</h2>
      {notes.length > 0 && (
        <form onSubmit={sort} aria-label="notes without a mode">
          <Sheet plain heads={["", "episode", "by", "label", "note"]} rows={notes.map((one) => [
            one.reviewer === reviews?.reviewer && one.n !== null && !one.stale && <input type="checkbox" name="note" value={one.id} aria-label={`note on ${clear(one.target.task)}`} />,
            one.n === null ? clear(one.target.task) : <a href={address.row(run, one.n)}>{clear(one.target.task)}</a>, clear(one.reviewer), label(one), clear(one.note ?? ""),
          ])} />
          <p class="bar">
            <label>mode <select name="mode">{(taxonomy?.modes ?? []).filter((one) => !one.merged).map((one) => <option value={one.id}>{clear(one.id)}</option>)}</select></label>
            <button>put the chosen notes of yours under it</button>
          </p>
        </form>
      )}
      <h2>Taxonomy, revision {taxonomy?.revision ?? "–"}</h2>
      <textarea aria-label="taxonomy" rows={16} value={text} onInput={(event) => setTyped(event.currentTarget.value)} spellcheck={false} />
      <p><button type="button" onClick={write} disabled={text === taxonomy?.text}>save as the next revision</button></p>
    </>
  );
}
