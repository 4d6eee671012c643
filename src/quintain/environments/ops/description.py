"""Description of the production, read from `schema.toml`, `tools.toml`, `production.toml` and `causes/*.toml`.

Tables, tools, seed, failures and decoys are made from these values. msgspec reads the files, and names the place of a
value that it refuses, such as `$.actions[3].needs`.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from quintain.errors import DefinitionError

T = TypeVar("T")

FOLDER = Path(__file__).parent
Service = Literal["errors", "database", "deployments", "cluster", "docs", "code"]
SERVICES: tuple[Service, ...] = ("errors", "database", "deployments", "cluster", "docs", "code")
"""The six services that have tools; each has its subagent."""


class Column(msgspec.Struct, frozen=True):
    """A column of a table.

    Attributes:
        kind: text, int, float, flag, time, list, counter or choice.
        target: Table that a reference names; else empty.
        options: Values of a choice.
        is_loose: True if a change of its value is not compared, because it follows from other changes.
    """

    name: str
    kind: str
    target: str = ""
    options: tuple[str, ...] = ()
    is_loose: bool = False

    @classmethod
    def parse(cls, text: str) -> Column:
        """Returns the column that a text such as "status: up|down ~" describes."""
        name, _, rest = text.partition(":")
        kind = rest.replace("~", "").strip() or "text"
        is_loose = "~" in text or kind == "time"
        name = name.replace("~", "").strip()
        if kind.startswith("ref "):
            return cls(name, "text", target=kind.removeprefix("ref "), is_loose=is_loose)
        if "|" in kind:
            return cls(name, "choice", options=tuple(kind.split("|")), is_loose=is_loose)
        return cls(name, kind, is_loose=is_loose)


class TableSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table and its reading tools.

    Attributes:
        service: Service whose tools show it.
        one: Name of one row: the parameter of tools that take its key.
        about: What it holds, as the end of a sentence.
        columns: Texts for `Column.parse`.
        filters: Columns by which a list can be narrowed.
        order: Columns by which a list is sorted; by the order of insertion if empty.
        brief: Columns that a list shows; all if empty.
        search: Text columns that the search tool reads; no such tool if empty.
    """

    service: Service
    one: str
    about: str
    columns: tuple[str, ...]
    filters: tuple[str, ...] = ()
    order: str = ""
    brief: tuple[str, ...] = ()
    search: tuple[str, ...] = ()

    def fields(self) -> dict[str, Column]:
        """Returns the columns by name."""
        return {column.name: column for column in map(Column.parse, self.columns)}


class Curve(msgspec.Struct, frozen=True, array_like=True):
    """A tool that shows a metric of the rows of a table over time."""

    name: str
    on: str
    metric: str
    doc: str


