"""Environments that the tests serve: `quintain serve tests/serve/environments.py:counter`.

* `counter` ends by a tool; `words` ends by an answer without a call, and so does `letters`, which scores any text.
* `gated` starts, and its tools return, only when a test opens their gate: a file in `QUINTAIN_TEST_FOLDER`.
* `rough` has tools that raise, hang and return far too much.

Nothing here waits for a time that a test could guess wrong: what is slow is slow until somebody opens the gate.
"""

from __future__ import annotations

import asyncio
import os
import sysconfig
import time
from pathlib import Path
from typing import Annotated

import msgspec

import quintain as qn

SPLITS = {"train": 5, "validation": 1, "test": 2}


class Gates:
    """Files by which a test sees what has begun, and says what may go on.

    Every entry appends a line to `log`, so that a test can count what was really executed, whatever the wire said.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or Path(os.environ["QUINTAIN_TEST_FOLDER"])

    def enter(self, name: str) -> None:
        with (self.folder / "log").open("a") as log:
            log.write(f"{name}\n")
        (self.folder / f"{name}.entered").touch()

    def is_open(self, name: str) -> bool:
        return (self.folder / f"{name}.open").exists()

    def open(self, name: str) -> None:
        (self.folder / f"{name}.open").touch()

    def close(self, name: str) -> None:
        (self.folder / f"{name}.open").unlink(missing_ok=True)

    def entered(self, name: str) -> int:
        """Returns how often something went in."""
        log = self.folder / "log"
        return log.read_text().splitlines().count(name) if log.exists() else 0

    def await_entry(self, name: str, *, seconds: float = 30.0) -> None:
        """Until something went in.

        Raises:
            AssertionError: It did not within the time.
        """
        limit = time.monotonic() + seconds
        while not self.entered(name):
            assert time.monotonic() < limit, f"nobody went into {name}"
            time.sleep(0.005)

    def wait(self, name: str) -> None:
        self.enter(name)
        while not self.is_open(name):
            time.sleep(0.005)

    async def wait_awaiting(self, name: str) -> None:
        self.enter(name)
        while not self.is_open(name):  # noqa: ASYNC110  # another process opens it
            await asyncio.sleep(0.005)


# --- counter ---


class Counter(qn.State):
    """World with a counter, and with values that a wire may damage."""

    count: int = 0
    given: int | None = None

    @qn.tool
    def add(self, by: Annotated[int, msgspec.Meta(ge=-100, le=100)] = 1) -> str:
        """Count on.

        Args:
            by: How many.
        """
        self.count += by
        return f"The count is {self.count}."

    @qn.tool
    def submit(self, answer: int) -> str:
        """Hand in the count. This ends the episode.

        Args:
            answer: The count.
        """
        self.given = answer
        self.finish("submitted")
        return "Handed in."

    @qn.tool
    def peek(self) -> int:
        """Look at the count."""
        return self.count

    @qn.tool
    def echo(self, text: str) -> str:
        """Say something back.

        Args:
            text: What.
        """
        return text

    @qn.tool
    def repeat(self, text: str, times: int) -> str:
        """Say something many times.

        Args:
            text: What.
            times: How often.
        """
        return text * times

    @qn.tool
    def source(self, module: str) -> str:
        """Read a module of Python's standard library.

        Args:
            module: Its file, such as "argparse.py".
        """
        folder = Path(sysconfig.get_path("stdlib"))
        path = folder / module
        if path.parent != folder or not path.is_file():
            raise qn.ToolError(f"no module {module!r}")
        return path.read_text("utf-8")


@qn.reward
def counted(outcome: qn.EpisodeView[Counter]) -> float:
    return float(outcome.state.given == outcome.task.truth)


def counter_tasks(split: str) -> list[qn.Task[Counter]]:
    return [
        qn.Task(
            id=f"{split}-{number}",
            prompt=f"Count to {number}, then submit it.",
            start=Counter(),
            truth=number,
            solution=(("add", {"by": number}), ("submit", {"answer": number})),
        )
        for number in range(1, SPLITS[split] + 1)
    ]


counter = qn.Environment(
    "counter",
    tasks=counter_tasks,
    harness=qn.ToolLoop("Be exact."),
    verifier=qn.Verifier(counted),
    state=Counter,
    config=qn.Config(max_turns=500),
)

# --- words ---


class Shelf(qn.State):
    """A word to look up."""

    word: str
    looked: bool = False

    @qn.tool
    def look(self) -> str:
        """Read the word on the shelf."""
        self.looked = True
        return self.word


@qn.reward
def said(outcome: qn.EpisodeView[Shelf]) -> float:
    return float(outcome.answer == outcome.state.word)


def word_tasks(split: str) -> list[qn.Task[Shelf]]:
    words = ("ash", "birch", "cedar", "elm", "fir")[: SPLITS[split]]
    return [
        qn.Task(id=word, prompt="Say the word that is on the shelf.", start=Shelf(word=word), answer=word)
        for word in words
    ]


words = qn.Environment("words", tasks=word_tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(said), state=Shelf)

# --- letters ---


@qn.reward
def vowels(outcome: qn.EpisodeView[Shelf]) -> float:
    """Returns the share of vowels in the answer, so that a policy that says anything at all has a score."""
    return sum(letter in "aeiou" for letter in outcome.answer) / max(1, len(outcome.answer))


letters = qn.Environment("letters", tasks=word_tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(vowels), state=Shelf)

# --- gated ---


class Gated(qn.State):
    """Things that last until somebody opens their gate."""

    passed: list[str] = []

    @qn.tool
    def hold(self, gate: str) -> str:
        """Block until the gate is open.

        Args:
            gate: Its name.
        """
        Gates().wait(gate)
        self.passed.append(gate)
        return f"Through {gate}."

    @qn.tool
    async def hold_awaiting(self, gate: str) -> str:
        """Wait, without blocking, until the gate is open.

        Args:
            gate: Its name.
        """
        await Gates().wait_awaiting(gate)
        self.passed.append(gate)
        return f"Through {gate}."

    @qn.tool
    def mark(self, label: str) -> str:
        """Leave a mark, which can be counted.

        Args:
            label: The mark.
        """
        Gates().enter(label)
        self.passed.append(label)
        return f"Marked {len(self.passed)}."

    @qn.tool
    def finish_here(self) -> str:
        """End the episode."""
        self.finish("left")
        return "Left."


def opened() -> Gated:
    Gates().wait("start")
    return Gated()


@qn.reward
def went(outcome: qn.EpisodeView[Gated]) -> float:
    return float(bool(outcome.state.passed))


def gated_tasks(split: str) -> list[qn.Task[Gated]]:
    return [
        qn.Task(id="at once", prompt="Go through the gates.", start=Gated()),
        qn.Task(id="late", prompt="Wait for the gate, then go through it.", start=opened),
    ]


gated = qn.Environment(
    "gated", tasks=gated_tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(went), state=Gated, splits=("train",)
)

# --- rough ---


class Rough(qn.State):
    """Tools that no author should write."""

    touched: int = 0

    @qn.tool
    def touch(self) -> int:
        """Do something harmless."""
        self.touched += 1
        return self.touched

    @qn.tool
    def refuse(self) -> str:
        """Refuse politely."""
        raise qn.ToolError("not today\nand not\r\ntomorrow: never")

    @qn.tool
    def crash(self) -> str:
        """Raise an unexpected error."""
        raise RuntimeError("the world\nfell\r\n\r\napart")

    @qn.tool
    async def hang(self) -> str:
        """Never return."""
        await asyncio.Event().wait()
        return "?"

    @qn.tool
    def flood(self, megabytes: int) -> str:
        """Return far too much.

        Args:
            megabytes: How much.
        """
        return "x" * (megabytes * 1_000_000)

    @qn.tool
    def leave(self) -> str:
        """End the episode."""
        self.finish("left")
        return "Left."


@qn.reward
def strict(outcome: qn.EpisodeView[Rough]) -> float:
    if outcome.state.touched > 2:
        raise RuntimeError("the judge fell over")
    return 1.0


def built(split: str) -> list[qn.Task[Rough]]:
    def broken() -> Rough:
        raise RuntimeError("the world cannot be built")

    return [
        qn.Task(id="plain", prompt="Try what you like.", start=Rough()),
        qn.Task(id="broken", prompt="There is no world.", start=broken),
    ]


rough = qn.Environment(
    "rough",
    tasks=built,
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(strict),
    state=Rough,
    config=qn.Config(tool_timeout_s=0.5, max_turns=20),
    splits=("train",),
)
