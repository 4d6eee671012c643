"""Facts: every change of every table is one, and what does not matter is none."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quintain.environments.enterprise.description import Column, company
from quintain.environments.enterprise.desk import Desk
from quintain.environments.enterprise.goals import CallGoal, facts, judge, ref

from .office import office, use, value

WHOLE = company()
IDEAS = ("Longer days", "Shorter nights", "More plants", "Fewer meetings")


@pytest.fixture(scope="module")
def start() -> Desk:
    return office()


def changed(column: Column, old: object) -> object:
    """Another value that the column may have."""
    if column.kind in {"money", "count", "int", "signed"}:
        return int(str(old)) + 1
    if column.kind == "flag":
        return 1 - int(str(old))
    if column.options:
        return next(option for option in column.options if option != old)
    return "1999-12-31" if column.kind in {"date", "time"} else f"{old} changed"


@pytest.mark.parametrize(
    "department", ["people", "finance", "sales", "support", "it", "procurement", "logistics", "corporate"]
)
def test_every_column_of_every_table_is_watched(start: Desk, department: str) -> None:
    for table in WHOLE.tables.values():
        if table.department != department:
            continue
        end = start.copy()
        expected = 0
        for column in table.columns.values():
            if column.kind == "ref" or any(column.name in names for names in table.unique) or table.checks:
                continue
            row = end.db.execute(
                f'SELECT id, "{column.name}" FROM "{table.name}" WHERE "{column.name}" IS NOT NULL LIMIT 1'
            )
            for number, old in row:
                new = changed(column, old)
                end.db.execute(f'UPDATE "{table.name}" SET "{column.name}" = ? WHERE id = ?', new, number)
                expected += 1
        found = facts(start, end)
        assert found.total() == (0 if table.is_log else expected), table.name


def test_a_row_that_goes_and_one_that_comes_are_facts(start: Desk) -> None:
    end = start.copy()
    end.db.execute("DELETE FROM suggestions WHERE id = 3")
    use(end, 50, "corporate_make_suggestion", title="Longer days")
    found = facts(start, end)
    assert set(found) == {
        ("suggestions", 3, "removed"),
        ("suggestions", "new", ("title", "longer days"), ("made_by", 50), ("status", "new")),
    }


def test_words_count_but_not_their_case_and_spaces(start: Desk) -> None:
    one, two, three = start.copy(), start.copy(), start.copy()
    use(one, 50, "corporate_make_suggestion", title="Longer days")
    use(two, 50, "corporate_make_suggestion", title="  longer   Days ")
    use(three, 50, "corporate_make_suggestion", title="Longer nights")
    assert facts(start, one) == facts(start, two) != facts(start, three)


@settings(max_examples=15)
@given(order=st.permutations(IDEAS), more=st.integers(0, 3))
def test_the_order_of_what_is_made_does_not_matter_and_its_number_does(
    start: Desk, order: list[str], more: int
) -> None:
    goal = CallGoal(actor=50, calls=tuple(("corporate_make_suggestion", {"title": idea}) for idea in IDEAS))
    end = start.copy()
    for idea in [*order, *order[:more]]:
        use(end, 50, "corporate_make_suggestion", title=idea)
    verdict = judge(goal, start, end)
    assert (verdict.total, verdict.missing, len(verdict.stray)) == (4, [], more)
    end = start.copy()
    for idea in order[more:]:
        use(end, 50, "corporate_make_suggestion", title=idea)
    assert len(judge(goal, start, end).missing) == more


def test_a_new_row_stands_for_what_it_refers_to(start: Desk) -> None:
    """A requisition of the same title with another item is not the same."""

    def asked(*items: str) -> Desk:
        world = start.copy()
        for item in items:
            title = f"For {item}"
            use(world, 200, "procurement_create_requisition", title=title, budget="BUD-1", needed_by="2025-07-01")
            use(world, 200, "procurement_add_requisition_line", requisition=title, item=item, quantity=2)
        return world

    rows = start.db.execute("SELECT name FROM catalog_items WHERE active = 1 ORDER BY id LIMIT 2")
    one, two = (name for (name,) in rows)
    assert facts(start, asked(one, two)) == facts(start, asked(two, one)) != facts(start, asked(one))


def test_a_reference_is_looked_up_in_the_world_of_the_episode(start: Desk) -> None:
    world = start.copy()
    use(world, 50, "procurement_create_requisition", title="Chairs", budget="BUD-1", needed_by="2025-07-01")
    use(world, 50, "procurement_create_requisition", title="Desks", budget="BUD-1", needed_by="2025-07-01")
    line = {"requisition": ref("requisitions", requester="EMP-50", title="Chairs"), "item": "ITM-1", "quantity": 2}
    world.db.execute("UPDATE catalog_items SET active = 1 WHERE id = 1")
    goal = CallGoal(actor=50, calls=(("procurement_add_requisition_line", line),))
    end = world.copy()
    key = value(end, "SELECT id FROM requisitions WHERE title = 'Chairs'")
    use(end, 50, "procurement_add_requisition_line", requisition=f"PR-{key}", item="ITM-1", quantity=2)
    assert judge(goal, world, end).missing == judge(goal, world, end).stray == []
    nowhere = judge(goal, start, start)
    assert nowhere.total == 0
    assert nowhere.left_out[0].startswith("procurement_add_requisition_line: there is no requisition with")
