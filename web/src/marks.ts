// Marks in texts: a selection as a place in the record, and places as highlights that leave the page as it is.
import type { Mark } from "./labels";

const BLANK = /[ \t\n]/;
const MOST = 120;

// The rows of a turn have the name of their text as a label; calls and results have one for each step.
function field(row: Element): { field: string; step: number } {
  const name = row.getAttribute("data-label") ?? "";
  const same = [...(row.parentElement?.children ?? [])].filter((one) => one.getAttribute("data-label") === name);
  return { field: name, step: same.indexOf(row) };
}

// The texts of a row that are of the record, without names of calls and buttons.
function texts(row: Element): Text[] {
  const walker = document.createTreeWalker(row, NodeFilter.SHOW_TEXT);
  const found: Text[] = [];
  while (walker.nextNode()) {
    const node = walker.currentNode as Text;
    if (!node.parentElement?.closest(".call, .refused, .flag, button")) found.push(node);
  }
  return found;
}

// Each character that counts: its node and its place there. Blanks do not, for JSON may be laid out or not; a
// character that nobody sees counts once, though its code is shown.
function* characters(row: Element): Generator<[Text, number]> {
  for (const node of texts(row)) {
    if (node.parentElement?.matches(".unseen")) yield [node, 0];
    else for (let n = 0; n < node.data.length; n++) if (!BLANK.test(node.data[n] ?? "")) yield [node, n];
  }
}

// The place of the selection in the record; undefined if it is not in one text.
export function selected(): Mark | undefined {
  const selection = getSelection();
  if (!selection || selection.isCollapsed) return undefined;
  const range = selection.getRangeAt(0);
  const start = range.startContainer instanceof Element ? range.startContainer : range.startContainer.parentElement;
  const row = start?.closest("section.turn > [data-label]");
  if (!row?.contains(range.endContainer)) return undefined;
  const places = [...characters(row)].map(([node, n]) => range.isPointInRange(node, n) && !(node === range.endContainer && n === range.endOffset));
  const [from, to] = [places.indexOf(true), places.lastIndexOf(true) + 1];
  const turn = Number(row.closest("section")?.id.slice(1));
  return to > 0 ? { turn, ...field(row), from, to, quote: selection.toString().slice(0, MOST) } : undefined;
}

// Shows marks on the page, where their turns are drawn.
export function highlight(marks: Mark[]): void {
  if (!("highlights" in CSS)) return;
  const ranges = marks.flatMap((mark) => {
    const rows = [...document.querySelectorAll(`#t${mark.turn} > [data-label]`)];
    const row = rows.find((one) => field(one).field === mark.field && field(one).step === mark.step);
    const found = row ? [...characters(row)].slice(mark.from, mark.to) : [];
    const [first, last] = [found[0], found.at(-1)];
    if (!first || !last) return [];
    const range = new Range();
    range.setStart(...first);
    range.setEnd(last[0], last[1] + 1);
    return [range];
  });
  CSS.highlights.set("mark", new Highlight(...ranges));
}
