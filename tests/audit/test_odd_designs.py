"""Designs that a law once took for a bug, each with that law."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import audit
from quintain.audit.kernel.check import registered
from quintain.audit.kernel.loader import Subject

FOLDER = Path(__file__).parents[2] / "bench/audit"


@pytest.mark.parametrize(
    ("world", "check"),
    [
        ("sound_odd/bank.py:env", "x.collateral_damage"),  # "none" for no cost centre
        ("sound_odd/house.py:env", "x.undo"),  # where one stands, which is the way and not the work
        ("sound_odd/notes.py:env", "semantic.no_solution_leakage"),  # "Keep 4711 under the key answer"
        (
            "sound_odd/returns.py:Returns",
            "runtime.tool_declaration_accuracy",
        ),  # additional fields that the schema allows
        (
            "sound_odd/sheet.py:env",
            "x.done_as_told",
        ),  # a formula, whose value is answered; and 0, which has no other digits
        ("sound_odd/pins.py:env", "x.refused_and_half_done"),  # a log of attempts
        ("sound_odd/sheet.py:env", "x.undo"),  # an empty cell shows 0
        ("sound_odd/shelf.py:env", "x.collateral_damage"),  # a search that the state remembers
        pytest.param(
            "unseen_b/canal.py:env", "x.undo", marks=pytest.mark.slow
        ),  # a lock that is filled, passed and drained
        ("unseen_c/boxoffice.py:env", "semantic.no_solution_leakage"),  # arguments that are a row and its key
        ("unseen_c/ferrycrew.py:env", "x.collateral_damage"),  # timers, which are the framework's
        ("unseen_b/spokes.py:env", "x.done_as_told"),  # a timer, whose fields are the framework's
        ("sound_odd/survey.py:env", "semantic.oracle_max"),  # a declared maximum below 1
        ("unseen_d/shunting.py:env", "x.oracle_ablation"),  # a movement less than the solution has
        ("unseen_d/seedbank.py:env", "x.status_without_work"),  # a test that costs, and that nobody needs
        ("unseen_e/ferry.py:env", "x.collateral_damage"),  # talk after the work
        ("unseen_e/zonedesk.py:env", "x.undo"),  # a draft that was published
        ("unseen_e/zonedesk.py:env", "x.collateral_damage"),
    ],
)
def test_law_proves_nothing_in_an_odd_design(world: str, check: str) -> None:
    report = audit(Subject(f"{FOLDER / world}"), [one for one in registered() if one.id == check], tasks=12)
    assert [one.status for one in report.checks] == ["checked"]
    assert [one.title for one in report.findings if one.severity == "error"] == []


def test_calls_of_a_question_may_look_at_another_record() -> None:
    checks = [one for one in registered() if one.id == "x.another_record"]
    report = audit(Subject(f"{FOLDER / 'unseen_b/kerb.py'}:env"), checks, tasks=12)
    assert report.findings == ()


NINE_TENTHS = """
import quintain as qn


class Desk(qn.State):
    noted: int = 0

    @qn.tool
    def note(self) -> int:
        "Note something."
        self.noted += 1
        return self.noted


@qn.reward(weight=0.5)
def noted(outcome: qn.EpisodeView[Desk]) -> float:
    return float(outcome.state.noted > 0)


@qn.reward(weight=0.4)
def once(outcome: qn.EpisodeView[Desk]) -> float:
    return float(outcome.state.noted == 1)


env = qn.Environment(
    "desk",
    tasks=lambda split: [qn.Task(id="t", prompt="Note it once.", start=Desk(), solution=[("note", {})])],
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(noted, once),
    state=Desk,
)
"""


def test_weights_that_add_up_to_less_than_one_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "desk.py").write_text(NINE_TENTHS)
    checks = [one for one in registered() if one.id == "semantic.oracle_max"]
    report = audit(Subject(f"{tmp_path / 'desk.py'}:env"), checks)
    assert [one.severity for one in report.findings] == ["error"]
