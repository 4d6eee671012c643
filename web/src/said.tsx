// Labels of one episode, by people and by programs; the same for the studio and for the file that is sent.
import { label, type Place, type Review } from "./labels";
import { clear } from "./text";

export interface Said {
  file: string;
  owner?: string;
  why?: string;
  confidence?: string;
  event?: Place | null;
}

export function SaidLabels({ reviews, said }: { reviews: Review[]; said: Said[] }) {
  if (reviews.length + said.length === 0) return null;
  return (
    <div class="verdicts">
      <span class="label">labels</span>
      {reviews.map((one) => (
        <OneLabel owner={label(one)} words={[...(one.modes ?? []), one.first && where(one.first)]} by={one.kind === "decided" ? `${one.reviewer}, decided` : one.reviewer} why={one.note} />
      ))}
      {said.map((one) => (
        <OneLabel owner={one.owner} words={[one.event?.turn != null && where(one.event)]} by={one.confidence ? `${one.file}, ${one.confidence}` : one.file} why={one.why} />
      ))}
    </div>
  );
}

function OneLabel(props: { owner: string | undefined; words: unknown[]; by: string; why: string | undefined }) {
  return (
    <span>
      <b>{clear(props.owner ?? "")}</b> {clear(props.words.filter(Boolean).join(", "))} <span class="dim">{clear(props.why ? `${props.by}: ${props.why}` : props.by)}</span>
    </span>
  );
}

export function where(first: Place | null | undefined): string {
  if (!first) return "not marked";
  return `turn ${first.turn}${first.step == null ? "" : `, step ${first.step}`}`;
}
