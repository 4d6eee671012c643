// Texts of models, tools and users: always text nodes, never markup.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Content, Cut } from "./record";
import { ask } from "./run";
import { useAsk } from "./ui";

const LONG = 1200;
const SAFE_PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
// Control, zero-width and direction-changing characters, and letters that only look like nothing.
const UNSEEN =
  /([\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e007f}])/u;

// The text with characters that nobody sees as marks.
export function marked(text: string): ComponentChildren {
  if (!UNSEEN.test(text)) return text;
  return text.split(UNSEEN).map((part, n) => (n % 2 ? <mark class="unseen">{code(part)}</mark> : part));
}

const code = (character: string): string => `[U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}]`;

// The same as a string, for attributes and cells.
export const clear = (text: string): string => (UNSEEN.test(text) ? text.replaceAll(new RegExp(UNSEEN, "gu"), code) : text);

interface SaidProps {
  text: string | Cut; style?: string | undefined;
  // What stands before the text, such as the name of a call; and the name of the text, beside it.
  before?: ComponentChildren; label?: string | undefined;
}

// A text whose part beyond LONG is folded; find-in-page opens the fold.
export function Said({ text, ...rest }: SaidProps) {
  if (typeof text !== "string") return <Fetched text={text} {...rest} />;
  if (text.length > LONG * 1.2) return <Folded text={text} {...rest} />;
  return <pre class={rest.style} data-label={rest.label}>{rest.before}{marked(text)}</pre>;
}

// A text that is not in the page: its beginning, and a button that brings the rest.
function Fetched({ text: { cut, length, at }, ...rest }: SaidProps & { text: Cut }) {
  const [wanted, want] = useState(false);
  const [whole, error] = useAsk(() => (wanted ? ask<string>(at) : undefined), [at, wanted]);
  if (whole !== undefined) return <Folded text={whole} opened {...rest} />;
  return (
    <div class={rest.style} data-label={rest.label}>
      <pre>{rest.before}{marked(cut)}…</pre>
      <button type="button" class="fold" onClick={() => want(true)}>{wanted ? "fetching" : "fetch"} all {count(length)} characters {clear(error)}</button>
    </div>
  );
}

function Folded({ text, style, before, label, opened = false }: SaidProps & { text: string; opened?: boolean }) {
  const [open, setOpen] = useState(opened);
  const found = (rest: HTMLElement | null) => { if (rest) rest.onbeforematch = () => setOpen(true); };
  return (
    <div class={style} data-label={label}>
      <pre>
        {before}{marked(text.slice(0, LONG))}
        <span ref={found} hidden={open ? false : "until-found"} class="rest">{marked(text.slice(LONG))}</span>
      </pre>
      <button type="button" class="fold" aria-expanded={open} onClick={() => setOpen(!open)}>
        {open ? "fold" : `show all ${count(text.length)} characters`}
      </button>
    </div>
  );
}

interface ShownProps extends Omit<SaidProps, "text"> { content: Content | undefined; raw: boolean }

// What a message or an observation says, as one element: text as it is, or laid out where it is JSON.
export function Shown({ content = "", raw, label, ...rest }: ShownProps) {
  const said = (text: string | Cut, label?: string) => Said({ text: raw || typeof text !== "string" ? text : laidOut(text), label, ...rest });
  if (!Array.isArray(content)) return content || rest.before ? said(content, label) : null;
  return (
    <div class={rest.style} data-label={label}>
      {content.map((one) => {
        if (one.type === "text") return said(one.text);
        if (!SAFE_PICTURES.has(one.media_type)) return <p class="dim">a picture of the type {clear(one.media_type)}, which is not shown</p>;
        return <img src={`data:${one.media_type};base64,${one.data}`} alt={`a picture, ${one.media_type}`} />;
      })}
    </div>
  );
}

// JSON text with line breaks. Only the space between its tokens changes: numbers keep all their digits.
export function laidOut(text: string): string {
  if (text.length < 80 || text.length > 100_000 || !/^\s*[[{]/.test(text)) return text;
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  let depth = 0;
  const line = (by: number) => `\n${"  ".repeat((depth += by))}`;
  const tokens: Record<string, (token: string) => string> = {
    "{": (token) => token + line(1), "[": (token) => token + line(1), "}": (token) => line(-1) + token,
    "]": (token) => line(-1) + token, ",": (token) => token + line(0), ":": () => ": ",
  };
  const kept = text.replace(/("(?:[^"\\]|\\.)*")|\s+/g, "$1");
  // Texts, and brackets with nothing in them, stay as they are.
  return kept.replace(/"(?:[^"\\]|\\.)*"|\{\}|\[\]|[[\]{},:]/g, (token) => tokens[token]?.(token) ?? token);
}

export function short(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

// A whole number with commas. `Intl` says the same, and takes 15 ms to load.
export const count = (value: number): string => String(value).replace(/\B(?=(\d{3})+$)/g, ",");

export const known = (values: number[]): number[] => values.filter((one) => !Number.isNaN(one));
export const sum = (values: Iterable<number>): number => Array.from(values).reduce((all, one) => all + one, 0);
export const mean = (values: number[]): number => sum(values) / values.length;

// A number with at most three digits behind the point; a dash where there is none.
export function figure(value: number | null | undefined): string {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  return String(Math.round(value * 1000) / 1000);
}
