"""The program as a user meets it, and environments to try it on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

DESK = '''
"""A desk that adds numbers. What goes wrong is up to the task."""

import asyncio
import pathlib

import msgspec

import quintain as qn


class Row(msgspec.Struct):
    total: int
    notes: list[str] = []


class Desk(qn.State):
    sums: qn.Table[Row]
    where: str = ""

    @qn.tool
    def add(self, name: str, number: int) -> str:
        """Add a number to a sum.

        Args:
            name: Of the sum.
            number: What to add.
        """
        if name not in self.sums:
            raise qn.ToolError(f"there is no sum {name!r}")
        row = self.sums[name]
        row.total += number
        row.notes.append(f"+{number}")
        self.sums[name] = row
        self.where = name
        self.clock.advance(60)
        return f"{name} is {row.total}"

    @qn.tool
    def explode(self) -> str:
        """Break the world."""
        raise RuntimeError("the desk caught fire")

    @qn.tool
    async def gate(self) -> str:
        """Wait until somebody puts a file called "go" into the current folder."""
        while not pathlib.Path("go").exists():
            await asyncio.sleep(0.01)
        return "open"

    @qn.tool
    def mood(self) -> str:
        """Say something that depends on the order of a set."""
        return " ".join({f"word{n}" for n in range(30)})


def task(n, split):
    add = ("add", {"name": "a", "number": n})
    calls = {
        "fire": (("explode", {}),),
        "wait": (("gate", {}), add) if n == 5 else (add,),
        "mood": (("mood", {}), add),
    }
    return qn.Task(
        id=f"add-{n}",
        prompt=f"Add {n} to a.",
        start=Desk(sums=qn.Table(Row, {"a": Row(0), "b": Row(7)})),
        truth=n,
        solution=calls.get(split, (add,)),
        tags={"family": "even" if n % 2 == 0 else "odd"},
    )


@qn.reward
def added(outcome):
    total = outcome.state.sums["a"].total
    return qn.Score(float(total == outcome.task.truth), f"a is {total}, should be {outcome.task.truth}")


@qn.reward(weight=0.0)
def kept(outcome):
    return float(outcome.state.sums["b"].total == 7)


env = qn.Environment(
    "desk",
    tasks=lambda split: qn.Tasks(12, lambda n: task(n + 1, split)),
    harness=qn.ToolLoop(system="Add [up]."),
    verifier=qn.Verifier(added, kept),
    state=Desk,
    config=qn.Config(max_turns=6),
    splits=("train", "test", "fire", "wait", "mood"),
)
'''


def command(*arguments: object) -> list[str]:
    """The program on arguments, in a process of its own."""
    return [sys.executable, "-m", "quintain", *map(str, arguments)]


def quintain(*arguments: object, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the program to its end."""
    return subprocess.run(
        command(*arguments), cwd=cwd, env=os.environ | env, capture_output=True, text=True, timeout=120, check=False
    )


def enable_ctrl_c() -> None:
    """Lets a started process be ended by Ctrl-C, which shells have background processes ignore."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def started(*arguments: object, cwd: Path) -> subprocess.Popen[str]:
    """Start the program, with Ctrl-C enabled also if a background shell runs the tests with SIGINT ignored."""
    return subprocess.Popen(
        command(*arguments),
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=enable_ctrl_c,  # noqa: PLW1509  # it calls one function that takes no lock
    )


def wait_for(count: int, process: subprocess.Popen[str], folder: Path) -> None:
    """Return when a running program has so many episodes on disk."""
    file = folder / "traces.jsonl"
    limit = time.monotonic() + 60
    while not file.exists() or file.read_bytes().count(b"\n") < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < limit, "the episodes never came"
        time.sleep(0.01)


def tasks_in(folder: Path) -> Counter[str]:
    """Counts the traces of each task in a run folder."""
    lines = (folder / "traces.jsonl").read_text().splitlines()
    return Counter(json.loads(line)["trace"]["task"] for line in lines)


def document(text: str) -> Any:
    """The one JSON document that a text is."""
    return json.loads(text)
