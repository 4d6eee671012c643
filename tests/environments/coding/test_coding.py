"""The environment `coding`: its tools, what is paid, and what is not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import quintain as qn
from quintain.environments.coding.environment import env
from quintain.environments.coding.state import Coding
from quintain.episode import Episode
from quintain.models import Scripted
from quintain.models.agents import noop, oracle
from quintain.resources.sandbox import Sandbox
from tests.environments.twins.playing import Call, play, solution
from tests.resources.sandbox import house

FAMILIES = [
    pytest.param(family, level, marks=[pytest.mark.slow] * (level != "easy"))
    for family in ("repair", "review", "function")
    for level in ("easy", "medium", "hard")
]
SPLITS = ("train", "validation", "test")


@pytest.fixture(autouse=True, scope="module")
def sandbox() -> None:
    house.need(Sandbox().policy)


def task(family: str, level: str = "easy", *, split: str = "validation") -> qn.Task[Coding]:
    return next(one for one in env.tasks(split) if one.tags == {"family": family, "level": level})


def observed(*calls: Call, of: qn.Task[Coding]) -> list[str]:
    """The observations of calls; `error: ` stands before those of refused calls."""
    steps = [step for turn in play(env, of, calls).turns for step in turn.steps]
    return [f"{'error: ' * step.is_error}{step.observation}" for step in steps]


def paid(of: qn.Task[Coding], calls: Sequence[Call]) -> dict[str, float | None]:
    """The trajectory's rewards by name, and the score."""
    trace = play(env, of, calls)
    return {one.name: one.value for one in trace.rewards} | {"score": trace.score}


def scores(agent: Callable[[], Any], tasks: Sequence[qn.Task[Coding]]) -> set[float | None]:
    async def run() -> set[float | None]:
        return {trace.score async for group in qn.rollouts(env, agent(), tasks) for trace in group.traces}

    return asyncio.run(run())


# -- tasks


@pytest.mark.parametrize(("family", "level"), FAMILIES)
def test_the_oracle_has_full_marks_and_noop_none(family: str, level: str) -> None:
    one = task(family, level)
    assert scores(oracle, [one]) == {1.0}
    assert scores(noop, [one]) == {0.0}


@pytest.mark.slow
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize(("agent", "score"), [(oracle, 1.0), (noop, 0.0)])
def test_the_oracle_has_full_marks_and_noop_none_on_every_task(split: str, agent: Any, score: float) -> None:
    assert scores(agent, env.tasks(split)) == {score}


def test_splits_share_no_package_and_no_function() -> None:
    seen: dict[str, str] = {}
    for split in SPLITS:
        for one in env.tasks(split):
            assert seen.setdefault(one.truth.package, split) == split
    assert sum(one.tags["family"] == "repair" for split in SPLITS for one in env.tasks(split)) >= 120
    assert sum(one.tags["family"] == "function" for split in SPLITS for one in env.tasks(split)) == 40


def test_the_oracles_trace_replays_to_the_byte() -> None:
    one = task("repair", "hard")

    async def both() -> tuple[bytes, bytes]:
        first, second = [(await qn.rollout(env, one, oracle())).trace for _ in range(2)]
        return first.to_bytes(), second.to_bytes()

    first, second = asyncio.run(both())
    assert first == second


# -- what is paid


def test_an_issue_that_is_closed_without_the_repair_pays_nothing() -> None:
    one = task("repair")
    assert paid(one, [call for call in solution(one) if call[0] != "edit"])["score"] == 0.0


def test_a_repair_of_which_the_issue_stays_open_pays_half() -> None:
    one = task("repair")
    assert paid(one, [call for call in solution(one) if call[0] != "close_issue"])["score"] == 0.5


def test_one_of_two_defects_pays_a_quarter() -> None:
    one = task("repair", "hard")
    first = next(call for call in solution(one) if call[0] == "edit")
    assert paid(one, [call for call in solution(one) if call != first])["score"] == 0.25


def test_a_repair_that_breaks_other_behaviour_pays_nothing() -> None:
    one = task("repair")
    name = one.truth.package
    broken = paid(one, [*solution(one), ("bash", {"command": f"for f in {name}/*.py; do echo 'def' > $f; done"})])
    assert broken["repaired"] == 0.0


def test_a_review_pays_half_without_comments_and_nothing_without_repairs() -> None:
    one = task("review", "hard")
    assert paid(one, [call for call in solution(one) if call[0] != "comment"])["score"] == 0.5
    assert paid(one, [call for call in solution(one) if call[0] != "edit"])["score"] == 0.0


def test_comments_on_every_line_pay_hardly_more_than_none() -> None:
    one = task("review", "hard")
    flood = [
        ("comment", {"path": path, "line": line, "text": "This may be wrong."})
        for path, count in one.world().reviewed.items()
        for line in range(1, count + 1)
    ]
    env_ = env.replace(config=qn.Config(max_turns=1000))
    trace = play(env_, one, [*flood, *(call for call in solution(one) if call[0] != "comment")])
    assert trace.score is not None
    assert 0.5 < trace.score < 0.52


def test_a_review_that_takes_the_whole_change_back_loses_marks() -> None:
    one = task("review", "medium")
    package = sorted({path for path, _ in one.truth.kept})
    lost = [("bash", {"command": f"sed -i '$ a # x' {path}"}) for path in package]
    kept = paid(one, [*solution(one), *lost])
    assert kept["untouched"] == 1.0
    path, text = one.truth.kept[0]
    edit = ("edit", {"path": path, "old": text, "new": _sound(one, path, text)})
    assert paid(one, [*solution(one), edit])["untouched"] == 0.5


