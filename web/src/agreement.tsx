// How far reviewers agree, and where they don't: each disagreement is decided by one key.
import { useState } from "preact/hooks";
import { type Binding, useKeys } from "./keys";
import { address, go, type Run, screenKeys } from "./run";
import { clear, figure } from "./text";
import { Notice, reason, Sheet, Title, useAnswer, useChosen } from "./ui";

interface Question {
  statistic: string; estimate: { value: number | null; low: number | null; high: number | null }; agreed: number | null;
  labels: Record<string, number>; confusion: [string, string, number][];
}

interface Disagreement { key: [string, number, number]; n: number; decided: boolean; ids: string[]; owners: Record<string, string> }

interface Agreement {
  of: string[]; episodes: number; few: boolean; not_blind: number; stale: number; owner: Question; mode: Question;
  first: { both: number; equal: number; within_one: number };
  programs: Record<string, { episodes: number; precision: number[] | null; recall: number[] | null }>;
  disagreements: Disagreement[];
}

export function AgreementOf({ run, of }: { run: Run; of: string }) {
  const [found, error, load] = useAnswer<Agreement>(`${run.address}/agreement?of=${encodeURIComponent(of)}`);
  const [failed, fail] = useState("");
  const all = found?.disagreements ?? [];
  const { place, at, choose, keys } = useChosen(all.length, "disagreement");
  const current = all[place];
  const decide = (owner: string) => {
    const one = all[at()];
    if (one === undefined) return;
    run.review({ kind: "decided", rows: [one.n], owner, of: one.ids }).then(() => {
      load();
      choose(at() + 1);
    }, (problem: unknown) => fail(reason(problem)));
  };
  const owners = [...new Set(Object.values(current?.owners ?? {}))];
  const help = useKeys([
    ...keys,
    ...owners.map((owner, n): Binding => [String(n + 1), `decide: ${owner}`, () => decide(owner)]),
    ["Enter", "open the episode", () => current && go(address.row(run, current.n))],
    ...screenKeys(run.name),
  ]);
  if (error || failed) return <Notice words={error || failed} />;
  if (found === undefined) return <p>Loading the agreement …</p>;
  return (
    <>
      <Title words={`Agreement: ${found.of.join(" × ") || "no reviewers yet"}`} help={help} />
      <p>
        {found.episodes} episodes judged by several, blindly.
        {found.few && " Fewer than 30: the intervals are wide."}
        {found.not_blind > 0 && ` ${found.not_blind} verdicts were not blind and are left out.`}
        {found.stale > 0 && ` ${found.stale} are of another episode than the run has.`}
      </p>
      <Sheet
        heads={["question", "statistic", "value", "95 % interval", "equal", "labels"]}
        rows={[found.owner, found.mode].map((one, n) => [
          n ? "how?" : "whose?", one.statistic === "kappa" ? "Cohen's κ" : "Krippendorff's α",
          figure(one.estimate.value), `${figure(one.estimate.low)} … ${figure(one.estimate.high)}`,
          one.agreed === null ? "–" : `${Math.round(100 * one.agreed)} %`,
          clear(Object.entries(one.labels).map(([label, count]) => `${label} ${count}`).join(", ")),
        ])}
      />
      <p>First wrong turn: equal in {found.first.equal}, within one in {found.first.within_one} of {found.first.both} pairs of verdicts that mark it.</p>
      {Object.entries(found.programs).map(([name, one]) => (
        <p>
          Programs against {clear(name)}, on {one.episodes} episodes, in naming another party than the policy: precision {share(one.precision)}, recall {share(one.recall)}
        </p>
      ))}
      {found.owner.confusion.length > 0 && <Confusion names={found.of} counts={found.owner.confusion} />}
      <h2>Disagreements: {all.length}</h2>
      <Sheet heads={[]} current={place} choose={choose}
        rows={all.map((one) => [
          <a href={address.row(run, one.n)}>{clear(one.key[0])} {one.key[1]}</a>,
          clear(Object.entries(one.owners).map(([name, owner]) => `${name}: ${owner}`).join(", ")),
          <>
            {one.decided && "decided "}
            {one === current && owners.map((owner, n) => <button type="button" onClick={() => decide(owner)}><kbd>{n + 1}</kbd> {clear(owner)}</button>)}
          </>,
        ])}
      />
    </>
  );
}

function share(bounds: number[] | null): string {
  const [value, low, high] = bounds ?? [];
  return value === undefined ? "–" : `${figure(value)} [${figure(low)} … ${figure(high)}]`;
}

function Confusion({ names, counts }: { names: string[]; counts: [string, string, number][] }) {
  const labels = [...new Set(counts.flatMap(([a, b]) => [a, b]))].sort();
  const count = (a: string, b: string) => counts.find(([x, y]) => x === a && y === b)?.[2] ?? 0;
  return (
    <Sheet caption={`rows: ${clear(names[0] ?? "")}, columns: ${clear(names[1] ?? "")}`}
      heads={["", ...labels.map(clear)]}
      rows={labels.map((a) => [clear(a), ...labels.map((b) => (a === b ? <b>{count(a, b)}</b> : count(a, b)))])} />
  );
}
