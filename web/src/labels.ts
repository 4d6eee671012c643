// Reviews of people as columns of the table, and the requests that read and write them.
import { Column, type Columns } from "./columns";
import { ask } from "./run";

export const OWNERS = ["policy", "env", "verifier", "task", "simulator", "infra", "trainer", "unknown"];

export interface Place {
  turn: number;
  step?: number | null;
}

export interface Verdict {
  owner?: string;
  modes?: string[];
  first?: Place | null;
  sure?: string | null;
  note?: string;
}

export interface Review extends Verdict {
  id: string;
  at: string;
  reviewer: string;
  kind: "verdict" | "note" | "inherited" | "decided" | "removed";
  target: { task: string; member?: number; attempt?: number };
  sample?: string;
  seconds?: number | null;
  // Row of the episode; null if it is gone. Stale: the row holds another episode than was reviewed.
  n: number | null;
  stale: boolean;
}

export interface Reviews {
  reviewer: string;
  samples: string[];
  warnings: string[];
  // Rows by the owner that programs name, such as triage.
  programs: Record<string, number[]>;
  reviews: Review[];
}

export interface Mode {
  id: string;
  title?: string;
  means?: string;
  key?: string;
  merged?: string;
}

export interface Taxonomy {
  text: string;
  tag: string;
  revision: number;
  modes: Mode[];
}

export function send<Answer>(method: string, path: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
  return ask<Answer>(path, { method, body: typeof body === "string" ? body : JSON.stringify(body), headers });
}

// What a review says of its episode; a label that was not given to this very episode says so.
export function label(review: Review): string {
  const suffix = review.stale ? " (stale)" : review.kind === "inherited" ? " (inherited)" : "";
  return `${review.owner ?? "note"}${suffix}`;
}

// Sets the columns `label`, `mode` and `by` of people, and `owner` of programs; a decision outweighs other labels.
export function setLabels(columns: Columns, { reviews, programs }: Reviews): void {
  const rows = new Map<number, Review[]>();
  for (const one of reviews) if (one.n !== null) rows.set(one.n, [...(rows.get(one.n) ?? []), one]);
  for (const [row, found] of rows) {
    const decided = found.filter((one) => one.kind === "decided");
    if (decided.length) rows.set(row, decided);
  }
  lists(columns, "label", rows, (one) => [label(one)]);
  lists(columns, "mode", rows, (one) => (one.stale ? [] : (one.modes ?? [])));
  lists(columns, "by", rows, (one) => [one.reviewer]);
  const owners = new Map(Object.entries(programs).flatMap(([owner, found]) => found.map((row) => [row, [owner]])));
  lists(columns, "owner", owners, (owner) => [owner]);
}

function lists<Item>(columns: Columns, name: string, rows: Map<number, Item[]>, say: (item: Item) => string[]): void {
  const column = new Column(name, "lists", "u4", undefined);
  const data: number[] = [];
  column.starts = new Uint32Array(columns.rows + 1);
  for (let row = 0; row < columns.rows; row++) {
    for (const text of new Set((rows.get(row) ?? []).flatMap(say))) {
      let value = column.values.indexOf(text);
      if (value < 0) value = column.values.push(text) - 1;
      data.push(value);
    }
    column.starts[row + 1] = data.length;
  }
  column.data = Uint32Array.from(data);
  columns.byName.set(name, column);
}
