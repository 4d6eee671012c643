// Reviews of people and findings of audits as columns of the table.
import { Column, type Columns } from "./columns";

export const OWNERS = ["policy", "env", "verifier", "task", "simulator", "infra", "trainer", "unknown"];

export interface Place { turn: number; step?: number | null }

// A place in a text of a turn: `field` is the label that the text has on the page, `step` counts those with one label,
// `from` and `to` count characters without blanks.
export interface Mark { turn: number; step: number; field: string; quote: string; from: number; to: number }
export interface Verdict { owner?: string; modes?: string[]; first?: Place | null; sure?: string | null; note?: string }

export interface Review extends Verdict {
  id: string; at: string; reviewer: string; kind: "verdict" | "note" | "mark" | "inherited" | "decided" | "removed";
  target: { task: string; member?: number; attempt?: number }; mark?: Mark | null; seconds?: number | null;
  // Row of the episode; null if it is gone. Stale: the row holds another episode than was reviewed.
  n: number | null; stale: boolean;
}

// `programs` has the rows by the owner that programs name, such as triage.
export interface Reviews { reviewer: string; samples: string[]; warnings: string[]; programs: Record<string, number[]>; reviews: Review[] }

export interface Mode { id: string; title?: string; key?: string; merged?: string }
export interface Taxonomy { text: string; tag: string; revision: number; modes: Mode[] }

// A finding of an audit of this run's environment; `tools` are those that its steps call.
export interface Finding {
  name: string; title: string; class: string; part: string; severity: string; confidence: string; teaches: string;
  mend: string; replay: string; tasks: string[]; tools: string[];
}

// What a review says of its episode; a label that was not given to this very episode says so.
export function label(review: Review): string {
  const suffix = review.stale ? " (stale)" : review.kind === "inherited" ? " (inherited)" : "";
  return `${review.owner ?? "note"}${suffix}`;
}

// Sets the columns `label`, `mode` and `by` of people, and `owner` of programs. A decision outweighs other labels; a
// mark is none.
export function setLabels(columns: Columns, { reviews, programs }: Reviews): void {
  const rows = Map.groupBy(reviews.filter((one) => !one.mark), (one) => one.n);
  for (const [row, found] of rows) {
    const decided = found.filter((one) => one.kind === "decided");
    if (decided.length) rows.set(row, decided);
  }
  const of = (say: (one: Review) => string[]) => (row: number) => rows.get(row)?.flatMap(say);
  lists(columns, "label", rows.size && of((one) => [label(one)]));
  lists(columns, "mode", rows.size && of((one) => (one.stale ? [] : (one.modes ?? []))));
  lists(columns, "by", rows.size && of((one) => [one.reviewer]));
  const owners = new Map(Object.entries(programs).flatMap(([owner, found]) => found.map((row) => [row, [owner]])));
  lists(columns, "owner", owners.size && ((row) => owners.get(row)));
}

// Sets the column `finding`: audits' findings about an episode's task, or, without a task, about a tool that it calls.
export function setFindings(columns: Columns, findings: Finding[]): void {
  if (findings.length) lists(columns, "finding", (row) => {
    const task = columns.text("task", row);
    const concern = (one: Finding) => (one.tasks.length ? one.tasks.includes(task) : columns.list("tool", row).some((tool) => one.tools.includes(tool)));
    return findings.filter(concern).map((one) => one.name);
  });
}

// A column of what is said of each row. 0: nothing is said of any, so none is asked for.
function lists(columns: Columns, name: string, say: 0 | ((row: number) => string[] | undefined)): void {
  const column = new Column(name, "lists", "u4", undefined);
  const known = new Map<string, number>();
  const data: number[] = [];
  column.starts = new Uint32Array(columns.rows + 1);
  for (let row = 0; say && row < columns.rows; row++) {
    const said = say(row);
    for (const text of said ? new Set(said) : []) {
      if (!known.has(text)) known.set(text, column.values.push(text) - 1);
      data.push(known.get(text) ?? 0);
    }
    column.starts[row + 1] = data.length;
  }
  column.data = Uint32Array.from(data);
  columns.byName.set(name, column);
}
