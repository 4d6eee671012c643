"""Plain classes in the forms that people bring along: answers wrapped or in words, a state that is one table."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import BROKE, Report, audit
from quintain.audit.checks import _silent_unknown, action_drift
from quintain.audit.kernel.check import checks_of
from quintain.audit.kernel.loader import Subject

CHECKS = [
    *checks_of(_silent_unknown),
    *(one for one in checks_of(action_drift) if one.id == "x.advertised_tools_exist"),
]
FORMS = '''
import copy
import json

RATES = {"EUR": 1.0, "USD": 1.08, "GBP": 0.86, "JPY": 162.5}
ORDERS = {f"o{n}": {"customer": name, "amount": 10 * n} for n, name in enumerate(("ada", "bob", "cleo"), 1)}


def tool(name, description, /, **properties):
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": description, "parameters": parameters}


class Converter:
    """(result, error), and no state."""

    def tasks(self):
        return [{"id": name, "currency": name} for name in ("USD", "GBP", "JPY")]

    def tools(self):
        text = {"type": "string"}
        return [tool("rate", "How much of it one euro buys.", currency=text),
                tool("spell", "A word, letter by letter.", currency=text),
                tool("book", "Book an amount.", currency=text, amount={"type": "number"})]

    def reset(self, task, seed):
        self.task, self.booked = task, []
        return f"Book what a euro buys of {task['currency']}."

    def call(self, name, arguments):
        currency = arguments.get("currency")
        if name not in ("rate", "spell", "book") or not isinstance(currency, str):
            return None, f"no user can {name} {currency!r}"
        if name == "spell":
            return "-".join(currency), None
        if name == "rate":
            return self.rate(currency)
        if currency not in RATES or type(arguments.get("amount")) not in (int, float):
            return None, f"{currency} is not traded so"
        self.booked.append((currency, arguments["amount"]))
        return "booked", None

    def rate(self, currency):
        return (RATES[currency], None) if currency in RATES else (None, f"unknown currency {currency}")

    def score(self):
        return self.booked == [(self.task["currency"], RATES[self.task["currency"]])]

    def oracle(self, task):
        currency = task["currency"]
        return [("rate", {"currency": currency}), ("spell", {"currency": currency}),
                ("book", {"currency": currency, "amount": RATES[currency]})]


class Parity(Converter):
    def rate(self, currency):
        return RATES.get(currency, 1.0), None


class Orders:
    """Blocks of text, the state is a table of few rows."""

    def tasks(self):
        return list(ORDERS)

    def tools(self):
        return [tool("get_order", "Read an order.", order_id={"type": "string"}),
                tool("note", "Write a note.", path={"type": "string"}, text={"type": "string"}),
                tool("refund", "Refund an order.", order_id={"type": "string"})]

    def reset(self, task, seed):
        self.order, self.orders, self.notes = task, copy.deepcopy(ORDERS), {}
        return f"Refund order {task}."

    def said(self, text, wrong=False):
        return {"content": [{"type": "text", "text": text}], "isError": wrong}

    def call(self, name, arguments):
        if name == "note" and isinstance(arguments.get("path"), str):
            self.notes[arguments["path"]] = arguments.get("text")
            return self.said("written")
        order = self.orders.get(str(arguments.get("order_id")))
        if order is None:
            return self.said(f"No such order: {arguments.get('order_id')}.", wrong=True)
        if name == "refund":
            order["amount"] = 0
            return self.said("refunded")
        if name != "get_order":
            return self.said(f"{name} is not to be had", wrong=True)
        return self.said(json.dumps(order))

    def score(self):
        return self.orders == {name: row | {"amount": row["amount"] * (name != self.order)}
                               for name, row in ORDERS.items()}

    def oracle(self, task):
        return [("get_order", {"order_id": task}), ("refund", {"order_id": task})]

    def state(self):
        return self.orders


class Worded(Orders):
    """Plain sentences, no state."""

    state = None

    def said(self, text, wrong=False):
        return text


class Guessing(Orders):
    """Who is not there is the first."""

    def call(self, name, arguments):
        if name == "get_order" and arguments.get("order_id") not in self.orders:
            return super().call(name, {"order_id": "o1"})
        return super().call(name, arguments)
'''


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("forms") / "forms.py"
    path.write_text(FORMS, encoding="utf-8")
    return path


def audited(file: Path, name: str) -> Report:
    report = audit(Subject(f"{file}:{name}"), CHECKS)
    assert not [one.reason for one in report.checks if one.reason.startswith(BROKE)]
    return report


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Converter", "Orders", "Worded"])
def test_errors_in_any_form_are_errors(file: Path, name: str) -> None:
    report = audited(file, name)
    assert [one.title for one in report.findings] == []
    assert all(one.looked > 0 for one in report.checks)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("Parity", "rate answers for a currency that does not exist as if it did"),
        ("Guessing", "get_order answers for a order_id that does not exist as if it did"),
    ],
)
def test_a_default_for_what_is_not_there_is_proven_in_any_form(file: Path, name: str, title: str) -> None:
    report = audited(file, name)
    assert [(one.title, one.confidence, one.severity) for one in report.findings] == [(title, "proven", "error")]
