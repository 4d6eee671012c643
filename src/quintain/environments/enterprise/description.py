"""What the company is: tables, tools, rules and roles, read from `company/*.toml`, one file per department.

Everything else is made from these values: the SQL schema, the seed, the tools, who may use them, and the reference.
A column is a line `name kind arguments [unique] [each] [?]`; `?` may be empty, `each` takes the seed's values in turn:

    text POOL          a name or title              money LOW HIGH     whole euros
    note POOL          free text                    count, int, signed LOW HIGH
    > TABLE            a reference                  date LOW HIGH      days from today
    state A B C        moved by tools only          time               when the row was made
    one A B C          a choice                     flag PERCENT       yes or no

An action is a line, or a table `do.VERB` when it has rules and effects in SQL:

    find COLUMN...                              filters
    get CHILD...                                one record with those that refer to it
    create COLUMN... | COLUMN=EXPRESSION...     given, and set by the system
    edit COLUMN... when STATE|STATE
    remove
    VERB STATE|STATE > STATE with COLUMN... | COLUMN=EXPRESSION...

each followed by `by ROLE` and `own COLUMN`: who may, and whose employee may too.
"""

from __future__ import annotations

import functools
import hashlib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from quintain.errors import DefinitionError

from .reading_lines import Line, read_column, read_line

FOLDER = Path(__file__).parent / "company"
DEPARTMENTS = ("people", "finance", "sales", "support", "it", "procurement", "logistics", "corporate")

Kind = Literal["find", "get", "create", "change", "remove", "report"]


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a table, or a parameter of a tool.

    Attributes:
        kind: text, note, ref, state, one, money, count, int, signed, date, time or flag.
        table: What a reference refers to.
        options: The values of a choice or state, the first one being that of a new row.
        shares: How frequent each is in the seed.
        low, high: The range in the seed; of a date in days from today.
        pool: Where the seed takes text from.
        in_turn: The seed takes values one after the other and not by chance.
        doc: What it means, where its name does not say it.
    """

    name: str
    kind: str
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

    @property
    def is_free(self) -> bool:
        """Whether a verdict does not depend on the value."""
        return self.kind in {"note", "time"}


class Rule(msgspec.Struct, frozen=True):
    """A condition in SQL over the record, the arguments, `:me` and `:today`, and what is said when it does not hold."""

    says: str
    sql: str


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """A tool.

    Attributes:
        name: Of the tool.
        table: What it is about; empty for a report.
        role: Who may use it; empty for every employee.
        own: The column that names an employee who may use it too, or the only one who may when there is no role.
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


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A table.

    Attributes:
        code: What the public keys of its rows begin with: "PR" for PR-17.
        one: What a row is called.
        rows: How many the seed has.
        private: The column with the employee whose rows these are: others see them only with the role `reader`,
            or as this employee's manager.
        is_settled: Whether a statement of `settle` makes the rows.
        is_log: Whether every write adds to it, so that a verdict does not look at it.
        unique: Sets of columns of which no two rows have the same values.
        checks: Further conditions on a row.
    """

    name: str
    department: str
    code: str
    one: str
    about: str
    rows: int
    columns: dict[str, Column]
    private: str = ""
    reader: str = ""
    is_settled: bool = False
    is_log: bool = False
    unique: tuple[tuple[str, ...], ...] = ()
    checks: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The column that people call a row by; empty when it has none."""
        return next((column.name for column in self.columns.values() if column.kind == "text"), "")

    @property
    def parameter(self) -> str:
        """What a tool calls the row that it is about."""
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

    tables: dict[str, Table]
    actions: dict[str, Action]
    roles: dict[str, str]
    settle: tuple[str, ...]
    digest: str


@functools.cache
def company() -> Company:
    """The company, read once.

    Raises:
        DefinitionError: A file does not say what it should; the message names the table.
    """
    texts = {name: (FOLDER / f"{name}.toml").read_text("utf-8") for name in DEPARTMENTS}
    parsed = {name: tomllib.loads(text) for name, text in texts.items()}
    tables: dict[str, Table] = {}
    for department, content in parsed.items():
        for name, entry in _tables(content):
            tables[name] = _table(department, name, entry)
    actions: dict[str, Action] = {}
    for department, content in parsed.items():
        for action in _actions(department, content, tables):
            if action.name in actions:
                raise DefinitionError(f"two tools are named {action.name}")
            actions[action.name] = action
    roles = {f"{name}.{role}": says for name, content in parsed.items() for role, says in content["role"].items()}
    settle = tuple(sql for content in parsed.values() for sql in content.get("settle", ()))
    whole = Company(tables=tables, actions=actions, roles=roles, settle=settle, digest=_digest(texts))
    _check(whole)
    return whole


def _digest(texts: Mapping[str, str]) -> str:
    return hashlib.blake2b("\0".join(texts.values()).encode(), digest_size=16).hexdigest()


