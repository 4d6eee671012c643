"""Weights of valid episodes: calls that fail get the share back that the policy gave them."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

import quintain as qn
from quintain.errors import Component, Failure, UsageError
from quintain.models import Scripted
from quintain.rollouts import Group
from quintain.trace import Trace
from quintain.train.survival import Survival
from tests.train.policies import Policy, env, tasks


class Line(qn.State):
    """World whose first order fails while the line is down."""

    is_down: bool = False

    @qn.tool
    def look(self) -> str:
        """Look."""
        return "so"

    @qn.tool
    def order(self) -> str:
        """Order."""
        if self.is_down:
            raise RuntimeError("the line is down")
        return "ordered"


@qn.reward
def one(view: qn.EpisodeView[Line]) -> float:
    return 1.0


def played(*calls: str, is_down: bool = False) -> Trace:
    world = qn.Environment(
        "line",
        tasks=lambda split: [qn.Task(id="t", prompt="p", start=Line(is_down=is_down))],
        harness=qn.ToolLoop(),
        verifier=qn.Verifier(one),
        state=Line,
    )
    return asyncio.run(qn.rollout(world, world.tasks("train")[0], Scripted.calls([(name, {}) for name in calls]))).trace


def broken(component: Component, turn: int) -> Failure:
    return Failure(component=component, kind="quintain:tool_bug", stage="agent", type="T", message="", turn=turn)


def group() -> Group:
    async def first() -> Group:
        async for found in qn.rollouts(env(), Policy(turns=lambda request: 2), tasks(1), group=2):
            return found
        raise AssertionError("no group came")

    return asyncio.run(first())


def test_weights_are_the_inverse_shares_of_calls_that_did_not_fail() -> None:
    survival = Survival()
    failed, valid, other = played("look", "order", is_down=True), played("look", "order", "order"), played("look")
    assert failed.failure is not None
    survival.observe([failed] * 7 + [valid] * 3 + [other] * 5)
    # The second order never failed, and no look did, although most episodes with a look failed.
    assert survival.weight(valid) == pytest.approx(10 / 3)
    assert survival.weight(other) == 1.0
    # Horvitz and Thompson (1952): the weights of what is left add up to all episodes.
    assert 3 * survival.weight(valid) + 5 * survival.weight(other) == pytest.approx(15)


def test_a_failure_between_calls_changes_no_weight() -> None:
    survival, valid = Survival(), played("order")
    failed = played("order", is_down=True)
    assert failed.failure is not None
    failed.failure = broken("model", turn=len(failed.turns))
    survival.observe([failed, valid])
    assert survival.weight(valid) == 1.0


def test_advantages_are_multiplied_by_the_weight_of_their_episode() -> None:
    found, survival = group(), Survival()
    rows = qn.trajectories(found.traces)
    given = [[1.0] * len(row.token_ids) for row in rows]
    survival.observe(found.traces)
    assert survival.weigh(rows, given, found.traces) == given
    first = found.traces[0]
    failed = msgspec.structs.replace(first, turns=first.turns[:1], score=None, failure=broken("S", turn=0))
    survival.observe([failed])
    assert survival.weigh(rows, given, [*found.traces, failed]) == [[3 / 2] * len(row.token_ids) for row in rows]


def test_an_episode_that_was_not_observed_is_refused() -> None:
    with pytest.raises(UsageError, match="no valid episode with call 0 of look was observed: observe all first"):
        Survival().weight(played("look"))
