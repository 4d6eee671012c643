// Episodes of one task, folded into one line.
import type { Columns } from "./columns";
import { known, mean } from "./text";

const SOLVED = 1 - 1e-9;

export interface Members {
  task: string; attempt: number; rows: number[]; scores: number[];
  // Of the scores; NaN without any.
  mean: number; spread: number; solved: number;
}

// The rows by task and attempt, each group in the order of its first row.
export function grouped(columns: Columns, rows: Iterable<number>): Members[] {
  const [tasks, attempts, scores] = ["task", "attempt", "score"].map((name) => columns.byName.get(name));
  const kinds = tasks?.values.length ?? 0;
  const groups = Map.groupBy(rows, (row) => (attempts?.data[row] ?? 0) * kinds + (tasks?.data[row] ?? 0));
  return Array.from(groups.values(), (rows) => {
    const found = known(rows.map((row) => scores?.number(row) ?? NaN));
    const middle = mean(found);
    return {
      task: tasks?.text(rows[0] ?? 0) ?? "", attempt: attempts?.number(rows[0] ?? 0) ?? 0, rows, scores: found, mean: middle,
      spread: Math.sqrt(mean(found.map((one) => (one - middle) ** 2))), solved: found.filter((one) => one >= SOLVED).length,
    };
  });
}

// The chance that k plays of a task all succeed; NaN for fewer plays.
export function passes({ scores: { length }, solved }: Members, k: number): number {
  if (k > length) return NaN;
  return Array.from({ length: k }, (_, n) => Math.max(0, solved - n) / (length - n)).reduce((product, one) => product * one, 1);
}

// What a group says at a glance: one with equal scores gives no gradient.
export function verdict({ scores, solved }: Members): string {
  if (scores.length < 2) return "";
  if (new Set(scores).size === 1) return "all equal (no gradient)";
  return solved > 0 ? "solved by some" : "";
}
