"""S: the production as tables, with its failures, and the tools of the description in front of them.

Three kinds of worlds have the same tables: `Ops`, whose agent has all tools; `RoutedOps`, whose agent gives tasks to
six subagents; and one for each service, whose agent has the tools of this service alone.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

import quintain as qn
from quintain import codec
from quintain.environments.faults import Faulty

from .description import Column, causes, columns, tables
from .telemetry import LogRow, ShiftRow, stamp

Minutes = Annotated[int, msgspec.Meta(ge=1, le=120)]
CauseId = Literal[tuple(causes())]  # type: ignore[valid-type]  # its values are data
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=120)]


class Finding(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A root cause, the service that it befell, and the culprit as the list of causes explains it."""

    cause: CauseId  # type: ignore[valid-type]
    service: Name
    culprit: Name


class Value(msgspec.Struct, frozen=True):
    """A value of a row."""

    table: str
    key: str
    field: str
    value: Any


class OpenFailure(msgspec.Struct):
    """A failure that is at work, which no tool shows.

    Attributes:
        cure: Values whose presence ends it.
        heals: Values that come back then.
        ended: When it ended, in seconds; 0 while it lasts.
    """

    cure: list[Value]
    heals: list[Value]
    ended: float = 0.0


class Production(Faulty, kw_only=True):
    """Base of all worlds of the desk; subclasses have a field for each table of the description.

    Attributes:
        salt: Tells the curves of one production from those of another.
        shifts: Curves that leave their base.
        logs: Kinds of log lines.
        ills: Failures by name.
        findings: What the agent has reported.
    """

    salt: str = ""
    shifts: list[ShiftRow] = []
    logs: list[LogRow] = []
    ills: dict[str, OpenFailure] = {}
    findings: tuple[Finding, ...] = ()

    @property
    def now(self) -> str:
        """The time as rows keep it."""
        return stamp(self.clock.now)

    def table(self, name: str) -> qn.Table[Any]:
        """Returns a table by its name."""
        found: qn.Table[Any] = getattr(self, name)
        return found

    def need(self, table: str, key: str) -> Any:
        """Returns a row.

        Raises:
            ToolError: The table does not have the key.
        """
        rows = self.table(table)
        if key not in rows:
            spec = tables()[table]
            raise qn.ToolError(f"{spec.one} {key!r} does not exist; {spec.service}_list_{table} lists {table}")
        return rows[key]

    def write(self, table: str, key: str, /, **values: Any) -> None:
        """Sets fields of a row."""
        rows = self.table(table)
        rows[key] = msgspec.structs.replace(rows[key], **values)

    def settle(self) -> None:
        """Ends the failures that are cured: their symptoms go, their curves and logs come to an end."""
        for name, ill in self.ills.items():
            if ill.ended or not all(self.shows(value) for value in ill.cure):
                continue
            ill.ended = self.clock.now
            for value in ill.heals:
                if value.key in self.table(value.table):
                    self.write(value.table, value.key, **{value.field: value.value})
            traces: list[ShiftRow | LogRow] = [*self.shifts, *self.logs]
            for trace in traces:
                if trace.fault == name:
                    trace.until = self.clock.now

    def shows(self, wanted: Value) -> bool:
        """Returns whether a row has a value; for a counter, at least that."""
        rows = self.table(wanted.table)
        if wanted.key not in rows:
            return wanted.field == "" and wanted.value is None
        if wanted.field == "":
            return bool(plain(rows[wanted.key], wanted.table) == wanted.value)
        found = getattr(rows[wanted.key], wanted.field)
        is_counter = columns(wanted.table)[wanted.field].kind == "counter"
        return bool(found >= wanted.value if is_counter else found == wanted.value)


def plain(row: Any, table: str) -> dict[str, Any]:
    """Returns the values of a row that count in a comparison."""
    return {name: getattr(row, name) for name, column in columns(table).items() if not column.is_loose}


_TYPES: dict[str, Any] = {"int": int, "float": float, "flag": bool, "list": list[str], "counter": int}


def _row(name: str) -> type[msgspec.Struct]:
    """Returns the class of a table's rows."""
    fields = [(column.name, _type(column)) for column in columns(name).values()]
    made = msgspec.defstruct(tables()[name].one.capitalize(), fields, kw_only=True, module=__name__)
    made.__doc__ = f"A row of {name}."
    codec.learn(made)
    return made


def _type(column: Column) -> Any:
    return Literal[column.options] if column.options else _TYPES.get(column.kind, str)


ROWS: dict[str, type[msgspec.Struct]] = {name: _row(name) for name in tables()}
"""Class of the rows of each table."""
