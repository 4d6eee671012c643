// A virtual list of rows of one height.
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

export const ROW = 26;
// Rows that are drawn and moved together.
const STEP = 8;
const SETTLED_MS = 200;

export interface Cell {
  key: string; label: string; width: string; show: (line: number) => string;
  // Texts may be wider than their column. To clip a cell costs as much as to paint it.
  clip?: boolean;
}

interface LinesProps { cells: Cell[]; lines: Uint32Array; current: number; link: (line: number) => string }

// The lines that are seen, in blocks.
export function Lines({ box, height, ...rest }: LinesProps & { box: RefObject<HTMLDivElement | null>; height: number }) {
  const { lines, link } = rest;
  // The first block that is seen, and the one that was when scrolling ended. Until it ends, blocks keep their places in
  // the document: one that is moved is laid out anew with all its cells.
  const [top, setTop] = useState(0);
  const [settled, settle] = useState(0);
  useEffect(() => {
    const timer = setTimeout(() => settle(top), SETTLED_MS);
    return () => clearTimeout(timer);
  }, [top]);
  const size = Math.ceil(height / ROW / STEP) + 3;
  const [first, slot] = [Math.max(0, top - 1), Math.max(0, settled - 1)];
  const clicked = (event: MouseEvent) => {
    const line = lines[Number((event.target as Element).closest("[role=row]")?.ariaRowIndex) - 2];
    if (line !== undefined) location.hash = link(line);
  };
  return (
    <div class="scroller" role="rowgroup" ref={box} onClick={clicked} onScroll={(event) => setTop(Math.floor(event.currentTarget.scrollTop / ROW / STEP))}>
      <div style={{ height: `${lines.length * ROW}px` }} role="presentation">
        {Array.from({ length: size }, (_, n) => {
          const place = (slot + n) % size;
          return <Block key={place} start={(first + ((place - (first % size) + size) % size)) * STEP} {...rest} />;
        })}
      </div>
    </div>
  );
}

// Its texts are written without the framework, for which to compare them would be most of a frame.
function Block({ start, cells, lines, current, link }: LinesProps & { start: number }) {
  const box = useRef<HTMLDivElement>(null);
  const length = Math.max(0, Math.min(STEP, lines.length - start));
  const own = current >= start && current < start + length ? current - start : -1;
  const drawn = useMemo(() => Array.from({ length }, () => (
    <div role="row" class="line">
      {cells.map((cell, n) => <div role="gridcell" class={cell.clip ? "clip" : ""}>{n ? " " : <a> </a>}</div>)}
    </div>
  )), [cells, length]);
  useLayoutEffect(() => {
    for (let n = 0; n < length; n++) write(box.current?.children[n] as HTMLElement, cells, lines[start + n] ?? 0, start + n, link);
  }, [start, length, cells, lines]);
  useLayoutEffect(() => {
    for (let n = 0; n < length; n++) mark(box.current?.children[n] as HTMLElement, n === own);
  }, [length, cells, own]);
  return useMemo(() => <div ref={box} style={{ top: `${start * ROW}px` }} class="rows" role="presentation">{drawn}</div>, [drawn, start]);
}

function write(row: HTMLElement, cells: Cell[], line: number, place: number, link: (line: number) => string): void {
  row.id = `row-${place}`;
  row.ariaRowIndex = String(place + 2);
  const first = row.firstElementChild?.firstElementChild as HTMLAnchorElement;
  first.href = link(line);
  cells.forEach((cell, n) => ((n ? row.children[n] : first)!.firstChild as Text).data = cell.show(line));
}

function mark(row: HTMLElement, current: boolean): void {
  row.ariaSelected = String(current);
  (row.firstElementChild?.firstElementChild as HTMLElement).tabIndex = current ? 0 : -1;
}
