"""Description of the company, read from `company/*.toml`, one file per department.

Everything else is made from these values: the SQL schema, the seed, the tools, who may use them, and the reference. A
file has `roles`, SQL that settles the seed, `tables` and `reports`. A table has `columns`, `tools` of one line each,
and `actions`, which are tools with rules and effects. msgspec reads the files, and names the place of a value that it
refuses, such as `$.tables[3].columns[1].type`.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from quintain.errors import DefinitionError

FOLDER = Path(__file__).parent / "company"
DEPARTMENTS = ("people", "finance", "sales", "support", "it", "procurement", "logistics", "corporate")

ColumnKind = Literal["text", "note", "ref", "state", "one", "money", "count", "int", "signed", "date", "time", "flag"]
Kind = Literal["find", "get", "create", "change", "remove", "report"]

_RENAMED = {
    "kind": "type",
    "is_optional": "optional",
    "is_unique": "unique",
}


class Column(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename=_RENAMED):
    """A column of a table, or a parameter of a tool.

    Attributes:
        kind: `type` in the files. A `state` is moved by tools only, `one` is a choice, `note` free text, `money` whole
            euros, `time` when the row was made.
        table: Target of a reference.
        options: The values of a choice or state, the first one being that of a new row.
        shares: How frequent each is in the seed; equal by default.
        low, high: The range in the seed; of a date in days from today; of a flag, `high` is the percentage of yes.
        pool: Words of `pools.toml` from which the seed takes text.
        in_turn: The seed takes values one after the other and not by chance.
        doc: Meaning, where the name does not give it.

    Raises:
        ValueError: A reference without a table, or a choice without options; or either on another type.
    """

    name: str
    kind: ColumnKind
    table: str = ""
    options: tuple[str, ...] = ()
    shares: tuple[int, ...] = ()
    low: int = 0
    high: int = 0
    pool: str = ""
    is_optional: bool = False
    is_unique: bool = False
    in_turn: bool = False
    doc: str = ""

    def __post_init__(self) -> None:
        for field, value, kinds in (("table", self.table, {"ref"}), ("options", self.options, {"state", "one"})):
            if bool(value) != (self.kind in kinds):
                verb = "must not have" if value else "needs"
                raise ValueError(f"column {self.name!r} of type {self.kind!r} {verb} {field!r}")
        if self.options and not self.shares:
            msgspec.structs.force_setattr(self, "shares", (1,) * len(self.options))
        if len(self.shares) != len(self.options):
            raise ValueError(f"column {self.name!r} has {len(self.options)} options and {len(self.shares)} shares")

    @property
    def is_free(self) -> bool:
        """True if a verdict does not depend on the value."""
        return self.kind in {"note", "time"}


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Condition in SQL over the record, the arguments, `:me` and `:today`, and the refusal when it does not hold."""

    says: str
    sql: str


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """Tool of the company.

    Attributes:
        name: Name of the tool.
        table: TableSpec of its record; empty for a report.
        role: Role that may use it; empty for every employee.
        own: Column of the employee who may use it too; without a role, only this employee may.
        parameters: Its arguments, without the record itself.
        source: States that the record may be in; empty for any.
        target: The state that it gets; empty for the same.
        sets: Column to SQL expression.
        effects: SQL statements that follow.
        children: Tables that are shown below the record.
        sql: A report's SELECT.
    """

    name: str
    kind: Kind
    department: str
    verb: str
    doc: str
    table: str = ""
    role: str = ""
    own: str = ""
    parameters: tuple[Column, ...] = ()
    source: tuple[str, ...] = ()
    target: str = ""
    sets: dict[str, str] = {}
    rules: tuple[Rule, ...] = ()
    effects: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    sql: str = ""

    @property
    def writes(self) -> bool:
        return self.kind in {"create", "change", "remove"}


