// An exported folder: what the API would answer stands in files beside the page, and an episode is a range of one.
const RUN = document.documentElement.dataset.run;
export const exported = RUN !== undefined;
const NAMES = ["runs", "taxonomy", "run", "columns", "reviews", "profile", "metrics", "agreement", "live"];
const ABSENT = "this folder does not hold that, for no studio answers here: open the run with quintain studio";

const absent = (): Response => Response.json({ detail: ABSENT }, { status: 404 });

// Bytes of a file. A host that does not know ranges sends the whole file.
async function part(file: string, from = 0, to = 0): Promise<ArrayBuffer> {
  const answer = await fetch(file, { headers: { Range: `bytes=${from}-${to - 1}` } });
  if (!answer.ok) throw new Error(`${file}: ${answer.status} ${answer.statusText}`);
  const bytes = await answer.arrayBuffer();
  return answer.status === 206 ? bytes : bytes.slice(from, to);
}

// The answer to a path of the API.
export async function fromFiles(path: string, request: RequestInit = {}): Promise<Response> {
  const [place = "", query = ""] = path.split("?");
  const [first = "", run, what = "run", n, fact] = place.split("/");
  if (request.method || (run && decodeURIComponent(run) !== RUN)) return absent();
  if (what === "episodes" || what === "labels") {
    const at = 32 * Number(n);
    const [from, to, begins, ends] = new Float64Array(await part("files/places", at, at + 32));
    if (what === "episodes" && !fact) return new Response(await part("traces.jsonl", from, to));
    const facts: Record<string, string> = await new Response(await part("files/facts", begins, ends)).json();
    return facts[fact ?? what] === undefined ? absent() : new Response(facts[fact ?? what]);
  }
  // Nothing is news here.
  if (/\bwait=[1-9]/.test(query)) return new Promise(() => {});
  const name = run ? what : first;
  return NAMES.includes(name) && !/\bof=./.test(query) ? fetch(`files/${name}`) : absent();
}
