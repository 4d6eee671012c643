"""Gymnasium's own environments, and plain classes of the same shape, as plain subjects."""

from __future__ import annotations

import json
import random
import threading
from typing import Any

import pytest

from quintain.audit.subjects import SubjectFailure, gymnasium, spaces
from quintain.errors import UsageError


class Counter:
    """Plain class without Gymnasium."""

    def __init__(self, *, four: bool = False) -> None:
        self.rng = random.Random(0)
        self.four = four
        self.count = 0
        self.seen = {3, 1, 2}

    def reset(self) -> int:
        self.count = 0
        return self.count

    def step(self, action: int) -> Any:
        if action == 13:
            return "nothing"
        self.count += action
        reward = float("nan") if action == 7 else self.rng.random()
        ended = self.count > 3
        return (self.count, reward, ended, {}) if self.four else (self.count, reward, ended, False, {"tail": object()})


def test_a_plain_class_with_reset_and_step_is_a_subject() -> None:
    subject = gymnasium.of(Counter)()
    assert subject.tasks() == ["episode"]
    assert subject.score() is None
    assert subject.call("step", {"action": 1}) == {"error": "no step is possible: it has not begun: reset comes first"}
    assert subject.reset("episode", 0) == {"observation": 0}
    seen = subject.call("step", {"action": 1})
    assert seen == {
        "observation": 1,
        "reward": seen["reward"],
        "terminated": False,
        "truncated": False,
        "info": {"tail": "<builtins.object>"},
    }
    assert subject.score() == seen["reward"] == random.Random(0).random()
    assert subject.call("step", {"action": 3})["terminated"]
    assert subject.call("step", {"action": 1}) == {"error": "no step is possible: the episode has ended"}
    assert subject.call("jump", {}) == {"error": "unknown tool 'jump'"}
    assert "one argument" in subject.call("step", {})["error"]
    assert subject.state()["count"] == 4
    assert subject.state()["seen"] == [1, 2, 3]
    json.dumps(subject.state())
    with pytest.raises(UsageError, match="one task"):
        subject.reset("other", 0)
    subject.close()


def test_a_snapshot_is_a_copy_and_is_not_offered_where_none_can_be_made() -> None:
    subject = gymnasium.of(Counter)()
    subject.reset("episode", 0)
    assert isinstance(subject, gymnasium.CopyableGymSubject)
    moment = subject.snapshot()
    first = [subject.call("step", {"action": 1}), subject.score()]
    for _ in range(2):
        subject.restore(moment)
        assert [subject.call("step", {"action": 1}), subject.score()] == first

    class Locked(Counter):
        def __init__(self) -> None:
            super().__init__()
            self.lock = threading.Lock()

    assert not hasattr(gymnasium.of(Locked)(), "snapshot")


def test_results_of_other_shapes_are_failures() -> None:
    old = gymnasium.of(lambda: Counter(four=True))()
    old.reset("episode", 0)
    assert set(old.call("step", {"action": 1})) == {"observation", "reward", "terminated", "truncated", "info"}
    with pytest.raises(SubjectFailure, match="returned 1 values"):
        old.call("step", {"action": 13})
    old.call("step", {"action": 7})
    assert old.score() is None


def test_cartpole_is_seeded_stepped_and_restored() -> None:
    pytest.importorskip("gymnasium", reason="pip install 'quintain[audit-gymnasium]'")
    make = gymnasium.make("CartPole-v1")
    one, two = make(), make()
    assert one.reset("episode", 3) == two.reset("episode", 3) != one.reset("episode", 4)
    one.reset("episode", 3)
    schema = one.tools()[0]["parameters"]["properties"]["action"]
    assert schema == {"type": "integer", "minimum": 0, "maximum": 1}
    for wrong in (2, -1, "left", None, 0.5, True, [0], 10**30):
        assert "not an action of Discrete(2)" in one.call("step", {"action": wrong})["error"]
    assert one.state() == two.state()
    json.dumps(one.state())
    assert one.state()["TimeLimit._elapsed_steps"] == 0
    assert isinstance(one, gymnasium.CopyableGymSubject)
    moment, steps = one.snapshot(), 0
    while "error" not in one.call("step", {"action": 1}):
        steps += 1
    assert one.score() == float(steps) > 5
    assert one.state() != two.state()
    one.restore(moment)
    assert one.state() == two.state()
    assert one.call("step", {"action": 0}) == two.call("step", {"action": 0})
    one.close()
    with pytest.raises(UsageError, match="gymnasium:NoSuch-v0"):
        gymnasium.make("NoSuch-v0")
    with pytest.raises(UsageError, match="no_such_module"):
        gymnasium.make("no_such_module:NoSuch-v0")


def _spaces() -> list[Any]:
    gym = pytest.importorskip("gymnasium", reason="pip install 'quintain[audit-gymnasium]'")
    np, s = pytest.importorskip("numpy"), gym.spaces
    return [
        s.Discrete(3, start=-1),
        s.MultiDiscrete([2, 3]),
        s.MultiDiscrete(np.array([[1, 2], [3, 4]])),
        s.MultiBinary(3),
        s.MultiBinary([2, 2]),
        s.Box(-1.0, 2.0, (2,), np.float32),
        s.Box(0, 255, (2, 2), np.uint8),
        s.Box(-np.inf, np.inf, (), np.float64),
        s.Text(min_length=1, max_length=4, charset="abc"),
        s.Tuple([s.Discrete(2), s.Box(0, 1, (1,))]),
        s.Dict({"move": s.Discrete(4), "say": s.Text(3)}),
    ]


def test_every_action_of_a_space_fits_its_schema_and_comes_back() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="comes with mcp")
    for space in _spaces():
        space.seed(0)
        for _ in range(20):
            action = json.loads(json.dumps(spaces.plain(space.sample())))
            jsonschema.validate(action, spaces.schema(space))
            assert spaces.plain(spaces.value(space, action)) == action
        for wrong in (None, "zzzzz", [], {}, 1e300, [[[1]]], {"move": 9}, [0.5, 0.5, 0.5]):
            if not (wrong == 1e300 and space.dtype == float):
                with pytest.raises(ValueError, match="not an action of"):
                    spaces.value(space, wrong)
    assert spaces.schema(None) == {}
    assert spaces.value(None, "anything") == "anything"
