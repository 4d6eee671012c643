"""Desks whose calls may be cut off, files that a tool may reach, and users who may be silent."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import _cut_grader  # type: ignore[import-not-found]  # lies beside it where it is audited

import quintain as qn
from quintain.harness import Model, Request, Session
from quintain.harnesses import Dialogue
from quintain.trace import Message, Reply

BUSY: list[int] = []
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
FILE = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
    "required": ["path", "content"],
}
CODE = {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}


class Notes:
    """A sound desk of notes."""

    def tasks(self) -> list[str]:
        return ["one", "two"]

    def tools(self) -> list[dict[str, Any]]:
        return [
            {"name": "add", "description": "Add a note.", "parameters": TEXT},
            {"name": "read", "description": "All."},
        ]

    def reset(self, task: str, seed: int) -> str:
        self.notes: list[str] = []
        return f"Add the note {task!r}."

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        if name == "read":
            return {"notes": list(self.notes)}
        return self.add(str(arguments.get("text", "")))

    def add(self, text: str) -> Any:
        noted = text.strip()
        self.notes.append(noted)
        return {"added": noted}

    def oracle(self, task: str) -> list[Any]:
        return [["add", {"text": task}]]

    def state(self) -> dict[str, Any]:
        return {"notes": list(self.notes)}

    def score(self) -> float:
        return float(self.notes in (["one"], ["two"]))


class Busy(Notes):
    """Marks itself as busy while it works, and stays so when it is cut off."""

    def add(self, text: str) -> Any:
        if BUSY:
            return {"error": "busy"}
        BUSY.append(1)
        added = super().add(text)
        BUSY.pop()
        return added


class Files:
    """Files on disk, in a folder that a path may leave."""

    def tasks(self) -> list[str]:
        return ["write"]

    def tools(self) -> list[dict[str, Any]]:
        return [{"name": "write_file", "description": "Write a file.", "parameters": FILE}]

    def reset(self, task: str, seed: int) -> str:
        self.folder = Path(tempfile.mkdtemp())
        return "Write hello into out.txt."

    def path(self, given: str) -> Path:
        return self.folder / given

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        path = self.path(str(arguments["path"]))
        path.write_text(str(arguments["content"]))
        return {"written": path.name}

    def oracle(self, task: str) -> list[Any]:
        return [["write_file", {"path": "out.txt", "content": "hello"}]]

    def score(self) -> float:
        graded: float = _cut_grader.grade(self.folder)
        return graded

    def close(self) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)


class Fenced(Files):
    """The same, and no path leaves the folder."""

    def path(self, given: str) -> Path:
        path = (self.folder / given).resolve()
        if not path.is_relative_to(self.folder.resolve()):
            raise PermissionError(f"{given} is outside")
        return path


class Runner(Files):
    """Runs code in its own process."""

    def tools(self) -> list[dict[str, Any]]:
        return [{"name": "run_python", "description": "Run code.", "parameters": CODE}]

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        exec(str(arguments["code"]), {})
        return {"ran": True}


class Pair(qn.State):
    """Nothing in it."""


class Deaf(Dialogue, frozen=True, kw_only=True):
    """Puts words into the mouth of a user who does not answer."""

    async def play(self, session: Session, model: Model) -> None:
        async def patient(request: Request) -> Reply:
            try:
                return await model(request)
            except TimeoutError:
                return Reply(Message("assistant", "Yes, that is fine."))

        await super().play(session, patient)


@qn.reward
def spoken(outcome: qn.EpisodeView[Pair]) -> float:
    """Returns full marks for any speech."""
    return 1.0


def _talk(harness: qn.Harness) -> qn.Environment[Pair]:
    def tasks(split: str) -> list[qn.Task[Pair]]:
        return [qn.Task[Pair](id=f"{split}-0", prompt="", start=Pair, roles={"user": "You say hello."})]

    return qn.Environment("talk", tasks=tasks, harness=harness, verifier=qn.Verifier(spoken), state=Pair)


def talking() -> qn.Environment[Pair]:
    return _talk(Dialogue(system="You are polite."))


def deaf() -> qn.Environment[Pair]:
    return _talk(Deaf(system="You are polite."))
