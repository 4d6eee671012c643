"""Tests of sound behavior that looks like a bug: time in a refused call, shared and new ids."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.checks import _drift_rows as rows_
from quintain.audit.checks import _drift_told as drift
from tests.audit.checks._found import firm, found

DESK = '''
def tool(name, **properties):
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": "", "parameters": parameters}

class Desk:
    """Each call takes three minutes, and every quarter of an hour a letter goes out."""

    def tasks(self):
        return ["1", "2"]

    def tools(self):
        number = {"type": "integer", "minimum": 1}
        return [tool("get_ticket", number=number), tool("close_ticket", number=number)]

    def reset(self, task, seed):
        self.task, self.minutes, self.letters = task, 0, {}
        self.tickets = {"1": {"status": "open"}, "2": {"status": "open"}}
        return f"Close ticket {task}."

    def oracle(self, task):
        return [["get_ticket", {"number": int(task)}], ["close_ticket", {"number": int(task)}]]

    def call(self, name, arguments):
        self.minutes += 3
        for number in range(1, self.minutes // 15 + 1):
            self.letters.setdefault(f"M{number}", {"to": "all"})
        ticket = self.tickets.get(str(arguments.get("number")))
        if ticket is None:
            return self.refused() if name == "close_ticket" else {"error": "no such ticket"}
        if name == "close_ticket":
            ticket["status"] = "closed"
        return dict(ticket)

    def refused(self):
        return {"error": "no such ticket"}

    def state(self):
        return {"tickets": self.tickets, "letters": self.letters}

    def score(self):
        return float(self.tickets[self.task]["status"] == "closed")

class Writes(Desk):
    def refused(self):
        self.tickets["9"] = {"status": "closed"}
        return super().refused()
'''
INVOICES = '''
def tool(name, **properties):
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": "", "parameters": parameters}

class Invoices:
    """An invoice is made anew: the new one's lines name the new one."""

    def tasks(self):
        return ["1", "2", "3"]

    def tools(self):
        return [tool("get_invoice", invoice_id={"type": "integer"}), tool("reissue", invoice_id={"type": "integer"})]

    def reset(self, task, seed):
        self.task, self.invoices, self.lines = task, {str(n): {"id": n, "paid": n} for n in range(1, 9)}, {}
        return f"Make invoice {task} anew."

    def oracle(self, task):
        return [["get_invoice", {"invoice_id": int(task)}], ["reissue", {"invoice_id": int(task)}]]

    def call(self, name, arguments):
        old = self.invoices.get(str(arguments["invoice_id"]))
        if old is None:
            return {"error": "no such invoice"}
        if name == "get_invoice":
            return dict(old)
        new = len(self.invoices) + 1
        self.invoices[str(new)] = {"id": new, "paid": old["paid"]}
        self.lines[str(new)] = {"id": new, "invoice_id": self.named(new), "text": "anew"}
        return {"id": new}

    def named(self, new):
        return new

    def state(self):
        return {"invoices": self.invoices, "lines": self.lines}

    def score(self):
        return float(len(self.invoices) > 8)

class Constant(Invoices):
    def named(self, new):
        return 4
'''

ORDERS = '''
class Orders:
    """Half of the customers have two orders each, and hardly an order has a coupon."""

    def tasks(self):
        return [str(number) for number in range(1, 9)]

    def tools(self):
        number = {"type": "integer", "minimum": 1, "maximum": 8}
        parameters = {"type": "object", "properties": {"customer_id": number}, "required": ["customer_id"]}
        return [{"name": "list_orders", "description": "The orders of a customer.", "parameters": parameters}]

    def reset(self, task, seed):
        self.task, self.said = task, False
        customers = [1, 1, 2, 2, 3, 3, 4, 4]
        rows = enumerate(customers, start=1)
        self.orders = [{"coupon_id": None, "customer_id": customer, "id": number} for number, customer in rows]
        return f"List the orders of customer {task}."

    def oracle(self, task):
        return [["list_orders", {"customer_id": int(task)}]]

    def call(self, name, arguments):
        self.said = True
        rows = [row for row in self.orders if row["customer_id"] == arguments["customer_id"]]
        return [{"id": row["id"]} for row in rows]

    def state(self):
        return {"orders": self.orders}

    def score(self):
        return float(self.said)
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "desk.py"
    path.write_text(DESK)
    return path


def test_rows_are_of_the_table_that_has_most_of_their_fields() -> None:
    events = [{"id": number, "at": 10 - number} for number in range(4)]
    orders = [{"id": number, "placed": number, "status": "sent"} for number in range(4)]
    rows = [{"id": 2, "placed": 2}, {"id": 1, "placed": 1}]
    assert rows_.joined(rows, {"events": events, "orders": orders}) == [orders[2], orders[1]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "is_bug"), [("Invoices", False), pytest.param("Constant", True, marks=pytest.mark.slow)]
)
def test_the_id_of_what_is_new_is_not_the_one_that_was_told(tmp_path: Path, name: str, *, is_bug: bool) -> None:
    (tmp_path / "invoices.py").write_text(INVOICES)
    findings = firm(found(tmp_path / "invoices.py", name, [drift.done_as_told]))
    assert any("leaves out its invoice_id" in finding.title for finding in findings) == is_bug


@pytest.mark.parametrize("value", [1_772_442_117.0, "2026-03-02", "2026-03-02T23:30:00Z"])
def test_time_is_known_by_its_value(value: object) -> None:
    assert rows_.is_time(value)


@pytest.mark.parametrize("value", [4150, 0.5, "I2", "now", None])
def test_other_value_is_not_taken_for_a_time(value: object) -> None:
    assert not rows_.is_time(value)
