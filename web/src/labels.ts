// Reviews of people and findings of audits.
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

export interface Reviews { reviewer: string; samples: string[]; warnings: string[]; reviews: Review[] }

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
