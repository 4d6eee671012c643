"""Tests of units and orders in a parameter's name, description, field and production record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quintain.audit.checks import _drift_production, _drift_told
from quintain.audit.checks._drift_production import at_odds, may_be, unit_of, units_in
from quintain.audit.kernel.check import checks_of
from tests.audit.checks._found import audited

CHECKS = {
    one.id: one
    for module in (_drift_production, _drift_told)
    for one in checks_of(module)
    if one.id in ("x.done_as_told", "x.production_declares_the_same")
}
TILL = '''
import copy


class ToolError(Exception):
    pass


class Till:
    """Amounts are said in euros and kept in cents; its tools are those of production."""

    UNIT, LISTED, SIZE = "How much, in euros.", "The payments of an account, newest first.", 100

    def tasks(self):
        return ["A1", "A2"]

    def tools(self):
        account = {"type": "string"}
        amount = {"type": "integer", "minimum": 1, "maximum": 500, "description": self.UNIT}
        return [
            {"name": "get", "description": "Show an account; money is in cents.",
             "parameters": {"type": "object", "properties": {"account": account}, "required": ["account"]}},
            {"name": "list_payments", "description": self.LISTED,
             "parameters": {"type": "object", "properties": {"account": account}, "required": ["account"]}},
            {"name": "pay", "description": "Pay into an account.", "parameters": {
                "type": "object", "properties": {"account": account, "amount": amount},
                "required": ["account", "amount"]}},
        ]

    def production(self):
        return {"tools": Till.tools(Till())}

    def reset(self, task, seed):
        self.accounts = {key: {"balance": 5000} for key in ("A1", "A2", "A3")}
        return f"Pay 12 euros into {task}."

    def call(self, name, arguments):
        if arguments.get("account") not in self.accounts:
            raise ToolError("no such account")
        account = self.accounts[arguments["account"]]
        if name == "pay":
            amount = arguments.get("amount")
            if not isinstance(amount, int) or not 1 <= amount <= 500:
                raise ToolError("the amount is out of bounds")
            account["balance"] += amount * self.SIZE
            return {"ok": True}
        return dict(account) if name == "get" else []

    def state(self):
        return copy.deepcopy({"accounts": self.accounts})

    def oracle(self, task):
        return [["get", {"account": task}], ["pay", {"account": task, "amount": 12}]]

    def score(self):
        return 1.0


class AsCents(Till):
    SIZE = 1


class Otherwise(Till):
    UNIT, LISTED = "How much, in cents.", "The payments of an account, oldest first."


class InOtherWords(Till):
    UNIT, LISTED = "Whole euros, not cents.", "The payments of an account, the latest first."
'''


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("till") / "till.py"
    path.write_text(TILL, encoding="utf-8")
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "check", "titles"),
    [
        ("Till", "x.done_as_told", []),
        ("AsCents", "x.done_as_told", ["pay takes amount in euros, and counts it as cents in balance"]),
        ("InOtherWords", "x.production_declares_the_same", []),
        pytest.param(
            "Otherwise",
            "x.production_declares_the_same",
            ["order of list_payments is not as in production", "unit of amount of pay is not as in production"],
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_unit_and_an_order_are_those_of_the_field_and_of_production(
    file: Path, name: str, check: str, titles: list[str]
) -> None:
    report = audited(file, name, [CHECKS[check]])
    assert [one.status for one in report.checks] == ["checked"]
    assert sorted(one.title for one in report.findings) == titles
    assert all(one.confidence == "proven" for one in report.findings)


@pytest.mark.parametrize(
    ("said", "units"),
    [
        ("How long, in minutes.", {("time", "minutes")}),
        ("How long (minutes).", {("time", "minutes")}),
        ("How much, in cents, not in euros.", {("money", "cents")}),
        ("In whole euros rather than cents.", {("money", "euros")}),
        ("In minor units.", {("money", "cents")}),
        ("As seconds, or as minutes.", {("time", "seconds"), ("time", "minutes")}),
        ("Minutes pass while it is done.", set()),
        ("A second opinion.", set()),
    ],
)
def test_units_in_reads_the_units_of_a_description(said: str, units: set[tuple[str, str]]) -> None:
    assert units_in(said) == units


def test_a_unit_is_known_by_the_end_of_a_name_and_only_where_it_is_the_only_one() -> None:
    assert unit_of("length_mm") == ("length", "mm")
    assert unit_of("minutes_of_meeting") is None
    assert unit_of("In minutes, or in hours.", words=True) is None


@pytest.mark.parametrize(
    ("field", "shown", "units"),
    [
        ("balance_cents", "Show it.", ("euros", "cents")),
        ("balance", "Show it; money is in cents.", ("euros", "cents")),
        ("balance", "Show the balance, in cents.", ("euros", "cents")),
        ("balance", "Show the bonus, in cents.", None),
        ("balance", "Show it; money is in euros.", None),
        ("nights", "Show it; money is in cents.", None),
        ("duration_minutes", "Show it.", None),
    ],
)
def test_a_field_has_the_unit_of_its_name_or_of_what_is_said_of_it(field: str, shown: str, units: Any) -> None:
    tools = [_tool("pay", "amount", "How much, in euros."), {"name": "get", "description": shown, "parameters": {}}]
    assert at_odds(tools, ("pay", "amount"), field) == units


@pytest.mark.parametrize(
    ("factor", "name", "said", "slot", "may"),
    [
        (60, "minutes", "", "rows/+/length", True),
        (60, "minutes", "", "rows/+/minutes", False),
        (1000, "minutes", "", "rows/+/length", False),
        (3.7, "minutes", "", "rows/+/length", True),
        (12, "quantity", "", "rows/1/stock", False),
        (12, "quantity", "How many boxes.", "rows/1/stock", True),
        (12, "quantity", "", "rows/1/total", True),
        (12, "copies", "", "rows/1/stock", True),
    ],
)
def test_may_be_accepts_ratios_of_two_units(factor: float, name: str, said: str, slot: str, may: bool) -> None:
    assert may_be(factor, name, said, slot=slot) is may


def _tool(name: str, parameter: str, said: str) -> dict[str, Any]:
    properties = {parameter: {"type": "integer", "description": said}}
    return {"name": name, "description": "Do it.", "parameters": {"properties": properties}}
