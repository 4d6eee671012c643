"""The rows of a world that are of one kind with those that a solution names: what else could be meant, or be harmed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.context import AuditContext
from quintain.audit.data import is_dict, is_list, tabled
from quintain.audit.player import Player
from quintain.audit.probe import Probe, ask, reset, state

from ._reward_acts import scalars
from ._reward_runs import Solved

_MAX_ROWS = 40
"""Rows of one kind that are told of."""

_MAX_KIND_VALUES = 6
"""Values of a field that tells kinds of rows apart, and rows of each."""
_PARTS = 12
"""Rows of another table that belong to one."""
_SAKES = 8
"""Rows that share a text, of which more say nothing of each other."""
_WORD = re.compile(r"[^\W\d_]{3}")
"""What a text has that is a name, and neither a moment nor a number."""


class RelatedRow(msgspec.Struct, frozen=True):
    """A row of the same table.

    Attributes:
        name: What names it, as the solution names its own.
        row: All that stands in it.
    """

    name: Any
    row: Any


class Family(msgspec.Struct, frozen=True):
    """A row that a solution names, and others of its table.

    Attributes:
        table: Where they stand.
        own: The row itself.
        namesakes: Those of the others of which a text, such as the name of a person, is one of few rows, and of this.
    """

    table: str
    own: Any
    others: tuple[RelatedRow, ...]
    namesakes: tuple[RelatedRow, ...] = ()


def families(ctx: AuditContext, one: Solved) -> dict[str, Family]:
    """By each name in a solution that names a row of the start state: its row, and the others of the table."""
    found = {str(value): value for op in one.ops for value in scalars(op.value) if _may_name(value)}
    asked = {"task": one.task, "names": list(found.values())}
    seen = ctx.play_probe(Probe((ask("quintain.audit.checks._reward_related:look", asked),))).at("ask")
    return msgspec.convert(seen.value, dict[str, Family]) if seen.fine else {}


def _may_name(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and 2 <= len(str(value)) <= 60


def look(player: Player, on: str, value: Any) -> Any:
    """In the child: the families of these names in the start state of a task."""
    player.do(reset(value["task"], on=on))
    tables = list(_tables(player.do(state(on=on)).value))
    found = {str(name): family for name in value["names"] if (family := _family(name, tables)) is not None}
    return msgspec.to_builtins(found)


def _tables(world: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every table: its name, and its rows by key; keys of a list of rows are their places, with a space before."""
    world = tabled(world)
    for name, table in (world if is_dict(world) else {}).items():
        rows: dict[str, Any] = {f" {place}": row for place, row in enumerate(table)} if is_list(table) else table
        if is_dict(rows) and len(rows) > 1 and all(is_dict(row) for row in rows.values()):
            yield str(name), rows


def _family(name: Any, tables: Sequence[tuple[str, dict[str, Any]]]) -> Family | None:
    for table, rows in tables:
        if name in rows:
            others = [RelatedRow(key, row) for key, row in rows.items() if key != name]
            return _whole(table, RelatedRow(name, rows[name]), others, tables=tables)
        fields = [key for row in rows.values() for key, value in row.items() if value == name]
        column = next((key for key in fields if len({repr(row.get(key)) for row in rows.values()}) == len(rows)), None)
        if column is not None:
            own = next(row for row in rows.values() if row.get(column) == name)
            others = [RelatedRow(row[column], row) for row in rows.values() if row is not own]
            return _whole(table, RelatedRow(name, own), others, tables=tables)
    return None


def _whole(
    table: str, own: RelatedRow, others: Sequence[RelatedRow], *, tables: Sequence[tuple[str, dict[str, Any]]]
) -> Family:
    """A family, each row together with those of other tables that belong to it."""
    sakes = _namesakes(own, others)
    chosen = [own, *_spread(own, others), *sakes]
    wanted = {one.name for one in chosen}
    parts: dict[Any, dict[str, list[Any]]] = {name: {} for name in wanted}
    for other, rows in tables:
        if other == table:
            continue
        for row in rows.values():
            for name in {value for value in row.values() if isinstance(value, str | int)} & wanted:
                kept = parts[name].setdefault(other, [])
                if len(kept) < _PARTS:
                    kept.append(row)
    whole = [RelatedRow(one.name, {**parts[one.name], **one.row}) for one in chosen]
    near = len(whole) - len(sakes)
    return Family(table, whole[0].row, tuple(whole[1:near]), tuple(whole[near:]))


def _namesakes(own: RelatedRow, others: Sequence[RelatedRow]) -> list[RelatedRow]:
    """Rows with a text of the own one, however it is written, that only few rows have."""
    found: dict[str, RelatedRow] = {}
    for field, mine in own.row.items():
        if not isinstance(mine, str) or not _WORD.search(mine):
            continue
        alike = [one for one in others if _plain(one.row.get(field)) == _plain(mine)]
        if len(alike) <= min(_SAKES, len(others) // 4):
            found.update((repr(one.name), one) for one in alike)
    return list(found.values())[:_SAKES]


def _plain(value: Any) -> str:
    return " ".join(value.split()).casefold() if isinstance(value, str) else ""


def _spread(own: RelatedRow, others: Sequence[RelatedRow]) -> list[RelatedRow]:
    """Rows from all over the table, and some for each other value of a field that has few."""
    step = max(1, len(others) // _MAX_ROWS)
    chosen = list(others[::step][:_MAX_ROWS])
    for field, mine in own.row.items():
        values = {value for one in others if isinstance(value := one.row.get(field), str)}
        for value in sorted(values) if isinstance(mine, str) and len(values) <= _MAX_KIND_VALUES else ():
            chosen += [one for one in others if one.row.get(field) == value and one not in chosen][:_MAX_KIND_VALUES]
    return chosen


_NOTHING_ELSE = re.compile(
    r"(nothing|anything|no other|any other|everything) (else|\w+)?|leave .{0,40}\b(alone|untouched|unchanged|as)\b"
    r"|\bleave (all|any|every|the|each)? ?(others?|rest|remaining)\b"
    r"|\bonly\b.{0,30}\bchange|and no more\b",
    re.IGNORECASE,
)


def forbids_more(told: str) -> bool:
    """Whether a prompt says that nothing but what is asked for may change."""
    return bool(_NOTHING_ELSE.search(told))
