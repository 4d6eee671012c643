"""Budget of a context: what a strategy sees, how a context is built, and how it is made to fit.

A context is a *head* (system prompt and task), texts that the harness wrote (summaries and the index of cited
results), and *rounds*: a reply, its results, and what was said to the agent after it. Every way to build one keeps the
invariant that each known id which a kept claim cites stands in the context, on a result or in the index.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

import msgspec

from quintain.state import State
from quintain.trace import Message

from .sources import CITATION, CLIPPED, Sources, full_text, head_id

Count = Callable[[str], int]
"""Number of tokens of a text."""

INDEX = "Results cited in this context (recall returns the full text):"
MESSAGE_TOKENS = 4
"""Tokens of a message beyond its text: the marks of a chat template."""
SHORT = 8
"""Messages up to which a list is counted anew."""
MESSAGES_MAX = 10_000
"""Messages whose tokens are remembered."""


def quarter(text: str) -> int:
    """Returns characters / 4, rounded up: the usual estimate of tokens for English text."""
    return -(-len(text) // 4)


class Counter:
    """Tokens of texts and messages; a message is counted once, because most stay from turn to turn.

    Args:
        count: Counts the tokens of a text.
    """

    def __init__(self, count: Count) -> None:
        self._count = count
        self._known: dict[int, int] = {}  # By identity.
        self._messages: list[Message] = []  # Those that are known; held, so that no other gets the identity of one.
        self._last: list[Message] = []  # The last long context, and its tokens.
        self._size = 0

    def __call__(self, text: str) -> int:
        """Returns the tokens of a text."""
        return self._count(text)

    def total(self, messages: Iterable[Message]) -> int:
        """Returns the tokens of messages; a context that goes on from the last one costs what is new in it."""
        messages = list(messages)
        known = len(self._last) if messages[: len(self._last)] == self._last else 0
        size = self._size if known else 0
        size += sum(self._known.get(id(one)) or self._counted(one) for one in messages[known:])
        if len(messages) > SHORT:
            self._last, self._size = messages, size
        return size

    def _counted(self, message: Message) -> int:
        if len(self._messages) >= MESSAGES_MAX:
            self._known.clear()
            self._messages.clear()
        tokens = self._known[id(message)] = self._count(full_text(message)) + MESSAGE_TOKENS
        self._messages.append(message)
        return tokens


class View(msgspec.Struct, frozen=True, kw_only=True):
    """Context of the agent before a request, as a strategy sees it.

    Attributes:
        head: System prompt and task; a strategy does not change them.
        body: All after the head.
        sources: All tool results of the episode.
        held: States of the harness's own tools by class name, such as `Notes`.
        count: Counts the tokens of a text, and by `count.total` those of messages.
        budget: Most tokens of the context's messages, None for no limit. Tool schemas come on top.
        ask: Asks the model of a role, without tools; the reply is a turn of the record.
    """

    head: Sequence[Message]
    body: list[Message]
    sources: Sources
    held: Mapping[str, State]
    count: Counter
    budget: int | None
    ask: Callable[[str, str], Awaitable[str]]

    def tokens(self, messages: Iterable[Message]) -> int:
        """Returns the tokens of messages."""
        return self.count.total(messages)

    def size(self, body: Iterable[Message]) -> int:
        """Returns the tokens of the head and a body."""
        return self.tokens(self.head) + self.tokens(body)

    def split(self) -> tuple[list[Message], list[list[Message]]]:
        """Returns the texts of the harness without the index, and the rounds."""
        texts: list[Message] = []
        rounds: list[list[Message]] = []
        for message in self.body:
            if message.role == "assistant":
                rounds.append([message])
            elif rounds:
                rounds[-1].append(message)
            elif not message.text.startswith(INDEX):
                texts.append(message)
        return texts, rounds

    def build(
        self, texts: Sequence[Message], rounds: Sequence[Sequence[Message]], *, bare: bool = False
    ) -> list[Message]:
        """Returns a body of texts and rounds, with an index of the cited results that no round shows.

        Args:
            texts: Texts of the harness.
            rounds: The rounds that are kept.
            bare: True for an index of ids without first lines.
        """
        flat = [message for one in rounds for message in one]
        index = self._index(self.sources.cited([*texts, *flat]) - references(flat), bare=bare)
        return [*texts, *index, *flat]

    def _index(self, missing: set[str], *, bare: bool) -> list[Message]:
        """Returns the index of some results as at most one message."""
        known = self.sources.entries if missing else ()
        lines = [f"[r:{one}]" if bare else self.sources.line(one) for one in known if one in missing]
        return [Message("user", "\n".join((INDEX, *lines)))] if lines else []

    def fit(self, body: list[Message], limit: int | None) -> list[Message] | None:
        """Returns the body within a limit; None if even the newest round does not fit.

        A result that the newest reply cites, and that was dropped before, comes into an index at the end. Beyond the
        limit the body is shortened to three quarters of it, so that the next turns continue its branch. In this order:
        old results become stubs (the strip rule), old rounds are dropped, then texts; then the newest results are
        clipped, which alone must only meet the limit.
        """
        lost = self._lost(body)
        shown = [*body, *self._index(lost, bare=False)] if lost else body
        if limit is None or self.size(shown) <= limit:
            return shown
        low = limit * 3 // 4
        texts, rounds = msgspec.structs.replace(self, body=body).split()
        rounds = self._stripped(rounds, self.size(body) - low)
        body = self.build(texts, rounds)
        while (excess := self.size(body) - low) > 0 and (len(rounds) > 1 or (texts and self.size(body) > limit)):
            if len(rounds) > 1:
                rounds = self._dropped(rounds, excess)
            else:
                texts = texts[1:]
            body = self.build(texts, rounds, bare=True)
        excess = self.size(body) - limit
        for place, message in enumerate(body) if excess > 0 else ():
            body[place] = self._clipped(message, excess)
            excess -= self.tokens([message]) - self.tokens([body[place]])
            if excess <= 0:
                break
        return body if excess <= 0 else None

    def _lost(self, body: list[Message]) -> set[str]:
        """Returns the results that the newest reply cites and the body does not have; newer ones are found first."""
        newest = next((place for place in range(len(body) - 1, -1, -1) if body[place].role == "assistant"), len(body))
        lost = self.sources.cited(body[newest:])
        for message in reversed(body) if lost else ():
            lost -= references([message])
            if not lost:
                break
        return lost

    def _stripped(self, rounds: list[list[Message]], excess: int) -> list[list[Message]]:
        """Returns the rounds with the oldest results as stubs, until the excess is gone; never the newest round."""
        found: list[list[Message]] = []
        for one in rounds[:-1]:
            new = [self.sources.stub(message) for message in one] if excess > 0 else one
            excess -= self.tokens(one) - self.tokens(new) if excess > 0 else 0
            found.append(new)
        return found + rounds[-1:]

    def _dropped(self, rounds: list[list[Message]], excess: int) -> list[list[Message]]:
        """Returns the rounds without the oldest that have `excess` tokens together; the newest stays."""
        first = 0
        while excess > 0 and first < len(rounds) - 1:
            excess -= self.tokens(rounds[first])
            first += 1
        return rounds[first:]

    def _clipped(self, message: Message, excess: int) -> Message:
        """Returns a result shortened by `excess` tokens, as far as it goes."""
        tokens = max(1, self.count(message.text))
        marks = self.count("[r:00000000] " + CLIPPED.format(id="00000000", offset="00000000")) + 1
        left = tokens - excess - marks
        return self.sources.clip(message, len(message.text) * left // tokens)


def references(body: Iterable[Message]) -> set[str]:
    """Returns the ids that stand in a body on a result or in the index."""
    found: set[str] = set()
    for message in body:
        if (shown := head_id(message)) is not None:
            found.add(shown)
        elif message.role == "user" and message.text.startswith(INDEX):
            found.update(CITATION.findall(message.text))
    return found
