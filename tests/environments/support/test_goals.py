"""The patterns by which a reply is read: any usual way of writing a fact counts, and no other fact does."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintain.environments.support import policy
from quintain.environments.support.goals import UNSURE, amount, day, holds, number, word
from quintain.environments.support.seed.words import letter, typos
from quintain.state import Rng

CENTS = st.integers(1, 5_000_000)


def _written(cents: int) -> list[str]:
    euros, rest = divmod(cents, 100)
    forms = [
        policy.money(cents),
        f"{euros},{rest:02} €",
        f"€{euros:,}.{rest:02}",
        f"{euros:,}".replace(",", ".") + f",{rest:02}",
    ]
    return forms if rest else [*forms, f"{euros} euros"]


@given(CENTS, st.sampled_from(["{}", "so {}.", "({}), of course", "we pay {} back", "{}; no more", "{}!"]))
def test_an_amount_is_found_however_it_is_written(cents: int, sentence: str) -> None:
    for form in _written(cents):
        assert holds(sentence.format(form), amount(cents)), form


@given(CENTS, CENTS)
def test_no_amount_is_taken_for_another(one: int, other: int) -> None:
    if one != other:
        for form in _written(other):
            assert not holds(f"it is {form} that", amount(one)), (one, form)


@pytest.mark.parametrize("text", ["119.90", "19.905", "1,19.90", "19.9", "1990"])
def test_a_part_of_an_amount_is_none(text: str) -> None:
    assert not holds(f"EUR {text}", amount(1990))


DAYS = st.dates(date(2025, 1, 1), date(2026, 12, 31))


def _dates(when: date) -> list[str]:
    month = f"{when:%B}"
    return [
        when.isoformat(),
        f"{when.day}.{when.month}.{when.year}",
        f"{when:%d.%m.%Y}",
        f"{when.day} {month}",
        f"{month} {when.day}",
        f"{month[:3]} {when.day}",
        f"the {when.day}th of {month}",
        f"{when:%d/%m}",
    ]


@given(DAYS)
def test_a_day_is_found_however_it_is_written(when: date) -> None:
    for form in _dates(when):
        assert holds(f"It ends on {form}, as agreed.", day(when.isoformat())), form


@given(DAYS, st.integers(1, 20))
def test_no_day_of_these_weeks_is_taken_for_another(when: date, days: int) -> None:
    for form in _dates(when + timedelta(days=days)):
        assert not holds(f"It ends on {form}.", day(when.isoformat())), form


def test_numbers_and_words_stand_alone() -> None:
    assert holds("see INC-12, sorry", number(12))
    assert holds("(incident #12)", number(12))
    assert not holds("INC-112 or 12.5 or 121", number(12))
    assert holds("the order h-204817.", word("H-204817"))
    assert not holds("the order H-204817-E", word("H-204817"))
    assert holds("CARE\nPLUS it is", word("Care Plus"))
    assert holds("RINGSTRASSE 5", word("Ringstraße 5"))
    assert not holds("Ringstraße 55", word("Ringstraße 5"))
    assert holds("Wir konnten das nicht verifizieren", UNSURE)


@given(st.integers(0, 2**32), st.sampled_from(["en", "de", "fr", "es"]))
def test_facts_survive_the_mess_that_customers_make(seed: int, language: str) -> None:
    rng = Rng(key=seed.to_bytes(8, "big"))
    facts = "H-204817, 50667, 1234 and EUR 19.90 for R-118203"
    assert facts in letter(rng, f"Please look at {facts} immediately because something happened", name="Zoë Ünal-Weiß",
                           language=language)  # fmt: skip


def test_typos_are_made_at_about_the_rate() -> None:
    rng = Rng(key=b"typos")
    words = " ".join(["something"] * 900)
    changed = sum(word != "something" for word in typos(rng, words, 9).split())
    assert 70 < changed < 130
