// Places at which a text stands, in one run or in all: field, turn and what stands around it.
import { useEffect, useRef, useState } from "preact/hooks";
import { type Binding, useKeys } from "./keys";
import { address, go, lines, screenKeys } from "./run";
import { clear, count } from "./text";
import { Notice, reason, Sheet, submitted, useChosen } from "./ui";

// Hits of all runs together.
const MOST = 500;

interface Hit {
  run: string; task: string; member: number; attempt: number; turn?: number; step?: number; field: string; excerpt: [string, string, string];
}

// Hits as they come, and whether the server still looks.
function useHits(runs: string[], asked: string): [hits: Hit[], done: boolean, error: string] {
  const [[found, done, error], set] = useState<[Hit[], boolean, string]>([[], true, ""]);
  useEffect(() => {
    const stop = new AbortController();
    const all: Hit[] = [];
    const look = async () => {
      for (const run of runs) {
        const path = `runs/${encodeURIComponent(run)}/search?${asked}&most=${MOST - all.length}`;
        for await (const one of lines<Hit | { detail: string }>(path, stop.signal)) {
          if ("detail" in one) throw new Error(one.detail);
          all.push({ ...one, run });
          set([[...all], false, ""]);
        }
        if (all.length >= MOST) break;
      }
      set([all, true, ""]);
    };
    set([[], !asked, ""]);
    if (asked) look().catch((problem: unknown) => stop.signal.aborted || set([all, true, reason(problem)]));
    return () => stop.abort();
  }, [asked, runs.join("/")]);
  return [found, done, error];
}

// The table of hits; what is asked for is in the address.
export function Found({ runs, query }: { runs: string[]; query: URLSearchParams }) {
  const asked = query.has("q") ? query.toString() : "";
  const [found, done, error] = useHits(runs, asked);
  const { place, at, choose, keys } = useChosen(found.length, "hit");
  const there = (one: Hit) => address.episode(one.run, one.task, one.member, one.attempt, one.turn ?? -1);
  const others: Binding[] = runs.length === 1 ? screenKeys(runs[0] ?? "") : [["/", "search", focusSearch], ["Escape", "all runs", () => go("#/")]];
  const help = useKeys([...keys, ["Enter", "open the episode at that turn", () => found[at()] && go(there(found[at()] as Hit))], ...others]);
  return (
    <>
      <p class="bar">
        <span role="status">{asked && `${count(found.length)} ${found.length === 1 ? "place" : "places"}${done ? (found.length >= MOST ? ", the first ones" : "") : ", searching"}`}</span>
        {help}
      </p>
      <Notice words={error} />
      {found.length > 0 && (
        <Sheet style="hits" heads={["episode", "turn", "text", "what stands there"]} current={place} choose={choose}
          rows={found.map((one) => {
            const [before, text, after] = one.excerpt.map(clear);
            return [
              <a href={there(one)}>{runs.length > 1 && `${clear(one.run)} ▸ `}{clear(one.task)}, member {one.member}</a>,
              `${one.turn ?? ""}${one.step ? `, step ${one.step}` : ""}`, clear(one.field), <q>{before}<mark>{text}</mark>{after}</q>,
            ];
          })} />
      )}
    </>
  );
}

// Ways in which a text is searched for.
const WAYS = { case: "capital letters differ", regex: "regular expression" };

// The field for the text, and what of it counts; in one run, or in all of them.
export function Ask({ query, run }: { query: URLSearchParams; run: string }) {
  const field = useRef<HTMLInputElement>(null);
  const asked = submitted((given) => {
    field.current?.blur();
    go(address.search(run, Object.fromEntries([...given].map(([name, value]) => [name, String(value)]))));
  });
  return (
    <form class="bar" role="search" aria-label="texts" onSubmit={asked}>
      <label class="where">search <input name="q" ref={field} id="search" defaultValue={query.get("q") ?? ""} required onKeyDown={(event) => event.key === "Escape" && field.current?.blur()} /></label>
      <label>in <select name="field" defaultValue={query.get("field") ?? ""}>{FIELDS.map((one) => <option value={one}>{one || "all texts"}</option>)}</select></label>
      {Object.entries(WAYS).map(([name, means]) => (
        <label><input type="checkbox" name={name} value="1" defaultChecked={query.get(name) === "1"} /> {means}</label>
      ))}
      <button>find</button>
    </form>
  );
}

// Labels of texts, as the page of an episode has them.
const FIELDS = ["", "task", "system", "user", "thinks", "says", "calls", "sees", "rewards", "end", "failure"];

export const focusSearch = (): void => document.getElementById("search")?.focus();
