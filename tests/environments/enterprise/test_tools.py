"""Tools: every one can be called with anything valid, and refuses what the company's rules forbid."""

from __future__ import annotations

import asyncio
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quintain as qn
from quintain.environments.enterprise import env
from quintain.environments.enterprise.description import Action, Column, company
from quintain.environments.enterprise.desk import Desk, passcode_of
from quintain.environments.enterprise.goals import call
from quintain.models.agents import random
from quintain.state import Rng
from quintain.testing.strategies import calls

from .office import able, every_task, office, refusal, use, value

WHOLE = company()
ACTIONS = list(WHOLE.actions.values())
WRITES = [action for action in ACTIONS if action.writes]
EVERYTHING = """
INSERT OR IGNORE INTO role_grants (employee, role, granted_by, granted_on, status)
SELECT e.id, r.id, 1, '2025-01-01', 'active' FROM employees e CROSS JOIN roles r WHERE e.id <= 24
"""


@pytest.fixture(scope="module")
def free() -> Desk:
    """A company in which the first 24 employees may do everything."""
    world = office()
    world.db.execute(EVERYTHING)
    world.db.execute("UPDATE employees SET approval_limit = 1000000")
    return world


def some_record(world: Desk, action: Action, rng: Rng) -> str | None:
    """A record that the action may be about, and the right person signed in where it needs one; None if none is."""
    table = WHOLE.tables[action.table]
    states = ", ".join(repr(state) for state in action.source)
    where = f'WHERE "{table.status}" IN ({states})' if action.source else ""
    rows = world.db.execute(f'SELECT id FROM "{table.name}" {where} ORDER BY id')
    if not rows:
        return None
    (number,) = rng.choice(rows)
    if action.own:
        world.actor = value(world, f'SELECT "{action.own}" FROM "{table.name}" WHERE id = ?', number) or 1
    return f"{table.code}-{number}"


def some_value(world: Desk, column: Column, rng: Rng) -> object:
    if column.kind == "ref":
        table = WHOLE.tables[column.table]
        (number,) = rng.choice(world.db.execute(f'SELECT id FROM "{table.name}" ORDER BY id LIMIT 200'))
        return f"{table.code}-{number}"
    if column.options:
        return rng.choice(column.options)
    if column.kind in {"text", "note"}:
        return f"text {rng.below(10**6)}"
    if column.kind == "date":
        return rng.choice(["2025-06-03", "2025-07-15", "2025-12-31"])
    return bool(rng.below(2)) if column.kind == "flag" else 1 + rng.below(max(1, column.high))


def attempt(world: Desk, action: Action, rng: Rng) -> bool:
    """True if a call with plausible arguments succeeded; a bug of the world goes through."""
    arguments: dict[str, object] = {}
    world.actor = 1 + rng.below(24)
    if action.kind in {"get", "change", "remove"}:
        key = some_record(world, action, rng)
        if key is None:
            return False
        arguments[WHOLE.tables[action.table].parameter] = key
    for column in action.parameters:
        if action.kind != "find" or rng.below(2):
            arguments[column.name] = some_value(world, column, rng)
    try:
        call(world, action.name, **arguments)
    except qn.ToolError:
        return False
    return True


def test_every_tool_does_its_work_or_refuses_and_most_do_it(free: Desk) -> None:
    rng, worked = Rng(key=b"sweep"), set[str]()
    for action in ACTIONS:
        for _ in range(12 if action.writes else 2):
            if action.name not in worked and attempt(free.copy(), action, rng):
                worked.add(action.name)
    reads = {action.name for action in ACTIONS if not action.writes}
    stories = {name for task in every_task() for name, _ in task.truth.calls}
    assert reads <= worked
    assert len(worked | stories) >= 490
    assert free.db.execute("PRAGMA foreign_key_check") == []


@settings(max_examples=15)
@given(seed=st.binary(min_size=8, max_size=8))
def test_the_company_stays_whole_whatever_is_done(free: Desk, seed: bytes) -> None:
    world, rng = free.copy(), Rng(key=seed)
    for _ in range(25):
        before = world.db.fork()
        if not attempt(world, rng.choice(WRITES), rng):
            assert before.diff(world.db) == []
    assert world.db.execute("PRAGMA foreign_key_check") == []
    assert world.db.execute("PRAGMA integrity_check") == [("ok",)]
    assert world.db.execute("SELECT 1 FROM budgets WHERE committed + spent > planned") == []


