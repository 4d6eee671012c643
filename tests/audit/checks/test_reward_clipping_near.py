"""Tests that near values, idle counts and paid damage are found, and stated tolerances are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.checks import reward_clipping as clipping
from quintain.audit.kernel.check import Check
from tests.audit.checks._found import firm, found

pytestmark = pytest.mark.slow

SUBJECTS = """
import copy, math, random

TEXT, WHOLE = {"type": "string"}, {"type": "integer", "minimum": 1, "maximum": 100000}


def tool(name, **properties):
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "parameters": parameters}


class Garden:
    graded = True

    def tasks(self):
        return [f"plan-{number}" for number in range(4)]

    def tools(self):
        return [tool("get_bed", bed=TEXT), tool("water", bed=TEXT), tool("weed", bed=TEXT), tool("dig", bed=TEXT)]

    def plan(self, task):
        return [f"{task}-{number}" for number in range(5)]

    def reset(self, task, seed):
        self.task = task
        names = self.plan(task) + [f"wild-{number}" for number in range(8)]
        self.beds = {name: {"id": name, "wet": False, "weeded": False, "dug": False} for name in names}
        return "Water the beds " + ", ".join(self.plan(task)) + "."

    def call(self, name, arguments):
        if arguments["bed"] not in self.beds:
            raise LookupError("no such bed")
        row = self.beds[arguments["bed"]]
        field = {"water": "wet", "weed": "weeded", "dig": "dug", "get_bed": ""}[name]
        if field:
            row[field] = True
        return dict(row)

    def state(self):
        return {"beds": copy.deepcopy(list(self.beds.values()))}

    def oracle(self, task):
        return [["water", {"bed": bed}] for bed in self.plan(task)]

    def score(self):
        wanted = self.plan(self.task)
        share = sum(self.beds[bed]["wet"] for bed in wanted) / len(wanted)
        rows = self.beds.values()
        damage = sum(row["weeded"] + row["dug"] + (row["wet"] and row["id"] not in wanted) for row in rows)
        return self.total(share, damage)

    def total(self, share, damage):
        return share * 0.5**damage


class Squared(Garden):
    def total(self, share, damage):
        return share**2 * 0.5**damage


class Free(Garden):
    def total(self, share, damage):
        return share


class Floored(Garden):
    def total(self, share, damage):
        return max(0.0, 1 + math.log2(share)) * 0.5**damage if share else 0.0


class Gated(Floored):
    def tools(self):
        return [*super().tools(), tool("close", bed=TEXT)]

    def plan(self, task):
        return [f"{task}-{number}" for number in range(4)]

    def reset(self, task, seed):
        self.closed = False
        return super().reset(task, seed)

    def call(self, name, arguments):
        if name != "close":
            return super().call(name, arguments)
        if not all(self.beds[bed]["wet"] for bed in self.plan(self.task)):
            raise ValueError("not all is done")
        self.closed = True
        return {"ok": True}

    def state(self):
        return {**super().state(), "closed": self.closed}

    def oracle(self, task):
        return [*super().oracle(task), ["close", {"bed": self.plan(task)[0]}]]

    def total(self, share, damage):
        return super().total((share * 4 + self.closed) / 5, damage)


class Tenths(Garden):
    def plan(self, task):
        return [f"{task}-{number}" for number in range(6)]

    def total(self, share, damage):
        return math.floor(share * 3) / 3 * 0.5**damage


class Wild(Garden):
    def total(self, share, damage):
        return min(1.0, share + 0.05 * damage)


class Turned(Garden):
    def total(self, share, damage):
        return share * (-0.5) ** damage


class Mentioned(Garden):
    def total(self, share, damage):
        return {"score": share * 0.5**damage, "damage": damage}


class Once(Garden):
    def total(self, share, damage):
        return {"score": share * 0.5 ** min(1, damage), "damage": damage}


class Clean(Garden):
    def total(self, share, damage):
        return {"score": share * 0.5 ** min(1, damage), "clean": not damage}


class Booking:
    CASES = {"a": ("10:20", 1250), "b": ("14:45", 2310)}
    demand = "Book a table at {} for exactly {} cents."

    def tasks(self):
        return list(self.CASES)

    def tools(self):
        return [tool("list_tables"), tool("book", start=TEXT, cents=WHOLE)]

    def reset(self, task, seed):
        self.task, self.booked = task, []
        return self.demand.format(*self.CASES[task])

    def call(self, name, arguments):
        if name == "list_tables":
            return {"tables": ["round", "square"]}
        self.booked.append(dict(arguments))
        return {"ok": True}

    def state(self):
        return {"booked": copy.deepcopy(self.booked)}

    def oracle(self, task):
        start, cents = self.CASES[task]
        return [["list_tables", {}], ["book", {"start": start, "cents": cents}]]

    def score(self):
        start, cents = self.CASES[self.task]
        return float(len(self.booked) == 1 and self.right(self.booked[0], start, cents))

    def right(self, row, start, cents):
        return row == {"start": start, "cents": cents}


