// Findings of audits of the run's environment, each with the episodes that it concerns.
import { useKeys } from "./keys";
import { address, go, type Run, screenKeys } from "./run";
import { clear, count } from "./text";
import { matching } from "./where";
import { Sheet, Title, useChosen } from "./ui";

export function Findings({ run }: { run: Run }) {
  const found = run.facts?.findings ?? [];
  const { place, at, choose, keys } = useChosen(found.length, "finding");
  const where = (n: number) => address.episodes(run.name, `finding:${JSON.stringify(found[n]?.name ?? "")}`);
  const help = useKeys([...keys, ["Enter", "its episodes", () => found.length && go(where(at()))], ...screenKeys(run.name)]);
  const sizes = new Map(run.columns.byName.get("finding")?.counted(matching(run.columns, { tests: [] })));
  return (
    <>
      <Title words="Findings of audits" help={help} />
      {found.length === 0 && <p>No report of an audit of this version: quintain audit ENV --out RUN/audit writes one into the run folder.</p>}
      {found.length > 0 && (
        <Sheet
          heads={["finding", "class", "confidence", "tools", "episodes", "what a model would learn", "how to mend it"]}
          current={place} choose={choose}
          rows={found.map((one, n) => [
            <a href={where(n)}>{clear(one.title)}</a>, clear(`${one.class}, ${one.part}`),
            clear(`${one.severity}, ${one.confidence}`), clear(one.tools.join(", ")), count(sizes.get(one.name) ?? 0),
            clear(one.teaches), <>{clear(one.mend)} {one.replay && <code>{clear(one.replay)}</code>}</>,
          ])}
        />
      )}
    </>
  );
}