@settings(max_examples=60)
@given(st.data())
def test_arguments_that_only_fit_the_schema_are_no_bug(free: Desk, data: st.DataObject) -> None:
    tool = data.draw(st.sampled_from(list(env.tools.values())))
    made = data.draw(calls(tool))
    world = free.copy()
    world.actor = 3
    try:
        tool.bind(world)(**tool.decode(made.arguments))
    except qn.ToolError as error:
        said = str(error)
    else:
        said = "200"
    assert said[:3].isdigit()


def test_a_state_machine_moves_only_along_its_transitions(free: Desk) -> None:
    rng, refused = Rng(key=b"states"), 0
    for action in WRITES:
        table = WHOLE.tables[action.table]
        for state in WHOLE.tables[action.table].columns[table.status].options if action.source else ():
            rows = free.db.execute(f'SELECT id FROM "{table.name}" WHERE "{table.status}" = ? LIMIT 1', state)
            if state in action.source or not rows:
                continue
            world = free.copy()
            world.actor = (
                value(world, f'SELECT "{action.own}" FROM "{table.name}" WHERE id = ?', *rows[0]) if (action.own) else 3
            )
            given = {column.name: some_value(world, column, rng) for column in action.parameters}
            record = {table.parameter: f"{table.code}-{rows[0][0]}"}
            if not world.actor:
                continue
            said = refusal(world, world.actor, action.name, **record, **given)
            assert f"is {state}, it would have to be {' or '.join(action.source)}" in said, (action.name, said)
            refused += 1
    assert refused > 250


@pytest.mark.parametrize("role", [*WHOLE.roles, ""])
def test_a_role_opens_its_own_tools_and_no_others(role: str) -> None:
    world = office()
    number = 250
    world.db.execute("DELETE FROM role_grants WHERE employee = ?", number)
    if role:
        sql = "INSERT INTO role_grants (employee, role, granted_by, granted_on, status) SELECT ?, id, 1, '2025-01-01', "
        world.db.execute(f"{sql} 'active' FROM roles WHERE name = ?", number, role)
    rng, denied = Rng(key=b"roles"), 0
    for action in ACTIONS:
        if action.own or not action.role:
            continue
        given: dict[str, object] = {c.name: some_value(world, c, rng) for c in action.parameters}
        if action.kind in {"get", "change", "remove"}:
            table = WHOLE.tables[action.table]
            given[table.parameter] = f"{table.code}-999999"  # a key without a row, so that nothing happens
        if action.role != role:
            said = refusal(world, number, action.name, **given)
            assert said == f"403: {action.name} needs the role {action.role}"
            denied += 1
        elif action.kind in {"get", "change", "remove"}:
            assert refusal(world, number, action.name, **given).startswith("404")
    assert denied > 200


def test_sign_in_is_required_and_needs_a_passcode() -> None:
    world = office()
    with pytest.raises(qn.ToolError, match="401: sign in first"):
        call(world, "people_find_employees")
    with pytest.raises(qn.ToolError, match="401: unknown employee or wrong passcode"):
        world.sign_in("EMP-40", "000000")
    assert world.sign_in("EMP-40", passcode_of(40))["employee"].startswith("EMP-40 ")
    gone = value(world, "SELECT min(id) FROM employees WHERE status = 'terminated'")
    with pytest.raises(qn.ToolError, match="401"):
        world.sign_in(f"EMP-{gone}", passcode_of(gone))


def test_salaries_are_for_payroll_their_owner_and_the_manager() -> None:
    world = office()
    owner = 200
    boss = value(world, "SELECT manager FROM employees WHERE id = ?", owner)
    payroll = able(world, "people.payroll")[0]
    stranger = next(n for n in range(100, 300) if n not in {owner, boss} and n not in able(world, "people.payroll"))
    for who, sees in ((owner, True), (boss, True), (payroll, True), (stranger, False)):
        found = use(world, who, "people_find_salaries", employee=f"EMP-{owner}")["rows"]
        assert bool(found) is sees, who
    everybody = {row["employee"] for row in use(world, stranger, "people_find_salaries")["rows"]}
    assert {name.split()[0] for name in everybody} == {f"EMP-{stranger}"}


def test_records_are_named_by_key_or_by_name_and_ambiguity_is_told() -> None:
    world = office()
    name = value(world, "SELECT name FROM employees WHERE id = 77")
    for text in ("EMP-77", f"EMP-77 {name}", name, name.upper(), f" {name} "):
        assert use(world, 1, "people_get_employee", employee=text)["key"] == "EMP-77"
    assert refusal(world, 1, "people_get_employee", employee="PR-77").startswith("404: no employee 'PR-77'")
    world.db.execute("UPDATE contacts SET name = 'Kim Lee' WHERE id IN (3, 9)")
    opt_out = {"contact": "kim lee", "opted_out": True}
    assert "CON-3, CON-9" in refusal(world, able(world, "sales.staff")[0], "sales_edit_contact", **opt_out)


