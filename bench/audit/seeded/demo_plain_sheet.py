"""The bugs of the sheet of orders, shown."""

from __future__ import annotations

from typing import Any

from .lab import HASHES, Lab, shows

Data = Any


def set_to(cell: str, value: str) -> list[Data]:
    return ["set_cell", {"cell": cell, "value": value}]


@shows(20)
def recalculates_itself_alone(lab: Lab) -> Data:
    typed = [set_to("E2", "1"), set_to("F2", "10")]
    look = ["get_cell", {"cell": "G2"}]
    _, answers = lab.play("dates-1", [*typed, look, set_to("E2", "2"), look])
    return answers[-1]["value"]


@shows(0.0)
def no_bad_rows_left(lab: Lab) -> Data:
    rows = [int(given["cell"][1:]) for _, given in lab.oracle("dates-1")]
    return lab.reward("dates-1", [["delete_row", {"row": row}] for row in rows])


@shows(1.0)
def fill_stops_short(lab: Lab) -> Data:
    return lab.reward("totals-1", lab.oracle("totals-1"))


@shows(True)  # noqa: FBT003
def formula_is_swallowed(lab: Lab) -> Data:
    return "error" in lab.begin("totals-1").call(*set_to("G2", "=PRODUCT(E2,F2)"))


@shows([True, True])
def unreadable_number_is_nought(lab: Lab) -> Data:
    world = lab.begin("doubles-1")
    return ["error" in world.call(*set_to("E3", typed)) for typed in ("1.234,50", "12 pcs")]


@shows(0.0)
def old_cells_stay(lab: Lab) -> Data:
    world, _ = lab.play("totals-1", lab.oracle("totals-1"))
    world.reset(lab.task("totals-1"), 1)
    return world.score()["score"]


@shows(3 / 12)
def bonus_hides_gaps(lab: Lab) -> Data:
    return lab.reward("totals-1", [set_to(f"G{row}", f"=E{row}*F{row}") for row in (2, 3, 4)])


@shows(True)  # noqa: FBT003
def orders_from_a_loop(lab: Lab) -> Data:
    rows = list(lab.begin("towns-1").state()["rows"].values())[1:-1]
    return all(len({row[name] for row in rows}) > 2 for name in ("Date", "Quantity", "Price"))


@shows(True)  # noqa: FBT003
def columns_by_their_names(lab: Lab) -> Data:
    return "error" not in lab.begin("towns-1").call("find_rows", {"column": "C", "text": "malm"})


@shows(True)  # noqa: FBT003
def half_filled(lab: Lab) -> Data:
    world, _ = lab.play("totals-1", [set_to("G2", "=E2*F2"), set_to("G9", "1")])
    before = world.state()
    said = world.call("fill_down", {"cell": "G2", "last": 12})
    return "error" in said and world.state() == before


@shows(False)  # noqa: FBT003
def checks_in_the_properties(lab: Lab) -> Data:
    shown = lab.begin("totals-1").call("get_sheet", {})
    return "checks" in shown.get("properties", {})


@shows([1.0, 1.0])
def gold_without_tilde(lab: Lab) -> Data:
    return [lab.reward(name, lab.oracle(name)) for name in ("dates-1", "towns-2")]


@shows(True)  # noqa: FBT003
def spot_check_of_a_set(lab: Lab) -> Data:
    return lab.same("totals-1", [set_to(f"G{row}", f"=E{row}*F{row}") for row in (2, 3, 4, 5, 6)], *HASHES)
