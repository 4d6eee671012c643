"""Each twin of `coding` has its bug, and the sound environment has not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from quintain.audit.auditor import audit
from quintain.audit.kernel.check import registered
from quintain.audit.kernel.loader import Subject
from quintain.environments.coding.twins.reset_leak import IndexedCoding
from quintain.environments.faults import Unavailable
from tests.resources.sandbox import house

from .playing import Task, first, made, scores, solution, use, without, world

FOUND_BY = {
    "stale_cache": "x.read_your_writes",
    "reward_hack": "x.oracle_ablation",
    "false_resolution": "x.status_without_work",
    "silent_default": "x.tool_faults",
    "reset_leak": "runtime.episode_isolation",
    "reward_clipping": "x.ladder",
    "data_realism": "x.rates_as_declared",
    "action_drift": "x.lists_are_in_order",
}
"""Class to a check that proves its twin."""


@pytest.fixture(autouse=True, scope="module")
def sandbox() -> None:
    house.need()


def job(family: str, level: str = "easy") -> Task:
    return first("coding", lambda task: task.tags == {"family": family, "level": level})


def both(twin: str) -> tuple[Any, Any]:
    return made("coding"), made("coding", twin)


@pytest.mark.parametrize(("twin", "is_shown"), [("", True), ("stale_cache", False)])
def test_an_edit_shows_in_the_sound_environment_and_not_in_the_stale_one(twin: str, *, is_shown: bool) -> None:
    env, task = made("coding", twin), job("repair")
    edit = next(given for name, given in solution(task) if name == "edit")
    state, path = world(env, task), edit["path"]
    before = use(env, state, "read", path=path)
    use(env, state, "edit", **edit)
    assert (use(env, state, "read", path=path) != before) is is_shown
    use(env, state, "write", path=path, text="x = 1\n")
    assert use(env, state, "read", path=path) == "1\tx = 1"


@pytest.mark.slow
def test_a_test_run_that_passes_is_believed_without_a_repair() -> None:
    tasks = [one for one in made("coding").tasks("validation") if one.tags == {"family": "repair", "level": "easy"}]
    pairs = [scores("coding", "reward_hack", task=one.id, calls=without(one, "edit")) for one in tasks[:5]]
    assert {plain for _, plain in pairs} == {0.0}
    assert {twisted for twisted, _ in pairs} == {0.0, 1.0}  # The tests of the repository see some of the defects.


def test_an_issue_that_is_closed_is_believed_to_be_repaired() -> None:
    task = job("repair")
    assert scores("coding", "false_resolution", task=task.id, calls=without(task, "edit")) == (1.0, 0.0)


def test_a_test_service_that_is_down_reports_success() -> None:
    said = []
    for env in both("silent_default"):
        state = world(env, job("repair"))
        state.inject("timeout")
        try:
            said.append(asyncio.run(use(env, state, "run_tests")))
        except Unavailable as error:
            said.append(str(error))
    assert said == ["the service did not answer in time; nothing was changed, try again", "\nOK\nstatus 0"]


@pytest.mark.parametrize(("twin", "is_equal"), [("", False), ("reset_leak", True)])
def test_a_search_gives_the_matches_of_the_episode_before(twin: str, *, is_equal: bool) -> None:
    env = made("coding", twin)
    IndexedCoding.matches.clear()
    found = [use(env, world(env, task), "search", text="def ") for task in (job("repair"), job("function"))]
    assert (found[0] == found[1]) is is_equal


def test_one_of_two_defects_is_paid_like_both() -> None:
    task = job("repair", "hard")
    edit = next(call for call in solution(task) if call[0] == "edit")
    calls = [call for call in solution(task) if call != edit]
    assert scores("coding", "reward_clipping", task=task.id, calls=calls) == (1.0, 0.25)


def test_older_issues_have_one_title() -> None:
    task = job("repair")
    titles = [
        {row.title for key, row in world(env, task).issues.items() if key not in task.truth.issues}
        for env in both("data_realism")
    ]
    assert len(titles[0]) > 5
    assert len(titles[1]) == 1


def test_issues_come_in_the_other_order() -> None:
    task = job("repair")
    sound, twisted = (use(env, world(env, task), "list_issues") for env in both("action_drift"))
    assert sound == twisted[::-1]
    assert [one.created_at for one in sound] == sorted((one.created_at for one in sound), reverse=True)


@pytest.mark.slow
@pytest.mark.parametrize("twin", ["", *FOUND_BY])
def test_the_audit_proves_each_twin_and_is_silent_on_the_sound_environment(twin: str) -> None:
    wanted = {FOUND_BY[twin]} if twin else set(FOUND_BY.values())
    chosen = [check for check in registered() if check.id in wanted]
    options = {"twin": twin} if twin else {}
    report = audit(Subject("coding", options=options), chosen, tasks=18)
    assert {one.check for one in report.findings if one.stops} == ({FOUND_BY[twin]} if twin else set())
