// The dialog in which a mark gets its note.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { selected } from "./marks";
import { type Run, send } from "./run";
import { clear } from "./text";
import { Notice, reason } from "./ui";

export function NoteOfMark({ run, row, turn, close }: { run: Run; row: number; turn: number; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  // The dialog takes the focus, and the selection may go with it.
  const [mark] = useState(() => selected() ?? { turn, step: 0, field: "", from: 0, to: 0, quote: "" });
  const [error, setError] = useState("");
  useLayoutEffect(() => dialog.current?.showModal(), []);
  const save = (event: SubmitEvent) => {
    event.preventDefault();
    const note = String(new FormData(event.currentTarget as HTMLFormElement).get("note") ?? "");
    send("POST", `${run.address}/reviews`, { kind: "mark", rows: [row], mark, note }).then(() => {
      close();
      void run.loadReviews();
    }, (problem: unknown) => setError(reason(problem)));
  };
  return (
    <dialog ref={dialog} aria-label="mark" onClose={close}>
      <p>Turn {mark.turn} {mark.quote && <q>{clear(mark.quote)}</q>}</p>
      <Notice words={error} />
      <form class="bar" onSubmit={save}>
        <label>note <input name="note" size={40} maxLength={500} /></label>
        <button>mark</button>
        <button type="button" onClick={close}>cancel</button>
      </form>
    </dialog>
  );
}
