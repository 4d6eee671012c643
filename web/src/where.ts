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
  const kept = new Uint32Array("error" in filter ? 0 : columns.rows);
  for (let row = 0; row < kept.length; row++) kept[row] = row;
  if ("error" in filter) return kept;
  // In place: `filter` of an array costs twice as much.
  let length = kept.length;
  for (const test of filter.tests) {
    let held = 0;
    for (let at = 0; at < length; at++) {
      const row = kept[at] ?? 0;
      if (test(row)) kept[held++] = row;
    }
    length = held;
  }
  return kept.slice(0, length);
}

const unescaped = (text: string): string => text.replace(/\\(.)/g, "$1");
const anywhere = (found: Set<number>): Test => (row) => found.has(row);

function term(columns: Columns, name: string, sign: string, value: string): Test | string {
  const column = columns.find(name);
  if (column === undefined) return `there is no column ${name}; there are ${names(columns)}`;
  // Arrays at hand are found faster than those of an object.
  const { data, starts } = column;
  if (column.kind === "lists") {
    if (sign !== ":") return `${name} takes a colon, as ${name}:${value}`;
    if (value === "none") return (row) => starts[row] === starts[row + 1];
    const wanted = fitting(column, pattern(value));
    return (row) => {
      const end = starts[row + 1] ?? 0;
      for (let n = starts[row] ?? 0; n < end; n++) if (wanted[data[n] ?? 0]) return true;
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
  return (row) => holds?.(data[row] ?? NaN, number) ?? false;
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

// Of each distinct text whether it fits, as 1 or 0.
const fitting = (column: Column, fits: (text: string) => boolean): Uint8Array => Uint8Array.from(column.values, (text) => Number(fits(text)));

// Rows with a fitting text.
function chosen(column: Column, fits: (text: string) => boolean): Test {
  const [{ data }, wanted] = [column, fitting(column, fits)];
  return (row) => wanted[data[row] ?? 0] === 1;
}

function names(columns: Columns): string {
  const shown = [...columns.byName.keys()].map((name) => name.replace(/^(reward|tag)\./, ""));
  return [...new Set(shown)].join(", ");
}
