// The table of episodes, a row each or folded by task.
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Cell, flex, HEIGHT, Lines, room } from "./grid";
import { grouped, type Members, passes, verdict } from "./groups";
import { Histograms } from "./histograms";
import { type Binding, useKeys } from "./keys";
import { useProposals } from "./review";
import { address, go, type Run, screenKeys } from "./run";
import { clear, count, figure, known, mean } from "./text";
import { Notice, submitted, toggled, useChosen, useSize } from "./ui";
import { compile, matching } from "./where";

const MOST_REWARDS = 5;
const MOST_LABELS = 8;
// Episodes of one file.
const MOST_SAVED = 500;

function cells(run: Run): Cell[] {
  const columns = run.columns;
  const cell = (key: string, width: number, label = key, grow = 0): Cell => {
    const column = columns.find(key);
    if (column?.kind === "number") return { key, label, width, grow, show: (row) => figure(column.number(row)) };
    const words = (row: number) => (column?.kind === "lists" ? columns.list(key, row).join(", ") : (column?.text(row) ?? ""));
    return { key, label, width, grow, show: (row) => clear(words(row)), clip: true };
  };
  const all = [...columns.byName.values()];
  const judged = all.filter((one) => one.level === "trajectory" || one.level === "group");
  // Fields of programs' labels, without the name of their file.
  const labelled = all.filter((one) => one.name.startsWith("label."));
  const has = (key: string, fits: (value: number) => boolean) => columns.find(key)?.data.some(fits) ?? false;
  return [
    cell("task", 11, "task", 2), cell("member", 5),
    ...(has("attempt", (value) => value > 0) ? [cell("attempt", 5)] : []),
    ...(has("version", (value) => !Number.isNaN(value)) ? [cell("version", 4.5)] : []),
    cell("score", 4.5),
    ...judged.slice(0, MOST_REWARDS).map((one) => cell(one.name, 6, clear(one.name.replace("reward.", "")))),
    cell("turns", 4), cell("errors", 4.2), cell("moved", 4.2), cell("seconds", 5),
    ...["owner", "label", "finding"].filter((key) => columns.find(key)?.values.length).map((key) => cell(key, 6.5)),
    ...labelled.slice(0, MOST_LABELS).map((one) => cell(one.name, 6, clear(one.name.replace(/^label\..*?\./, "")))), cell("end", 6.5),
    ...(columns.find("component")?.values.some(Boolean) ? [cell("component", 6.5), cell("kind", 9, "failure")] : []),
    cell("reason", 9, "reason", 3),
  ];
}

// What only groups have.
const FIGURES: Record<string, (one: Members) => number> = {
  members: (one) => one.rows.length, score: (one) => one.mean, spread: (one) => one.spread,
  ...Object.fromEntries([2, 4, 8, 16].map((k) => [`pass^${k}`, (one: Members) => passes(one, k)])),
};

// The same where lines below 0 are groups: -1 is the first. What only a group has is empty for its members.
function groupCells(run: Run, groups: Members[]): Cell[] {
  const rows = new Map(cells(run).map((one) => [one.key, one]));
  const cell = (key: string, width: number, of: (group: Members) => string, label = key, grow = 0): Cell => ({
    key, label, width, grow, show: (line) => (line < 0 ? of(groups[-1 - line] as Members) : (rows.get(key)?.show(line) ?? "")),
  });
  const average = (key: string): Cell => {
    const column = run.columns.find(key);
    return cell(key, 4.6, ({ rows }) => figure(mean(known(rows.map((row) => column?.number(row) ?? NaN)))));
  };
  const most = groups.reduce((most, one) => Math.max(most, one.scores.length), 0);
  const name = cell("task", 13, ({ task, attempt }) => clear(task) + (attempt ? `, attempt ${attempt}` : ""), "task", 2);
  return [
    { ...name, show: (line) => (line < 0 ? name.show(line) : `member ${run.columns.number("member", line)}`), clip: true },
    ...Object.entries(FIGURES).filter(([key]) => !(Number(key.split("^")[1]) > most)).map(([key, value]) =>
      cell(key, 4.5, (one) => figure(value(one)), key === "score" ? "mean" : key)),
    ...["turns", "errors", "moved", "seconds"].map(average),
    cell("group", 12, verdict), { ...cell("label", 7, () => ""), clip: true }, { ...cell("reason", 9, () => "", "reason", 2), clip: true },
  ];
}

// Sorts groups in place by what only groups have; otherwise they keep the order of their first members.
function sorted(groups: Members[], sort: string): Members[] {
  const [value, sign] = [FIGURES[sort.replace(/^-/, "")], sort.startsWith("-") ? -1 : 1];
  if (!value) return groups;
  const order = new Map(groups.map((one) => [one, Number.isNaN(value(one)) ? Infinity : sign * value(one)]));
  return groups.sort((a, b) => ((order.get(a) ?? 0) - (order.get(b) ?? 0)) || 0);
}

