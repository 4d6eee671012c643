"""Invalid calls of an agent are observations; invalid changes of a tool are Failures of S."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import quintain as qn
from quintain.trace import Image, Step, Text, Trace
from tests.worlds import blamed, call, fine, one_by_one, play, says, script, single

BROKEN = "error: the environment is broken"


class Trap(qn.State):
    """Tools that go wrong."""

    n: int = 0
    held: Any = None

    @qn.tool
    def fire(self, number: int = 0, items: list[int] | None = None) -> Any:
        """Go wrong.

        Args:
            number: A number.
            items: Numbers.
        """
        return FIRE[0](self)

    @qn.tool
    async def hang(self) -> None:
        """Never return."""
        await asyncio.Event().wait()

    @qn.tool(roles=("user",))
    def private(self) -> str:
        """Not for the agent."""
        return "secret"


FIRE: list[Callable[[Any], Any]] = [lambda state: "ok"]


def fired(do: Callable[[Any], Any], written: str = "{}", /, **config: Any) -> Trace:
    FIRE[0] = do
    one = msgspec.structs.replace(call("fire"), arguments=written)
    return play(single(Trap(), **config), one_by_one(one))


def first(trace: Trace) -> Step:
    return trace.turns[0].steps[0]


def throw(error: BaseException) -> Callable[[Any], Any]:
    def do(state: Any) -> Any:
        raise error

    return do


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("{", "error: Input data was truncated"),
        ("[]", "error: Expected `object`, got `array`"),
        ('{"number": "5"}', "error: Expected `int`, got `str` - at `$.number`"),
        ('{"numbr": 5}', "error: Object contains unknown field `numbr`"),
        ('{"number": 1e400}', "error: "),
        ('{"items": ' + "[" * 200_000, "error: "),
        ('{"unknown": ' + '{"a":' * 200_000, "error: "),
        ('{"number": "\\ud800"}', "error: "),
    ],
)
def test_arguments_that_do_not_fit_are_the_models_mistake(arguments: str, said: str) -> None:
    trace = fired(throw(AssertionError("never reached")), arguments)
    content = first(trace).observation
    assert isinstance(content, str)
    assert content.startswith(said)
    assert first(trace).is_error
    assert trace.validity == "valid"


def test_lenient_arguments_are_converted() -> None:
    trace = fired(lambda state: "ok", '{"number": "5", "unknown": 1}', arguments="lenient")
    assert (first(trace).observation, first(trace).is_error) == ("ok", False)


@pytest.mark.parametrize("name", ["no_such_tool", "private", "", "__init__", "fire "])
def test_a_tool_that_is_not_there_or_not_for_this_role(name: str) -> None:
    trace = play(single(Trap()), one_by_one(call(name)))
    assert first(trace).observation == f"error: there is no tool {name!r}"
    assert first(trace).is_error
    assert trace.validity == "valid"


def test_a_refusal_is_read_by_the_model() -> None:
    trace = fired(throw(qn.ToolError("not today")))
    assert (first(trace).observation, first(trace).is_error, trace.validity) == ("not today", True, "valid")


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def hold(value: Any) -> Callable[[Any], Any]:
    def do(state: Any) -> str:
        state.held = value
        return "ok"

    return do


def mistype(state: Any) -> str:
    state.n = "a word"
    return "ok"


BUGS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "raises": (throw(KeyError("x")), "KeyError"),
    "exits": (throw(SystemExit(3)), "SystemExit"),
    "returns an object": (lambda state: object(), "TypeError"),
    "returns NaN": (lambda state: {"a": [float("nan")]}, "ValueError"),
    "returns an infinity": (lambda state: float("inf"), "ValueError"),
    "returns a surrogate": (lambda state: "\ud800", "UnicodeEncodeError"),
    "returns a nested surrogate": (lambda state: {"a": "\ud800"}, "UnicodeEncodeError"),
    "refuses with a surrogate": (throw(qn.ToolError("\ud800")), "UnicodeEncodeError"),
    "returns too much": (lambda state: "x" * 100_000_001, "ValueError"),
    "refuses with too much": (throw(qn.ToolError("x" * 10_000_001)), "ValueError"),
    "returns too big a picture": (lambda state: Image("image/png", bytes(10_000_001)), "ValueError"),
    "returns a block of nonsense": (lambda state: Text(5), "ValidationError"),  # type: ignore[arg-type]
    "returns depths": (lambda state: nested(100_000), "RecursionError"),
}
WRECKS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "an object": (hold(object()), "TypeError"),
    "a surrogate": (hold("\ud800"), "UnicodeEncodeError"),
    "a huge number": (hold(2**70), "OverflowError"),
    "depths": (hold(nested(100_000)), "RecursionError"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_of_a_tool_is_a_failure_of_the_world(bug: str) -> None:
    do, type_ = BUGS[bug]
    trace = fired(do)
    failure = blamed(trace)
    assert (failure.component, failure.kind, failure.type) == ("S", "quintain:tool_bug", type_)
    assert (failure.stage, failure.turn) == ("agent", 0)
    assert (first(trace).observation, first(trace).is_error, len(trace.turns)) == (BROKEN, True, 1)


@pytest.mark.parametrize("wreck", WRECKS)
def test_a_world_that_cannot_be_written_down_is_a_failure_of_the_world(wreck: str) -> None:
    do, type_ = WRECKS[wreck]
    trace = fired(do)
    failure = blamed(trace)
    assert (failure.component, failure.kind, failure.type) == ("S", "quintain:state_bug", type_)
    assert trace.turns[0].state_digest == ""


@qn.reward(level="turn")
def turn_judge(view: qn.TurnView[Trap]) -> float:
    return 1.0


@qn.reward(level="step")
def step_judge(view: qn.StepView[Trap]) -> float:
    return 1.0


@pytest.mark.parametrize("criteria", [(fine,), (fine, turn_judge), (fine, step_judge)])
@pytest.mark.parametrize("do", [mistype, *(do for do, _ in WRECKS.values())])
def test_a_world_that_cannot_be_copied_fails_component_s(criteria: tuple[Any, ...], do: Callable[[Any], Any]) -> None:
    FIRE[0] = do
    failure = blamed(play(single(Trap(), *criteria), script(says(call("fire"), call("fire")))))
    assert (failure.component, failure.kind) == ("S", "quintain:state_bug")


def test_a_failure_ends_the_turn() -> None:
    FIRE[0] = throw(KeyError("x"))
    trace = play(single(Trap()), script(says(call("fire"), call("fire"))))
    assert len(trace.turns[0].steps) == 1


def test_pictures_are_observed_and_kept() -> None:
    trace = fired(lambda state: [Text("a"), Image("image/png", b"1")])
    assert first(trace).observation == (Text("a"), Image("image/png", b"1"))


def block(state: Any) -> str:
    time.sleep(20)
    return "ok"


def test_a_tool_that_blocks_the_main_thread_is_interrupted() -> None:
    started = time.monotonic()
    failure = blamed(fired(block, tool_timeout_s=0.2))
    assert (failure.component, failure.kind) == ("S", "quintain:tool_timeout")
    assert time.monotonic() - started < 5


def test_a_tool_that_blocks_another_thread_is_noticed() -> None:
    traces: list[Trace] = []
    thread = threading.Thread(target=lambda: traces.append(fired(lambda state: time.sleep(0.3), tool_timeout_s=0.2)))
    thread.start()
    thread.join()
    assert blamed(traces[0]).kind == "quintain:tool_timeout"


def test_an_async_tool_that_hangs_is_cancelled() -> None:
    trace = play(single(Trap(), tool_timeout_s=0.2), one_by_one(call("hang")))
    assert blamed(trace).kind == "quintain:tool_timeout"


def test_a_broken_tool_is_no_weather() -> None:
    FIRE[0] = throw(KeyError("x"))
    for seed in range(30):
        trace = play(single(Trap(), noise_rate=0.9), one_by_one(*[call("fire")] * 5), seed=seed)
        last = trace.turns[-1].steps[-1] if trace.turns[-1].steps else None
        if trace.failure is not None:
            assert last is not None
            assert (last.observation, last.fault) == (BROKEN, None)
