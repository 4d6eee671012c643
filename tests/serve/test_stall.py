"""Quick work is done on the event loop; when it stalls, it is interrupted and done again where it disturbs nobody."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

import quintain as qn
from quintain.serve import secret
from quintain.serve.episodes.executor import TRIALS, Crew, Place
from quintain.serve.episodes.host import Host, Wanted
from quintain.serve.episodes.live import Live
from quintain.serve.episodes.secrets import NOTHING, Secrets
from quintain.serve.keys import ANYONE

GATE = threading.Event()
RAN: list[str] = []


class Bell(qn.State):
    rung: int = 0
    seen: list[int] = []

    @qn.tool
    def ring(self, waits: bool = False) -> str:
        """Ring the bell.

        Args:
            waits: Until somebody opens the gate.
        """
        self.rung += 1
        RAN.append(threading.current_thread().name)
        if waits:
            GATE.wait()
        self.seen.append(self.rng.below(1000))
        return f"rung {self.rung} times"

    @qn.tool
    def polish(self) -> None:
        """Polish the bell, which takes a while."""
        time.sleep(0.1)


@qn.reward
def often(outcome: qn.EpisodeView[Bell]) -> float:
    return outcome.state.rung / 100


def tasks(split: str) -> list[qn.Task[Bell]]:
    return [qn.Task(id="one", prompt="Ring.", start=Bell())]


ENV = qn.Environment("bell", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(often), state=Bell)


@pytest.fixture(autouse=True)
def fresh() -> None:
    GATE.clear()
    RAN.clear()


async def opened(host: Host, secrets: Secrets = NOTHING) -> Live:
    live = await host.create(Wanted(split="test", task=0, seed=3), ANYONE, secrets=secrets)
    await live.ready()
    return live


async def interrupted(live: Live) -> None:
    """Ring until that is done on the event loop, and then in a way that stalls it until it is interrupted."""
    for _ in range(TRIALS + 4):
        await live.call("ring", "{}")
    assert RAN[-1] == "MainThread"
    waiting = asyncio.create_task(live.call("ring", '{"waits": true}'))
    await asyncio.sleep(0)
    GATE.set()
    await waiting


def test_a_call_that_stalls_on_the_loop_is_done_once_and_holds_up_nobody() -> None:
    async def play() -> tuple[Live, Any]:
        host = Host([ENV])
        first, second = await opened(host), await opened(host)
        for _ in range(TRIALS + 4):
            await first.call("ring", "{}")
        assert RAN[-1] == "MainThread"
        waiting = asyncio.create_task(first.call("ring", '{"waits": true}', key="k"))
        await asyncio.sleep(0)  # It begins, and holds the loop, until it is interrupted.
        await second.call("ring", "{}")
        assert not waiting.done()
        GATE.set()
        answer = await waiting
        assert (await first.again("k") or [])[0] == answer
        await first.answer("done")
        host.crew.close()
        return first, answer

    live, answer = asyncio.run(play())
    assert answer.content == f"rung {TRIALS + 5} times"
    assert live.reward == (TRIALS + 5) / 100
    again = asyncio.run(qn.replay(ENV, ENV.tasks("test")[0], live.trace))
    assert again.to_bytes() == live.trace.to_bytes()


def test_what_is_done_again_may_take_the_time_that_it_took_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quintain.serve.limits.GRACE_S", 0.5)
    config = qn.Config(tool_timeout_s=0.5)

    async def play() -> Live:
        host = Host([ENV.replace(config=config)])
        live = await opened(host)
        for _ in range(15):
            await live.call("polish", "{}")
        await interrupted(live)
        host.crew.close()
        return live

    live = asyncio.run(play())
    assert (live.trace.failure, live.trace.turns[-1].steps[0].observation) == (None, f"rung {TRIALS + 5} times")


def test_what_stalled_once_is_slow_for_a_while() -> None:
    async def play() -> str:
        host = Host([ENV])
        live = await opened(host)
        for _ in range(TRIALS + 1):
            await live.call("ring", "{}")
        waiting = asyncio.create_task(live.call("ring", '{"waits": true}'))
        await asyncio.sleep(0)
        GATE.set()
        await waiting
        await live.call("ring", "{}")
        host.crew.close()
        return RAN[-1]

    assert asyncio.run(play()) != "MainThread"


def test_without_a_main_thread_nothing_is_done_on_the_loop() -> None:
    names: list[str] = []

    async def name() -> None:
        names.append(threading.current_thread().name)

    async def play() -> None:
        crew = Crew()
        for _ in range(TRIALS * 2):
            await crew.run(Place(), "name", name)
        crew.close()

    thread = threading.Thread(target=lambda: asyncio.run(play()), name="loop")
    thread.start()
    thread.join()
    assert "loop" not in names


def test_what_judges_said_with_a_secret_is_no_other_when_a_call_is_done_again() -> None:
    def heard(effect: qn.StepView[Bell]) -> qn.Score:
        return qn.Score(1.0, f"rung for {secret('KEY')}")

    async def play() -> None:
        env = ENV.replace(verifier=qn.Verifier(often, qn.reward(level="step")(heard)))
        host = Host([env])
        live = await opened(host, Secrets({"KEY": "open sesame"}))
        await interrupted(live)
        assert RAN[-1] != "MainThread"
        assert {reward.reason for turn in live.trace.turns for reward in turn.rewards} == {"rung for ***"}
        host.crew.close()

    asyncio.run(play())