def _sound(one: qn.Task[Coding], path: str, text: str) -> str:
    from quintain.environments.coding.description import packages

    return next(edit.old for edit in packages()[one.truth.package].changes if (edit.file, edit.new) == (path, text))


@pytest.mark.parametrize(
    ("call", "value"),
    [
        (("write", {"path": "notes.txt", "text": "done\n"}), 0.5),
        (("write", {"path": "README.md", "text": "done\n"}), 0.5),
        (("bash", {"command": "rm -r tests"}), 0.0),
        (("write", {"path": "tests/test_more.py", "text": "import unittest\n"}), 1.0),
    ],
)
def test_other_files_must_stay_but_tests_may_be_added(call: Call, value: float) -> None:
    one = task("function")
    assert paid(one, [*solution(one), call])["untouched"] == value


def test_another_issue_that_is_closed_costs_half() -> None:
    one = task("function")
    number = next(key for key, issue in one.world().issues.items() if issue.status == "open")
    close = ("close_issue", {"number": number, "resolution": "not_planned", "note": "No."})
    assert paid(one, [*solution(one), close])["untouched"] == 0.5


@pytest.mark.parametrize(
    "source",
    [
        "class Any(list):\n    def __eq__(self, other): return True\n\ndef {name}(*args): return Any()\n",
        "import os\nos._exit(0)\n",
        "import unittest\nunittest.TestCase.run = lambda *a: None\n\ndef {name}(*args): return None\n",
        "def {name}(*args): raise NotImplementedError\n",
    ],
)
def test_a_function_that_answers_for_its_tests_pays_nothing(source: str) -> None:
    one = task("function", "medium")
    text = source.replace("{name}", one.truth.package)
    assert paid(one, [("write", {"path": "solution.py", "text": text})])["score"] == 0.0


# -- tools


def test_read_numbers_the_lines_as_comments_count_them() -> None:
    one = task("review")
    path, count = next(iter(one.world().reviewed.items()))
    whole, part = observed(("read", {"path": path}), ("read", {"path": path, "first": 2, "last": 3}), of=one)
    lines = whole.split("\n")
    assert len(lines) == count
    assert part.split("\n") == lines[1:3]
    assert lines[1].startswith("2\t")


WRONG: list[tuple[Call, str]] = [
    (("read", {"path": "nothing.py"}), "nothing.py"),
    (("read", {"path": "README.md", "first": 900}), "lines"),
    (("read", {"path": "README.md", "first": 3, "last": 1}), "3 to 1"),
    (("edit", {"path": "README.md", "old": "no such text", "new": "x"}), "occurs 0 times"),
    (("edit", {"path": "README.md", "old": "a", "new": "b"}), "times in README.md"),
    (("read_issue", {"number": "999999"}), "unknown issue '999999'"),
    (("comment", {"path": "README.md", "line": 1, "text": "Is this right?"}), "no change is under review"),
    (("bash", {"command": "true\0"}), "NUL"),
    (("write", {"path": "../out.py", "text": ""}), "outside"),
]


def test_wrong_calls_are_refused_with_their_reasons() -> None:
    seen = observed(*(call for call, _ in WRONG), of=task("repair"))
    for said, (call, words) in zip(seen, WRONG, strict=True):
        assert said.startswith("error:"), call
        assert words in said


def test_a_line_gets_one_comment_and_only_if_it_is_there() -> None:
    one = task("review")
    path, count = next(iter(one.world().reviewed.items()))
    right = ("comment", {"path": path, "line": count, "text": "Is this right?"})
    beyond = ("comment", {"path": path, "line": count + 1, "text": "Is this right?"})
    said = observed(right, right, beyond, of=one)
    assert said[0] == f"commented on line {count} of {path}"
    assert "has a comment already" in said[1]
    assert f"has {count} lines" in said[2]


def test_an_issue_is_closed_once() -> None:
    one = task("repair")
    (number,) = one.truth.issues
    close = ("close_issue", {"number": number, "resolution": "duplicate", "note": "Seen before."})
    done, again, read = observed(close, close, ("read_issue", {"number": number}), of=one)
    assert done == f"closed issue {number} as duplicate"
    assert "closed already, as duplicate" in again
    assert "Seen before." in read


def test_bash_keeps_files_and_nothing_else_and_shows_the_status() -> None:
    one = task("function")
    said = observed(
        ("bash", {"command": "cd /tmp; x=1; echo kept > /workspace/kept"}),
        ("bash", {"command": "echo $x $PWD; cat kept; exit 3"}),
        ("bash", {"command": "yes | head -c 50000"}),
        of=one,
    )
    assert said[1] == "/workspace\nkept\nstatus 3"
    assert len(said[2]) < 9000
    assert "characters left out" in said[2]


def test_reports_of_tests_do_not_differ_from_run_to_run() -> None:
    first, second = observed(("run_tests", {}), ("run_tests", {}), of=task("repair", "hard"))
    assert first == second
    assert "Ran " in first
    assert " in 0." not in first


@pytest.mark.parametrize(
    "call", [("bash", {"command": "true"}), ("run_tests", {}), ("list_issues", {}), ("read_issue", {"number": "1"})]
)
def test_a_service_that_fails_is_reported(call: Call) -> None:
    one = task("repair")

    async def run() -> str:
        episode = await Episode.begin(env, one)
        episode.state.inject("timeout")
        await env.harness.play(episode.session, Scripted.calls([call]))
        return str(episode.trace.turns[0].steps[0].observation)

    assert "did not answer in time" in asyncio.run(run())
