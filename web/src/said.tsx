// Labels of one episode by people, programs and audits; the same for the studio and for the file that is sent.
import type { ComponentChildren } from "preact";
import { type Finding, label, type Place, type Review } from "./labels";
import type { Criterion, Reward, Trace } from "./record";
import { clear, figure } from "./text";

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
      <Verdicts of="labels" all={[
        ...others.map((one) => oneLabel(label(one), [...(one.modes ?? []), one.first && where(one.first)], [one.reviewer, one.kind === "decided" && one.kind], one.note)),
        ...said.map((one) => oneLabel(one.owner, [one.event?.turn != null && where(one.event)], [one.file, one.confidence], one.why)),
      ]} />
      <Verdicts of="marks" all={marks.map((one) => one.mark && (
        <>
          <a href={link(one.mark.turn)}>turn {one.mark.turn}</a> <q>{clear(one.mark.quote)}</q> {clear(one.note ?? "")} <span class="dim">{clear(one.reviewer)}{one.stale && ", of another episode"}</span>
          {remove && one.reviewer === mine && <button type="button" aria-label={`remove the mark in turn ${one.mark.turn}`} onClick={() => remove(one)}>×</button>}
        </>
      ))} />
    </>
  );
}

// A verdict with its weight and reason. Grey: it was skipped, or the phase was not reached.
export function Verdict({ reward, criterion }: { reward: Reward; criterion?: Criterion | undefined }) {
  const value = reward.value;
  const best = criterion && (criterion.normalize ? 1 : criterion.high);
  const style = value === null ? "skipped" : value >= (best ?? 1) ? "good" : value <= (criterion?.low ?? 0) ? "bad" : "some";
  const weight = reward.weight === undefined || reward.weight === 1 ? "" : ` × ${figure(reward.weight)}`;
  return (
    <span class={`verdict ${style}`}>
      <b>{clear(reward.name)}</b>{` ${value === null ? "no verdict" : figure(value)}${weight}`}
      {reward.reason && <span class="why">{clear(reward.reason)}</span>}
    </span>
  );
}

// A line of verdicts under one name; nothing if there are none.
export const Verdicts = ({ of, all }: { of: string; all: ComponentChildren[] }) =>
  all.length > 0 ? <div class="verdicts"><span class="label">{of}</span>{all.map((one) => <span>{one}</span>)}</div> : null;

const joined = (words: unknown[]): string => clear(words.filter(Boolean).join(", "));
const oneLabel = (owner: string | undefined, words: unknown[], by: unknown[], why: string | undefined) =>
  <><b>{clear(owner ?? "")}</b> {joined(words)} <span class="dim">{joined(by)}{why && `: ${clear(why)}`}</span></>;

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
  return (
    <Verdicts of="audit" all={found.map(({ finding, turns }) => (
      <>
        ⚑ <b>{clear(finding.confidence)}</b> {all ? <a href={all}>{clear(finding.title)}</a> : clear(finding.title)}{" "}
        {turns.slice(0, MOST_TURNS).map((turn) => <><a href={link(turn)}>turn {turn}</a> </>)}
        {turns.length > MOST_TURNS && <span class="dim">and {turns.length - MOST_TURNS} more turns</span>}
      </>
    ))} />
  );
}
