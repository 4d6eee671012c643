"""Checks for answers that label an object as expected and that match the solution; needs no hidden truth.

The hidden data need not be declared for this: what stands under such a name comes true when the task is solved, and not
before; or it states which value belongs where, as the solution's calls do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict, is_list, parsed
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, call, reset, state
from quintain.audit.kernel.registry import relation

from ._leak_places import TEACHES
from ._leak_reading import unique
from ._leak_secrets import folded, label, spelled

_NAMED = re.compile(
    r"^_[a-z]|(?:^|_)(?:expect\w*|correct|answers?|truth|reference|verdict|tests?|checks?|asserts?)(?:_|$)"
)
"""Names of what is known beforehand; "target" and "key" are names of data, too."""
_READS = 40
"""Reads of one task."""


@relation
def labelled(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if a labelled object at "read" is not yet true in the world and is true after the solution."""
    record, solved = records[:2]
    seen, world = record.at("read"), record.at("state").value
    if seen.is_error:
        return False
    after, calls = solved.at("state").value, [op for op in solved.ops if op.mark == "write"]
    found = [item for path, item in _named(parsed(seen.value)) if path == evidence.data]
    return any(_tells(item, world, after=after, calls=calls) for item in found)


def _tells(expected: dict[str, Any], world: Any, *, after: Any, calls: Sequence[Op]) -> bool:
    if not expected or _holds(world, expected):
        return False
    return _holds(after, expected) or _pairs(expected, calls)


def _named(value: Any, path: str = "", *, is_named: bool = False) -> Iterator[tuple[str, dict[str, Any]]]:
    """Objects under such a name, each with its keys from the top."""
    if is_list(value):
        for item in value:
            yield from _named(item, path, is_named=is_named)
    if not is_dict(value):
        return
    if is_named:
        yield path, value
    for key, element in value.items():
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(key)).lower()
        here = is_named or label(str(key)) == "strong" or bool(_NAMED.search(name))
        yield from _named(element, f"{path}.{key}".strip("."), is_named=here)


def _holds(world: Any, expected: dict[str, Any]) -> bool:
    """True if some object of the world has all of these fields."""
    if is_list(world):
        return any(_holds(item, expected) for item in world)
    if not is_dict(world):
        return False
    is_here = all(key in world and world[key] == item for key, item in expected.items())
    return is_here or any(_holds(item, expected) for item in world.values())


def _pairs(expected: dict[str, Any], calls: Sequence[Op]) -> bool:
    """True if the object maps one argument to another, for at least two and half of the solution's writes."""
    flat = {key: item for key, item in expected.items() if not (is_dict(item) or is_list(item))}
    pairs = {(folded(spelled(key)), folded(spelled(item))) for key, item in flat.items()}
    right = 0
    for op in calls:
        given = [folded(spelled(argument)) for argument in op.value.values() if isinstance(argument, str | int | float)]
        right += any((text, other_task) in pairs for text in given for other_task in given if text != other_task)
    return right >= 2 and right >= len(calls) / 2


def labels(ctx: AuditContext, task: str) -> Iterator[Finding | None]:
    """Yields findings for labelled objects that readers show before any action."""
    oracle, writers = ctx.oracle(task) or (), set(ctx.discovery.writers)
    writes = [op for op in oracle if op.do == "call" and op.name in writers]
    if not writes or "state" not in ctx.offers:
        return
    # Readers are asked for what the solution's writes are given under the same names.
    readers = [tool for tool in ctx.about.tools if tool.name not in writers and tool.required]
    given = [(tool, {name: op.value.get(name) for name in tool.required}) for tool in readers for op in writes]
    about = [call(tool.name, arguments) for tool, arguments in given if None not in arguments.values()]
    ops = unique([*about, *(known.op for known in ctx.discovery.reads())])[:_READS]
    solved = Probe((reset(task), *(op.marked("write" if op in writes else "") for op in oracle), state()))
    looks = [op.marked(f"read {place}") for place, op in enumerate(ops)]
    first, last = ctx.play_all([Probe((reset(task), state(), *looks)), solved])
    ctx.count_comparisons(len(ops))
    for look in looks:
        seen = first.at(look.mark)
        for path, expected in _named(parsed(seen.value)) if not seen.is_error else ():
            if _tells(expected, first.at("state").value, after=last.at("state").value, calls=writes):
                yield ctx.finding(
                    f"{look.name} tells beforehand, as {path}, what the solution brings about",
                    Probe((reset(task), state(), look.marked("read"))), solved, relation=f"{__name__}:labelled",
                    marks=("state", "read"), data=path, minimise=0,
                    expected="the world as it is, and nothing of what it is to become",
                    observed=spelled(seen.value)[:600], teaches=TEACHES,
                )  # fmt: skip
                return