class _TableFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts that a file gives of a table, word for word.

    Attributes:
        code: What the public keys of its rows begin with: "PR" for PR-17.
        rows: How many the seed has.
        private: The column with the employee whose rows these are: others see them only with the role `reader`,
            or as this employee's manager.
        is_settled: Whether a statement of `settle` makes the rows.
        is_log: Whether every write adds to it, so that a verdict does not look at it.
        unique: Sets of columns of which no two rows have the same values.
        checks: Further conditions on a row.
    """

    name: str
    code: str
    about: str
    rows: int
    private: str = ""
    reader: str = ""
    is_settled: bool = False
    is_log: bool = False
    unique: tuple[tuple[str, ...], ...] = ()
    checks: tuple[str, ...] = ()


class TableSpec(_TableFacts, frozen=True, kw_only=True):
    """A table.

    Attributes:
        one: What a row is called.
    """

    department: str
    one: str
    columns: dict[str, Column]

    @property
    def label(self) -> str:
        """The column that people call a row by; empty when it has none."""
        return next((column.name for column in self.columns.values() if column.kind == "text"), "")

    @property
    def parameter(self) -> str:
        """Name of the parameter that takes a row of the table."""
        return self.one.replace(" ", "_").lower()

    @property
    def status(self) -> str:
        """The column that its state machine moves; empty when it has none."""
        return next((column.name for column in self.columns.values() if column.kind == "state"), "")


class Company(msgspec.Struct, frozen=True, kw_only=True):
    """All of it.

    Attributes:
        roles: What each role is.
        settle: SQL that makes the seeded rows agree with each other.
        digest: Names the files that it was read from.
    """

    tables: dict[str, TableSpec]
    actions: dict[str, Action]
    roles: dict[str, str]
    settle: tuple[str, ...]
    digest: str


class _ToolEntry(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename={"source": "from", "target": "to", "sets": "set"},
):
    """A tool or an action as a file has it.

    Attributes:
        verb: Its kind by default. The name of the tool is made of it.
        columns: Parameters that are columns of the table; of these, `optional` may be left out.
        role: The department's staff by default, where it writes; "any" for every employee.
        parameters: Further ones.
    """

    kind: Literal["find", "get", "create", "change", "remove"]
    verb: str = ""
    name: str = ""
    doc: str = ""
    columns: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    target: str = ""
    role: str = ""
    own: str = ""
    sets: dict[str, str] = {}
    parameters: tuple[Column, ...] = ()
    rules: tuple[Rule, ...] = ()
    effects: tuple[str, ...] = ()


class _TableEntry(_TableFacts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table as a file has it; see `TableSpec`."""

    columns: tuple[Column, ...]
    one: str = ""
    tools: tuple[_ToolEntry, ...] = ()
    actions: tuple[_ToolEntry, ...] = ()


