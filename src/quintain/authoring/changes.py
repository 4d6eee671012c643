"""Changes: what an episode changed, field by field, and which of it no goal explains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, cast

import msgspec

from quintain.table import Change


class FieldChange(msgspec.Struct, frozen=True, kw_only=True):
    """One changed field of one row."""

    table: str
    key: Any
    field: str
    before: Any
    after: Any


class RowChange(Protocol):
    """A row that differs, such as `Database.diff` gives it; None where the row does not exist."""

    @property
    def before(self) -> Mapping[str, Any] | None: ...
    @property
    def after(self) -> Mapping[str, Any] | None: ...


class Explains(Protocol):
    """Goal that allows some changes of fields."""

    def allows(self, change: FieldChange, /) -> bool:
        """Returns True if the goal asks for this change."""
        ...


def changed_fields(
    table: str, key: Any, change: Change[Any] | RowChange, *, ignored: Iterable[str] = ()
) -> Iterator[FieldChange]:
    """Yields the fields of a row that differ; none for a row that was added or removed.

    Args:
        table: Name of the table.
        key: Key of the row.
        change: The row before and after, as structs or mappings.
        ignored: Fields that are not compared, such as the time of the last write.
    """
    if change.before is None or change.after is None:
        return
    before, after = _fields(change.before), _fields(change.after)
    for field, value in before.items():
        if value != after[field] and field not in ignored:
            yield FieldChange(table=table, key=key, field=field, before=value, after=after[field])


def unexplained(changes: Iterable[FieldChange], goals: Iterable[Explains]) -> list[FieldChange]:
    """Returns the changes that no goal allows."""
    goals = tuple(goals)
    return [change for change in changes if not any(goal.allows(change) for goal in goals)]


def _fields(row: Any) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], row) if isinstance(row, Mapping) else msgspec.structs.asdict(row)
