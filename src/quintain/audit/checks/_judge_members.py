"""Checks judges with several criteria or references, with a model that is satisfied with some of them."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict, is_list, is_number
from quintain.audit.kernel.finding import Evidence
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, Record, ask
from quintain.audit.kernel.registry import probe_function, relation

from ._judge_claims import EPSILON, MARK, grade
from ._judge_replies import PAIRS
from ._leak_secrets import leaves

VERDICTS = f"{__name__}:verdicts"
MAX_MEMBERS = 8
"""Things beyond which a group is left alone: each is a few probes."""
_CRITERIA = re.compile(r"rubric|criteri|guideline|checklist|requirement|assertion")
_REFERENCES = re.compile(r"references|accepted|alternatives")
_WEIGHTS = re.compile(r"weight|points|worth|share")
_TEXTS = ("criterion", "text", "description", "question", "requirement", "title", "content")
_WORDS = (("yes", "no"), ("true", "false"), ("PASS", "FAIL"), ("met", "unmet"), ("1", "0"))


class Members(msgspec.Struct, frozen=True):
    """Things of one kind.

    Attributes:
        kind: "criteria" or "references".
        texts: As they stand in what is hidden.
        names: What they are called; their numbers, counted from 1, where they have no names.
        is_weighted: Whether some are worth more than others.
    """

    kind: str
    texts: tuple[str, ...]
    names: tuple[str, ...]
    is_weighted: bool = False


class VerdictTable(msgspec.Struct, frozen=True):
    """A format of one verdict per member.

    Attributes:
        form: "each": one reply for one question; "listed": one after the other; "keyed": with their names.
        style: "json", "lines" or "objects".
        key: "number", "name" or "text" for keyed ones.
    """

    form: str
    good: str
    bad: str
    style: str = ""
    key: str = ""


def _tables() -> Iterator[VerdictTable]:
    for good, bad in PAIRS:
        yield VerdictTable("each", good, bad)
    for good, bad in _WORDS:
        for style in ("json", "lines", "commas"):
            yield VerdictTable("listed", good, bad, style)
        for style in ("json", "lines", "points", "objects"):
            for key in ("number", "name", "text"):
                yield VerdictTable("keyed", good, bad, style, key)


TABLES = tuple(_tables())


def members_of(hidden: Any) -> list[Members]:
    """Groups of two to eight things that a judge may be given one by one."""
    found: list[Members] = []
    amounts = {leaf for path, leaf in leaves(hidden) if path and _WEIGHTS.search(path[-1].lower()) and is_number(leaf)}
    for name, value in _named(hidden):
        lowered = name.lower()
        kind = "criteria" if _CRITERIA.search(lowered) else "references" if _REFERENCES.search(lowered) else ""
        pairs = _texts(value) if kind else []
        texts = tuple(text for _, text in pairs)
        if 2 <= len(texts) <= MAX_MEMBERS and len({*texts}) == len(texts) and min(map(len, texts)) >= 4:
            found.append(Members(kind, texts, tuple(name for name, _ in pairs), len(amounts) > 1))
    return found


def _named(value: Any) -> Iterator[tuple[str, Any]]:
    if is_dict(value):
        for name, item in value.items():
            yield str(name), item
            yield from _named(item)
    elif is_list(value):
        for element in value:
            yield from _named(element)


def _texts(value: Any) -> list[tuple[str, str]]:
    """(name, text) of each thing; none where they are not all texts."""
    if isinstance(value, str):
        lines = [re.sub(r"^\s*(?:[-*•]|\(?\d+[.):])\s*", "", line).strip() for line in value.splitlines()]
        return [(str(place + 1), line) for place, line in enumerate(line for line in lines if line)]
    items = value.items() if is_dict(value) else enumerate(value, 1) if is_list(value) else ()
    found: list[tuple[str, str]] = []
    for name, item in items:
        text = item if isinstance(item, str) else _text_in(item)
        if not text:
            return []
        own = item.get("name") or item.get("id") if is_dict(item) else None
        found.append((str(own or name), text))
    return found


def _text_in(value: Any) -> str:
    if not is_dict(value):
        return ""
    words = [value.get(name) for name in _TEXTS]
    return next((word for word in words if isinstance(word, str) and word), "")


# --- playing ---


@probe_function
def verdicts(player: Player, on: str, value: Any) -> Any:
    """In the child: a judge whose model is content with some members of a group."""
    adapter = player.adapter(on)
    group, table = msgspec.convert(value["group"], Members), msgspec.convert(value["table"], VerdictTable)
    chosen = frozenset(value["chosen"])
    heard: list[str] = []

    def complete(text: str) -> str:
        heard.append(text)
        if table.form != "each":
            return _reply(group, table, chosen, turned=bool(value["turned"]))
        here = {place for place, candidate in enumerate(group.texts) if _holds(text, candidate)}
        return table.good if here and here <= chosen else table.bad

    return {"grade": adapter.subject.judge(adapter.task(value["task"]), MARK, complete), "asked": heard}


def _reply(group: Members, table: VerdictTable, chosen: frozenset[int], *, turned: bool) -> str:
    words = [table.good if place in chosen else table.bad for place in range(len(group.texts))]
    values: list[Any] = [json.loads(word) if word in ("true", "false", "1", "0") else word for word in words]
    if table.form == "listed":
        joined = {"json": json.dumps(values), "lines": "\n".join(words), "commas": ", ".join(words)}
        return joined[table.style]
    keys = {"number": [str(place + 1) for place in range(len(words))], "name": group.names, "text": group.texts}
    rows = list(zip(keys[table.key], words, values, strict=True))
    rows = rows[::-1] if turned else rows
    if table.style == "json":
        return json.dumps({key: value for key, _, value in rows})
    if table.style == "objects":
        named = "criterion" if table.key != "number" else "id"
        return json.dumps([{named: key, "verdict": value, "met": value} for key, _, value in rows])
    return "\n".join(f"{key}{'.' if table.style == 'points' else ':'} {word}" for key, word, _ in rows)


def _holds(text: str, part: str) -> bool:
    return any(candidate in text for candidate in (part, json.dumps(part)[1:-1], html.escape(part)))


def played(
    task: str, group: Members, table: VerdictTable, *, chosen: frozenset[int], turned: bool = False, mark: str = "judge"
) -> Op:
    """Returns a judge op whose model is satisfied with the chosen members; `turned` reverses the verdicts."""
    value = {
        "task": task,
        "group": msgspec.to_builtins(group),
        "table": msgspec.to_builtins(table),
        "chosen": sorted(chosen),
        "turned": turned,
    }
    return ask(VERDICTS, value, mark=mark)


def is_asked(texts: Sequence[str], group: Members, table: VerdictTable) -> bool:
    """True if the judge's questions hold the members: one per question, or all in one."""
    found = [{place for place, candidate in enumerate(group.texts) if _holds(text, candidate)} for text in texts]
    if table.form != "each":
        return any(len(item) == len(group.texts) for item in found)
    return all(len(item) <= 1 for item in found) and len(set[int]().union(*found)) == len(group.texts)


