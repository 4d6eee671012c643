"""Rows of the same kind as those that a solution names: alternatives, and rows that may be harmed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict, is_list, tabled
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Probe, ask, reset, state
from quintain.audit.kernel.registry import probe_function

from ._reward_acts import scalars
from ._reward_runs import Solution

_MAX_ROWS = 40
"""Largest number of rows of one kind that are reported."""

_MAX_KIND_VALUES = 6
"""Largest number of values of a field that tells kinds of rows apart, and of rows of each."""
_PARTS = 12
"""Rows of another table that belong to one."""
_SAKES = 8
"""Rows that share a text, of which more say nothing of each other."""
_WORD = re.compile(r"[^\W\d_]{3}")
"""Part of a text that is a name, and neither a time nor a number."""


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
    related: tuple[RelatedRow, ...]
    namesakes: tuple[RelatedRow, ...] = ()


def families(ctx: AuditContext, solution: Solution) -> dict[str, Family]:
    """By each name in a solution that names a row of the start state: its row, and the others of the table."""
    found = {str(value): value for op in solution.ops for value in scalars(op.value) if _may_name(value)}
    asked = {"task": solution.task, "names": list(found.values())}
    seen = ctx.play_probe(Probe((ask("quintain.audit.checks._reward_related:look", asked),))).at("ask")
    return msgspec.convert(seen.value, dict[str, Family]) if seen.fine else {}


def _may_name(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and 2 <= len(str(value)) <= 60


@probe_function
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
            other_rows = [RelatedRow(key, row) for key, row in rows.items() if key != name]
            return _whole(table, RelatedRow(name, rows[name]), other_rows, tables=tables)
        fields = [key for row in rows.values() for key, value in row.items() if value == name]
        column = next((key for key in fields if len({repr(row.get(key)) for row in rows.values()}) == len(rows)), None)
        if column is not None:
            own = next(row for row in rows.values() if row.get(column) == name)
            other_rows = [RelatedRow(row[column], row) for row in rows.values() if row is not own]
            return _whole(table, RelatedRow(name, own), other_rows, tables=tables)
    return None


def _whole(
    table: str, own: RelatedRow, other_rows: Sequence[RelatedRow], *, tables: Sequence[tuple[str, dict[str, Any]]]
) -> Family:
    """A family, each row together with those of other tables that belong to it."""
    sakes = _namesakes(own, other_rows)
    chosen = [own, *_spread(own, other_rows), *sakes]
    wanted = {related_row.name for related_row in chosen}
    parts: dict[Any, dict[str, list[Any]]] = {name: {} for name in wanted}
    for other_text, rows in tables:
        if other_text == table:
            continue
        for row in rows.values():
            for name in {value for value in row.values() if isinstance(value, str | int)} & wanted:
                kept = parts[name].setdefault(other_text, [])
                if len(kept) < _PARTS:
                    kept.append(row)
    whole = [RelatedRow(related_row.name, {**parts[related_row.name], **related_row.row}) for related_row in chosen]
    near = len(whole) - len(sakes)
    return Family(table, whole[0].row, tuple(whole[1:near]), tuple(whole[near:]))


def _namesakes(own: RelatedRow, other_rows: Sequence[RelatedRow]) -> list[RelatedRow]:
    """Rows with a text of the own one, however it is written, that only few rows have."""
    found: dict[str, RelatedRow] = {}
    for field, own_value in own.row.items():
        if not isinstance(own_value, str) or not _WORD.search(own_value):
            continue
        alike = [related_row for related_row in other_rows if _plain(related_row.row.get(field)) == _plain(own_value)]
        if len(alike) <= min(_SAKES, len(other_rows) // 4):
            found.update((repr(related_row.name), related_row) for related_row in alike)
    return list(found.values())[:_SAKES]


def _plain(value: Any) -> str:
    return " ".join(value.split()).casefold() if isinstance(value, str) else ""


def _spread(own: RelatedRow, other_rows: Sequence[RelatedRow]) -> list[RelatedRow]:
    """Rows from all over the table, and some for each other value of a field that has few."""
    step = max(1, len(other_rows) // _MAX_ROWS)
    chosen = list(other_rows[::step][:_MAX_ROWS])
    for field, own_value in own.row.items():
        values = {value for related_row in other_rows if isinstance(value := related_row.row.get(field), str)}
        for value in sorted(values) if isinstance(own_value, str) and len(values) <= _MAX_KIND_VALUES else ():
            chosen += [
                related_row
                for related_row in other_rows
                if related_row.row.get(field) == value and related_row not in chosen
            ][:_MAX_KIND_VALUES]
    return chosen


_NOTHING_ELSE = re.compile(
    r"(nothing|anything|no other|any other|everything) (else|\w+)?|leave .{0,40}\b(alone|untouched|unchanged|as)\b"
    r"|\bleave (all|any|every|the|each)? ?(others?|rest|remaining)\b"
    r"|\bonly\b.{0,30}\bchange|and no more\b",
    re.IGNORECASE,
)


def forbids_more(text: str) -> bool:
    """True if a prompt forbids changes beyond the request."""
    return bool(_NOTHING_ELSE.search(text))
