// A virtual list of lines of one height.
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

export const HEIGHT = 26;
// Lines that are drawn and moved together.
const STEP = 8;
const SETTLED_MS = 200;

export interface Cell {
  // The least width in rem, and its share of the room that is left.
  key: string; label: string; width: number; grow?: number; show: (line: number) => string;
  // Texts may be wider than their column. To clip a cell costs as much as to paint it.
  clip?: boolean;
}

// The layout of a line: that of a grid costs twice as much.
export const flex = ({ grow = 0, width }: Cell): string => `${grow} 0 ${width}rem`;
export const room = (cells: Cell[]): string => `${cells.reduce((all, one) => all + one.width + 0.5, 2)}rem`;

interface LinesProps {
  // A line is a number that the cells know.
  cells: Cell[]; lines: Int32Array;
  // The place of the line that keys act on.
  current: number; link: (line: number) => string;
  // Sets what a line says of itself, such as that it is selected.
  state: (element: HTMLElement, line: number) => void;
}

// The lines that are seen, in blocks.
export function Lines({ box, height, click, ...rest }: LinesProps & { box: RefObject<HTMLDivElement | null>; height: number; click: (place: number, event: MouseEvent) => void }) {
  // The first block that is seen, and the one that was when scrolling ended. Until it ends, blocks keep their places in
  // the document: one that is moved is laid out anew with all its cells.
  const [top, setTop] = useState(0);
  const [settled, settle] = useState(0);
  useEffect(() => {
    const timer = setTimeout(() => settle(top), SETTLED_MS);
    return () => clearTimeout(timer);
  }, [top]);
  const size = Math.ceil(height / HEIGHT / STEP) + 3;
  const [first, slot] = [Math.max(0, top - 1), Math.max(0, settled - 1)];
  const clicked = (event: MouseEvent) => {
    const place = Number((event.target as Element).closest("[role=row]")?.ariaRowIndex) - 2;
    if (place >= 0) click(place, event);
  };
  return (
    <div class="scroller" role="rowgroup" ref={box} onClick={clicked} onScroll={(event) => setTop(Math.floor(event.currentTarget.scrollTop / HEIGHT / STEP))}>
      <div style={{ height: `${rest.lines.length * HEIGHT}px` }} role="presentation">
        {Array.from({ length: size }, (_, n) => {
          const place = (slot + n) % size;
          return <Block key={place} start={(first + ((place - (first % size) + size) % size)) * STEP} {...rest} />;
        })}
      </div>
    </div>
  );
}

// Its texts are written without the framework, for which to compare them would be most of a frame.
function Block({ start, cells, lines, current, link, state }: LinesProps & { start: number }) {
  const box = useRef<HTMLDivElement>(null);
  const length = Math.max(0, Math.min(STEP, lines.length - start));
  const own = current >= start && current < start + length ? current - start : -1;
  const drawn = useMemo(() => Array.from({ length }, () => (
    <div role="row" class="line">
      {cells.map((cell, n) => <div role="gridcell" style={{ flex: flex(cell) }} class={cell.clip ? "clip" : ""}>{n ? " " : <a> </a>}</div>)}
    </div>
  )), [cells, length]);
  useLayoutEffect(() => {
    for (let n = 0; n < length; n++) {
      const [row, line] = [box.current?.children[n] as HTMLElement, lines[start + n] ?? 0];
      const anchor = row.firstElementChild?.firstElementChild as HTMLAnchorElement;
      row.id = `row-${start + n}`;
      row.ariaRowIndex = String(start + n + 2);
      row.classList.toggle("current", n === own);
      state(row, line);
      [anchor.href, anchor.tabIndex] = [link(line), n === own ? 0 : -1];
      cells.forEach((cell, place) => ((place ? row.children[place] : anchor)?.firstChild as Text).data = cell.show(line));
    }
  }, [start, length, cells, lines, own, state]);
  return useMemo(() => <div ref={box} style={{ top: `${start * HEIGHT}px` }} class="rows" role="presentation">{drawn}</div>, [drawn, start]);
}