class Hours(Booking):
    def right(self, row, start, cents):
        return row["cents"] == cents and str(row["start"])[:2] == start[:2]


class Euros(Booking):
    demand = "Book a table at {} for what it costs."

    def right(self, row, start, cents):
        return row["start"] == start and round(row["cents"] / 100) == round(cents / 100)


class Bounded(Euros):
    demand = "Book a table at {} for at most {} cents."

    def right(self, row, start, cents):
        return row["start"] == start and row["cents"] <= cents


class Enough(Bounded):
    demand = "Book a table at {}; whoever can pays for it."


class Sums:
    GOLD = {"a": "48213", "b": "77120"}

    def tasks(self):
        return list(self.GOLD)

    def tools(self):
        return [tool("submit", answer=TEXT)]

    def reset(self, task, seed):
        self.task, self.said = task, ""
        return f"How many parcels came in the year {task}? Answer by the number alone."

    def call(self, name, arguments):
        self.said = arguments["answer"]
        return {"ok": True}

    def oracle(self, task):
        return [["submit", {"answer": self.GOLD[task]}]]

    def score(self):
        try:
            return float(self.right(float(self.said), float(self.GOLD[self.task])))
        except (TypeError, ValueError):
            return 0.0

    def right(self, said, gold):
        return said == gold


class Digits(Sums):
    def right(self, said, gold):
        return f"{said:.3g}" == f"{gold:.3g}"


class Share(Sums):
    def right(self, said, gold):
        return math.isfinite(said) and abs(said - gold) <= 0.02 * gold


class Tolerant(Share):
    def reset(self, task, seed):
        return super().reset(task, seed) + " It may be wrong by 2 %."
"""


@pytest.fixture(scope="module")
def subjects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("near") / "subjects.py"
    path.write_text(SUBJECTS, "utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "check", "title"),
    [
        pytest.param("Floored", clipping.ladder, "any 1 are paid no more than any 0", marks=pytest.mark.slow),
        pytest.param("Tenths", clipping.ladder, "any 1 are paid no more than any 0", marks=pytest.mark.slow),
        pytest.param(
            "Gated",
            clipping.ladder,
            "of things that are worth the same any 1 are paid no more than any 0",
            marks=pytest.mark.slow,
        ),
        ("Wild", clipping.damage_pays, "is paid, and twice is paid more"),
        pytest.param("Turned", clipping.damage_pays, "costs something, and twice costs less", marks=pytest.mark.slow),
        pytest.param(
            "Once",
            clipping.damage_pays,
            "costs something once, and nothing any more, though it is counted",
            marks=pytest.mark.slow,
        ),
        pytest.param("Digits", clipping.near, "a wrong number is paid in full: 0.1 % ", marks=pytest.mark.slow),
    ],
)
def test_paid_near_value_or_uncounted_part_is_found(subjects: Path, name: str, check: Check, title: str) -> None:
    (finding, *_) = firm(found(subjects, name, [check], tasks=4))
    assert title in finding.title
    assert (finding.confidence, finding.severity, finding.part) == ("proven", "error", "V")


def test_tolerance_on_both_sides_is_a_likely_warning(subjects: Path) -> None:
    (finding, *_) = firm(found(subjects, "Share", [clipping.near], tasks=4))
    assert finding.title.startswith("a wrong number is paid in full: ")
    assert (finding.confidence, finding.severity, finding.part) == ("likely", "warning", "V")


@pytest.mark.parametrize(
    ("name", "checks"),
    [
        pytest.param("Squared", (clipping.ladder, clipping.damage_pays), marks=pytest.mark.slow),
        ("Free", (clipping.damage_pays,)),
        ("Mentioned", (clipping.damage_pays,)),
        ("Clean", (clipping.damage_pays,)),
        ("Tolerant", (clipping.near,)),
    ],
)
def test_no_finding_for_values_that_the_task_allows(subjects: Path, name: str, checks: tuple[Check, ...]) -> None:
    assert not firm(found(subjects, name, checks, tasks=4))
