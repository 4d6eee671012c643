"""Checks that full marks can be reached: the best reward for any submitted number is 1.

No solution need be known. Numbers that can be read, their sums, differences, products and ratios are submitted until
one is paid. From there the search climbs to both ends of the best-paid range and to the middle between them.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict, is_number
from quintain.audit.facts.generate import Values, fits
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, Probe, Record, ask, call, number, reset, score
from quintain.audit.kernel.registry import probe_function, relation

from ._clip_states import EPSILON, counts, parts_of
from ._same_scripts import seems_to_read
from ._unsolv_runs import leaves, text_of
from ._unsolv_search import proposals

HERE = f"{__name__}:"
PROMISED = re.compile(
    r"\b(?:full|maximum|max|top|perfect) (?:marks?|score|credits?|points|rewards?|pay)\b", re.IGNORECASE
)
"""Words of a task that states how much can be earned."""
TASKS, AGREE = 4, 2
"""Tasks in which numbers are handed in, and those of which the top must be the same."""
LEAST, WIDE = 0.5, 0.5
"""Lowest top reward that may be meant as full marks; largest width of the neighborhood of a number, as a share of it.
"""
_READ, _MAX_NUMBERS = 60, 10
"""Calls that read, and numbers of them that are worked with."""
_GROUP = 5
"""Plays that show the top of one task."""
_SECONDS = 2.5
_CLIMBS, _HALVES = 5, 40
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


class Top(msgspec.Struct, frozen=True):
    """The most that a number is paid in a task.

    Attributes:
        best: The number in the middle, then those near both ends.
        lower: One that is paid less, and more than nothing.
        reads: Calls that have read something for it.
        parts: Components of the score there.
    """

    paid: float
    best: tuple[float, float, float]
    lower: float
    reads: tuple[Op, ...]
    parts: dict[str, float]


@relation
def falls_short(records: Sequence[Record], evidence: Evidence) -> bool:
    """Each task speaks of full marks; a number, and those around it, are paid one amount below 1, read for or not.

    Records, of each task: the number alone, after all that was read, near its lower and its upper end, another number.
    """
    top = float(evidence.data)
    for start in range(0, len(records), _GROUP):
        *near, lower = [number(record.at("score")) for record in records[start : start + _GROUP]]
        prompt, parts = text_of(records[start].at("prompt")), parts_of(records[start].at("score"))
        if not _are_had(parts) or lower is None or not 0 < lower < top - EPSILON or not PROMISED.search(prompt):
            return False
        if any(amount is None or abs(amount - top) > EPSILON for amount in near) or top >= 1 - EPSILON:
            return False
    return True


@check("x.full_marks_are_paid", "reward_clipping", needs=("tools", "call", "tasks"), value=72, reads_prose=True)
def full_marks(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that some number is paid 1 where a task that takes a number promises full marks."""
    asked = [(tool, name) for tool in ctx.about.tools if (name := _taken(tool)) and not seems_to_read(ctx, tool.name)]
    tasks = ctx.sample_tasks(TASKS)
    starts = ctx.play_all([Probe((reset(task, mark="prompt"),)) for task in tasks]) if asked else []
    prompts = {task: text_of(record.at("prompt")) for task, record in zip(tasks, starts, strict=False)}
    promised = [task for task, words in prompts.items() if PROMISED.search(words)]
    if not promised:
        raise NotChecked("no task that takes a number tells of full marks")
    for tool, name in asked:
        found = _tops(ctx, tool, name, tasks=promised)
        ctx.count_comparisons(len(found))
        most = max((top.paid for top in found.values()), default=1.0)
        agree = {task: top for task, top in found.items() if abs(top.paid - most) <= EPSILON and _are_had(top.parts)}
        if LEAST <= most < 1 - EPSILON and len(agree) >= min(AGREE, len(ctx.tasks)):
            yield _short(ctx, tool, name, tops=dict(list(agree.items())[:AGREE]), most=most)


def _taken(tool: ToolSpec) -> str:
    """The only parameter of a tool, where it is a number; empty for another tool."""
    if len(tool.properties) != 1:
        return ""
    [(name, schema)] = tool.properties.items()
    is_plain = is_dict(schema) and schema.get("type") in ("number", "integer") and not schema.get("enum")
    return name if is_plain else ""


def _are_had(parts: dict[str, float]) -> bool:
    """True if each component that counts is above 0."""
    return all(value > EPSILON for name, value in parts.items() if counts(name))


def _tops(ctx: AuditContext, tool: ToolSpec, name: str, *, tasks: Sequence[str]) -> dict[str, Top]:
    readers = [spec for spec in ctx.about.tools if seems_to_read(ctx, spec.name)]
    value = {"tool": tool, "name": name, "readers": readers}
    probes = [Probe((ask(f"{HERE}climb", msgspec.to_builtins(value | {"task": task}), mark="top"),)) for task in tasks]
    seen = [record.at("top") for record in ctx.play_all(probes)]
    return {task: msgspec.convert(result.value, Top) for task, result in zip(tasks, seen, strict=True) if result.value}


def _short(ctx: AuditContext, tool: ToolSpec, name: str, *, tops: dict[str, Top], most: float) -> Finding | None:
    probes: list[Probe] = []
    for task, top in tops.items():
        middle, *ends, lower = (
            call(tool.name, {name: _number(tool, name, amount)}) for amount in (*top.best, top.lower)
        )
        begin = reset(task, mark="prompt")
        probes.append(Probe((begin, middle, score())))
        probes.append(Probe((begin, *top.reads, middle, score())))
        probes += [Probe((begin, op, score())) for op in (*ends, lower)]
    return ctx.finding(
        f"no number is paid more than {most:g}, where the task tells of full marks",
        *probes,
        relation=f"{HERE}falls_short",
        marks=("prompt", "score"),
        data=most,
        minimise=0,
        part="V",
        expected=1.0,
        observed={task: {"score": top.paid, **top.parts} for task, top in tops.items()},
        teaches="that full reward is out of reach",
    )


