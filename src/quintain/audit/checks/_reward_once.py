"""Checks the number of tries: where a tool or a prompt allows one or three, a further one must not count.

No solution need be known. An answer that is refused, or does not change the verdict, ends the search at once; an
accepted one is followed by others, numbers that can be read and their combinations, names, choices, and a ladder of
numbers of any size, until the verdict rises.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict, is_list, is_number, parsed
from quintain.audit.facts.generate import fits
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, Probe, Record, ask, call, number, reset, score
from quintain.audit.kernel.registry import probe_function, relation

from ._reward_acts import submits
from ._same_scripts import seems_to_read

HERE = f"{__name__}:"
TASKS, TRIES, READS, PAIRS = 3, 600, 60, 12
_NUMBERS = {"one": 1, "single": 1, "two": 2, "three": 3, "four": 4, "five": 5}
_NUMBER = rf"(?:a )?({'|'.join(_NUMBERS)}|\d)"
_TRIES = r"(?:tr(?:y|ies)|attempts?|guess(?:es)?|chances?|shots?|submissions?)"
_BEFORE = r"(?:you (?:only )?(?:have|get)|there (?:is|are)|only|at most|exactly|no more than|just|up to|limited to)"
_ALLOWED = (
    re.compile(rf"\b{_BEFORE} (?:only |just |exactly |at most )?{_NUMBER} {_TRIES}\b", re.IGNORECASE),
    re.compile(rf"\b{_NUMBER} {_TRIES} (?:only|each|in all|per (?:question|task|episode|game))\b", re.IGNORECASE),
)
_ONCE = re.compile(
    r"\b((?:answers?|submit\w*|submissions?|guess\w*|hand\w* in)\b[^.\n]{0,40}\bonly (?:be \w+ )?once"
    rf"|only (?:submit|answer|guess|counts?) once|no (?:second|further|other) {_TRIES}"
    rf"|the first (?:{_TRIES}|one|answer) (?:that is given )?(?:counts|is (?:counted|graded|scored|taken)))\b",
    re.IGNORECASE,
)


def tries_told(text: str) -> int:
    """Returns the number of answers that a text allows, or 0 if it gives none."""
    for pattern in _ALLOWED:
        if found := pattern.search(text):
            word = found[1].lower()
            return _NUMBERS.get(word) or int(word)
    return 1 if _ONCE.search(text) else 0


# --- the relation ---


@relation
def counts_still(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if more answers than allowed are accepted and the last one raises the verdict."""
    record = records[0]
    said = [seen for op, seen in zip(record.ops, record.seen, strict=True) if op.do == "call"]
    before, after = number(record.at("before")), number(record.at("score"))
    if before is None or after is None or any(seen.is_error for seen in said):
        return False
    return (
        len(said) > evidence.data
        and len({repr(op.value) for op in record.ops if op.do == "call"}) > 1
        and (after > before + 1e-9)
    )


# --- the check ---


