"""Search of all that an agent can read: reading tools called with all known values, repeatedly.

The search starts from the prompt only: values of the solution are used only once they have been read.
"""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Iterator
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict, is_list
from quintain.audit.facts.generate import Values
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, call, reset
from quintain.audit.kernel.registry import probe_function

from ._unsolv_runs import leaves, plain, text_of

SEARCH = "quintain.audit.checks._unsolv_search:search"
_CALLS = 400
_SECONDS = 1.2
_ROUNDS = 5
_EACH = 60
"""Calls of one tool in one round."""
_ID = re.compile(r"[\w.+:/#-]*\d[\w.+:/#@-]*|[\w.+-]+@[\w.-]+")
_NAME = re.compile(r"[^\W\d_][\w'\u2019-]*(?:\s+[^\W\d_][\w'\u2019-]*)?")
_WORDS = ("", "a", "e", "o", "1")
"""Search words used when no better ones are known."""


@probe_function
def search(player: Player, on: str, value: Any) -> Any:
    """In the child: whether a text can be read anywhere, and how well the tools answered.

    Value: {"task", "wanted": the text, "tools": the looking tools, "asks": calls of the solution that may be tried as
    soon as all in them that has a digit is known}. Gives {"found", "calls", "wholly": the search went far, "silent":
    looking tools that never answered, so that what they would tell is unknown}.
    """
    tools = [msgspec.convert(item, ToolSpec) for item in value["tools"]]
    hunt = _Hunt(player, on, plain(str(value["wanted"])))
    first = player.do(reset(value["task"], on=on))
    hunt.read(text_of(first), first.value, "prompt")
    hunt.read(value.get("prompt", ""), None, "prompt")
    asks = [msgspec.convert(item, Op) for item in value["asks"]]
    for _ in range(_ROUNDS):
        before = hunt.size
        for op in asks:
            if hunt.knows(op):
                hunt.do(op)
        for tool in tools:
            tried = proposals(tool, hunt.values, ids=list(hunt.ids), names=list(hunt.names))
            fresh = (item for item in itertools.islice(tried, 20 * _EACH) if hunt.is_new(tool.name, item))
            for arguments in itertools.islice(fresh, _EACH):
                hunt.do(call(tool.name, arguments))
        if hunt.found or hunt.spent or hunt.size == before:
            break
    wholly = not hunt.spent or hunt.count >= 200
    silent = sorted({tool.name for tool in tools} - hunt.answered)
    return {"found": hunt.found, "calls": hunt.count, "silent": silent, "wholly": wholly}


class _Hunt:
    def __init__(self, player: Player, on: str, wanted: str) -> None:
        self.player, self.on, self.wanted = player, on, wanted
        self.values = Values()
        self.ids: dict[str, None] = {}
        self.names: dict[str, None] = {}
        self.text: set[str] = set()
        self.done: set[str] = set()
        self.answered: set[str] = set()
        self.found = False
        self.count = 0
        self.until = time.monotonic() + _SECONDS

    @property
    def spent(self) -> bool:
        return self.count >= _CALLS or time.monotonic() > self.until

    @property
    def size(self) -> int:
        """Returns the length of the known text."""
        return len(self.text)

    def knows(self, op: Op) -> bool:
        """True if the agent can make this call: it has read all parts that cannot be guessed."""
        parts = [plain(part) for _, leaf in leaves(op.value) for part in _ID.findall(str(leaf))]
        return all(part in self.text for part in parts if part)

    def is_new(self, name: str, arguments: dict[str, Any]) -> bool:
        return _key(name, arguments) not in self.done

    def do(self, op: Op) -> None:
        key = _key(op.name, op.value)
        if key in self.done or self.spent or self.found:
            return
        self.done.add(key)
        self.count += 1
        seen = self.player.do(op.moved(self.on))
        if not seen.is_error:
            self.answered.add(op.name)
        self.read(text_of(seen), seen.value, op.name)

    def read(self, text: str, value: Any, name: str) -> None:
        text = text[:200_000]
        if self.wanted and self.wanted in plain(text):
            self.found = True
        for candidate in _ID.findall(text):
            bare = candidate.strip(".,:;/#-")
            if bare and len(bare) <= 60 and len(self.ids) < 400:
                self.ids.setdefault(bare, None)
            self.text.add(plain(bare))
        for phrase in _NAME.findall(text) if len(self.names) < 60 else ():
            if phrase[:1].isupper():
                self.names.setdefault(phrase, None)
        if is_dict(value) or is_list(value):
            self.values.take(value, name)
        elif isinstance(value, str) and value[:1] in "{[":
            try:
                self.values.take(json.loads(value), name)
            except ValueError:
                return  # It only looks like JSON; its words have been read.


def _key(name: str, arguments: Any) -> str:
    return f"{name} {json.dumps(arguments, sort_keys=True, default=repr)}"


def proposals(tool: ToolSpec, values: Values, *, ids: list[str], names: list[str]) -> Iterator[dict[str, Any]]:
    """Arguments that an agent would try: what is required alone, the widest range, and all that is known."""
    known = {
        name: list(_choices(name, schema, values, ids=ids, names=names)) for name, schema in tool.properties.items()
    }
    required = {name: known[name] for name in tool.required if name in known}
    if any(not choices for choices in required.values()):
        return
    widest = {
        name: schema["maximum"]
        for name, schema in tool.properties.items()
        if name not in required and is_dict(schema) and schema.get("type") == "integer" and "maximum" in schema
        and not re.search(r"offset|page|skip|start", name)
    }  # fmt: skip
    base = {name: choices[0] for name, choices in required.items()}
    for name, choices in known.items():
        if name not in required:
            yield from (base | {name: choice} for choice in choices[:6])
    for combination in _spread(list(required.values())):
        base = dict(zip(required, combination, strict=True))
        yield base
        if widest:
            yield base | widest


def _spread(choices: list[list[Any]]) -> Iterator[tuple[Any, ...]]:
    """Combinations, the choices of each parameter in turn before all of their products."""
    first = tuple(choice[0] for choice in choices)
    yield first
    for place, several in enumerate(choices):
        for item in several[1:]:
            yield (*first[:place], item, *first[place + 1 :])
    if len(choices) > 1:
        yield from itertools.product(*choices)


def _choices(name: str, schema: Any, values: Values, *, ids: list[str], names: list[str]) -> Iterator[Any]:
    if not is_dict(schema):
        return
    if "enum" in schema or "const" in schema:
        yield from schema.get("enum", [schema.get("const")])
        return
    kind: Any = schema.get("type", "string")
    kind = kind[0] if is_list(kind) else kind
    seen = values.of(name)
    if kind == "boolean":
        yield from (True, False)
    elif kind in ("integer", "number"):
        low, high = schema.get("minimum", 0), schema.get("maximum", 10)
        yield from dict.fromkeys([low, min(high, low + 1), *[item for item in seen if isinstance(item, int)][:6], high])
    elif kind == "string":
        texts = [item for item in seen if isinstance(item, str)]
        yield from dict.fromkeys([*texts[:40], *ids[:120], *_WORDS, *names[:20], f"What is the {name}?", _ASKED])


_ASKED = "Which order, account, ticket, number, id, name, email, address, date, time or amount is it?"
"""Question for tools that ask a person."""
