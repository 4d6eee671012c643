// What the browser holds of a run, and the requests that bring it.
import type { Changes } from "./changes";
import { Columns } from "./columns";
import { exported, fromFiles } from "./files";
import type { Binding } from "./keys";
import type { Finding, Review, Reviews } from "./labels";
import type { Environment, Line } from "./record";

export interface Facts { environment: Environment | null; warnings: string[]; findings: Finding[]; tokenizer?: boolean }

const api = (path: string, request?: RequestInit) => (exported ? fromFiles(path, request) : fetch(`api/${path}`, request));

// An answer that is none is an error, which says why.
async function answered(path: string, request: RequestInit = {}): Promise<Response> {
  const answer = await api(path, request);
  if (answer.ok) return answer;
  const said = await answer.text();
  throw new Error(said.startsWith("{") ? JSON.parse(said).detail : said);
}

export async function ask<Answer>(path: string, request: RequestInit = {}): Promise<Answer> {
  return (await answered(path, request)).json();
}

// The lines of an answer, as they come.
export async function* lines<Line>(path: string, signal: AbortSignal): AsyncGenerator<Line> {
  const answer = await answered(path, { signal });
  let rest = "";
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
    const whole = (rest + part.value).split("\n");
    rest = whole.pop() ?? "";
    for (const line of whole) yield JSON.parse(line);
  }
}

export function send<Answer>(method: string, path: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
  return ask<Answer>(path, { method, body: typeof body === "string" ? body : JSON.stringify(body), headers });
}

const WAIT_S = 20;
const RETRY_MS = 3000;

