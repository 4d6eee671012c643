"""Checks calls that compete for the last unit: each of two works alone, and the second one is refused.

A place in a slot, the last of a stock, a seat: code that counts first and takes later gives it away twice if another
call runs in between. Which calls compete is not declared; so a call that works is made for all the other rows of the
world, until it is refused itself, and then for as few of them as that takes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict
from quintain.audit.facts.discovery import KnownCall
from quintain.audit.facts.generate import fits
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, ask, call, reset
from quintain.audit.kernel.registry import probe_function

from ._data_tables import tables, texts
from ._same_scripts import bare
from ._same_walks import form
from ._same_wide import budget

HERE = f"{__name__}:"
TOOLS, KNOWN = 6, 2
"""Tools that write; calls of each for which others are sought."""
ROWS = 200
"""Other rows that a call is made for."""


class Contest(msgspec.Struct, frozen=True):
    """A call that works, the argument that is given other values, and how many calls an episode may have."""

    task: str
    before: tuple[Op, ...]
    op: Op
    name: str
    schema: dict[str, Any]
    most: int


def pairs(ctx: AuditContext) -> Iterator[tuple[KnownCall, Op]]:
    """Yields pairs of a working call and a call that takes what it needs; whichever comes second is refused."""
    if "state" not in ctx.offers:
        return
    for tool in ctx.about.tools:
        if tool.name in ctx.discovery.writers[:TOOLS]:
            known = {known_call.task: known_call for known_call in ctx.discovery.of(tool.name) if known_call.writes}
            found = (
                pair for known_call in list(known.values())[:KNOWN] for pair in _pairs(ctx, known_call, tool.properties)
            )
            yield from itertools.islice(found, 1)


def _pairs(ctx: AuditContext, known_call: KnownCall, schemas: dict[str, Any]) -> Iterator[tuple[KnownCall, Op]]:
    before = tuple(map(bare, known_call.before))
    for name, value in known_call.op.value.items():
        schema = schemas.get(name)
        if not is_dict(schema) or schema.get("enum") or not isinstance(value, str):
            continue
        sought = Contest(
            known_call.task, before, bare(known_call.op), name, schema, max(4, budget(ctx) - len(before) - 1)
        )
        asked = ask(f"{HERE}rivals", msgspec.to_builtins(sought), mark="rivals")
        found = ctx.play(reset(known_call.task, on="warm"), asked).at("rivals").value
        if found:
            *others, taker = msgspec.convert(found, list[Op])
            yield msgspec.structs.replace(known_call, before=tuple(others)), taker


# --- inside the subject's process ---


@probe_function
def rivals(player: Player, on: str, value: Any) -> Any:
    """The fewest ops after which the call and another, the last, each refuse the other; None if there are none."""
    sought = msgspec.convert(value, Contest)
    other_ops = list(_calls_on_other_rows(player, on, sought))
    if (
        not other_ops
        or _is_refused(player, on, sought, after=())
        or not _is_refused(player, on, sought, after=other_ops)
    ):
        return None
    few, many = 0, len(other_ops)  # After so few it works, after so many it does not.
    while many - few > 1:
        middle = (few + many) // 2
        if _is_refused(player, on, sought, after=other_ops[:middle]):
            many = middle
        else:
            few = middle
    before, other_op = (*sought.before, *other_ops[: many - 1]), other_ops[many - 1]
    turned = msgspec.structs.replace(sought, before=before, op=other_op)
    if not _is_refused(player, on, turned, after=[sought.op]):
        return None
    return msgspec.to_builtins([*before, other_op])


def _calls_on_other_rows(player: Player, on: str, sought: Contest) -> Iterator[Op]:
    """The call for each other row, where it works."""
    _begin(player, on, sought)
    own_value, world = sought.op.value[sought.name], tables(player.do(Op("state", on)).value)
    cells = dict.fromkeys(text for rows in world.values() for row in rows for text in texts([*row.values()]))
    rows = [
        cell for cell in cells if cell != own_value and form(cell) == form(own_value) and fits(cell, sought.schema)
    ][:ROWS]
    for place, row in enumerate(rows):
        if place and place % sought.most == 0:
            _begin(player, on, sought)
        op = call(sought.op.name, {**sought.op.value, sought.name: row})
        if not player.do(op.moved(on)).is_error:
            yield op


def _begin(player: Player, on: str, sought: Contest, *, after: Sequence[Op] = ()) -> None:
    for op in (reset(sought.task), *sought.before, *after):
        player.do(op.moved(on))


def _is_refused(player: Player, on: str, sought: Contest, *, after: Sequence[Op]) -> bool:
    """True if the call is refused after these ops."""
    _begin(player, on, sought, after=after)
    seen = player.do(sought.op.moved(on))
    return seen.is_error and seen.how in ("", "refused")
