"""Rows that a loop has made: filler text, and things that are called by their number."""

from __future__ import annotations

import pytest

from quintain.audit.checks._data_clean import signs

FILLER = "Lorem ipsum dolor sit amet, consectetur adipiscing elit."


@pytest.mark.parametrize(
    ("name", "values", "kinds"),
    [
        ("customer", [f"Customer {n}" for n in range(20)], {"counted"}),
        ("title", [f"Meeting {n}" for n in range(19)] + ["Budget"], {"counted"}),
        ("paragraphs", [[FILLER, FILLER] for _ in range(20)], {"filler"}),
        ("contact", [f"C{n}" for n in range(1001, 1021)], set[str]()),
        ("customer", [f"CUST-{n}" for n in range(20)], set[str]()),
        ("room", [f"Room {n}" for n in range(20)], set[str]()),
        ("customer", [f"{name} {n}" for n in range(5) for name in ("Ann", "Bo", "Cleo", "Dan")], set[str]()),
        ("customer", ["Studio 54"] * 20, set[str]()),
        ("paragraphs", [["Who sells lorem ipsum?", "Nobody."], *([f"On page {n}."] for n in range(20))], set[str]()),
    ],
)
def test_only_what_people_would_not_write_is_a_sign(name: str, values: list[object], kinds: set[str]) -> None:
    found = {sign.kind for sign in signs("t", [{name: one} for one in values]) if sign.is_strong}
    assert found & {"counted", "filler"} == kinds
