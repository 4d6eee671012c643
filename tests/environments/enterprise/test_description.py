"""The description says exactly what was promised, and all that it says makes sense to SQLite and to readers."""

from __future__ import annotations

import re
from collections import Counter

import pytest

import quintain as qn
from quintain.environments.enterprise import env
from quintain.environments.enterprise.description import DEPARTMENTS, FOLDER, Action, company, read
from quintain.environments.enterprise.harness import RULES, Office
from quintain.environments.enterprise.reference import reference
from quintain.environments.enterprise.stories import STORIES

from .office import every_task, office

WHOLE = company()
ACTIONS = list(WHOLE.actions.values())


def test_the_company_has_exactly_what_was_promised() -> None:
    assert len(WHOLE.tables) == 164
    assert len(env.tools) == 512
    assert {table.department for table in WHOLE.tables.values()} == set(DEPARTMENTS)
    assert len(DEPARTMENTS) == 8
    assert len(every_task()) == 200
    assert len({task.tags["family"] for task in every_task()}) >= 20
    assert {task.tags["family"] for task in every_task()} == {s.__name__ for steps in STORIES.values() for s in steps}


def test_the_database_has_these_tables_with_foreign_keys_and_no_others() -> None:
    db = office().db
    names = {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    assert names == WHOLE.tables.keys()
    keys = sum(len(db.execute("SELECT * FROM pragma_foreign_key_list(?)", name)) for name in names)
    assert keys == sum(column.kind == "ref" for table in WHOLE.tables.values() for column in table.columns.values())
    assert keys > 250
    assert db.execute("PRAGMA foreign_key_check") == []


def test_every_department_has_about_as_many_tables_and_tools() -> None:
    tables = Counter(table.department for table in WHOLE.tables.values())
    tools = Counter(action.department for action in ACTIONS)
    assert min(tables.values()) >= 20
    assert min(tools.values()) >= 63


def test_every_table_has_rows_and_something_reads_it() -> None:
    db = office().db
    shown = {action.table for action in ACTIONS} | {child for action in ACTIONS for child in action.children}
    assert shown >= WHOLE.tables.keys()
    empty = [name for name in WHOLE.tables if not db.execute(f'SELECT 1 FROM "{name}" LIMIT 1')]
    assert empty == []


def test_every_name_is_one_that_such_software_would_have() -> None:
    for action in ACTIONS:
        assert re.fullmatch(r"[a-z]+(_[a-z]+)+", action.name), action.name
        assert action.name.startswith(f"{action.department}_")
        assert not re.search(r"_(\w+)_\1\b", action.name), action.name
    for tool in env.tools.values():
        assert len(tool.description) <= 300, tool.name
        assert tool.description.endswith("."), tool.name


def test_all_roles_of_the_description_are_rows_that_somebody_has() -> None:
    world = office()
    held = "SELECT DISTINCT r.name FROM role_grants g JOIN roles r ON r.id = g.role WHERE g.status = 'active'"
    assert {name for (name,) in world.db.execute(held)} == set(WHOLE.roles)
    assert {name for (name,) in world.db.execute("SELECT name FROM roles")} == set(WHOLE.roles)


def _names(action: Action) -> dict[str, None]:
    """Returns the names that SQL of an action may refer to."""
    names = ["me", "today", "now", "id", *(column.name for column in action.parameters)]
    if action.table and action.kind != "create":
        columns = WHOLE.tables[action.table].columns
        names += [*columns, *(f"old_{name}" for name in columns)]
    return dict.fromkeys(names)


@pytest.mark.parametrize("department", DEPARTMENTS)
def test_all_sql_of_a_department_compiles_with_the_names_that_it_gets(department: str) -> None:
    db = office().db
    for action in ACTIONS:
        if action.department == department:
            expressions = [rule.sql for rule in action.rules] + list(action.sets.values())
            names = _names(action)
            if action.kind == "change" and action.sets:  # its expressions may name columns of the row itself
                sets = ", ".join(f'"{name}" = {expression}' for name, expression in action.sets.items())
                db.execute(f'EXPLAIN UPDATE "{action.table}" SET {sets}', **names)
                expressions = [rule.sql for rule in action.rules]
            for sql in [f"SELECT {expression}" for expression in expressions] + list(action.effects):
                db.execute(f"EXPLAIN {sql}", **names)
            if action.sql:
                db.execute(f"EXPLAIN {action.sql}", **names)


def test_effects_fill_every_column_that_must_have_a_value() -> None:
    found = 0
    for action in ACTIONS:
        for sql in action.effects:
            match = re.match(r"INSERT (?:OR IGNORE )?INTO (\w+) \(([^)]*)\)", sql)
            if match:
                found += 1
                needed = {c.name for c in WHOLE.tables[match[1]].columns.values() if not c.is_optional}
                assert needed <= set(match[2].split(", ")), (action.name, sql)
            else:
                assert not sql.startswith("INSERT"), sql
    assert found > 20


MEANINGLESS = [
    ('type = "date"', 'type = "day"', r"Invalid enum value 'day' - at `\$.tables\[\d\].columns\[\d\].type`"),
    (
        'type = "ref", table = "roles"',
        'type = "ref"',
        r"of type 'ref' needs 'table' - at `\$.tables\[1\].columns",
    ),
    ('type = "date"', 'type = "date", table = "roles"', r"must not have 'table' - at `\$.tables\[1\].columns\[3\]`"),
    ('options = ["active", "revoked"]', 'options = ["active"], shares = [1, 2]', "1 options and 2 shares"),
    ("rows = 26", 'rows = "26"', r"Expected `int`, got `str` - at `\$.tables\[0\].rows`"),
    ('kind = "find"', 'kid = "find"', r"unknown field `kid` - at `\$.tables\[0\].tools\[0\]`"),
    ("sql = ", "says_not = ", r"at `\$.tables\[1\].actions\[0\].rules\[0\]`"),
    ("[[tables]]", "[[tables]", r"at line \d+"),
]


@pytest.mark.parametrize(("sound", "wrong", "place"), MEANINGLESS)
def test_a_description_without_meaning_is_refused_with_its_place(sound: str, wrong: str, place: str) -> None:
    text = (FOLDER / "it.toml").read_text("utf-8")
    assert sound in text
    with pytest.raises(qn.DefinitionError, match=rf"^company/it\.toml: .*{place}"):
        read("it", text.replace(sound, wrong, 1))


def test_the_reference_has_every_table_tool_and_role() -> None:
    text = reference()
    for name in (*WHOLE.tables, *WHOLE.actions, *WHOLE.roles):
        assert re.search(rf"\b{re.escape(name)}\b", text), name


def test_the_fingerprint_depends_on_the_description() -> None:
    other = Office(RULES, "another description")
    assert env.replace(harness=other).fingerprint != env.fingerprint
    assert env.replace(harness=Office(RULES, WHOLE.digest)).fingerprint == env.fingerprint
