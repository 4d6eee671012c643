"""Strategies that keep a long context small: `KeepRecent`, `Rebuild`, `Summarise` and `Fold`."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from quintain.errors import DefinitionError
from quintain.trace import Message

from .budget import View
from .folding import broken_conditions
from .sources import full_text, is_stub

SUMMARY = "Summary of earlier turns:"
PROMPT = """Summarise the turns below for yourself, so that you can continue the task without them.

- Write one claim a line, only what is certain, and cite its results at the end of the line, such as [r:1f0c22ab].
- Copy numbers, names and quotes exactly as the cited results have them.
- Say what was done, what was found, and what is left to do.

Task and turns:

{text}"""
RETRY = """{prompt}

Your last summary was refused:
{reasons}

It was:
{summary}

Write it again without these errors."""

Summariser = str | Callable[[str], "str | Awaitable[str]"]
"""Role of the model that writes summaries, or a function of the prompt that is pure, so that a replay agrees."""


class Strategy(Protocol):
    """Way to shorten a context; it keeps nothing between two calls."""

    async def arrange(self, view: View) -> list[Message]:
        """Returns the body of the context for the next request; the same list if nothing changes."""
        ...


class KeepRecent(msgspec.Struct, frozen=True):
    """Strategy that shows the newest results in full, and of older ones the id and the first line.

    Attributes:
        n: Results that stay, 0 and up; those of the newest turn always do.
        batch: Results that are shortened together, 1 and up. Each change begins a branch, which is a training row of
            its own, so a batch of 1 makes a row of nearly every turn.
    """

    n: int
    batch: int = 1

    def __post_init__(self) -> None:
        if self.n < 0 or self.batch < 1:
            raise DefinitionError(f"KeepRecent needs n >= 0 and batch >= 1, got n={self.n}, batch={self.batch}")

    async def arrange(self, view: View) -> list[Message]:
        """Returns the body with stubs for old results."""
        full: list[int] = []
        newest = 0  # Place of the newest reply.
        for place in range(len(view.body) - 1, -1, -1):
            message = view.body[place]
            newest = newest or (place if message.role == "assistant" else 0)
            if message.role == "tool":
                if is_stub(message):
                    break
                full.append(place)
        if len(full) < self.n + self.batch:
            return view.body
        body = list(view.body)
        for place in full[self.n :]:
            if place < newest:
                body[place] = view.sources.stub(body[place])
        return body


class Rebuild(msgspec.Struct, frozen=True):
    """Strategy that writes the prompt anew for each turn, from what the harness may see (Markovian reconstruction).

    Attributes:
        prompt: Function from the view to the text after the task; pure, so that a replay agrees.
        keep: Newest turns that stay as they are after the text, 0 and up.
    """

    prompt: Callable[[View], str]
    keep: int = 1

    async def arrange(self, view: View) -> list[Message]:
        """Returns the text of `prompt` and the newest turns."""
        _, rounds = view.split()
        return view.build([Message("user", self.prompt(view))], rounds[len(rounds) - min(self.keep, len(rounds)) :])


class Summarise(msgspec.Struct, frozen=True, kw_only=True):
    """Strategy that replaces all earlier turns and summaries by one summary that preserves references.

    The summary must meet four conditions, see `broken_conditions`. If it breaks one, the model tries once more; after
    that, old results are reduced to their ids and first lines instead.

    Attributes:
        by: Role of the model that writes, or a pure function from the prompt to the summary.
        at: Share of the budget at which it summarises, in (0, 1].
        target: Most share of the budget afterwards, in (0, `at`].
        keep: Newest turns that stay as they are, 1 and up; fewer where they would take half of the target.
        prompt: Prompt, with {text}.
    """

    by: Summariser = "summariser"
    at: float = 0.8
    target: float = 0.5
    keep: int = 1
    prompt: str = PROMPT

    def __post_init__(self) -> None:
        if not 0 < self.target <= self.at <= 1 or self.keep < 1 or "{text}" not in self.prompt:
            given = f"at={self.at}, target={self.target}, keep={self.keep}, prompt={self.prompt[:60]!r}"
            raise DefinitionError(f"needs 0 < target <= at <= 1, keep >= 1 and {{text}} in the prompt, got {given}")

    async def arrange(self, view: View) -> list[Message]:
        """Returns the body with a summary if it has reached its share of the budget.

        Raises:
            DefinitionError: The harness has no budget.
        """
        if view.budget is None:
            raise DefinitionError(f"{type(self).__name__} needs a budget: pass AgentLoop(..., budget=TOKENS)")
        target = int(view.budget * self.target)
        if view.size(view.body) <= view.budget * self.at:
            return view.body
        texts, rounds = view.split()
        kept = min(1, len(rounds))
        while kept < min(self.keep, len(rounds)) and view.tokens(_flat(rounds[-kept - 1 :])) <= target // 2:
            kept += 1
        old = len(rounds) - kept
        first = self._first(view, texts, target)
        least = view.size(view.build(texts[:first], rounds[old:], bare=True))
        goal = min(view.budget, max(target, least + target // 4))  # One large result must not prevent a summary.
        if old > 0 and least < goal:
            body = await self._summarised(view, texts, rounds, first=first, old=old, goal=goal)
            if body is not None:
                return body
        floor = view.size(view.build(texts, rounds[-1:], bare=True))
        return view.fit(view.body, min(view.budget, max(target, floor))) or view.body

    def _first(self, view: View, texts: list[Message], target: int) -> int:
        """Returns the number of earlier summaries that stay."""
        return 0

    async def _summarised(
        self, view: View, texts: list[Message], rounds: list[list[Message]], *, first: int, old: int, goal: int
    ) -> list[Message] | None:
        """Returns a body whose turns before `old` and texts from `first` are a summary; None if two are refused."""
        shown = (f"{one.role}: {full_text(one)}" for one in (*view.head, *texts[first:], *_flat(rounds[:old])))
        prompt = self.prompt.replace("{text}", "\n\n".join(shown))
        wording = prompt
        for _ in range(2):
            summary = await self._written(view, wording)
            message = Message("user", f"{SUMMARY}\n{summary}")
            body = view.build([*texts[:first], message], rounds[old:])
            reasons = list(broken_conditions(view, summary, body=body, target=goal))
            if not reasons:
                return body
            wording = RETRY.format(prompt=prompt, reasons="\n".join(f"- {one}" for one in reasons), summary=summary)
        return None

    async def _written(self, view: View, prompt: str) -> str:
        if isinstance(self.by, str):
            return await view.ask(self.by, prompt)
        summary = self.by(prompt)
        return await summary if inspect.isawaitable(summary) else summary


class Fold(Summarise, frozen=True, kw_only=True):
    """Strategy that replaces the oldest turns by a summary, and leaves earlier summaries and newer turns in place.

    Earlier summaries are folded again when they fill half of the target.
    """

    keep: int = 4

    def _first(self, view: View, texts: list[Message], target: int) -> int:
        return len(texts) if view.tokens(texts) <= target // 2 else 0


def _flat(rounds: list[list[Message]]) -> list[Message]:
    return [message for one in rounds for message in one]
