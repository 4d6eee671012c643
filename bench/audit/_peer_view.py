"""Session of a subject as text with a fixed list of actions, shared by the adapters to other checkers.

The adapter adds nothing to a subject and hides nothing: a call that the subject refuses is an observation, as an agent
would read it; any other exception goes through to the caller.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

from quintain.audit.facts.generate import Values, valid
from quintain.audit.kernel.adapter import SubjectAdapter, how_raised, plain, verdict
from quintain.audit.kernel.loader import LoadedSubject
from quintain.audit.kernel.probe import Op, answer, call, masked

TASKS = 8
"""Number of tasks of a subject that are shown, evenly spread over its list."""
MOST = 100
"""Largest number of actions in one task."""


class CannotLook(Exception):
    """The tool cannot be fed this subject."""


class ToolFinding(NamedTuple):
    """One failure or warning of a tool."""

    key: str
    """The same for the same complaint about two subjects."""
    text: str


Look = Callable[[LoadedSubject], list[ToolFinding]]


class Outside:
    """A subject whose methods run in a thread when an event loop runs in this one: our own environments refuse it."""

    def __init__(self, opened: LoadedSubject) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._subject = self._run(opened.factory)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._subject, name)
        return partial(self._run, found) if callable(found) else found

    def _run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return function(*arguments)
        return self._thread.submit(function, *arguments).result()


class View:
    """Session of a subject."""

    def __init__(self, opened: LoadedSubject) -> None:
        self.adapter = SubjectAdapter(Outside(opened) if opened.kind == "environment" else opened.factory())
        self._volatile = tuple(getattr(self.adapter.subject, "volatile", ()))
        self.parts: dict[str, Any] = {}
        self._closed = False

    @property
    def tasks(self) -> list[str]:
        names = list(self.adapter.tasks)
        return [names[place * len(names) // TASKS] for place in range(TASKS)] if len(names) > TASKS else names

    def reset(self, task: str, seed: int) -> str:
        return self._text(self.adapter.subject.reset(self.adapter.task(task), seed))

    def act(self, op: Op) -> str:
        """Returns the text that the agent reads after a call or a final answer."""
        subject = self.adapter.subject
        try:
            return self._text(subject.answer(op.value) if op.do == "answer" else subject.call(op.name, dict(op.value)))
        except Exception as error:
            if how_raised(error) != "refused":
                raise
            return f"error: {error}"

    def score(self) -> float | None:
        """The score as it stands, with its components in `parts`."""
        found = verdict(self.adapter.subject.score()) or {"score": None}
        self.parts = {name: value for name, value in plain(found)[0].items() if name != "score"}
        return found["score"]

    def number(self) -> float:
        """Returns the score, or NaN without a verdict."""
        found = self.score()
        return math.nan if found is None else float(found)

    def close(self) -> None:
        if "close" in self.adapter.offers and not self._closed:
            self.adapter.subject.close()
        self._closed = True

    def _text(self, value: Any) -> str:
        return json.dumps(masked(plain(value)[0], self._volatile))


def view(opened: LoadedSubject) -> View:
    """A session.

    Raises:
        CannotLook: The subject has no score that can be asked for.
    """
    found = View(opened)
    if "score" not in found.adapter.offers:
        raise CannotLook("it has no score without a model")
    if not found.tasks:
        raise CannotLook("it has no tasks")
    return found


def solution(seen: View, task: str) -> list[Op]:
    """Returns the oracle's ops; empty without an oracle."""
    return list(seen.adapter.oracle(task) or ())[:MOST]


def deeds(seen: View, task: str) -> list[Op]:
    """Returns possible actions in a task: the oracle's ops, then each tool with valid arguments."""
    rng, found = random.Random(0), solution(seen, task)  # noqa: S311 (the same each time)
    for tool in seen.adapter.tools():
        found.extend(call(tool.name, valid(tool, Values(), rng)) for _ in range(2))
    if "answer" in seen.adapter.offers:
        found.extend((answer(""), answer("0")))
    if not found:
        raise CannotLook("there is nothing to do in it: no tools, no oracle and no answer")
    return found[:MOST]
