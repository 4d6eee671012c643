"""Episodes that the tests of the judges play."""

from __future__ import annotations

import asyncio
from typing import Any

import quintain as qn
from quintain.models import Scripted
from quintain.verifier import Criterion


class Shelf(qn.State):
    """World of a few books."""

    books: dict[str, int] = {}
    notes: list[str] = []

    @qn.tool
    def set(self, book: str, copies: int) -> str:
        """Set the number of copies of a book.

        Args:
            book: Title.
            copies: Number of copies.
        """
        self.books[book] = copies
        return "ok"

    @qn.tool
    def note(self, text: str) -> str:
        """Write a note.

        Args:
            text: The note.
        """
        self.notes.append(text)
        return "ok"


def shelf(*criteria: Criterion[Any], truth: Any = None, prompt: str = "Order.") -> qn.Environment[Shelf]:
    """An environment with one task and these criteria."""
    task = qn.Task(id="one", prompt=prompt, start=Shelf(books={"emma": 1, "ulysses": 2}), truth=truth)
    return qn.Environment(
        "shelf", tasks=lambda _: [task], harness=qn.ToolLoop(), verifier=qn.Verifier(*criteria), state=Shelf
    )


def play(env: qn.Environment[Shelf], *calls: tuple[str, dict[str, Any]], said: str = "Done.") -> qn.Trace:
    """The trace of an agent that makes these calls, and then says something."""
    task = env.tasks("test")[0]
    return asyncio.run(qn.rollout(env, task, Scripted.calls(calls, said))).trace
