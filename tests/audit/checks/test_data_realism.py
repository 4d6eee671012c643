"""Tests that rows unlike production are reported by column, and rows drawn like it are not."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from quintain.audit.auditor import audit
from quintain.audit.checks import data_realism
from quintain.audit.checks._data_tests import binomial, drawn_by_task, ks, variation
from quintain.audit.kernel.check import checks_of
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.loader import Subject

SUBJECT = """
import random

NAMES = ["Ann Lee", "Zoë Müller", "BOB STONE", "Carl Ito", "dan wu", "Eva Sørensen", "Finn O'Hara"]


def rows(seed, count, kind="sound"):
    rng, found = random.Random(seed), []
    for place in range(count):
        amount = round(rng.lognormvariate(4, 1), 2)
        row = {
            "id": f"O-{rng.randrange(10**6)}",
            "customer": f"User {place}" if kind == "clean" else rng.choice(NAMES),
            "email": None if kind != "clean" and rng.random() < 0.3 else f"u{place}@x.example",
            "amount": 50.0 if kind == "amount" else amount,
            "status": rng.choices(["open", "paid", "cancelled"], [5, 4, 1])[0],
            "created": f"2025-03-{rng.randrange(1, 28):02d}T{min(23, int(abs(rng.gauss(13, 3)))):02d}:00:00Z",
            "vip": rng.random() < 0.1,
        }
        found.append({name: value for name, value in row.items() if not (kind == "lacking" and name == "email")})
    return found


class Shop:
    kind = "sound"

    def __init__(self):
        self.rows = rows(1, 150, self.kind)

    def tasks(self):
        return ["a", "b"]

    def tools(self):
        schema = {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}
        return [{"name": "get_order", "description": "Get it.", "parameters": schema}]

    def reset(self, task, seed):
        return "Look at orders."

    def call(self, name, arguments):
        row = next((row for row in self.rows if row["id"] == arguments.get("order_id")), None)
        if name != "get_order" or row is None:
            return {"error": "no such order"}
        return dict(self.rows[0]) if self.kind == "constant" else dict(row)

    def score(self):
        return 0.0

    def oracle(self, task):
        return [["get_order", {"order_id": self.rows[0]["id"]}]]

    def state(self):
        return {"orders": self.rows}

    def production(self):
        if self.kind == "strange":
            return {"data": {"orders": [{"weird": [1], "id": 1}] * 30, "more": 5}, "rates": {"??": 7}}
        rates = {"orders.email_null": 0.3, "status=cancelled": 0.1, "vip_rate": 0.5 if self.kind == "rates" else 0.1}
        return {"data": {"orders": rows(2, 200), "other": [{"x": 1}]}, "rates": rates}


for kind in ("sound", "clean", "amount", "lacking", "constant", "rates", "strange"):
    globals()[f"shop_{kind}"] = type(kind, (Shop,), {"kind": kind})
"""


def found(folder: Path, kind: str) -> list[Finding]:
    """Returns the findings in a variant of the subject, without hints."""
    path = folder / "subject.py"
    path.write_text(SUBJECT, "utf-8")
    report = audit(Subject(f"{path}:{kind}"), checks_of(data_realism))
    assert all("broke" not in one.reason for one in report.checks), report.checks
    return [one for one in report.findings if one.confidence != "hint"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "check", "words", "confidence"),
    [
        (
            "shop_clean",
            "x.data_like_production",
            "orders.email is unlike production's: share of empty values",
            "proven",
        ),
        ("shop_amount", "x.data_like_production", "orders.amount", "proven"),
        ("shop_lacking", "x.data_like_production", "orders.email is unlike production's: it is missing", "proven"),
        ("shop_rates", "x.rates_as_declared", "vip_rate is declared as 0.5", "proven"),
        (
            "shop_strange",
            "x.data_like_production",
            "orders.id is unlike production's: it is text here",
            "proven",
        ),
    ],
)
def test_difference_from_production_is_found(
    tmp_path: Path, kind: str, check: str, words: str, confidence: str
) -> None:
    said = found(tmp_path, kind)
    mine = [one for one in said if one.check == check and words in one.title]
    assert mine, [(one.check, one.title) for one in said]
    assert mine[0].confidence == confidence
    assert mine[0].class_ == "data_realism"


def test_rows_like_production_are_left_alone(tmp_path: Path) -> None:
    assert not found(tmp_path, "shop_sound")


def test_distances_and_their_chances() -> None:
    rng = random.Random(1)
    one, two = [rng.gauss(0, 1) for _ in range(300)], [rng.gauss(0, 1) for _ in range(300)]
    assert ks(one, two)[1] > 0.01
    far, p = ks(one, [value + 1 for value in two])
    assert far > 0.3
    assert p < 1e-6
    assert variation(["a"] * 90 + ["b"] * 10, ["a"] * 85 + ["b"] * 15)[1] > 0.05
    assert variation(["a"] * 90 + ["b"] * 10, ["a"] * 10 + ["b"] * 90)[1] < 1e-6
    assert binomial(50, 100, 0.5) == 1.0
    assert binomial(90, 100, 0.5) < 1e-9


def test_a_column_that_is_drawn_for_each_task_is_told_from_one_that_is_drawn_for_each_row() -> None:
    rng = random.Random(5)
    towns = (["Oslo", "Lima"], ["Bern", "Oslo"], ["Rome", "Lima"], ["Cork", "Bern"])
    tasks = [[{"town": rng.choice(some), "tier": rng.choice("abc")} for _ in range(60)] for some in towns]
    assert drawn_by_task(tasks) == {"town"}
    assert drawn_by_task(tasks[:2]) == set()
    assert drawn_by_task([rows[:10] for rows in tasks]) == set()
