// The file that is sent: some episodes, unpacked from the file itself. It loads nothing.
import { render } from "preact";
import { useState } from "preact/hooks";
import type { Changes } from "./changes";
import { useEpisode } from "./episode";
import { useKeys } from "./keys";
import type { Finding, Review } from "./labels";
import type { Environment, Line } from "./record";
import type { Said } from "./said";
import { clear } from "./text";

interface Data {
  run?: string; environment?: Environment | null; findings?: Finding[]; lines: Line[];
  // By line.
  facts?: { reviews: Review[]; labels: Said[]; seconds: number[][]; changes?: Changes }[];
}

const ABSENT = "This file does not hold what the steps changed: its environment was not at hand.";

function Page({ data }: { data: Data }) {
  const [chosen, choose] = useState(0);
  const facts = data.facts?.[chosen];
  const { keys, shown } = useEpisode({
    trace: data.lines[chosen]?.trace, environment: data.environment ?? null,
    changes: () => (facts?.changes ? Promise.resolve(facts.changes) : Promise.reject(new Error(ABSENT))),
    seconds: async () => facts?.seconds ?? [], reviews: facts?.reviews, said: facts?.labels, findings: data.findings,
  });
  const move = (by: number) => () => choose(Math.max(0, Math.min(data.lines.length - 1, chosen + by)));
  const help = useKeys([...keys, ["J", "next episode of the file", move(1)], ["K", "previous episode of the file", move(-1)]]);
  return (
    <>
      <nav class="bar" aria-label="file">
        <span>{clear(data.run ?? "")}</span>
        {data.lines.length > 1 && (
          <label>
            episode{" "}
            <select value={chosen} onChange={(event) => choose(Number(event.currentTarget.value))}>
              {data.lines.map((line, n) => <option value={n}>{clear(line.trace.task)}, member {line.trace.member ?? 0}</option>)}
            </select>
          </label>
        )}
        {help}
      </nav>
      <main>{shown ?? "The file holds no episode."}</main>
    </>
  );
}

async function unpacked(): Promise<Data> {
  const packed = atob(document.getElementById("data")?.textContent ?? "");
  const bytes = Uint8Array.from(packed, (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

const place = document.getElementById("app");
if (place) void unpacked().then((data) => render(<Page data={data} />, place));
