// Labels of one episode by people, programs and audits; the same for the studio and for the file that is sent.
import { type Finding, label, type Place, type Review } from "./labels";
import type { Trace } from "./record";
import { clear } from "./text";

export interface Said { file: string; owner?: string; why?: string; confidence?: string; event?: Place | null }

interface SaidProps {
  reviews: Review[]; said: Said[]; link: (turn: number) => string;
  // The reviewer, who may remove their own marks.
  mine?: string; remove?: ((mark: Review) => void) | undefined;
}

export function SaidLabels({ reviews, said, link, mine, remove }: SaidProps) {
  const marks = reviews.filter((one) => one.mark);
  const others = reviews.filter((one) => !one.mark);
  return (
    <>
      {others.length + said.length > 0 && (
        <div class="verdicts">
          <span class="label">labels</span>
          {others.map((one) => (
            <OneLabel owner={label(one)} words={[...(one.modes ?? []), one.first && where(one.first)]} by={one.kind === "decided" ? `${one.reviewer}, decided` : one.reviewer} why={one.note} />
          ))}
          {said.map((one) => (
            <OneLabel owner={one.owner} words={[one.event?.turn != null && where(one.event)]} by={one.confidence ? `${one.file}, ${one.confidence}` : one.file} why={one.why} />
          ))}
        </div>
      )}
      {marks.length > 0 && (
        <div class="verdicts">
          <span class="label">marks</span>
          {marks.map((one) => one.mark && (
            <span>
              <a href={link(one.mark.turn)}>turn {one.mark.turn}</a> <q>{clear(one.mark.quote)}</q> {clear(one.note ?? "")} <span class="dim">{clear(one.reviewer)}{one.stale && ", of another episode"}</span>
              {remove && one.reviewer === mine && <button type="button" aria-label={`remove the mark in turn ${one.mark.turn}`} onClick={() => remove(one)}>×</button>}
            </span>
          ))}
        </div>
      )}
    </>
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

// The findings of audits about an episode: those of its task, and those of tools that it calls, with their turns.
export function flagged(trace: Trace, findings: Finding[]): { finding: Finding; turns: number[] }[] {
  return findings.flatMap((finding) => {
    const used = (trace.turns ?? []).filter((turn) => turn.steps?.some((step) => finding.tools.includes(step.call.name)));
    const concerns = finding.tasks.length ? finding.tasks.includes(trace.task) : used.length > 0;
    return concerns ? [{ finding, turns: used.map((turn) => turn.index) }] : [];
  });
}

const MOST_TURNS = 8;

export function Flags({ trace, findings, link, all }: { trace: Trace; findings: Finding[]; link: (turn: number) => string; all?: string | undefined }) {
  const found = flagged(trace, findings);
  return found.length === 0 ? null : (
    <div class="verdicts">
      <span class="label">audit</span>
      {found.map(({ finding, turns }) => (
        <span>
          ⚑ <b>{clear(finding.confidence)}</b> {all ? <a href={all}>{clear(finding.title)}</a> : clear(finding.title)}{" "}
          {turns.slice(0, MOST_TURNS).map((turn) => <><a href={link(turn)}>turn {turn}</a> </>)}
          {turns.length > MOST_TURNS && <span class="dim">and {turns.length - MOST_TURNS} more turns</span>}
        </span>
      ))}
    </div>
  );
}