function save(name: string, text: string): void {
  const link = Object.assign(document.createElement("a"), { download: name, href: URL.createObjectURL(new Blob([text])) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export function Table({ run, where, sort, by }: { run: Run; where: string; sort: string; by: string }) {
  const { columns } = run;
  const grid = useRef<HTMLDivElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const field = useRef<HTMLInputElement>(null);
  // What was typed since the filter of the address.
  const [[typed, since], setTyped] = useState([where, where]);
  const height = useSize(scroller)[1];
  const filter = useMemo(() => compile(columns, where, (text) => run.search(text)), [columns, columns.rows, where, run.results, columns.labels]);
  const kept = useMemo(() => matching(columns, filter), [filter]);
  const rows = useMemo(() => (sort ? columns.sort(kept.slice(), sort) : kept), [kept, sort]);
  const there = (to: { where?: string; sort?: string; by?: string }) => address.episodes(run.name, to.where ?? where, to.sort ?? sort, to.by ?? by);
  const above = [columns, columns.rows, kept, where, sort, by];
  const histograms = useMemo(() => <Histograms columns={columns} rows={kept} where={where} there={(where) => there({ where })} />, above);
  const folded = by === "task";
  const groups = useMemo(() => (folded ? sorted(grouped(columns, rows), sort) : []), [rows, folded, sort]);
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const named = (one: Members) => `${one.attempt} ${one.task}`;
  const lines = useMemo(() => {
    if (!folded) return new Int32Array(rows.buffer, rows.byteOffset, rows.length);
    return Int32Array.from(groups.flatMap((one, n) => [-1 - n, ...(open.has(named(one)) ? one.rows : [])]));
  }, [rows, groups, open]);
  const shown = useMemo(() => (folded ? groupCells(run, groups) : cells(run)), [columns, columns.rows, columns.byName.size, columns.labels, groups]);
  run.view = folded ? Uint32Array.from(groups.flatMap((one) => one.rows)) : rows;
  const { place: chosen, at, choose, keys } = useChosen(lines.length, folded ? "line" : "episode", (place) => {
    const box = scroller.current;
    if (box) box.scrollTop = Math.min(place * HEIGHT, Math.max(box.scrollTop, (place + 1) * HEIGHT - box.clientHeight));
  });
  const [selected, setSelected] = useState(run.selected);
  const select = (some: Iterable<number>) => setSelected((run.selected = new Set(some)));
  const { words, propose, undo } = useProposals(run);

  // The row one came from is chosen again.
  useEffect(() => {
    const before = lines.indexOf(run.opened);
    if (before >= 0) choose(before);
    grid.current?.focus({ preventScroll: true });
  }, []);

  const group = (line: number) => (line < 0 ? groups[-1 - line] : undefined);
  const members = (line: number) => group(line)?.rows ?? [line];
  const link = (line: number) => {
    const one = group(line);
    return one ? address.group(run.name, one.task, one.attempt) : address.row(run, line);
  };
  const unfold = (line: number, on: boolean) => {
    const one = group(line);
    if (one) setOpen(new Set(toggled(open, named(one), on)));
  };
  // All of some rows are selected, or, if they are, none of them.
  const toggle = (some: number[]) => {
    const others = [...run.selected].filter((row) => !some.includes(row));
    select(some.every((row) => run.selected.has(row)) ? others : [...others, ...some]);
  };
  const state = useCallback((element: HTMLElement, line: number) => {
    element.ariaSelected = String(members(line).every((row) => selected.has(row)));
    if (!folded && !element.ariaLevel) return;
    const one = group(line);
    element.ariaExpanded = one ? String(open.has(named(one))) : null;
    element.ariaLevel = folded ? (one ? "1" : "2") : null;
  }, [selected, groups, open]);
  const click = (place: number, event: MouseEvent) => {
    const line = lines[place];
    if (line === undefined) return;
    if (event.ctrlKey || event.metaKey || event.shiftKey) {
      event.preventDefault();
      const [from, to] = event.shiftKey ? [Math.min(at(), place), Math.max(at(), place)] : [place, place];
      if (event.shiftKey) select([...run.selected, ...[...lines.subarray(from, to + 1)].flatMap(members)]);
      else toggle(members(line));
      choose(place);
    } else if (line >= 0) go(link(line));
    else if (!(event.target as Element).matches("a")) unfold(line, !open.has(named(group(line) as Members)));
  };
  const on = (act: (line: number) => void) => () => {
    const line = lines[at()];
    if (line !== undefined) act(line);
  };
  const move = (by: number) => () => choose(at() + by);
  const page = Math.max(1, Math.floor(height / HEIGHT) - 1);
  const sorts = shown.map((cell) => cell.key);
  const next = sorts[(sorts.indexOf(sort.replace(/^-/, "")) + 1) % sorts.length] ?? "";
  const file = `api/${run.address}/export?n=${rows.length <= MOST_SAVED ? rows.join(",") : ""}`;
  const all = () => select(selected.size ? [] : rows);
  const compare = () => selected.size > 1 && go(address.beside(run, selected));
  const fold = () => go(there({ by: folded ? "" : "task" }));
  const help = useKeys([
    ...keys,
    ["ArrowDown", "next episode", move(1)], ["ArrowUp", "previous episode", move(-1)],
    ["PageDown", "a page on", move(page)], ["PageUp", "a page back", move(-page)],
    ["Home", "first episode", () => choose(0)], ["End", "last episode", () => choose(lines.length - 1)],
    ["Enter", "open the episode", on((line) => go(link(line)))],
    ["g g", "open its group", on((line) => go(address.group(run.name, columns.text("task", members(line)[0] ?? 0), columns.number("attempt", members(line)[0] ?? 0))))],
    ["G", "fold the members of each task into one line, or unfold all", fold],
    ...(folded ? [["ArrowRight", "unfold the group", on((line) => unfold(line, true))], ["ArrowLeft", "fold it", on((line) => unfold(line, false))]] as Binding[] : []),
    ["Space", "select the episode", on((line) => toggle(members(line)))], ["a", "select all that the filter leaves, or none", all],
    ["c", "compare what is selected, side by side", compare],
    ["x", "review the episode, or label all that are selected, by your verdict on one", on((line) => (selected.size ? propose(selected) : go(address.review(run, members(line)[0] ?? 0))))],
    ["u", "take the last of these labels back", undo],
    ["f", "filter", () => field.current?.focus()],
    ["h", "histograms: arrows with Shift choose a range, Enter filters by it", () => document.querySelector<HTMLElement>(".histograms [role=slider]")?.focus()],
    ["s", "sort by the next column", () => go(there({ sort: next }))],
    ["S", "turn the order round", () => go(there({ sort: sort.startsWith("-") ? sort.slice(1) : `-${sort || "task"}` }))],
    ...screenKeys(run.name, () => go("#/")),
  ]);

  const head = columns.head;
  const filtered = submitted(() => {
    grid.current?.focus();
    go(there({ where: (since === where ? typed : where).trim() }));
  });
  return (
    <>
      <form class="bar" role="search" onSubmit={filtered}>
        <label class="where">
          where{" "}
          <input ref={field} value={since === where ? typed : where} spellcheck={false}
            placeholder='score<1 tool:crm_search -end:failed "exact text"'
            onInput={(event) => setTyped([event.currentTarget.value, where])}
            onKeyDown={(event) => event.key === "Escape" && grid.current?.focus()} />
        </label>
        <span role="status">
          {count(rows.length)} of {count(columns.rows)}
          {run.searching ? ", searching" : ""}
          {head && !head.done ? `, ${Math.floor((100 * head.indexed) / head.bytes)} % read` : ""}
        </span>
        <button type="button" aria-pressed={folded} onClick={fold}><kbd>G</kbd> by task</button>
        <button type="button" aria-pressed={selected.size > 0} onClick={all}><kbd>a</kbd> {selected.size ? `${count(selected.size)} selected` : "select all"}</button>
        {selected.size > 0 && <button type="button" onClick={() => propose(selected)}><kbd>x</kbd> label them</button>}
        {selected.size > 1 && <a href={address.beside(run, selected)}><kbd>c</kbd> compare</a>}
        {run.proposed.length > 0 && <button type="button" onClick={undo}><kbd>u</kbd> take labels back</button>}
        {rows.length > 0 && rows.length <= MOST_SAVED && <a href={file} download>save as one file</a>}
        {rows.length > 0 && <button type="button" onClick={() => save(`${run.name}.csv`, columns.csv(rows))}>save as CSV</button>}
        {help}
      </form>
      <p class="said" role="status">{clear(words)}</p>
      {columns.rows > 0 && <Notice words={"error" in filter && filter.error} />}
      {head !== undefined && head.broken > 0 && <p class="notice">{head.broken} lines of the traces cannot be read and are left out.</p>}
      {head !== undefined && head.left_out > 0 && <p class="notice">{head.left_out} rewards or tags have no column here.</p>}
      {histograms}
      <div class="grid" role={folded ? "treegrid" : "grid"} ref={grid} tabIndex={0} aria-multiselectable="true"
        aria-activedescendant={lines.length ? `row-${chosen}` : undefined} aria-label="episodes"
        aria-rowcount={lines.length + 1} aria-colcount={shown.length} style={{ "--room": room(shown) }}>
        <div role="rowgroup">
          <div role="row" aria-rowindex={1} class="line head">
            {shown.map((cell) => {
              const order = sort === cell.key ? "ascending" : sort === `-${cell.key}` ? "descending" : "none";
              return (
                <div role="columnheader" style={{ flex: flex(cell) }} aria-sort={order}>
                  <a href={there({ sort: order === "descending" ? cell.key : `-${cell.key}` })}>
                    {cell.label}{{ none: "", ascending: " ▲", descending: " ▼" }[order]}
                  </a>
                </div>
              );
            })}
          </div>
        </div>
        <Lines box={scroller} height={height} cells={shown} lines={lines} current={chosen} link={link} state={state} click={click} />
      </div>
    </>
  );
}
