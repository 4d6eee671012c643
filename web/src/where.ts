// The language of filters: terms that must all hold, such as `score<1 tool:crm_search -end:failed "too small"`.
import type { Column, Columns } from "./columns";

type Test = (row: number) => boolean;
export type Filter = { tests: Test[] } | { error: string };

const TERM = /\s*(-?)(?:"((?:[^"\\]|\\.)*)"|([\w.@/-]*?)(:|<=|>=|!=|=|<|>)(?:"((?:[^"\\]|\\.)*)"|(\S+))|(\S+))/g;
// Finds the rows whose episode holds a text; the server looks for them.
export type Search = (text: string) => Set<number>;

export function compile(columns: Columns, text: string, search: Search): Filter {
  const tests: Test[] = [];
  for (const [, minus, quoted, name, sign, inQuotes, bare, lone] of text.matchAll(TERM)) {
    const made =
      lone !== undefined
        ? `${lone} is not a term; write name:text, name<number or "exact text"`
        : sign === undefined
          ? anywhere(search(unescaped(quoted ?? "")))
          : term(columns, name ?? "", sign, inQuotes === undefined ? (bare ?? "") : unescaped(inQuotes));
    if (typeof made === "string") return { error: made };
    tests.push(minus ? (row) => !made(row) : made);
  }
  return { tests };
}

export interface Bound { sign: string; value: number }

// The terms about a column that a range of it replaces, all but those that a minus or != turns round, and the others.
export function parted(columns: Columns, text: string, column: Column): [own: Bound[], others: string] {
  const about = ([, minus, , name, sign]: string[]) => !minus && name !== undefined && sign !== "!=" && columns.find(name) === column;
  const parts = Map.groupBy(text.matchAll(TERM), about);
  const own = (parts.get(true) ?? []).map((one) => ({ sign: one[4] ?? "", value: Number(one[6]) }));
  return [own.filter(({ value }) => !Number.isNaN(value)), (parts.get(false) ?? []).map(([term]) => term.trim()).join(" ")];
}

// The rows that a filter leaves.
export function matching(columns: Columns, filter: Filter): Uint32Array {
  const all = new Uint32Array("error" in filter ? 0 : columns.rows);
  for (let row = 0; row < all.length; row++) all[row] = row;
  return "error" in filter ? all : filter.tests.reduce((rows, test) => rows.filter(test), all);
}

const unescaped = (text: string): string => text.replace(/\\(.)/g, "$1");
const anywhere = (found: Set<number>): Test => (row) => found.has(row);

function term(columns: Columns, name: string, sign: string, value: string): Test | string {
  const column = columns.find(name);
  if (column === undefined) return `there is no column ${name}; there are ${names(columns)}`;
  if (column.kind === "lists") {
    if (sign !== ":") return `${name} takes a colon, as ${name}:${value}`;
    if (value === "none") return (row) => column.starts[row] === column.starts[row + 1];
    const wanted = new Set(numbers(column, pattern(value)));
    return (row) => {
      for (let n = column.starts[row] ?? 0; n < (column.starts[row + 1] ?? 0); n++) {
        if (wanted.has(column.data[n] ?? -1)) return true;
      }
      return false;
    };
  }
  if (column.kind === "text") {
    const fits = value === "none" ? (text: string) => text === "" : pattern(value);
    if (sign === ":" || sign === "=") return chosen(column, fits);
    return sign === "!=" ? chosen(column, (text) => !fits(text)) : `${name} is text; write ${name}:${value}`;
  }
  if (value === "none") return (row) => Number.isNaN(column.number(row)) === (sign !== "!=");
  const number = Math.fround(Number(value));
  if (Number.isNaN(number)) return `${name} is a number, got ${value}`;
  const holds = COMPARE[sign] ?? COMPARE["="];
  return (row) => holds?.(column.number(row), number) ?? false;
}

const COMPARE: Record<string, (a: number, b: number) => boolean> = {
  "<": (a, b) => a < b, "<=": (a, b) => a <= b, ">": (a, b) => a > b, ">=": (a, b) => a >= b, "!=": (a, b) => a !== b,
  "=": (a, b) => a === b,
};

// A text in which * stands for any characters.
function pattern(value: string): (text: string) => boolean {
  if (!value.includes("*")) return (text) => text === value;
  const parts = value.split("*").map((text) => text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"));
  const made = new RegExp(`^${parts.join("[^]*")}$`);
  return (text) => made.test(text);
}

function numbers(column: Column, fits: (text: string) => boolean): number[] {
  return column.values.flatMap((text, n) => (fits(text) ? [n] : []));
}

// Rows with a fitting text. Each distinct text is looked at once.
function chosen(column: Column, fits: (text: string) => boolean): Test {
  const wanted = new Uint8Array(column.values.length);
  for (const n of numbers(column, fits)) wanted[n] = 1;
  return (row) => wanted[column.data[row] ?? 0] === 1;
}

function names(columns: Columns): string {
  const shown = [...columns.byName.keys()].map((name) => name.replace(/^(reward|tag)\./, ""));
  return [...new Set(shown)].join(", ");
}
