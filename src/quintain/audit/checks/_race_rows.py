"""Checks valid calls of all tools about every row of the world, in random order.

Most crashes of an environment need no odd input. They wait in a row without a phone, in a list that has become empty,
in the second call of its kind; a few hundred right calls one after the other, each about another row, come upon them.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict, is_list
from quintain.audit.facts.generate import fits
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, Probe, ask, call, reset
from quintain.audit.kernel.registry import probe_function
from quintain.audit.kernel.relations import breakage

from ._race_contents import broken_afterwards
from ._race_fuzz import is_plain, is_right
from ._same_scripts import seems_to_read
from ._same_splits import read
from ._same_walks import form, kinds

HERE = f"{__name__}:"
TASKS, CALLS, EACH, MOST = 2, 240, 30, 4
"""Tasks; calls in each; of one parameter; findings."""
SCALARS = 6000
SCORED = 40
"""Calls after which the score is asked for."""


class Breakage(msgspec.Struct, frozen=True):
    """The calls up to the one that broke."""

    ops: tuple[Op, ...]
    how: str
    where: str


@probe_function
def toured(player: Player, on: str, value: Any) -> Any:
    """Make right calls about all rows of a task's world; each place where one broke, once.

    Args:
        player: Makes the session.
        on: The session.
        value: {"task", "tools": each with arguments that are known to work, "readers": their names, "seed"}.
    """
    tools: list[tuple[ToolSpec, dict[str, Any]]] = msgspec.convert(
        value["tools"], list[tuple[ToolSpec, dict[str, Any]]]
    )
    first = player.do(reset(value["task"], on=on))
    known: dict[str, dict[Any, None]] = defaultdict(dict)
    worlds = [first.value, player.do(Op("state", on)).value]
    worlds += [read(player.do(call(tool.name, base, on=on)).value) for tool, base in tools]
    for scalar in scalars(worlds, [SCALARS]):
        known[form(scalar)].setdefault(scalar)
    player.do(reset(value["task"], on=on))
    rng = random.Random(value["seed"])  # noqa: S311 (draws of calls, no secrets)
    drawn = [op for tool, base in tools for op in _about(tool, base, known, rng=rng)]
    rng.shuffle(drawn)
    # First what only reads: rows that are gone later are there now.
    looks = [op for op in drawn if op.name in set(value["readers"])][: CALLS // 2]
    drawn = [*looks, *drawn]
    ops: list[Op] = []
    found: dict[str, Breakage] = {}
    for number, op in enumerate(drawn[:CALLS], 1):
        for step in (op, Op("score")) if number % SCORED == 0 else (op,):
            ops.append(step)
            seen = player.do(step.moved(on))
            if seen.how == "crashed" and seen.where not in found:
                found[seen.where] = Breakage(tuple(ops), breakage(seen), seen.where)
    return msgspec.to_builtins(list(found.values()))


def scalars(value: Any, left: list[int]) -> Iterator[Any]:
    """Texts and whole numbers, as many as are left, and the keys of dicts of rows."""
    if left[0] <= 0:
        return
    if is_dict(value):
        for key, item in value.items():
            if is_dict(item):
                yield key
            yield from scalars(item, left)
    elif is_list(value):
        for element in value:
            yield from scalars(element, left)
    elif isinstance(value, str | int) and not isinstance(value, bool) and 0 < len(str(value)) < 200:
        left[0] -= 1
        yield value


def _about(
    tool: ToolSpec, base: dict[str, Any], known: dict[str, dict[Any, None]], *, rng: random.Random
) -> Iterator[Op]:
    """Calls of a tool about other rows: one argument at a time, and all at once."""
    values: dict[str, list[Any]] = {}
    for name, schema in tool.properties.items():
        if not is_dict(schema):
            continue
        listed = list(schema.get("enum") or ())
        like = [item for item in known.get(form(base[name]), ()) if fits(item, schema)] if name in base else []
        values[name] = rng.sample(listed or like, min(EACH, len(listed or like)))
    tried = [{**base, name: item} for name, some in values.items() for item in some]
    free = {name: some for name, some in values.items() if some}
    tried += [{**base, **{name: rng.choice(some) for name, some in free.items()}} for _ in range(EACH if free else 1)]
    for arguments in tried:
        if is_right(tool, arguments) and is_plain(arguments):
            yield call(tool.name, arguments)


@check("x.every_row", "races", needs=("tools", "call", "tasks"), value=37)
def every_row(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that valid calls about any row, in any order, get an answer, and so does the score."""
    tools = [(tool, dict(known[0].op.value)) for tool in ctx.about.tools if (known := ctx.discovery.of(tool.name))]
    if not tools:
        raise NotChecked("no call is known to work")
    readers = [tool.name for tool, _ in tools if seems_to_read(ctx, tool.name)]
    asked: list[dict[str, Any]] = [
        {"task": task, "tools": msgspec.to_builtins(tools), "seed": ctx.seed, "readers": readers}
        for task in kinds(ctx, TASKS)
    ]
    probes = [Probe((reset(item["task"], on="warm"), ask(f"{HERE}toured", item, mark="toured"))) for item in asked]
    reported: set[str] = set()
    for item, record in zip(asked, ctx.play_all(probes), strict=True):
        ctx.count_comparisons(CALLS)
        for broke in msgspec.convert(record.at("toured").value or [], list[Breakage]):
            if broke.where not in reported and len(reported) < MOST:
                reported.add(broke.where)
                yield _broken(ctx, item["task"], broke)


def _broken(ctx: AuditContext, task: str, broke: Breakage) -> Finding | None:
    for before in ((), broke.ops[:-1]):
        finding = broken_afterwards(
            ctx, "right calls" if before else "a right call", (reset(task), *before, broke.ops[-1].marked("last")),
            marks=("last", "last"), how=broke.how, where=broke.where, minimise=60 if before else 0,
            teaches="nothing: the episode is lost without a mistake",
        )  # fmt: skip
        if finding is not None:
            return finding
    return None
