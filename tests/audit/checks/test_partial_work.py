"""Bugs that public projects had, in small: each is proven on a subject that has it, and its sound twin is silent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quintain.audit.auditor import audit
from quintain.audit.checks import data_realism, reward_hack, silent_default, unsolvable
from quintain.audit.kernel.check import checks_of
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.loader import Subject
from tests.audit.checks._found import found

pytestmark = pytest.mark.slow

SUBJECTS = Path(__file__).with_name("_partial_subjects.py")
CHECKS = {
    one.id: one for module in (data_realism, reward_hack, silent_default, unsolvable) for one in checks_of(module)
}


def errors(name: str, check: str) -> list[Finding]:
    """The proven errors that a check finds."""
    return [one for one in found(SUBJECTS, name, [CHECKS[check]], tasks=60) if one.stops]


@pytest.mark.parametrize(
    ("sound", "bugged", "check", "title"),
    [
        ("Rounds", "Tried", "x.partial_work", "submit_double is called 4 times"),
        pytest.param(
            "Compiler",
            "Quoting",
            "x.quoted_verdict",
            "what is said of right work is written with write_file",
            marks=pytest.mark.slow,
        ),
        pytest.param("Bank", "Logged", "x.strictness", "a right solution with more looks", marks=pytest.mark.slow),
        pytest.param(
            "Bank", "Spelled", "x.strictness", "a right solution with a number as 5.0", marks=pytest.mark.slow
        ),
        pytest.param(
            "Puzzles",
            "Halves",
            "x.rates_as_declared",
            "impossible is declared as 0.2 and seen as 0.5",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_bug_is_proven_and_its_sound_twin_is_silent(sound: str, bugged: str, check: str, title: str) -> None:
    assert [one.title for one in errors(bugged, check) if one.title.startswith(title)]
    assert not errors(sound, check)


SCORER = """
def number(text):
    return int(text) if text.strip().isdigit() else None

def generous(answer, gold):
    return 1.0 if number(gold) is None else float(number(answer) == number(gold))

def honest(answer, gold):
    return None if number(gold) is None else float(number(answer) == number(gold))
"""


@pytest.mark.parametrize(("name", "count"), [pytest.param("generous", 1, marks=pytest.mark.slow), ("honest", 0)])
def test_a_reference_that_cannot_be_read_pays_nobody(tmp_path: Path, name: str, count: int) -> None:
    (tmp_path / "scorer.py").write_text(SCORER)
    cases = [{"answer": "5", "gold": "5"}, {"answer": "8", "gold": "8"}, {"answer": "3", "gold": "three"}]
    (tmp_path / "cases.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in cases))
    subject = Subject(f"{tmp_path}/scorer.py:{name}", cases=str(tmp_path / "cases.jsonl"))
    findings = audit(subject, [CHECKS["x.unread_reference"]]).findings
    assert [one.stops for one in findings] == [True] * count
