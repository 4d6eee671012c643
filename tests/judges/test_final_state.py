"""State verifier: goals, targets, and what else changed."""

from __future__ import annotations

import pytest

import quintain as qn
from quintain.errors import DefinitionError
from quintain.judges import reaches
from tests.judges.helpers import Shelf, play, shelf


def has_three(view: qn.EpisodeView[Shelf]) -> bool:
    return view.state.books.get("emma") == 3


THREE = ("set", {"book": "emma", "copies": 3})
OTHER = ("set", {"book": "ulysses", "copies": 9})
NOTE = ("note", {"text": "ordered"})


def target(view: qn.EpisodeView[Shelf]) -> Shelf:
    world = view.start.copy()
    world.books["emma"] = 3
    return world


@pytest.mark.parametrize(
    ("calls", "score", "reason"),
    [
        ((THREE,), 1.0, ""),
        ((), 0.0, "not reached: has_three"),
        ((THREE, OTHER), 0.0, 'changed besides: books["ulysses"]: 2 -> 9'),
        ((OTHER,), 0.0, 'not reached: has_three; changed besides: books["ulysses"]: 2 -> 9'),
        ((THREE, OTHER, NOTE), 0.0, 'changed besides: books["ulysses"]: 2 -> 9 and 1 more'),
    ],
)
def test_goals_hold_and_nothing_else_changed(calls: tuple[object, ...], score: float, reason: str) -> None:
    trace = play(shelf(reaches(has_three, allowed=['books["emma"]'])), *calls)  # type: ignore[arg-type]
    assert (trace.score, trace.rewards[0].reason) == (score, reason)


def test_target_is_reached_whatever_the_way() -> None:
    env = shelf(reaches(target=target, allowed=["notes*"]))
    assert play(env, OTHER, NOTE, THREE, ("set", {"book": "ulysses", "copies": 2})).score == 1
    trace = play(env, NOTE)
    assert trace.rewards[0].reason == 'differs from the target: books["emma"]: 3 -> 1'
    assert trace.rewards[0].details == {
        "missed": [],
        "extra": [{"path": 'books["emma"]', "before": "3", "after": "1"}],
    }


def test_patterns_can_follow_from_the_task() -> None:
    env = shelf(reaches(has_three, allowed=lambda view: view.task.truth), truth=["books*"])
    assert play(env, THREE, OTHER).score == 1


def test_letters_of_a_pattern_are_taken_literally() -> None:
    env = shelf(reaches(has_three, allowed=["books?", "book.*", 'books["emma"]']))
    assert play(env, THREE, OTHER).score == 0


def test_long_lists_of_changes_are_cut_in_the_record() -> None:
    trace = play(shelf(reaches(has_three)), *[("note", {"text": str(n)}) for n in range(23)])
    details = trace.rewards[0].details
    assert (len(details["extra"]), details["more"]) == (20, 3)


def test_goal_without_a_boolean_is_a_failure_of_the_verifier() -> None:
    def books(view: qn.EpisodeView[Shelf]) -> bool:
        return view.state.books  # type: ignore[return-value]

    failure = play(shelf(reaches(books))).failure
    assert failure is not None
    assert (failure.component, failure.kind) == ("V", "verifier_error")
    assert "goal 'books' must return True or False" in failure.message


def test_criterion_without_goal_is_refused() -> None:
    with pytest.raises(DefinitionError, match="does nothing scores 1"):
        reaches()
