"""Tests of differences that show in all rows only: fan-outs, even gaps, orders in time, lost categories."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from quintain.audit.auditor import audit
from quintain.audit.checks import data_realism
from quintain.audit.checks._data_tests import holm, joint
from quintain.audit.kernel.check import checks_of
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.loader import Subject

SUBJECT = """
import datetime as dt
import random


def story(rng, person, kind):
    days = [rng.randrange(9000) for _ in range(3)]
    days.sort()
    if kind == "order" and rng.random() < 0.2:
        days[:2] = reversed(days[:2])
    for word, day in zip(("asked", "seen", "billed"), days):
        if rng.random() < 0.9:
            yield {"person_id": person, "what": word, "noted_on": str(dt.date(2001, 1, 1) + dt.timedelta(days=day))}


def world(seed, count, kind="sound"):
    rng, people, visits, notes = random.Random(seed), [], [], []
    for place in range(count):
        people.append({"id": f"P{rng.randrange(10**8)}", "age": int(rng.gauss(50, 15))})
        for _ in range(3 if kind == "fan" else min(int(rng.paretovariate(1.1)) + (rng.random() < 0.5), 30)):
            currency = rng.choices(["EUR", "JPY"], [4, 1])[0]
            size = rng.lognormvariate(4, 1)
            visits.append({
                "id": f"V{len(visits)}" if kind == "ids" else f"V{rng.randrange(10**9)}",
                "patient": people[-1]["id"],
                "currency": currency,
                "fee": round(size * (150 if currency == "JPY" and kind != "scale" else 1), 2),
                "kind": rng.choices(["check", "urgent", "call"], [20, 2 if kind != "lost" else 0, 5])[0],
                "arrived": int(rng.random() ** 1.4 * 10**6),
                "codes": ["x"] * (1 if kind == "sizes" else 1 + int(rng.expovariate(0.6))),
            })
        notes += story(rng, people[-1]["id"], kind)
    if kind == "gaps":
        for place, visit in enumerate(visits):
            visit["arrived"] = place * 4321
    return {"people": people, "visits": visits, "notes": notes}


class Clinic:
    kind = "sound"

    def tasks(self):
        return ["a", "b"]

    def tools(self):
        return []

    def reset(self, task, seed):
        self.world = world(task, 120, self.kind)
        return "Look around."

    def call(self, name, arguments):
        return {"error": "no tools"}

    def score(self):
        return 0.0

    def state(self):
        return self.world

    def production(self):
        return {"data": world("production", 300)}


for kind in ("sound", "fan", "ids", "scale", "lost", "gaps", "sizes", "order"):
    globals()[f"clinic_{kind}"] = type(kind, (Clinic,), {"kind": kind})
"""


def found(folder: Path, kind: str) -> list[Finding]:
    path = folder / "subject.py"
    path.write_text(SUBJECT, "utf-8")
    wanted = [one for one in checks_of(data_realism) if one.id == "x.data_like_production"]
    report = audit(Subject(f"{path}:clinic_{kind}"), wanted)
    assert all("broke" not in one.reason for one in report.checks), report.checks
    return list(report.findings)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("fan", "visits.patient is unlike production's: 3 rows point to nearly each thing"),
        ("ids", "visits.id is unlike production's: its ids have no gaps"),
        ("gaps", "visits.arrived is unlike production's: its values follow at even distances"),
        ("order", "notes.what is unlike production's: seen comes before asked"),
        ("scale", "visits.fee is unlike production's"),
        ("lost", "share of values that are nowhere here"),
        ("sizes", "visits.codes is unlike production's: sizes"),
    ],
)
def test_rows_that_are_wrong_together_are_proven(tmp_path: Path, kind: str, words: str) -> None:
    said = [one for one in found(tmp_path, kind) if words in one.title]
    assert said
    assert said[0].confidence == "proven"
    assert said[0].severity == "error"


@pytest.mark.slow
def test_a_world_that_is_drawn_like_production_is_left_alone(tmp_path: Path) -> None:
    assert not [one for one in found(tmp_path, "sound") if one.confidence == "proven"]


def test_a_number_that_does_not_follow_its_category_is_seen_where_both_columns_are_right_alone() -> None:
    rng = random.Random(3)
    pairs = [(kind, rng.gauss(10 if kind == "a" else 20, 2)) for kind in rng.choices("ab", k=400)]
    apart = [{"kind": kind, "size": size} for kind, size in pairs]
    sizes = [size for _, size in pairs]
    rng.shuffle(sizes)
    mixed = [{"kind": kind, "size": size} for (kind, _), size in zip(pairs, sizes, strict=True)]
    assert any(name == "size" for name, _ in holm(joint(mixed, apart)))
    assert not holm(joint(apart[:200], apart[200:]))


def test_numbers_that_hang_together_in_production_alone_are_seen() -> None:
    rng = random.Random(4)
    real = [{"price": (price := rng.lognormvariate(3, 1)), "tax": price * rng.uniform(0.07, 0.09)} for _ in range(300)]
    taxes = [row["tax"] for row in real]
    rng.shuffle(taxes)
    made = [{"price": row["price"], "tax": tax} for row, tax in zip(real, taxes, strict=True)]
    assert [test.what for _, test in holm(joint(made, real))] == ["correlation"]