@check("x.tries_are_counted", "reward_hack", needs=("tools", "call", "tasks", "score"), value=87, reads_prose=True)
def tries_are_counted(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that an answer beyond the allowed number is refused or does not count."""
    looked = False
    for tool in ctx.about.tools:
        if len(tool.properties) != 1 or not submits(call(tool.name, dict.fromkeys(tool.properties, ""))):
            continue
        for task in ctx.sample_tasks(TASKS):
            tries = tries_told(tool.description) or tries_told(_prompt(ctx, task))
            if not tries:
                continue
            looked = True
            ctx.count_comparisons()
            finding = _counted(ctx, tool, task, tries=tries)
            if finding is not None:
                yield finding
                break
    if not looked:
        raise NotChecked("nothing says how often an answer may be given")


def _prompt(ctx: AuditContext, task: str) -> str:
    further = (Op("prompt", name=task, mark="prompt"),) if "prompt" in ctx.offers else ()
    record = ctx.play(reset(task, mark="first"), *further)
    return str(record.at("prompt" if further else "first").value)


def _counted(ctx: AuditContext, tool: ToolSpec, task: str, *, tries: int) -> Finding | None:
    key = next(iter(tool.properties))
    right = [op.value[key] for op in ctx.oracle(task) or () if op.name == tool.name and key in op.value]
    asked = {
        "task": task,
        "tool": msgspec.to_builtins(tool),
        "allowed": tries,
        "reads": [msgspec.to_builtins(spec) for spec in ctx.about.tools if seems_to_read(ctx, spec.name)],
        "right": right,
    }
    seen = ctx.play(ask(f"{HERE}guess", asked)).at("ask")
    if not seen.fine or not seen.value:
        return None
    calls = [call(tool.name, {key: value}) for value in seen.value]
    probe = Probe((reset(task), *calls[:-1], score(mark="before"), calls[-1], score()))
    if not counts_still([ctx.play_probe(probe)], Evidence("", data=tries)):
        return None
    return ctx.finding(
        f"{tool.name} counts more answers than the {tries} that there are said to be",
        probe,
        relation=f"{HERE}counts_still",
        marks=("before", "score"),
        data=tries,
        minimise=0,
        part="H",
        expected=f"a refusal of answer {tries + 1}, or the verdict of those before it",
        observed=seen.value,
        teaches="to guess until it is right",
    )


# --- in the child ---


@probe_function
def guess(player: Player, on: str, value: Any) -> Any:
    """Returns, in the child, the allowed number of unpaid answers and a further paid one, or None.

    Value: {"task", "tool", "allowed": number of allowed answers, "reads": tools that look, "right": answers of the
    solution, if it is known}.
    """
    tool = msgspec.convert(value["tool"], ToolSpec)
    key, schema = next(iter(tool.properties.items()))
    player.do(reset(value["task"], on=on))
    known = list(_read(player, on, [msgspec.convert(item, ToolSpec) for item in value["reads"]]))
    player.do(reset(value["task"], on=on))
    tried = list(itertools.islice(_guesses(schema, known), TRIES))
    wrong = [item for item in tried if item not in value["right"]]
    tried = [*wrong[: value["allowed"]], *value["right"], *wrong[value["allowed"] :]]
    paid: float | None = None
    for place, item in enumerate(tried):
        if player.do(call(tool.name, {key: item}, on=on)).is_error:
            return None
        now = number(player.do(score(on=on)))
        if now is None:
            return None
        if place >= value["allowed"] and paid is not None and now > paid + 1e-9:
            return [*tried[: value["allowed"]], item]
        paid = now if place < value["allowed"] else paid
    return None


def _read(player: Player, on: str, tools: Sequence[ToolSpec]) -> Iterator[Any]:
    """All scalars that tools show which need no argument, or only one of a list of choices."""
    ops: list[Op] = []
    for tool in tools:
        choices = [[(name, choice) for choice in _choices(tool.properties.get(name))] for name in tool.required]
        ops += [call(tool.name, dict(item), on=on) for item in itertools.islice(itertools.product(*choices), READS)]
    for op in ops[:READS]:
        seen = player.do(op)
        yield from _scalars(parsed(seen.value)) if not seen.is_error else ()


def _choices(schema: Any) -> list[Any]:
    if not is_dict(schema):
        return []
    return list(schema.get("enum") or ([True, False] if schema.get("type") == "boolean" else []))


def _scalars(value: Any) -> Iterator[Any]:
    if is_dict(value) or is_list(value):
        for item in value.values() if is_dict(value) else value:
            yield from _scalars(item)
    elif isinstance(value, str) or is_number(value):
        yield value


def _guesses(schema: Any, known: Sequence[Any]) -> Iterator[Any]:
    """Answers that fit a schema, those that can be read first."""
    kind = schema.get("type", "string") if is_dict(schema) else "string"
    choices = _choices(schema)
    found: Iterator[Any] = iter(choices)
    if not choices and kind in ("number", "integer"):
        found = _numbers([item for item in known if is_number(item)], is_whole=kind == "integer")
    elif not choices:
        words = ["yes", "no", "true", "false", "A", "B", "C", "D", *(str(item) for item in known)]
        found = itertools.chain(words, map(str, _numbers([item for item in known if is_number(item)], is_whole=False)))
    reported: set[str] = set()
    for item in found:
        if fits(item, schema) and str(item) not in reported:
            reported.add(str(item))
            yield item


def _numbers(known: Sequence[float], *, is_whole: bool) -> Iterator[float]:
    """Yields small numbers, known numbers and their combinations, and a ladder of five percent a step."""
    yield from range(-3, 21)
    yield from known
    for first, second in itertools.permutations(known[:PAIRS], 2):
        yield from (first + second, first - second, first * second)
        if second and not is_whole:
            yield first / second
    for power in range(63, 410):
        size = 1.05**power
        yield from (round(size), -round(size)) if is_whole else (size, -size)