class _ReportEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A report as a file has it; see `Action`."""

    name: str
    doc: str
    sql: str
    role: str = ""
    parameters: tuple[Column, ...] = ()


class _DepartmentFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """File of one department."""

    title: str
    roles: dict[str, str]
    tables: tuple[_TableEntry, ...]
    settle: tuple[str, ...] = ()
    reports: tuple[_ReportEntry, ...] = ()


@functools.cache
def company() -> Company:
    """The company, read once.

    Raises:
        DefinitionError: A file does not say what it should; the message names the file and the place in it.
    """
    texts = {name: (FOLDER / f"{name}.toml").read_text("utf-8") for name in DEPARTMENTS}
    files = {name: read(name, text) for name, text in texts.items()}
    tables = {entry.name: _table(name, entry) for name, file in files.items() for entry in file.tables}
    actions: dict[str, Action] = {}
    for department, file in files.items():
        for action in _actions(department, file, tables):
            if action.name in actions:
                raise DefinitionError(f"two tools are named {action.name}")
            actions[action.name] = action
    roles = {f"{name}.{role}": says for name, file in files.items() for role, says in file.roles.items()}
    settle = tuple(sql for file in files.values() for sql in file.settle)
    whole = Company(tables=tables, actions=actions, roles=roles, settle=settle, digest=_digest(texts))
    _check(whole)
    return whole


def read(department: str, text: str) -> _DepartmentFile:
    """Reads the file of a department.

    Raises:
        DefinitionError: It is not TOML, or a value is not what it should be.
    """
    try:
        return msgspec.toml.decode(text, type=_DepartmentFile)
    except msgspec.DecodeError as error:
        raise DefinitionError(f"company/{department}.toml: {error}") from error


def _digest(texts: Mapping[str, str]) -> str:
    return hashlib.blake2b("\0".join(texts.values()).encode(), digest_size=16).hexdigest()


def _table(department: str, entry: _TableEntry) -> TableSpec:
    return TableSpec(
        **{name: getattr(entry, name) for name in _TableFacts.__struct_fields__},
        department=department,
        one=entry.one or entry.name.removesuffix("s"),
        columns={column.name: column for column in entry.columns},
    )


def _actions(department: str, file: _DepartmentFile, tables: Mapping[str, TableSpec]) -> Iterator[Action]:
    for table in file.tables:
        for tool in (*table.tools, *table.actions):
            yield _action(tables[table.name], tool)
    for report in file.reports:
        yield Action(
            name=f"{department}_{report.name}",
            kind="report",
            department=department,
            verb=report.name,
            doc=report.doc,
            role=report.role,
            parameters=report.parameters,
            sql=report.sql,
        )


def _action(table: TableSpec, entry: _ToolEntry) -> Action:
    verb = entry.verb or entry.kind
    all_optional = entry.kind == "find" or verb == "edit"
    own = [_parameter(table, name, is_optional=all_optional or name in entry.optional) for name in entry.columns]
    writes = entry.kind in {"create", "change", "remove"}
    role = entry.role or (f"{table.department}.staff" if writes and not entry.own else "")
    noun = table.name if entry.kind == "find" else table.parameter
    return Action(
        name=entry.name or f"{table.department}_{_named(verb, noun)}",
        kind=entry.kind,
        department=table.department,
        verb=verb,
        doc=entry.doc,
        table=table.name,
        role="" if role == "any" else role,
        own=entry.own,
        parameters=(*own, *entry.parameters),
        source=entry.source,
        target=entry.target,
        sets=entry.sets,
        rules=entry.rules,
        effects=entry.effects,
        children=entry.children,
    )


def _named(verb: str, noun: str) -> str:
    """`close` a `ticket` is close_ticket, `move_to_queue` one is move_ticket_to_queue."""
    first, _, rest = verb.partition("_")
    return "_".join(filter(None, (first, noun, rest)))


def _parameter(table: TableSpec, name: str, *, is_optional: bool) -> Column:
    if name not in table.columns:
        raise DefinitionError(f"table {table.name!r} has no column {name!r}")
    column = table.columns[name]
    return msgspec.structs.replace(column, is_optional=column.is_optional or is_optional)


def _check(whole: Company) -> None:
    """Raises a DefinitionError for contradictions between tables and tools."""
    codes = [table.code for table in whole.tables.values()]
    if len(set(codes)) != len(codes):
        raise DefinitionError(f"codes repeat: {sorted(code for code in set(codes) if codes.count(code) > 1)}")
    for table in whole.tables.values():
        for column in table.columns.values():
            if column.kind == "ref" and column.table not in whole.tables:
                raise DefinitionError(f"{table.name}.{column.name} refers to {column.table!r}, which does not exist")
    for action in whole.actions.values():
        for role in {action.role} - {""} - whole.roles.keys():
            raise DefinitionError(f"tool {action.name} is for {role!r}, which the files do not define")
        if action.table:
            _check_action(whole.tables[action.table], action, whole.tables)


def _check_action(table: TableSpec, action: Action, tables: Mapping[str, TableSpec]) -> None:
    where = f"tool {action.name}"
    states = table.columns[table.status].options if table.status else ()
    for state in {*action.source, action.target} - {"", *states}:
        raise DefinitionError(f"{where}: table {table.name} has no state {state!r}; states: {states}")
    if action.kind in {"get", "change", "remove"} and table.parameter in {c.name for c in action.parameters}:
        raise DefinitionError(f"{where}: its record and a parameter are both called {table.one!r}")
    for name in {*action.sets, *filter(None, [action.own])} - {"id", *table.columns}:
        raise DefinitionError(f"{where}: {table.name} has no column {name!r}")
    for child in action.children:
        if child not in tables or not referring(tables[child], table.name):
            raise DefinitionError(f"{where}: {child!r} does not refer to {table.name}")
    if action.kind == "create":
        given = {column.name for column in action.parameters} | action.sets.keys()
        missing = [c.name for c in table.columns.values() if c.name not in given and not has_default(c)]
        if missing:
            raise DefinitionError(f"{where} gives no value to {missing}")


def has_default(column: Column) -> bool:
    """True if a new row has a value for the column when a tool gives none."""
    return column.is_optional or column.kind not in {"text", "note", "ref", "date"}


def referring(table: TableSpec, target: str) -> str:
    """The first column of a table that refers to another; empty when none does."""
    return next((column.name for column in table.columns.values() if column.table == target), "")


def plural(tables: Sequence[str]) -> str:
    """Names of tables, for people."""
    words = [name.replace("_", " ") for name in tables]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
