from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quintain as qn
from quintain.audit.triage.evidence import ReplayEvidence, content, contradicts, difference
from quintain.audit.triage.report import gather
from quintain.audit.triage.siblings import Run, Suspect
from quintain.rollouts import rollouts
from quintain.task import Call
from quintain.testing.fakes import Account, Bank, Counter, bank, counted
from quintain.trace import Trace
from tests.audit.triage.episodes import COUNTER, count, file, play, reading, run

replaced = msgspec.structs.replace


def day() -> qn.Environment[Counter]:
    """Returns an environment whose tasks continue counting in the world of the task before."""

    def make(n: int) -> qn.Task[Counter]:
        return qn.Task(
            id=f"t{n}", prompt="", start=Counter(), truth=n + 1, solution=(("add", {"amount": 1}),), day="monday"
        )

    parts: dict[str, Any] = {"harness": qn.ToolLoop(), "verifier": qn.Verifier(counted), "state": Counter}
    return qn.Environment("days", tasks=lambda split: qn.Tasks(4, make), **parts)


async def _played(env: qn.Environment[Counter]) -> list[Trace]:
    from quintain.models.agents import oracle

    found: list[Trace] = []
    async for group in rollouts(env, oracle(), env.tasks("test"), split="test"):
        found += group.traces
    return found


@pytest.mark.parametrize("back", [False, True])
def test_a_task_chain_is_replayed_in_order(back: bool) -> None:
    env = day()
    traces = run(_played(env))
    assert [bool(trace.continues) for trace in traces] == [False, True, True, True]
    found: list[ReplayEvidence] = run(gather(Run(reading(*traces).played), env, back=back))
    assert [(one.missing, one.left, set(one.scores)) for one in found] == [("", None, {1.0})] * 4


def test_a_task_chain_without_its_beginning_is_missing() -> None:
    env = day()
    traces = run(_played(env))
    (found,) = run(gather(Run(reading(traces[2]).played), env))
    assert "must come before" in found.missing


def test_time_and_draws_are_not_part_of_a_worlds_content() -> None:
    world = bank().tasks("test")[0].world()
    before = run(content(world))
    later = world.copy()
    later.clock.advance(3600)
    later.rng.random()
    assert run(content(later)) == before
    later.transfer("ann", "bob", 1)
    assert run(content(later)) != before


def test_a_task_that_has_changed_is_not_the_one_that_was_played() -> None:
    trace = replaced(play(COUNTER, count(1)), task_digest="another")
    assert "another content" in file(trace, env=COUNTER).judged[0].not_checked[3]


def test_an_episode_of_another_environment_is_not_played_here() -> None:
    judged = file(play(bank(), [("audit", {})]), env=COUNTER).judged[0]
    assert judged.not_checked[3] == "it is of the environment 'bank', not of 'counter'"


@pytest.mark.parametrize(
    ("key", "field", "new", "proven"),
    [("ann", "cents", 1000, True), ("ann", "cents", 5, False), ("ann", "name", "x", False), ("zoe", "cents", 1, False)],
)
def test_the_world_itself_can_contradict_a_read(key: str, field: str, new: Any, proven: bool) -> None:
    world = Bank(accounts=qn.Table(Account, {"ann": Account("Ann", 1000)}))
    suspect = Suspect(key, field, 0, new, tool="t", turn=1, step=0)
    assert contradicts(world, suspect) is proven


CACHES: dict[int, tuple[object, int]] = {}


class Forgetful(qn.State):
    """World whose number is read through a cache outside the world."""

    count: int = 0
    cached: bool = False

    @qn.tool
    def put(self, count: int) -> str:
        """Set the number.

        Args:
            count: To what.
        """
        self.count = count
        return "set"

    @qn.tool
    def look(self) -> int:
        """Read the number."""
        if not self.cached:
            return self.count
        return CACHES.setdefault(id(self), (self, self.count))[1]


@pytest.mark.parametrize(("cached", "owner"), [(True, "env"), (False, "policy")])
def test_a_copy_of_the_world_shows_a_stale_cache(cached: bool, owner: str) -> None:
    calls: tuple[Call, ...] = (("look", {}), ("put", {"count": 7}), ("look", {}))
    task = qn.Task(id="t", prompt="", start=Forgetful(cached=cached), truth=7, solution=calls)
    parts: dict[str, Any] = {"harness": qn.ToolLoop(), "verifier": qn.Verifier(counted), "state": Forgetful}
    env = qn.Environment("forgetful", tasks=lambda split: [task], **parts)
    label = file(play(env, calls), env=env).judged[0].label
    assert label.owner == owner
    if cached:
        assert (label.rule, label.classes, label.confidence, label.turn) == (5, ("stale_cache",), "proven", 2)
        assert "answers '7', where the world answered '0'" in label.why


@given(st.integers(0, 3), st.integers(0, 3))
def test_two_plays_differ_exactly_where_the_policies_do(a: int, b: int) -> None:
    one, other = play(COUNTER, count(a), 2), play(COUNTER, count(b), 2)
    left = difference(one, other)
    assert (left is None) == (a == b)
    if left is not None:
        assert left.turn == min(a, b)