class Action(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool that changes one row of a table.

    Attributes:
        on: The table; the parameter is named like one row.
        args: More parameters: name to "text", "int LOW HIGH" or "float LOW HIGH".
        needs: Column to the values that it may have before; else the call is refused.
        set: Column to its new value: a constant, "$argument", "$now", "$me", "$in_90_days", "=column" or "+".
        does: Function of `acting` for changes of further rows.
    """

    doc: str
    on: str
    args: dict[str, str] = {}
    needs: dict[str, tuple[Any, ...]] = {}
    set: dict[str, Any] = {}
    does: str = ""


class Edit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change of a row by a failure or a decoy.

    Attributes:
        row: "table/key" of a row to change, to add or to remove.
        to: New values; all columns if the row is new.
        is_gone: True to remove the row.
        heals: True if the old values come back when the failure is repaired.
    """

    row: str
    to: dict[str, Any] = {}
    is_gone: bool = msgspec.field(default=False, name="gone")
    heals: bool = False


class Issue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An issue of the error tracker with two events."""

    service: str = "{service}"
    title: str
    function: str
    message: str
    after: int = 1
    level: str = "error"


Shift = tuple[str, float, int]
"""Curve "row/metric", the value it goes to, and the minutes that it takes; from the onset on."""
LogLine = tuple[str, str, float, str]
"""Service, level, lines per minute and text; "#" becomes a number."""


class Leg(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of the solution that one service gives: a question to its subagent, the calls, and the report.

    Attributes:
        service: Whose tools answer it.
        ask: The question or order, which names all that the subagent must know.
        calls: Tools and arguments.
        say: The report; facts that it must hold are in [brackets], with wrong values after bars.
        repairs: True if it changes the production.
    """

    service: Service
    ask: str
    calls: tuple[tuple[str, dict[str, Any]], ...]
    say: str
    repairs: bool = False


class Traces(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Traces in the production, which agree in time because they all begin at one onset."""

    edits: tuple[Edit, ...] = ()
    shifts: tuple[Shift, ...] = ()
    logs: tuple[LogLine, ...] = ()
    issues: tuple[Issue, ...] = ()
    commit: tuple[str, str] | None = None
    """Message and diff of the commit that the live deploy of {service} brought, just before the onset."""


class Decoy(Traces, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Harmless traces near an incident.

    Attributes:
        at_service: Place: "same" service as the failure, or any "other".
        minutes: Minutes from the onset of the failure to that of the decoy, at least and at most.
    """

    at_service: Literal["same", "other"] = "other"
    minutes: tuple[int, int] = (-20, 10)


class Cause(Traces, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A root cause: how it shows, how it is found and how it is repaired.

    Attributes:
        about: What is wrong, in a sentence.
        culprit: What a report names as the culprit, such as "{deploy}".
        culprit_is: Kind of the culprit, for the agent.
        runbook: How it is recognised and repaired; binding.
        symptom: How callers feel it.
        needs: Fields of `ServiceSpec` that must not be empty for a service that it can befall.
        legs: The solution, in order, the repair last.
    """

    about: str
    culprit: str
    culprit_is: str
    runbook: str
    symptom: Literal["slow", "failing", "stale"]
    needs: tuple[str, ...] = ()
    legs: tuple[Leg, ...]

    @property
    def tool(self) -> str:
        """Tool of the repair."""
        return self.legs[-1].calls[0][0]


class _Tools(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    curves: tuple[Curve, ...]
    actions: dict[str, Action]


def _read(path: Path, kind: Any) -> Any:
    try:
        return msgspec.toml.decode(path.read_bytes(), type=kind)
    except msgspec.DecodeError as error:
        raise DefinitionError(f"{path.name}: {error}") from error


@functools.cache
def tables() -> Mapping[str, TableSpec]:
    """Returns the tables by name."""
    found: dict[str, TableSpec] = _read(FOLDER / "schema.toml", dict[str, TableSpec])
    return found


@functools.cache
def columns(table: str) -> Mapping[str, Column]:
    """Returns the columns of a table by name."""
    return tables()[table].fields()


@functools.cache
def _tools() -> _Tools:
    found: _Tools = _read(FOLDER / "tools.toml", _Tools)
    return found


def curves() -> tuple[Curve, ...]:
    """Returns the tools that show metrics."""
    return _tools().curves


def actions() -> Mapping[str, Action]:
    """Returns the tools that change something, by name."""
    return _tools().actions


@functools.cache
def families() -> Mapping[str, Mapping[str, Cause]]:
    """Returns the root causes by family and id; a family is a file of `causes`."""
    return {path.stem: _read(path, dict[str, Cause]) for path in sorted(FOLDER.glob("causes/*.toml"))}


@functools.cache
def causes() -> Mapping[str, Cause]:
    """Returns all root causes by id."""
    return {name: cause for family in families().values() for name, cause in family.items()}


@functools.cache
def decoys() -> Mapping[str, Decoy]:
    """Returns the decoys by id."""
    found: dict[str, Decoy] = _read(FOLDER / "decoys.toml", dict[str, Decoy])
    return found


@functools.cache
def digest() -> str:
    """Returns a digest of all files of the description, for the fingerprint of the environment."""
    texts = [path.read_bytes() for path in sorted(FOLDER.rglob("*.toml"))]
    return hashlib.blake2b(b"\0".join(texts), digest_size=16).hexdigest()
