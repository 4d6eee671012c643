"""Numbers of which a verifier asks the sum alone are proven to be; who asks each, and who may share, is let alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.checks.reward_hack import right_in_sum
from tests.audit.checks._found import found

pytestmark = pytest.mark.slow

PURSES = '''
class Purses:
    """Wages go into the purses of two people."""

    asks = "Pay the wages of {task} as the list says."

    def tasks(self):
        return ["may", "june"]

    def tools(self):
        properties = {"who": {"type": "string"}, "coins": {"type": "integer", "minimum": 1}}
        return [{"name": "pay_wage", "description": "", "parameters": {
            "type": "object", "properties": properties, "required": list(properties)}}]

    def reset(self, task, seed):
        self.task, self.purses = task, {"Ada": 0, "Ben": 0}
        return self.asks.format(task=task)

    def call(self, name, given):
        self.purses[given["who"]] += given["coins"]
        return "ok"

    def state(self):
        return {"purses": dict(self.purses)}

    def oracle(self, task):
        return [["pay_wage", {"who": "Ada", "coins": 41}], ["pay_wage", {"who": "Ben", "coins": 27}]]

    def score(self):
        return float(self.purses == {"Ada": 41, "Ben": 27})


class Together(Purses):
    def score(self):
        return float(sum(self.purses.values()) == 68)


class Shared(Together):
    """Here the sum is what is asked for."""

    asks = "Distribute 68 coins for {task}."


class Enough(Purses):
    """More is as well as what is due: neither number is asked for exactly."""

    def score(self):
        return float(sum(self.purses.values()) >= 60)
'''


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("Purses", 0),
        ("Together", 1),
        pytest.param("Shared", 0, marks=pytest.mark.slow),
        pytest.param("Enough", 0, marks=pytest.mark.slow),
    ],
)
def test_a_sum_that_stands_for_its_parts_is_proven(tmp_path: Path, name: str, count: int) -> None:
    (tmp_path / "purses.py").write_text(PURSES)
    assert len([one for one in found(tmp_path / "purses.py", name, [right_in_sum]) if one.stops]) == count
