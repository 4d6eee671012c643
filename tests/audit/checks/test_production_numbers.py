"""Tests of production's answers against a computing tool: equal everywhere, or different at one place."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import BROKE, audit
from quintain.audit.checks import _drift_production
from quintain.audit.kernel.check import checks_of
from quintain.audit.kernel.loader import Subject

pytestmark = pytest.mark.slow

CHECKS = [one for one in checks_of(_drift_production) if one.id == "x.production_counts_the_same"]
TARIFF = '''
class Tariff:
    """A tariff that ends where production's does, and a stock that is the world's own."""

    EARLY = False

    def tasks(self):
        return ["t1", "t2"]

    def tools(self):
        whole = {"type": "integer"}
        return [
            {"name": "price", "parameters": {"properties": {"grams": whole}, "required": ["grams"]}},
            {"name": "stock", "parameters": {"properties": {"shelf": whole}, "required": ["shelf"]}},
        ]

    def production(self):
        real = ((10, 90), (500, 90), (501, 140), (2000, 310))
        calls = [["price", {"grams": one}, {"cents": cents}] for one, cents in real]
        return {"calls": calls + [["stock", {"shelf": one}, {"pieces": 7 + one}] for one in (1, 2, 3)]}

    def reset(self, task, seed):
        self.pieces = {1: 8, 2: 9, 3: len(task) + seed}
        return task

    def call(self, name, arguments):
        if name == "stock":
            return {"pieces": self.pieces[arguments["shelf"]]}
        grams = arguments["grams"] + self.EARLY
        return {"cents": 90 if grams <= 500 else 140 if grams <= 1000 else 310}

    def score(self):
        return 0.0


class Early(Tariff):
    EARLY = True
'''


def test_a_tool_that_reckons_otherwise_at_one_place_is_proven(tmp_path: Path) -> None:
    (tmp_path / "tariff.py").write_text(TARIFF, encoding="utf-8")
    found = {name: audit(Subject(f"{tmp_path / 'tariff.py'}:{name}"), CHECKS) for name in ("Tariff", "Early")}
    assert not [one.reason for report in found.values() for one in report.checks if one.reason.startswith(BROKE)]
    assert not found["Tariff"].findings
    (finding,) = found["Early"].findings
    assert (finding.title, finding.confidence) == ("price reckons otherwise than production", "proven")
    assert finding.expected["arguments"] == {"grams": 500}
