// The file that is sent: one episode or several, unpacked from the file itself. It loads nothing.
import { render } from "preact";
import { useState } from "preact/hooks";
import { useAids } from "./aids";
import type { Changes } from "./changes";
import { Header, useReading, useTurns } from "./episode";
import { useKeys } from "./keys";
import type { Review } from "./labels";
import type { Environment, Line } from "./record";
import { type Said, SaidLabels } from "./said";
import { clear } from "./text";

interface Data {
  run?: string;
  environment?: Environment | null;
  reviews?: Review[];
  labels?: Said[];
  lines: Line[];
  // Of a file with one episode.
  changes?: Changes;
  seconds?: number[][];
}

function Page({ data }: { data: Data }) {
  const [chosen, choose] = useState(0);
  const trace = data.lines[chosen]?.trace;
  const { raw, keys, at } = useReading(trace);
  const environment = data.environment ?? null;
  const changes = async () => {
    if (data.changes === undefined) throw new Error("This file does not hold what the steps changed: its environment was not at hand.");
    return data.changes;
  };
  const aids = useAids({ trace, environment, at, changes, seconds: async () => data.seconds ?? [] });
  const help = useKeys([...keys, ...aids.keys]);
  const turns = useTurns({ trace, environment, raw });
  if (trace === undefined) return <main>The file holds no episode.</main>;
  return (
    <>
      <nav class="bar" aria-label="file">
        <span>{clear(data.run ?? "")}</span>
        {data.lines.length > 1 && (
          <label>
            episode{" "}
            <select onChange={(event) => choose(Number(event.currentTarget.value))}>
              {data.lines.map((line, n) => (
                <option value={n}>
                  {clear(line.trace.task)}, member {line.trace.member ?? 0}
                </option>
              ))}
            </select>
          </label>
        )}
        {help}
      </nav>
      <main>
        <Header trace={trace} environment={environment} />
        <SaidLabels reviews={data.reviews ?? []} said={data.labels ?? []} />
        {aids.lanes}
        <div class="reading">
          {turns}
          {aids.panel}
        </div>
      </main>
    </>
  );
}

async function unpacked(): Promise<Data> {
  const packed = atob(document.getElementById("data")?.textContent ?? "");
  const bytes = Uint8Array.from(packed, (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

const place = document.getElementById("app");
if (place) void unpacked().then((data) => render(<Page data={data} />, place));
