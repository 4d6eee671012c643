// Shapes of failure: failed criteria, their reasons, the first refused call, the end; each level unfolds.
import { useMemo, useState } from "preact/hooks";
import { useKeys } from "./keys";
import { useProposals } from "./review";
import { address, go, type Run, screenKeys } from "./run";
import { clear, count } from "./text";
import { Sheet, Title, toggled, useChosen } from "./ui";

export const SEPARATOR = " ▸ ";

interface Shape { path: string; name: string; level: number; rows: number[]; parts: Shape[] }

// The shapes of all failed episodes, the most frequent first.
function shapes({ columns }: Run): Shape[] {
  const column = columns.byName.get("shape");
  const chains = (column?.values ?? []).map((value) => (value ? value.split(SEPARATOR) : []));
  const of = (rows: number[], level: number, parent: string): Shape[] => {
    const found = Map.groupBy(rows, (row) => chains[column?.data[row] ?? 0]?.[level] ?? "");
    found.delete("");
    const made = [...found].map(([name, rows]) => ({ name, level, rows, path: level ? `${parent}${SEPARATOR}${name}` : name, parts: [] }));
    return made.map((one) => ({ ...one, parts: of(one.rows, level + 1, one.path) })).sort((a, b) => b.rows.length - a.rows.length);
  };
  return of(Array.from({ length: columns.rows }, (_, row) => row), 0, "");
}

function visible(all: Shape[], open: Set<string>): Shape[] {
  return all.flatMap((one) => [one, ...(open.has(one.path) ? visible(one.parts, open) : [])]);
}

// The episode in the middle by its number of turns.
function median(run: Run, rows: number[]): number {
  const sorted = [...rows].sort((a, b) => run.columns.number("turns", a) - run.columns.number("turns", b));
  return sorted[sorted.length >> 1] ?? 0;
}

export function Shapes({ run }: { run: Run }) {
  const { columns } = run;
  const all = useMemo(() => shapes(run), [columns, columns.rows]);
  const [open, setOpen] = useState(() => new Set<string>());
  const { words, propose, undo } = useProposals(run);
  const lines = visible(all, open);
  const { place, choose, keys } = useChosen(lines.length, "shape");
  const current = lines[place];
  const unfold = (one: Shape | undefined, on: boolean) => one && setOpen(new Set(toggled(open, one.path, on)));
  const enter = () => {
    if (current === undefined) return;
    run.view = Uint32Array.from(current.rows);
    go(address.row(run, median(run, current.rows)));
  };
  const there = (one: Shape) => address.episodes(run.name, `shape:${JSON.stringify(one.parts.length ? `${one.path}${SEPARATOR}*` : one.path)}`);
  const help = useKeys([
    ...keys,
    ["l", "unfold", () => unfold(current, true)],
    ["h", "fold", () => unfold(current, false)],
    ["Enter", "open the median episode", enter],
    ["x", "label all as proposed, by your verdict on one", () => current && propose(current.rows)],
    ["u", "take the last of these labels back", undo],
    ["f", "these episodes as a table", () => current && go(there(current))],
    ...screenKeys(run.name),
  ]);
  return (
    <>
      <Title words="Shapes of failure" help={help}><span role="status">{clear(words)}</span></Title>
      <Sheet style="shapes"
        heads={["shape", "episodes", "tasks", "reviewed", "inherited", "label"]}
        current={place} choose={choose}
        rows={lines.map((one) => [
          <span class={`level-${one.level}`}>
            {one.parts.length > 0 && (
              <button type="button" aria-expanded={open.has(one.path)} aria-label={`parts of ${clear(one.name)}`} onClick={() => unfold(one, !open.has(one.path))}>
                {open.has(one.path) ? "▾" : "▸"}
              </button>
            )}{" "}
            <a href={there(one)}>{clear(one.name)}</a>
          </span>,
          ...counts(run, one.rows),
        ])}
      />
      {lines.length === 0 && columns.head?.done && <p>No episode failed.</p>}
    </>
  );
}

function counts({ columns }: Run, rows: number[]): (string | number)[] {
  const tasks = columns.byName.get("task");
  const labels = rows.map((row) => columns.list("label", row));
  const open = labels.filter((all) => all.every((one) => one.includes("(")));
  const inherited = open.filter((all) => all.some((one) => one.endsWith("(inherited)"))).length;
  const most = [...Map.groupBy(labels.flat(), (one) => one)].sort((a, b) => b[1].length - a[1].length).map(([label, all]) => `${label} ${all.length}`);
  return [count(rows.length), count(new Set(rows.map((row) => tasks?.data[row])).size), rows.length - open.length, inherited, clear(most.join(", "))];
}