// Asks again and again until `wanted` says no; after an error it waits.
export async function repeat(wanted: () => boolean, act: () => Promise<void>, failed: (words: string) => void): Promise<void> {
  while (wanted()) {
    try {
      await act();
    } catch (problem) {
      failed(`the studio does not answer: ${problem instanceof Error ? problem.message : problem}`);
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

export class Run {
  columns = new Columns();
  facts: Facts | undefined;
  error = "";
  reviews: Reviews | undefined;
  // The rows of the table, in its order, which J and K follow; undefined until a table was shown.
  view: Uint32Array | undefined;
  // The row that was opened last.
  opened = -1;
  // Rows that are selected in the table, and the labels that were proposed at once, the last ones last.
  selected: ReadonlySet<number> = new Set();
  proposed: string[][] = [];
  private searches = new Map<string, { found: Set<number>; rows: number; running: boolean }>();
  private listeners = new Set<() => void>();
  private following = false;

  constructor(readonly name: string) {}

  get address(): string { return `runs/${encodeURIComponent(this.name)}`; }

  get rows(): Uint32Array { return this.view ?? Uint32Array.from({ length: this.columns.rows }, (_, n) => n); }

  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    if (!this.following) void this.follow();
    if (this.reviews) void this.loadReviews();
    return () => this.listeners.delete(listener);
  }

  line(row: number): Promise<Line> { return ask<Line>(`${this.address}/episodes/${row}`); }

  // Without its longest texts.
  shown(row: number): Promise<Line> { return ask<Line>(`${this.address}/episodes/${row}?cut=1`); }

  // Reads the reviews of the run; their columns come with the next episodes, or at once if there are none.
  async loadReviews(): Promise<void> {
    const words = await ask<Reviews>(`${this.address}/reviews`).then((found) => ((this.reviews = found), this.error), String);
    this.tell(words);
  }

  // Adds reviews, or takes some back, and reads all anew.
  async review(body: unknown): Promise<Review[]> {
    const added = await send<Review[]>("POST", `${this.address}/reviews`, body);
    await this.loadReviews();
    return added;
  }

  async changes(row: number): Promise<Changes> {
    const [head, ...steps] = (await (await answered(`${this.address}/episodes/${row}/changes`)).text()).split("\n").map((line) => JSON.parse(line));
    return { ...head, steps };
  }

  // The rows that hold a text, as far as they are known; what is missing is asked for.
  search(text: string): Set<number> {
    const known = this.searches.get(text) ?? { found: new Set(), rows: 0, running: false };
    this.searches.set(text, known);
    if (known.rows < this.columns.rows && !known.running) {
      known.running = true;
      const asked = ask<{ found: number[]; rows: number }>(`${this.address}/holding?from=${known.rows}&q=${encodeURIComponent(text)}`);
      void asked.then(({ found, rows }) => {
        for (const row of found) known.found.add(row);
        known.rows = rows;
        return "";
      }, String).then((words) => {
        known.running = false;
        this.tell(words);
      });
    }
    return known.found;
  }

  get searching(): boolean { return [...this.searches.values()].some((one) => one.running); }

  // A number that changes with every result of a search.
  get results(): number { return [...this.searches.values()].reduce((sum, one) => sum + one.rows, 0); }

  // Asks for the episodes, and for what is written while the page is open.
  private async follow(): Promise<void> {
    this.following = true;
    const more = async () => {
      this.facts ??= await ask<Facts>(this.address);
      const { head, rows, labels } = this.columns;
      const answer = await answered(`${this.address}/columns?from=${rows}&labels=${labels}&wait=${head?.done ? WAIT_S : 0}`);
      const continued = this.columns.apply(await answer.arrayBuffer());
      if (!continued) {
        this.searches.clear();
        this.selected = new Set();
      }
      const changed = this.columns.labels !== labels;
      if (changed || !continued) this.reviews = await ask<Reviews>(`${this.address}/reviews`);
      const told = head !== undefined && this.columns.rows === rows && !changed && head.done === this.columns.head?.done;
      if (this.error || !continued || !told) this.tell("");
    };
    await repeat(() => this.listeners.size > 0, more, (words) => this.tell(words));
    this.following = false;
  }

  private tell(error: string): void {
    this.error = error;
    for (const listener of this.listeners) listener();
  }
}

const runs = new Map<string, Run>();

export function run(name: string): Run {
  const found = runs.get(name) ?? new Run(name);
  runs.set(name, found);
  return found;
}

const place = (...parts: string[]): string => `#/${parts.map(encodeURIComponent).join("/")}`;
const query = (given: Record<string, string | number>): string => {
  const kept = Object.entries(given).filter(([, value]) => value !== "" && value !== -1);
  return kept.length ? `?${kept.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&")}` : "";
};
// Episodes that are shown side by side.
export const BESIDE = 16;
// What a row's episode is called.
const key = ({ columns }: Run, row: number): [task: string, member: number, attempt: number] =>
  [columns.text("task", row), columns.number("member", row), columns.number("attempt", row)];
const numbered = (member: number, attempt: number): string => `${member}${attempt ? `.${attempt}` : ""}`;

// Addresses: made of what the run calls things.
export const address = {
  screen: place,
  episodes: (run: string, where = "", sort = "", by = "") => place(run, "episodes") + query({ where, sort, by }),
  task: (run: string, task: string) => address.episodes(run, `task:${JSON.stringify(task)}`),
  episode: (run: string, task: string, member: number, attempt: number, turn = -1) =>
    place(run, "e", task, numbered(member, attempt)) + query({ t: turn }),
  group: (run: string, task: string, attempt: number, by = "") => place(run, "g", task) + query({ attempt: attempt || "", by }),
  // Some episodes side by side, at most as many as the page shows.
  beside: (of: Run, rows: Iterable<number>) =>
    place(of.name, "beside", ...[...rows].slice(0, BESIDE).map((row) => key(of, row)).flatMap(([task, ...place]) => [task, numbered(...place)])),
  review: (of: Run, row: number) => `${address.row(of, row)}?review=1`,
  compare: (a: string, b: string, by = "", task = "") => place("compare") + query({ a, b, by, task }),
  // In one run, or in all of them.
  search: (run: string, asked: Record<string, string>) => (run ? place(run, "search") : "#/") + query(asked),
  live: (run: string, task: string, member: number, attempt: number) => place(run, "live", task, numbered(member, attempt)),
  row: (of: Run, row: number) => address.episode(of.name, ...key(of, row)),
};

// Screens of a run: the key, after g if it is a letter, the name in the address, what it shows.
export const SCREENS: [key: string, name: string, means: string][] = [
  ["e", "episodes", "all episodes"],
  ["/", "search", "where a text stands"],
  ["l", "live", "what is in play"],
  ["c", "curves", "curves over versions"],
  ["s", "shapes", "shapes of failure"],
  ["t", "tasks", "tasks and tools"],
  ["r", "review", "samples and reviews"],
  ["a", "agreement", "agreement of reviewers"],
  ["f", "findings", "findings of audits"],
];

export const go = (address: string): void => { location.hash = address; };

export const screenKeys = (run: string, back = () => history.back()): Binding[] =>
  [...SCREENS.map(([key, name, means]): Binding => [key === "/" ? key : `g ${key}`, means, () => go(place(run, name))]), ["Escape", "back", back]];
