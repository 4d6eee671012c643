"""Models that answer garbage, harnesses that break, tasks that do not start: each is a recorded Failure."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

import quintain as qn
from quintain.environments import sales
from quintain.errors import ModelError, UsageError
from quintain.harness import Model, Request, Session
from quintain.harnesses import Dialogue
from quintain.noise import FAULTS
from quintain.trace import End, Reply
from tests.worlds import Yard, blamed, call, environment, first_task, play, says


async def silent(request: Request) -> Reply:
    return says()


class Raises(msgspec.Struct, frozen=True):
    async def play(self, session: Session, model: Model) -> None:
        raise ZeroDivisionError("harness")


class Catches(msgspec.Struct, frozen=True):
    """Catches whatever the model does, and says that all is well."""

    async def play(self, session: Session, model: Model) -> None:
        for _ in range(3):
            try:
                await session.step(await model(session.request()))
            except Exception:  # noqa: BLE001  # that is the point
                continue
        session.terminate("all is well")


class Hangs(msgspec.Struct, frozen=True):
    async def play(self, session: Session, model: Model) -> None:
        await asyncio.Event().wait()


async def hang(request: Request) -> Reply:
    await asyncio.Event().wait()
    return says()


async def cancels(request: Request) -> Reply:
    raise asyncio.CancelledError


def model_of(reply: Any) -> Model:
    async def model(request: Request) -> Reply:
        if isinstance(reply, BaseException):
            raise reply
        return reply  # type: ignore[no-any-return]

    return model


GARBAGE: dict[str, Any] = {
    "nothing": None,
    "text": "hello",
    "a dict": {"message": "hello"},
    "of another role": Reply(qn.trace.Message("user", "I am the model")),
    "no message": Reply("hello"),  # type: ignore[arg-type]
    "a surrogate": says(text="\ud800"),
    "a surrogate in arguments": says(msgspec.structs.replace(call("nod"), arguments="\ud800")),
    "a huge number": says(usage=qn.trace.Usage(2**70)),
    "an object": object(),
}


@pytest.mark.parametrize("case", GARBAGE)
def test_a_model_that_answers_garbage(case: str) -> None:
    for harness in (None, Catches()):
        failure = blamed(play(environment(harness=harness), model_of(GARBAGE[case])))
        assert (failure.component, failure.kind) == ("model", "quintain:model_reply_invalid")


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (model_of(ConnectionError("refused")), "agent_request_failed"),
        (model_of(SystemExit(1)), "agent_request_failed"),
        (model_of(ModelError("gone", kind="transport_peer_drop")), "transport_peer_drop"),
        (hang, "transport_timeout"),
        (cancels, "agent_request_failed"),
        (lambda request: says(), "agent_request_failed"),
    ],
)
def test_a_model_that_breaks_is_blamed_whoever_catches_it(model: Any, kind: str) -> None:
    for harness in (None, Catches()):
        failure = blamed(play(environment(harness=harness, model_timeout_s=0.2 if model is hang else None), model))
        assert (failure.component, failure.kind, failure.stage) == ("model", kind, "agent")


@pytest.mark.parametrize(
    ("harness", "kind", "type_"),
    [(Raises(), "agent_run_error", "ZeroDivisionError"), (Hangs(), "agent_timeout", "DeadlineExceeded")],
)
def test_a_harness_that_breaks(harness: Any, kind: str, type_: str) -> None:
    failure = blamed(play(environment(harness=harness, episode_timeout_s=0.2), silent))
    assert (failure.component, failure.kind, failure.type) == ("H", kind, type_)


def user_of(*words: str) -> Model:
    """Returns a model whose agent greets again and again, and whose user says these words and then nothing."""
    left = list(words)

    async def model(request: Request) -> Reply:
        return says(text="Hello?" if request.role == "agent" else left.pop(0) if left else "")

    return model


def test_a_user_that_says_nothing_is_a_failure_of_its_model() -> None:
    for words, turns in (((), 5), (("Hello.", "", "Sorry."), 9)):
        trace = play(environment(harness=Dialogue(), max_turns=50), user_of(*words))
        failure = blamed(trace)
        assert (failure.component, failure.kind) == ("model", "quintain:model_reply_invalid")
        assert failure.message == "the simulated user said nothing, twice in a row"
        assert len(trace.turns) == turns


def test_a_user_that_never_stops_is_a_truncation() -> None:
    trace = play(environment(harness=Dialogue(), max_turns=20), user_of(*["And?"] * 20))
    assert (trace.validity, trace.end, trace.reason) == ("valid", End.TRUNCATED, "max_turns")


def test_a_user_whose_endpoint_breaks_is_a_failure_of_the_model() -> None:
    async def model(request: Request) -> Reply:
        if request.role == "user":
            raise ModelError("the endpoint is gone", kind="provider_unavailable")
        return says(text="Hello?")

    failure = blamed(play(environment(harness=Dialogue(opening="Good day.")), model))
    assert (failure.component, failure.kind) == ("model", "provider_unavailable")


def stubborn(task: qn.Task[Any]) -> Model:
    """Returns a model that plays a solution and sends a call again which noise kept from its tool."""
    left = list(task.solution or ())
    sent: list[tuple[str, dict[str, Any]]] = []
    lost = {fault.error for fault in FAULTS if not fault.runs}

    async def model(request: Request) -> Reply:
        last = request.messages[-1]
        if last.role != "tool" or last.text not in lost:
            if not left:
                return says(text=task.answer or "done")
            sent[:] = [left.pop(0)]
        name, arguments = sent[0]
        return says(call(name, **arguments))

    return model


@pytest.mark.parametrize(("weights", "part"), [({}, 2), ({"noise_weights": "all"}, 3)])
def test_a_solution_that_is_sent_again_survives_noise_in_nearly_every_call(weights: dict[str, Any], part: int) -> None:
    env = sales.env.replace(config=qn.Config(noise_rate=0.99, max_turns=200, **weights))
    for task in env.tasks("test")[:4]:
        trace = asyncio.run(qn.rollout(env, task, stubborn(task))).trace
        steps = [step for turn in trace.turns for step in turn.steps]
        assert trace.score == 1.0
        assert sum(step.fault is not None for step in steps) >= len(steps) // part  # Stale needs an earlier read.
    with pytest.raises(UsageError, match=r"noise_rate=1\.0"):
        qn.Config(noise_rate=1.0)


class Broken:
    name = "broken"

    def model(self, task: Any, seed: int) -> Model:
        raise LookupError("no such model")


def raising() -> Yard:
    raise OSError("no database")


def test_a_task_that_does_not_start() -> None:
    class Other(qn.State):
        pass

    starts: list[Any] = [raising, lambda: 5, Other(), lambda: Yard(notes=[object()])]  # type: ignore[list-item]
    for start in starts:
        env = environment(tasks=lambda split, start=start: [qn.Task(id="t", prompt="", start=start)])
        failure = blamed(play(env, silent))
        assert (failure.component, failure.kind, failure.stage) == ("T", "quintain:reset_failed", "seed")
    sealed = environment(tasks=lambda split: [qn.Task(id="t", prompt="", start=Yard(), truth=object())])
    assert blamed(play(sealed, silent)).type == "DefinitionError"
    assert (
        blamed(asyncio.run(qn.rollout(environment(), first_task(environment()), Broken())).trace).type == "LookupError"
    )