# --- relations: each states the bug ---


@relation
def unlike(records: Sequence[Record], _evidence: Evidence) -> bool:
    """True if the same named verdicts in two orders get two grades."""
    first, second = (grade(record.at("judge")) for record in records)
    return first is not None and second is not None and abs(first - second) > EPSILON


def _rows(records: Sequence[Record], evidence: Evidence) -> tuple[float, float, list[float], list[float]] | None:
    """(content with all, with none, with each alone, with all but each); None where a grade is missing."""
    count = int(evidence.data)
    known = [number for record in records if (number := grade(record.at("judge"))) is not None]
    if len(known) < len(records) or len(records) < 2 + 2 * count:
        return None
    return known[0], known[1], known[2 : 2 + count], known[2 + count : 2 + 2 * count]


@relation
def decides(records: Sequence[Record], evidence: Evidence) -> bool:
    """The grade is the best or the worst by the verdict on one member alone; `data` is how many there are."""
    rows = _rows(records, evidence)
    if rows is None or rows[0] <= rows[1] + EPSILON:
        return False
    best, worst, alone, without = rows
    places = range(len(alone))
    return any(
        all(abs(alone[position] - (best if position == place else worst)) <= EPSILON for position in places)
        and all(abs(without[position] - (worst if position == place else best)) <= EPSILON for position in places)
        for place in places
    )


@relation
def counts_by_place(records: Sequence[Record], evidence: Evidence) -> bool:
    """Each alone, and all but each, are not graded alike, though nothing says that one is worth more."""
    rows = _rows(records, evidence)
    if rows is None:
        return False
    _, _, alone, without = rows
    return max(alone) - min(alone) > EPSILON and max(without) - min(without) > EPSILON