def test_bad_dates_and_empty_edits_are_told() -> None:
    world = office()
    buyer = able(world, "procurement.staff")[0]
    item = {"supplier": "SUP-1", "kind": "tax", "valid_until": "2025-02-30"}
    assert refusal(world, buyer, "procurement_record_certificate", **item) == "400: there is no day '2025-02-30'"
    assert "out of range" in refusal(
        world, buyer, "procurement_record_certificate", **(item | {"valid_until": "0001-01-01"})
    )
    assert refusal(world, buyer, "procurement_edit_supplier", supplier="SUP-1") == "400: nothing to change"


def test_the_catalogue_of_tools_can_be_searched() -> None:
    world = office()
    found = [hit["tool"] for hit in world.search_tools("approve supplier invoices")]
    assert found[0] == "finance_approve_supplier_invoice"
    assert world.search_tools("zzz") == []
    assert "procurement_approve_requisition" in world.describe_table("requisitions")["tools"]
    with pytest.raises(qn.ToolError, match="purchase_orders"):
        world.describe_table("things")


def test_a_number_that_would_fall_too_low_and_a_second_record_are_refused() -> None:
    world = office()
    planner = able(world, "logistics.planner")[0]
    slot = {"warehouse": "WH-1", "carrier": "CAR-1", "comes_on": "2026-01-05", "slot": "noon"}
    use(world, planner, "logistics_book_dock_appointment", **slot)
    assert "there is such a record already" in refusal(world, planner, "logistics_book_dock_appointment", **slot)
    accountant = able(world, "finance.payer")[0]
    claim = value(world, "SELECT min(id) FROM expense_claims WHERE status = 'approved' AND total > 0")
    world.db.execute("UPDATE expense_claims SET approved_by = 1 WHERE id = ?", claim)
    world.db.execute("UPDATE bank_accounts SET balance = 0")
    pay = {"expense_claim": f"EXP-{claim}", "bank_account": "Reserve"}
    assert "below what is possible" in refusal(world, accountant, "finance_reimburse_expense_claim", **pay)


def test_every_write_is_in_the_audit_log() -> None:
    world = office()
    use(world, 60, "corporate_make_suggestion", title="Longer days")
    (row,) = world.db.execute("SELECT employee, tool, record, at FROM audit_log ORDER BY id DESC LIMIT 1")
    key = value(world, "SELECT max(id) FROM suggestions")
    assert row == (60, "corporate_make_suggestion", f"SUG-{key}", "2025-06-02T08:00")


def test_tool_results_do_not_depend_on_an_unspecified_row_order() -> None:
    """The same random calls in a world whose unordered rows come in reverse."""

    async def observed(task: qn.Task[Desk], *, is_reversed: bool) -> str:
        episode = await qn.Episode[Desk].begin(env, task)
        episode.state.db.reverse_unordered_selects(on=is_reversed)
        await env.harness.play(episode.session, random(calls=30).model(task, 0))
        return json.dumps([[str(step.observation) for step in turn.steps] for turn in episode.trace.turns])

    async def both(task: qn.Task[Desk]) -> None:
        assert await observed(task, is_reversed=True) == await observed(task, is_reversed=False)

    for task in every_task()[::40]:
        asyncio.run(both(task))


def test_employee_cannot_do_both_halves_of_a_controlled_act(free: Desk) -> None:
    """Every rule of the form `:me <> :column`, with a record in which it is the same person."""
    rng, checked = Rng(key=b"halves"), 0
    for action in WRITES:
        table = WHOLE.tables[action.table]
        given = {column.name for column in action.parameters}
        for rule in action.rules:
            match = re.fullmatch(r":me <> :(\w+)|:(\w+) <> :me", rule.sql)
            if match is None:
                continue
            who = match[1] or match[2]
            world, actor = free.copy(), 7
            arguments = {column.name: some_value(world, column, rng) for column in action.parameters}
            if who in given:
                arguments[who] = f"EMP-{actor}"
            if action.kind != "create":
                rows = world.db.execute(f'SELECT id FROM "{table.name}" ORDER BY "{who}" = ? DESC, id DESC', actor)
                ((number,), *_) = rows
                state = f'"{table.status}" = {action.source[0]!r}' if action.source else "id = id"
                person = f', "{who}" = {actor}' if who in table.columns else ""
                world.db.execute(f'UPDATE "{table.name}" SET {state}{person} WHERE id = ?', number)
                arguments[table.parameter] = f"{table.code}-{number}"
            assert rule.says in refusal(world, actor, action.name, **arguments), (action.name, rule.says)
            checked += 1
    assert checked >= 25
