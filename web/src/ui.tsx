// Parts that screens share: questions to the server, titles, notices, tables, lists that keys move along.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from "preact/hooks";
import type { Binding } from "./keys";
import { ask, type Run } from "./run";
import { clear } from "./text";

// The answer to a question, asked for when `again` changes; what went wrong; and a function that asks once more.
export function useAsk<Answer>(question: () => Promise<Answer> | undefined, again: unknown[]): [Answer | undefined, string, () => void] {
  const [[found, error, of], set] = useState<[Answer | undefined, string, unknown[]]>([undefined, "", again]);
  const latest = useRef(0);
  const load = () => {
    const asked = ++latest.current;
    const take = (answer: Answer | undefined, words: string) => asked === latest.current && set([answer, words, again]);
    question()?.then((answer) => take(answer, ""), (problem: unknown) => take(undefined, reason(problem)));
  };
  useEffect(() => {
    load();
    return () => { latest.current += 1; };
  }, again);
  // The answer to another question is there until the next one comes.
  return of.every((one, n) => one === again[n]) ? [found, error, load] : [undefined, "", load];
}

// The same for a path of the API.
export const useAnswer = <Answer,>(path: string) => useAsk<Answer>(() => ask<Answer>(path), [path]);
// Width and height of an element, as it is now.
export function useSize(of: { current: HTMLElement | null }): [width: number, height: number] {
  const [size, setSize] = useState<[number, number]>([900, 600]);
  useLayoutEffect(() => {
    const box = of.current;
    if (box === null) return;
    const observer = new ResizeObserver(() => setSize([box.clientWidth, box.clientHeight]));
    observer.observe(box);
    return () => observer.disconnect();
  }, []);
  return size;
}

// Draws anew when a run has news.
export function useRuns(...runs: Run[]): void {
  const [, redraw] = useReducer<number, void>((n) => n + 1, 0);
  useEffect(() => {
    const ends = runs.map((one) => one.listen(redraw));
    return () => ends.forEach((end) => end());
  }, runs);
}

export const reason = (problem: unknown): string => (problem instanceof Error ? problem.message : String(problem));
// Words that a screen reader says at once; nothing if there are none.
export const Notice = ({ words }: { words: string | false | undefined }) =>
  words ? <p class="notice" role="alert">{clear(words)}</p> : null;

export function Title({ words, help, children }: { words: string; help: ComponentChildren; children?: ComponentChildren }) {
  return (<div class="bar"><h1>{clear(words)}</h1>{children}{help}</div>);
}

interface SheetProps {
  // A table with a name is wide wherever it stands.
  heads: ComponentChildren[]; rows: ComponentChildren[][]; name?: string; caption?: string; style?: string;
  // Without headings of rows.
  plain?: boolean;
  // The row that keys act on, and what a click on a row does.
  current?: number; choose?: (row: number) => void; foot?: ComponentChildren[];
}

// A table, which scrolls by itself where it is too wide. The first cell of each row is its heading.
export function Sheet({ heads, rows, name, caption, style = "", plain, current, choose, foot }: SheetProps) {
  const table = (
    <table class={style}>
      {caption && <caption>{caption}</caption>}
      {heads.length > 0 && <thead><tr>{heads.map((word) => (word ? <th scope="col">{word}</th> : <td />))}</tr></thead>}
      <tbody>
        {rows.map(([first, ...cells], n) => (
          <tr id={choose && `line-${n}`} class={n === current ? "current" : ""} aria-current={current === undefined ? undefined : n === current} onClick={choose && (() => choose(n))}>
            {plain ? <td>{first}</td> : <th scope="row">{first}</th>}
            {cells.map((cell) => <td>{cell}</td>)}
          </tr>
        ))}
      </tbody>
      {foot && <tfoot><tr>{foot.map((cell) => <td>{cell}</td>)}</tr></tfoot>}
    </table>
  );
  return name ? <div class="sides" tabIndex={0} role="region" aria-label={name}>{table}</div> : <div class="wide">{table}</div>;
}

// A table that is drawn once it is opened.
export function Details({ name, children }: { name: string; children: () => ComponentChildren }) {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{name}</summary>
      {open && children()}
    </details>
  );
}

// What happens when a form is sent.
export const submitted = (act: (given: FormData) => void) => (event: SubmitEvent) => {
  event.preventDefault();
  act(new FormData(event.currentTarget as HTMLFormElement));
};

// All but one of some values, or all with it; by default, as it was not before.
export function toggled<Value>(all: Iterable<Value>, one: Value, on = ![...all].includes(one)): Value[] {
  return [...all].filter((other) => other !== one).concat(on ? [one] : []);
}

// In which of so many parts of its element an event is; the parts stand side by side.
export function part(event: MouseEvent, parts: number): number {
  const { left, width } = (event.currentTarget as Element).getBoundingClientRect();
  return Math.max(0, Math.min(parts - 1, Math.floor(((event.clientX - left) / width) * parts)));
}

// Where a key takes a slider that stands at a place; undefined for a key of another kind.
export function slid(event: KeyboardEvent, place: number, last: number, by = 1): number | undefined {
  const steps = { ArrowRight: 1, "]": 1, ArrowUp: 1, ArrowLeft: -1, "[": -1, ArrowDown: -1, PageDown: 10, PageUp: -10 }[event.key];
  const to = steps === undefined ? { Home: 0, End: last }[event.key] : place + steps * by;
  return to === undefined ? undefined : Math.max(0, Math.min(last, to));
}

// A value that keys may change faster than the next drawing: as it is drawn, as it is now, and how it is set.
export function useLatest<Value>(first: Value): [drawn: Value, at: () => Value, set: (value: Value) => void] {
  const [drawn, draw] = useState(first);
  const latest = useRef(first);
  return [drawn, () => latest.current, (value) => { latest.current = value; draw(() => value); }];
}

const seen = (row: number): void => document.getElementById(`line-${row}`)?.scrollIntoView({ block: "nearest" });

// The chosen row of a list; `at()` is newer than `place`.
export function useChosen(length: number, what: string, reveal = seen): { place: number; at: () => number; choose: (row: number) => void; keys: Binding[] } {
  const [place, at, set] = useLatest(0);
  const choose = (row: number) => {
    set(Math.max(0, Math.min(length - 1, row)));
    reveal(at());
  };
  const by = (step: number) => () => choose(at() + step);
  const keys: Binding[] = [["j", `next ${what}`, by(1)], ["k", `previous ${what}`, by(-1)]];
  return { place: Math.max(0, Math.min(place, length - 1)), at, choose, keys };
}
