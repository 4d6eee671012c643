// The table of episodes: a virtual list of rows of one height.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Cell, Lines, ROW } from "./grid";
import { Histograms } from "./histograms";
import { useKeys } from "./keys";
import { address, go, type Run, screenKeys } from "./run";
import { clear, figure } from "./text";
import { count, Notice, useChosen, useSize } from "./ui";
import { compile, matching } from "./where";

const MOST_REWARDS = 5;
// Episodes of one file.
const MOST_SAVED = 500;

function cells(run: Run): Cell[] {
  const columns = run.columns;
  const number = (key: string, width: string, label = key): Cell => {
    const column = columns.find(key);
    return { key, label, width, show: (row) => figure(column?.number(row)) };
  };
  const text = (key: string, width: string, label = key): Cell => {
    const column = columns.find(key);
    return { key, label, width, show: (row) => clear(column?.text(row) ?? ""), clip: true };
  };
  const list = (key: string): Cell => ({ key, label: key, width: "6.5rem", show: (row) => clear(columns.list(key, row).join(", ")), clip: true });
  const judged = [...columns.byName.values()].filter((one) => one.level === "trajectory" || one.level === "group");
  const has = (key: string, fits: (value: number) => boolean) => columns.find(key)?.data.some(fits) ?? false;
  return [
    text("task", "minmax(11rem, 2fr)"), number("member", "5rem"),
    ...(has("attempt", (value) => value > 0) ? [number("attempt", "5rem")] : []),
    ...(has("version", (value) => !Number.isNaN(value)) ? [number("version", "4.5rem")] : []),
    number("score", "4.5rem"),
    ...judged.slice(0, MOST_REWARDS).map((one) => number(one.name, "6rem", clear(one.name.replace("reward.", "")))),
    number("turns", "4rem"), number("errors", "4.2rem"), number("moved", "4.2rem"), number("seconds", "5rem"),
    ...["owner", "label", "finding"].filter((key) => columns.find(key)?.values.length).map(list), text("end", "6.5rem"),
    ...(columns.find("component")?.values.some(Boolean) ? [text("component", "6.5rem"), text("kind", "9rem", "failure")] : []),
    text("reason", "minmax(9rem, 3fr)"),
  ];
}

function save(name: string, text: string): void {
  const link = Object.assign(document.createElement("a"), { download: name, href: URL.createObjectURL(new Blob([text])) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export function Table({ run, where, sort }: { run: Run; where: string; sort: string }) {
  const { columns } = run;
  const grid = useRef<HTMLDivElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const field = useRef<HTMLInputElement>(null);
  // What was typed since the filter of the address.
  const [[typed, since], setTyped] = useState([where, where]);
  const height = useSize(scroller)[1];
  const filter = useMemo(() => compile(columns, where, (text) => run.search(text)), [columns, columns.rows, where, run.results, run.reviews]);
  const kept = useMemo(() => matching(columns, filter), [filter]);
  const rows = useMemo(() => (sort ? columns.sort(kept.slice(), sort) : kept), [kept, sort]);
  const histograms = useMemo(
    () => <Histograms columns={columns} rows={kept} where={where} filter={(range) => go(address.episodes(run.name, range, sort))} />,
    [columns, columns.rows, kept, where, sort],
  );
  const shown = useMemo(() => cells(run), [columns, columns.rows, columns.byName.size, run.reviews]);
  run.view = rows;
  const { place: chosen, at, choose, keys } = useChosen(rows.length, "episode", (row) => {
    const box = scroller.current;
    if (box) box.scrollTop = Math.min(row * ROW, Math.max(box.scrollTop, (row + 1) * ROW - box.clientHeight));
  });

  // The row one came from is chosen again.
  useEffect(() => {
    const before = rows.indexOf(run.opened);
    if (before >= 0) choose(before);
    grid.current?.focus({ preventScroll: true });
  }, []);

  const current = rows[chosen];
  const move = (by: number) => () => choose(at() + by);
  const goes = (to: (row: number) => string) => () => {
    const row = rows[at()];
    if (row !== undefined) go(to(row));
  };
  const page = Math.max(1, Math.floor(height / ROW) - 1);
  const sorts = shown.map((cell) => cell.key);
  const next = sorts[(sorts.indexOf(sort.replace(/^-/, "")) + 1) % sorts.length] ?? "";
  const file = `api/${run.address}/export?n=${rows.length <= MOST_SAVED ? rows.join(",") : ""}`;
  const help = useKeys([
    ...keys,
    ["ArrowDown", "next episode", move(1)], ["ArrowUp", "previous episode", move(-1)],
    ["PageDown", "a page on", move(page)], ["PageUp", "a page back", move(-page)],
    ["Home", "first episode", () => choose(0)], ["End", "last episode", () => choose(rows.length - 1)],
    ["Enter", "open the episode", goes((row) => address.row(run, row))],
    ["g g", "open its group", goes((row) => address.group(run.name, columns.text("task", row), columns.number("attempt", row)))],
    ["x", "review the episode", goes((row) => address.review(run, row))],
    ["f", "filter", () => field.current?.focus()], ["/", "filter by text", () => field.current?.focus()],
    ["h", "histograms: arrows with Shift choose a range, Enter filters by it", () => document.querySelector<HTMLElement>(".histograms [role=slider]")?.focus()],
    ["s", "sort by the next column", () => go(address.episodes(run.name, where, next))],
    ["S", "turn the order round", () => go(address.episodes(run.name, where, sort.startsWith("-") ? sort.slice(1) : `-${sort || "task"}`))],
    ...screenKeys(run.name, () => go("#/")),
  ]);

  const link = (row: number) => address.row(run, row);
  const head = columns.head;
  const filtered = (event: SubmitEvent) => {
    event.preventDefault();
    grid.current?.focus();
    go(address.episodes(run.name, (since === where ? typed : where).trim(), sort));
  };
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
        {rows.length > 0 && rows.length <= MOST_SAVED && <a href={file} download>save as one file</a>}
        {rows.length > 0 && <button type="button" onClick={() => save(`${run.name}.csv`, columns.csv(rows))}>save as CSV</button>}
        {help}
      </form>
      {columns.rows > 0 && <Notice words={"error" in filter && filter.error} />}
      {head !== undefined && head.broken > 0 && <p class="notice">{head.broken} lines of the traces cannot be read and are left out.</p>}
      {head !== undefined && head.left_out > 0 && <p class="notice">{head.left_out} rewards or tags have no column here.</p>}
      {histograms}
      <div class="grid" role="grid" ref={grid} tabIndex={0}
        aria-activedescendant={current === undefined ? undefined : `row-${chosen}`} aria-label="episodes"
        aria-rowcount={rows.length + 1} aria-colcount={shown.length}
        style={{ "--columns": shown.map((cell) => cell.width).join(" ") }}>
        <div role="rowgroup">
          <div role="row" aria-rowindex={1} class="line head">
            {shown.map((cell) => {
              const order = sort === cell.key ? "ascending" : sort === `-${cell.key}` ? "descending" : "none";
              return (
                <div role="columnheader" aria-sort={order}>
                  <a href={address.episodes(run.name, where, order === "descending" ? cell.key : `-${cell.key}`)}>
                    {cell.label}{{ none: "", ascending: " ▲", descending: " ▼" }[order]}
                  </a>
                </div>
              );
            })}
          </div>
        </div>
        <Lines box={scroller} height={height} cells={shown} lines={rows} current={chosen} link={link} />
      </div>
    </>
  );
}
