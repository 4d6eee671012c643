"""Tests of odd first digits, recurring phrases and near-duplicate rows against natural data."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from quintain.audit.auditor import audit
from quintain.audit.checks import _data_tests, data_realism
from quintain.audit.checks._data_clean import signs
from quintain.audit.checks._data_near import first_digits, is_wide, near_rows, near_texts, off_benford, phrased, things
from quintain.audit.checks._data_tests import ColumnTest, rows_alike
from quintain.audit.kernel.check import checks_of
from quintain.audit.kernel.loader import Subject

SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "is", "ol")]


def word(rng: random.Random) -> str:
    return "".join(rng.choice(SYLLABLES) for _ in range(rng.randrange(1, 4)))


def written(seed: int, count: int) -> list[str]:
    """Texts in words of their own."""
    rng = random.Random(seed)
    return [" ".join(word(rng) for _ in range(rng.randrange(10, 25))) + "." for _ in range(count)]


def filled(seed: int, count: int) -> list[str]:
    """One letter with other names in it."""
    rng = random.Random(seed)
    return [
        f"Dear {word(rng)}, last week I was very happy to find in your shop a {word(rng)}, but it does not work as it "
        f"should, so please send me a new one or give me my money back as soon as you can. Kind regards, {word(rng)}"
        for _ in range(count)
    ]


def retold(seed: int, count: int) -> list[str]:
    """Texts, each a second time with one word more."""
    rng = random.Random(seed)
    return [text for one in written(seed, count // 2) for text in (one, f"{one} {word(rng)}")]


def multiplied(seed: int, count: int) -> list[float]:
    rng = random.Random(seed)
    return [round(rng.lognormvariate(5, 1.6), 2) for _ in range(count)]


def drawn(seed: int, count: int) -> list[float]:
    rng = random.Random(seed)
    return [round(rng.uniform(1, 1000), 2) for _ in range(count)]


def rows(seed: int, count: int, *, copied: bool = False) -> list[dict[str, Any]]:
    """Rows; when copied, every second one is the one before, but for its city."""
    rng, found = random.Random(seed), list[dict[str, Any]]()
    for place in range(count):
        names = {name: word(rng) + word(rng) for name in ("first", "last", "street", "city")}
        row = {"id": f"C-{seed}-{place}", "level": rng.choice("ab"), "paid": rng.randrange(10**6), **names}
        found.append({**found[-1], "id": row["id"], "city": row["city"]} if copied and place % 2 else row)
    return found


def differences(name: str, mine: list[Any], other: list[Any]) -> set[str]:
    """Large differences between two columns, by what was compared."""
    return {one.what for one in _data_tests.tests(name, mine, other) if one.is_large and one.p < 1e-4}


def kinds(name: str, values: list[Any]) -> set[str]:
    """Signs of a column, by kind."""
    return {sign.kind for sign in signs("t", [{name: one} for one in values]) if sign.is_odd}


def test_first_digits_of_amounts_that_are_drawn_evenly_are_odd() -> None:
    assert first_digits([0.042, -31, 700, 0]) == [4, 3, 7]
    assert off_benford(multiplied(1, 400)) < 0.1
    assert off_benford(drawn(1, 400)) > 0.2
    assert kinds("amount", drawn(1, 400)) == {"first digits"}
    assert not kinds("amount", multiplied(1, 400))


@pytest.mark.parametrize("values", [drawn(1, 60), [500 + one / 2 for one in drawn(1, 400)]])
def test_few_or_narrow_amounts_have_no_first_digits(values: list[float]) -> None:
    assert not is_wide(values)
    assert not kinds("amount", values)


def test_first_digits_are_compared_with_productions() -> None:
    assert "first digits" in differences("amount", drawn(1, 400), multiplied(2, 400))
    assert "first digits" not in differences("amount", multiplied(1, 400), multiplied(2, 400))
    assert "first digits" not in differences("weight", drawn(1, 400), multiplied(2, 400))


def test_texts_that_are_filled_in_are_made_of_phrases() -> None:
    assert sorted(phrased(filled(1, 80)))[40] > 0.85
    assert max(phrased(written(1, 80))) == 0
    assert kinds("comment", filled(1, 80)) == {"phrases"}
    assert not kinds("comment", written(1, 80))
    assert "words in phrases that come back" in differences("comment", filled(1, 80), written(2, 80))
    assert "words in phrases that come back" not in differences("comment", written(1, 80), written(2, 80))


def test_texts_that_nearly_are_others_are_counted() -> None:
    assert all(near_texts(retold(1, 80)))
    assert not any(near_texts(written(1, 80)))
    assert kinds("comment", retold(1, 120)) == {"near duplicates"}
    assert "share of nearly repeated texts" in differences("comment", retold(1, 80), written(2, 80))
    assert "share of nearly repeated texts" not in differences("comment", written(1, 80), written(2, 80))


def test_rows_that_nearly_are_others_are_counted() -> None:
    assert all(near_rows(rows(1, 80, copied=True)))
    assert not any(near_rows(rows(1, 80)))
    assert near_rows([{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}] * 80) == []
    assert {sign.kind for sign in signs("t", rows(1, 80, copied=True)) if sign.is_odd} == {"near duplicates"}
    assert not [sign for sign in signs("t", rows(1, 80)) if sign.is_odd]
    (test,) = rows_alike(rows(1, 80, copied=True), rows(2, 80))
    assert isinstance(test, ColumnTest)
    assert test.is_large
    assert not rows_alike(rows(1, 80), rows(2, 80))[0].is_large
    assert rows_alike(rows(1, 8), rows(2, 80)) == []


def test_one_thing_in_two_tasks_is_no_copy() -> None:
    before = rows(1, 60)
    after = [{**row, "city": "elsewhere"} for row in before]
    assert things([*before, *after]) == before


SUBJECT = """
import random


class Shop:
    kind = "sound"

    def tasks(self):
        return ["a"]

    def reset(self, task, seed):
        return "Look at orders."

    def score(self):
        return 0.0

    def state(self):
        rng = random.Random(1)
        draw = (lambda: rng.uniform(1, 1000)) if self.kind == "even" else (lambda: rng.lognormvariate(5, 1.6))
        return {"orders": [{"id": f"O-{rng.randrange(10**6)}", "amount": round(draw(), 2)} for _ in range(300)]}


class Even(Shop):
    kind = "even"
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pytest.param("Shop", marks=pytest.mark.slow), "Even"])
def test_odd_digits_are_a_hint(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "subject.py"
    path.write_text(SUBJECT, "utf-8")
    mine = [one for one in checks_of(data_realism) if one.id == "x.data_is_not_too_clean"]
    found = audit(Subject(f"{path}:{kind}"), mine).findings
    assert [(one.confidence, one.severity) for one in found] == ([("hint", "note")] if kind == "Even" else [])
