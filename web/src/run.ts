// What the browser holds of a run, and the requests that bring it.
import type { Changes } from "./changes";
import { Columns } from "./columns";
import { type Reviews, setLabels } from "./labels";
import type { Environment, Line } from "./record";

export interface Facts {
  name: string;
  folder: string;
  run: Record<string, unknown> | null;
  environment: Environment | null;
  warnings: string[];
}

export interface Summary {
  name: string;
  environment: string | null;
  agent: string | null;
  split: string | null;
  episodes: number;
  failed: number;
  mean: number | null;
  active: boolean;
  indexed: number;
  bytes: number;
  done: boolean;
}

export async function ask<Answer>(path: string, request: RequestInit = {}): Promise<Answer> {
  return JSON.parse(await text(path, request));
}

async function text(path: string, request: RequestInit = {}): Promise<string> {
  const answer = await fetch(`api/${path}`, request);
  const said = await answer.text();
  if (!answer.ok) throw new Error(said.startsWith("{") ? JSON.parse(said).detail : said);
  return said;
}

const WAIT_S = 20;
const RETRY_MS = 3000;

export class Run {
  columns = new Columns();
  facts: Facts | undefined;
  error = "";
  reviews: Reviews | undefined;
  // The rows of the table, in its order, which J and K follow; undefined until a table was shown.
  view: Uint32Array | undefined;
  private searches = new Map<string, { found: Set<number>; rows: number; running: boolean }>();
  private listeners = new Set<() => void>();
  private following = false;

  constructor(readonly name: string) {}

  get address(): string {
    return `runs/${encodeURIComponent(this.name)}`;
  }

  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    if (!this.following) void this.follow();
    if (this.reviews) void this.loadReviews();
    return () => this.listeners.delete(listener);
  }

  line(row: number): Promise<Line> {
    return ask<Line>(`${this.address}/episodes/${row}`);
  }

  // Reads the reviews of the run, and sets their columns.
  async loadReviews(): Promise<void> {
    try {
      this.reviews = await ask<Reviews>(`${this.address}/reviews`);
      setLabels(this.columns, this.reviews);
      this.tell(this.error);
    } catch (error) {
      this.tell(String(error));
    }
  }

  async changes(row: number): Promise<Changes> {
    const [head, ...steps] = (await text(`${this.address}/episodes/${row}/changes`)).split("\n").map((line) => JSON.parse(line));
    return { ...head, steps };
  }

  seconds(row: number): Promise<number[][]> {
    return ask(`${this.address}/episodes/${row}/seconds`);
  }

  // The rows that hold a text, as far as they are known; what is missing is asked for.
  search(text: string): Set<number> {
    const known = this.searches.get(text) ?? { found: new Set(), rows: 0, running: false };
    this.searches.set(text, known);
    if (known.rows < this.columns.rows && !known.running) {
      known.running = true;
      const asked = `${this.address}/search?from=${known.rows}&q=${encodeURIComponent(text)}`;
      const ended = (words: string) => {
        known.running = false;
        this.tell(words);
      };
      ask<{ found: number[]; rows: number }>(asked).then(
        (answer) => {
          for (const row of answer.found) known.found.add(row);
          known.rows = answer.rows;
          ended("");
        },
        (error: unknown) => ended(String(error)),
      );
    }
    return known.found;
  }

  get searching(): boolean {
    return [...this.searches.values()].some((one) => one.running);
  }

  // A number that changes with every result of a search.
  get results(): number {
    return [...this.searches.values()].reduce((sum, one) => sum + one.rows, 0);
  }

  // Asks for the episodes, and for what is written while the page is open.
  private async follow(): Promise<void> {
    this.following = true;
    while (this.listeners.size) {
      try {
        this.facts ??= await ask<Facts>(this.address);
        const head = this.columns.head;
        const wait = head?.done ? WAIT_S : 0;
        const answer = await fetch(`api/${this.address}/columns?from=${this.columns.rows}&wait=${wait}`);
        if (!answer.ok) throw new Error(await answer.text());
        const before = this.columns.rows;
        const continued = this.columns.apply(await answer.arrayBuffer());
        if (!continued) this.searches.clear();
        if (this.reviews === undefined || !continued) this.reviews = await ask<Reviews>(`${this.address}/reviews`);
        setLabels(this.columns, this.reviews);
        const told = head !== undefined && this.columns.rows === before && head.done === this.columns.head?.done;
        if (this.error || !continued || !told) this.tell("");
      } catch (error) {
        this.tell(`the studio does not answer: ${error instanceof Error ? error.message : error}`);
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
    this.following = false;
  }

  private tell(error: string): void {
    this.error = error;
    for (const listener of this.listeners) listener();
  }
}

const runs = new Map<string, Run>();

export function run(name: string): Run {
  let found = runs.get(name);
  if (found === undefined) {
    found = new Run(name);
    runs.set(name, found);
  }
  return found;
}

// Addresses: made of what the run calls things.
export const address = {
  episodes: (run: string, where = "", sort = "") => {
    const query = new URLSearchParams({ ...(where && { where }), ...(sort && { sort }) }).toString();
    return `#/${encodeURIComponent(run)}/episodes${query && `?${query}`}`;
  },
  episode: (run: string, task: string, member: number, attempt: number, turn = -1) =>
    `#/${encodeURIComponent(run)}/e/${encodeURIComponent(task)}/${member}${attempt ? `.${attempt}` : ""}` +
    (turn >= 0 ? `?t=${turn}` : ""),
  group: (run: string, task: string, attempt: number) =>
    `#/${encodeURIComponent(run)}/g/${encodeURIComponent(task)}${attempt ? `?attempt=${attempt}` : ""}`,
  reviews: (run: string, sample = "") => `#/${encodeURIComponent(run)}/review${sample && `/${encodeURIComponent(sample)}`}`,
  review: (of: Run, row: number) => `#/${encodeURIComponent(of.name)}/review?of=${encodeURIComponent(address.row(of, row))}`,
  shapes: (run: string) => `#/${encodeURIComponent(run)}/shapes`,
  agreement: (run: string) => `#/${encodeURIComponent(run)}/agreement`,
  curves: (run: string) => `#/${encodeURIComponent(run)}/curves`,
  compare: (a: string, b: string) => `#/compare?${new URLSearchParams({ a, b })}`,
  live: (run: string, task = "", member = 0, attempt = 0) =>
    `#/${encodeURIComponent(run)}/live${task && `/${encodeURIComponent(task)}/${member}${attempt ? `.${attempt}` : ""}`}`,
  row: (of: Run, row: number) =>
    address.episode(of.name, of.columns.text("task", row), of.columns.number("member", row), of.columns.number("attempt", row)),
};
