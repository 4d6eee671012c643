"""Sources: the tool results of an episode under content-addressed ids, and the tool that returns them in full."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated

import msgspec

from quintain import codec
from quintain.errors import ToolError
from quintain.state import State
from quintain.tools import tool
from quintain.trace import Content, Message, Text, ToolCall, plain

CITATION = re.compile(r"\[r:([0-9a-f]{8})\]")
"""Citation of a tool result, such as `[r:1f0c22ab]`."""
LINE_MAX = 120
"""Characters of a result's first line that a stub or the index shows."""
_CUT = "\n[cut: recall"
CLIPPED = _CUT + '("{id}", offset={offset}) returns the rest]'
"""End of a result that is shown in part."""


class Source(msgspec.Struct, frozen=True):
    """Tool result with its id.

    Attributes:
        content: What the tool returned.
        calls: Name and arguments of each call that returned it.
    """

    content: Content
    calls: tuple[str, ...]

    @property
    def text(self) -> str:
        """Calls and content as text, against which a summary's numbers and quotes are checked."""
        return "\n".join((*self.calls, plain(self.content)))


class Sources(State):
    """Tool results of an episode by id, in the order of their first occurrence.

    A harness fills it from the observations, so a replay fills it alike.
    """

    entries: dict[str, Source] = {}

    @tool(writes=())
    def recall(self, id: str, offset: Annotated[int, msgspec.Meta(ge=0)] = 0) -> Content:
        """Return the full text of an earlier tool result.

        Args:
            id: The id as cited: the eight digits of "[r:1f0c22ab]".
            offset: Characters to skip at the beginning.
        """
        found = self.entries.get(id.removeprefix("[").removeprefix("r:").removesuffix("]"))
        if found is None:
            raise ToolError(f"no result has the id {id!r}; ids are the eight digits in [r:...]")
        return plain(found.content)[offset:] if offset else found.content

    def add(self, call: ToolCall, content: Content) -> str:
        """Stores a result; returns its id, which is equal for equal contents."""
        data = content.encode() if isinstance(content, str) else codec.dumps(content)
        key, about = codec.digest(data)[:8], f"{call.name} {call.arguments}"
        while (known := self.entries.get(key)) is not None and known.content != content:
            key = codec.digest(key.encode() + data)[:8]  # Another content has this id, by chance.
        calls = () if known is None else known.calls
        if about not in calls:
            self.entries[key] = Source(content, (*calls, about))
        return key

    def cited(self, messages: Iterable[Message]) -> set[str]:
        """Returns the known ids that the claims of messages cite: of replies and of texts that the harness wrote."""
        found: set[str] = set()
        for message in messages:
            if message.role != "tool":
                found.update(CITATION.findall(full_text(message)))
        return found & self.entries.keys()

    def line(self, id: str) -> str:
        """Returns the id with the first line of its result."""
        return f"[r:{id}] {plain(self.entries[id].content).strip().partition(chr(10))[0][:LINE_MAX]}".rstrip()

    def stub(self, message: Message) -> Message:
        """Returns the message of a result without all but its id and first line, where that is shorter."""
        shown = head_id(message)
        if shown is None or is_stub(message):
            return message
        short = f'{self.line(shown)}{_CUT}("{shown}") returns all {len(plain(self.entries[shown].content))} characters]'
        return message if len(short) >= len(message.text) else msgspec.structs.replace(message, content=short)

    def clip(self, message: Message, limit: int) -> Message:
        """Returns the message of a result with at most `limit` characters of the result, where that is shorter."""
        shown = head_id(message)
        if shown is None:
            return message
        rest = plain(self.entries[shown].content)[: max(limit, 0)]
        short = f"[r:{shown}] {rest}" + CLIPPED.format(id=shown, offset=len(rest))
        return message if len(short) >= len(message.text) else msgspec.structs.replace(message, content=short)


def full_text(message: Message) -> str:
    """Returns the text of a message with its calls, as it counts towards a budget."""
    if not message.calls:
        return message.text
    return "\n".join((message.text, *(f"{call.name} {call.arguments}" for call in message.calls)))


def labelled(id: str, call: ToolCall, content: Content) -> Message:
    """Returns the message of a result, which begins with its id."""
    label = f"[r:{id}] "
    return Message("tool", label + content if isinstance(content, str) else (Text(label), *content), call_id=call.id)


def head_id(message: Message) -> str | None:
    """Returns the id of the result that a message shows in full or in part; None if it shows none."""
    found = CITATION.match(message.text) if message.role == "tool" else None
    return found[1] if found else None


def is_stub(message: Message) -> bool:
    """Returns True if a result was shortened to its first line."""
    content = message.content
    return isinstance(content, str) and content.endswith("characters]") and _CUT in content