def _tables(content: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    entries = ((name, cast("dict[str, Any]", entry)) for name, entry in content.items() if isinstance(entry, dict))
    return ((name, entry) for name, entry in entries if "columns" in entry)


def _table(department: str, name: str, entry: Mapping[str, Any]) -> Table:
    columns = [Column(**read_column(line, name)) for line in entry["columns"].strip().splitlines()]
    return Table(
        name=name,
        department=department,
        code=entry["code"],
        one=entry.get("one", name.removesuffix("s")),
        about=entry["about"],
        rows=entry["rows"],
        columns={column.name: column for column in columns},
        private=entry.get("private", ""),
        reader=entry.get("reader", ""),
        is_settled=entry.get("settled", False),
        is_log=entry.get("log", False),
        unique=tuple(tuple(names.split()) for names in entry.get("unique", ())),
        checks=tuple(entry.get("checks", ())),
    )


def _actions(department: str, content: Mapping[str, Any], tables: Mapping[str, Table]) -> Iterator[Action]:
    for name, entry in _tables(content):
        table = tables[name]
        for line in entry.get("tools", "").strip().splitlines():
            yield _action(table, read_line(line), {})
        for verb, more in entry.get("do", {}).items():
            yield _action(table, read_line(f"{verb} {more['step']}"), more)
    for verb, more in content.get("report", {}).items():
        parameters = tuple(Column(**read_column(line, verb)) for line in more.get("args", "").splitlines())
        yield Action(
            name=f"{department}_{verb}",
            kind="report",
            department=department,
            verb=verb,
            doc=more["doc"],
            role=more.get("by", ""),
            parameters=parameters,
            sql=more["sql"],
        )


def _action(table: Table, line: Line, more: Mapping[str, Any]) -> Action:
    kind: Kind = line.kind
    own = [_parameter(table, word) for word in line.columns if kind != "get"]
    others = [Column(**read_column(text, table.name)) for text in more.get("args", "").strip().splitlines()]
    noun = table.name if kind == "find" else table.parameter
    if kind == "find" or line.verb == "edit":
        own = [msgspec.structs.replace(column, is_optional=True) for column in own]
    role = (
        more.get("by")
        or line.role
        or (f"{table.department}.staff" if kind in {"create", "change", "remove"} and not line.own else "")
    )
    return Action(
        name=more.get("name") or f"{table.department}_{_named(line.verb, noun)}",
        kind=kind,
        department=table.department,
        verb=line.verb,
        doc=more.get("doc", ""),
        table=table.name,
        role="" if role == "any" else role,
        own=line.own,
        parameters=(*own, *others),
        source=line.source,
        target=line.target,
        sets={**line.sets, **more.get("set", {})},
        rules=tuple(Rule(*(part.strip() for part in text.split(" | ", 1))) for text in more.get("rules", ())),
        effects=tuple(more.get("also", ())),
        children=line.columns if kind == "get" else (),
    )


def _named(verb: str, noun: str) -> str:
    """`close` a `ticket` is close_ticket, `move_to_queue` one is move_ticket_to_queue."""
    first, _, rest = verb.partition("_")
    return "_".join(filter(None, (first, noun, rest)))


def _parameter(table: Table, word: str) -> Column:
    name = word.removesuffix("?")
    if name not in table.columns:
        raise DefinitionError(f"table {table.name!r} has no column {name!r}")
    column = table.columns[name]
    return msgspec.structs.replace(column, is_optional=column.is_optional or word.endswith("?"))


def _check(whole: Company) -> None:
    """Whatever can be seen without a database."""
    codes = [table.code for table in whole.tables.values()]
    if len(set(codes)) != len(codes):
        raise DefinitionError(f"codes repeat: {sorted(code for code in set(codes) if codes.count(code) > 1)}")
    for table in whole.tables.values():
        for column in table.columns.values():
            if column.kind == "ref" and column.table not in whole.tables:
                raise DefinitionError(f"{table.name}.{column.name} refers to {column.table!r}, which is no table")
    for action in whole.actions.values():
        for role in {action.role} - {""} - whole.roles.keys():
            raise DefinitionError(f"tool {action.name} is for {role!r}, which is no role")
        if action.table:
            _check_action(whole.tables[action.table], action, whole.tables)


def _check_action(table: Table, action: Action, tables: Mapping[str, Table]) -> None:
    where = f"tool {action.name}"
    states = table.columns[table.status].options if table.status else ()
    for state in {*action.source, action.target} - {"", *states}:
        raise DefinitionError(f"{where}: {state!r} is no state of {table.name}: {states}")
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
    """Whether a new row has a value for it when nobody gives one."""
    return column.is_optional or column.kind not in {"text", "note", "ref", "date"}


def referring(table: Table, target: str) -> str:
    """The first column of a table that refers to another; empty when none does."""
    return next((column.name for column in table.columns.values() if column.table == target), "")


def plural(tables: Sequence[str]) -> str:
    """Names of tables, for people."""
    words = [name.replace("_", " ") for name in tables]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