def _number(tool: ToolSpec, name: str, value: float) -> float | int:
    return round(value) if tool.properties[name].get("type") == "integer" else value


# --- inside the subject's process ---


@probe_function
def climb(player: Player, on: str, value: Any) -> Any:
    """The most that is paid for a number in a task; None where none is, or its neighbourhood has no ends."""
    tool = msgspec.convert(value["tool"], ToolSpec)
    readers = msgspec.convert(value["readers"], list[ToolSpec])
    hill = _Hill(player, on, value["task"], tool=tool, name=value["name"])
    reads, stated_numbers = _read(player, on, value["task"], readers=readers)
    at = max(_candidates(stated_numbers), key=hill.pay, default=0.0)
    if hill.pay(at) <= EPSILON:
        return None
    for _ in range(_CLIMBS):
        low, high = hill.end(at, -1), hill.end(at, 1)
        if low is None or high is None:
            return None
        middle = (low + high) / 2
        rounded = [round(middle, digits) for digits in range(-1, 7)]
        tried = [middle, *(amount for amount in rounded if low < amount < high)]
        best = max([*hill.paid], key=hill.pay)
        if hill.pay(best) <= hill.pay(at) + EPSILON and all(
            hill.pay(amount) <= hill.pay(at) + EPSILON for amount in tried
        ):
            return hill.top(middle, (low, high), reads)
        at = max((*tried, best), key=hill.pay)
    return None


class _Hill:
    """Rewards of numbers, each submitted as the first action of an episode."""

    def __init__(self, player: Player, on: str, task: str, *, tool: ToolSpec, name: str) -> None:
        self.player, self.on, self.task, self.tool, self.name = player, on, task, tool, name
        self.paid: dict[float, float] = {}
        self.until = time.monotonic() + _SECONDS

    def pay(self, value: float) -> float:
        """Returns the reward of a number, or 0 if it is refused or the time is used up."""
        given = {self.name: _number(self.tool, self.name, value)}
        if value not in self.paid and time.monotonic() < self.until and fits(given, self.tool.parameters):
            self.player.do(reset(self.task, on=self.on))
            self.player.do(call(self.tool.name, given, on=self.on))
            self.paid[value] = number(self.player.do(score(on=self.on))) or 0.0
        return self.paid.get(value, 0.0)

    def end(self, inside: float, sign: int) -> float | None:
        """The last number on one side that is paid like this one; None for no end near it."""
        wanted, step = self.pay(inside), 1e-6 * max(abs(inside), 1.0)
        while abs(self.pay(inside + sign * step) - wanted) <= EPSILON:
            step *= 2
            if step > WIDE * max(abs(inside), 1.0):
                return None
        near, far = inside, inside + sign * step
        for _ in range(_HALVES):
            half = (near + far) / 2
            near, far = (half, far) if abs(self.pay(half) - wanted) <= EPSILON else (near, half)
        return near

    def top(self, middle: float, ends: tuple[float, float], reads: Sequence[Op]) -> Any:
        """The top at this number; None where nothing less is paid for another."""
        paid = self.pay(middle)
        lower = [amount for amount, there in self.paid.items() if EPSILON < there < paid - EPSILON]
        if not lower or time.monotonic() > self.until:
            return None
        self.player.do(reset(self.task, on=self.on))
        given = {self.name: _number(self.tool, self.name, middle)}
        self.player.do(call(self.tool.name, given, on=self.on))
        parts = parts_of(self.player.do(score(on=self.on)))
        inner = [middle + 0.9 * (end - middle) for end in ends]
        return msgspec.to_builtins(Top(paid, (middle, inner[0], inner[1]), lower[0], tuple(reads), parts))


def _read(player: Player, on: str, task: str, *, readers: Sequence[ToolSpec]) -> tuple[list[Op], list[float]]:
    """Returns calls that look up what the task names, and the numbers in the task and in their results."""
    first = text_of(player.do(reset(task, on=on)))
    values, names = Values(), re.findall(r"[^\W\d_][\w'-]*(?: [A-Z][\w'-]*)?", first)
    found: list[tuple[bool, Op, list[float]]] = []
    for tool in readers:
        for arguments in itertools.islice(proposals(tool, values, ids=[], names=names), _READ // len(readers) + 1):
            op = call(tool.name, arguments)
            seen = player.do(op.moved(on))
            if not seen.is_error:
                values.take(seen.value, tool.name)
                numbers = [float(leaf) for _, leaf in leaves(seen.value) if is_number(leaf)]
                is_named = any(str(argument).casefold() in first.casefold() for argument in arguments.values())
                found.append((is_named, op, numbers))
    near = sorted((item for item in found if item[2]), key=lambda item: not item[0])
    stated_numbers = [*map(float, _NUMBER.findall(first)), *(amount for _, _, numbers in near for amount in numbers)]
    return [op for is_named, op, _ in near if is_named][:8], list(dict.fromkeys(stated_numbers))[:_MAX_NUMBERS]


def _candidates(stated_numbers: Sequence[float]) -> Iterator[float]:
    """The numbers, and what two of them make together."""
    yield from stated_numbers
    for first, second in itertools.combinations(stated_numbers, 2):
        yield from (first + second, first - second, second - first, first * second)
        yield from (left / right for left, right in ((first, second), (second, first)) if right)
