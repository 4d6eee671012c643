// Keys of the screen: one letter, or two such as "g e". A dialog names them, and a switch turns letters off.
import { useLayoutEffect, useRef, useState } from "preact/hooks";

export type Binding = [keys: string, means: string, act: () => void];

const OFF = "quintain-studio-letters";

export function useKeys(bindings: Binding[]) {
  const latest = useRef(bindings);
  latest.current = bindings;
  const dialog = useRef<HTMLDialogElement>(null);
  const [letters, setLetters] = useState(() => remembered() !== "off");
  useLayoutEffect(() => {
    let before = "";
    const pressed = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
      if (target.matches("input:not([type=checkbox]), textarea, select")) return;
      if ((event.key === "Enter" && target.matches("a, button, summary")) || (event.key === " " && target.matches("button, summary, input"))) return;
      if (!letters && event.key.length === 1 && event.key !== " ") return;
      if (event.key === "?") return dialog.current?.showModal();
      const named = (keys: string) => latest.current.find((one) => one[0] === keys);
      const key = event.key === " " ? "Space" : event.key;
      const found = named(`${before} ${key}`) ?? named(key);
      before = !found && latest.current.some(([keys]) => keys.startsWith(`${key} `)) ? key : "";
      if (found) {
        event.preventDefault();
        found[2]();
      }
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [letters]);
  const turn = (on: boolean) => {
    setLetters(on);
    localStorage.setItem(OFF, on ? "on" : "off");
  };
  return (
    <>
      <button type="button" class="quiet" onClick={() => dialog.current?.showModal()}><kbd>?</kbd> keys</button>
      <dialog ref={dialog} aria-labelledby="keys-title">
        <h2 id="keys-title">Keys of this screen</h2>
        <dl class="keys">{bindings.map(([keys, means]) => (<div key={keys}><dt><kbd>{keys}</kbd></dt><dd>{means}</dd></div>))}</dl>
        <label>
          <input type="checkbox" checked={letters} onChange={(event) => turn(event.currentTarget.checked)} /> single letters are keys
        </label>
        <form method="dialog"><button>close</button></form>
      </dialog>
    </>
  );
}

// A page from disk may have no storage.
function remembered(): string | null {
  try {
    return localStorage.getItem(OFF);
  } catch {
    return null;
  }
}
