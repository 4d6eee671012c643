"""Episodes that a journal brings back: one record and one verdict, whatever happens to them meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import quintain as qn
from quintain import codec
from quintain.errors import UsageError
from quintain.harness import Harness, Model, Request, ToolLoop
from quintain.harnesses import Dialogue
from quintain.models.agents import Oracle
from quintain.record import RunFolder, read_traces
from quintain.serve.episodes.archive import Archive
from quintain.serve.episodes.host import EpisodeSpec, Host
from quintain.serve.errors import Gone
from quintain.serve.http.keys import ANYONE
from quintain.serve.http.limits import Limits
from quintain.serve.http.server import expire
from quintain.serve.journal.database import Journal, Past
from quintain.serve.journal.entries import Acted, Created
from quintain.trace import Message, Reply, ToolCall, Trace


class Fate:
    """Plan of what happens in the world the next time that it is played.

    Attributes:
        gate: The second draw of an episode waits for it.
        waits: Set once it does.
        ends: Whether that draw ends the episode.
    """

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.waits = threading.Event()
        self.ends = False


FATE = Fate()


class Luck(qn.State):
    """World to draw from."""

    drawn: int = 0

    @qn.tool
    def draw(self) -> str:
        """Draw."""
        self.drawn += 1
        if self.drawn == 2:
            FATE.waits.set()
            FATE.gate.wait()
            if FATE.ends:
                self.finish("out of luck")
        return str(self.drawn)


@qn.reward
def fair(outcome: qn.EpisodeView[Luck]) -> float:
    return 1.0


def environment(harness: Harness) -> qn.Environment[Luck]:
    return qn.Environment(
        "luck",
        tasks=lambda split: [qn.Task(id="a", prompt="Draw.", start=Luck())],
        harness=harness,
        verifier=qn.Verifier(fair),
        state=Luck,
        splits=("test",),
    )


LUCK, TALK = environment(ToolLoop()), environment(Dialogue(opening="Good day."))


@pytest.fixture(autouse=True)
def fate() -> None:
    FATE.gate.set()
    FATE.waits.clear()
    FATE.ends = False


@contextmanager
def up(folder: Path, env: qn.Environment[Luck] = LUCK, **more: Any) -> Generator[tuple[Host, list[Past]]]:
    """A server, which is gone afterwards as by kill -9: no episode is closed."""
    with (
        closing(Journal(folder / "journal")) as journal,
        RunFolder(folder / "out", {}, resume=(folder / "out").exists()) as kept,
    ):
        archive, pasts = Archive({"luck": kept}), journal.pasts()
        archive.recover(pasts)
        host = Host([env], log=journal, archive=archive, **more)
        yield host, pasts
        host.executor.close()


async def drawn(folder: Path, times: int = 3) -> None:
    """Draws of an episode whose server is killed."""
    with up(folder) as (host, _):
        live = await host.create(EpisodeSpec(task=0, id="one"), ANYONE)
        for _ in range(times):
            await live.call("draw", "{}")


async def come(event: threading.Event) -> None:
    await asyncio.to_thread(event.wait, 30)
    assert event.is_set()


def records(folder: Path) -> list[Trace]:
    return list(read_traces(folder / "out"))


def ended(host: Host) -> dict[str, float]:
    (family,) = (one for one in host.counts.registry.collect() if one.name == "quintain_episodes_ended")
    counted = [one for one in family.samples if one.name.endswith("_total")]
    return {one.labels["validity"]: one.value for one in counted if one.value}


def test_closed_while_it_is_played_again_it_is_kept_once_and_whole(tmp_path: Path) -> None:
    async def play() -> None:
        await drawn(tmp_path)
        with up(tmp_path) as (host, pasts):
            await host.recover(pasts)
            live = host.get("one", ANYONE)
            FATE.gate.clear()
            FATE.waits.clear()
            asking = asyncio.create_task(live.call("draw", "{}"))
            await come(FATE.waits)
            await host.close("one", ANYONE)
            with pytest.raises(Gone):
                await asking
            assert not records(tmp_path)
            FATE.gate.set()
            await host.wait_closed()
            assert ended(host) == {"valid": 1}

    asyncio.run(play())
    (trace,) = records(tmp_path)
    assert (len(trace.turns), trace.reason, trace.score) == (3, "the agent left", 1.0)


async def left(host: Host) -> None:
    await host.close("one", ANYONE)


@pytest.mark.parametrize(("end", "reason"), [(expire, "session_expired"), (left, "the agent left")])
def test_closed_before_anybody_asked_for_it_it_is_kept(
    tmp_path: Path, end: Callable[[Host], Coroutine[Any, Any, None]], reason: str
) -> None:
    async def play() -> None:
        await drawn(tmp_path)
        with up(tmp_path, limits=Limits(idle_s=0.0)) as (host, pasts):
            await host.recover(pasts)
            await end(host)
            assert host.open == 0
        with up(tmp_path) as (_, pasts):
            assert not pasts

    asyncio.run(play())
    (trace,) = records(tmp_path)
    assert (len(trace.turns), trace.reason, trace.interrupted) == (3, reason, True)


def test_a_world_that_ends_earlier_than_it_did_has_no_verdict(tmp_path: Path) -> None:
    async def play() -> None:
        await drawn(tmp_path)
        FATE.ends = True
        with up(tmp_path) as (host, pasts):
            await host.recover(pasts)
            await host.get("one", ANYONE).woken(30)
            assert ended(host) == {"invalid": 1}

    asyncio.run(play())
    (trace,) = records(tmp_path)
    assert trace.failure is not None
    assert (trace.failure.kind, trace.score) == ("quintain:replay_diverged", None)


def test_an_end_that_was_not_judged_before_the_kill_is_judged_once(tmp_path: Path) -> None:
    async def play() -> None:
        await drawn(tmp_path, 1)
        last = Reply(Message("assistant", calls=(ToolCall("call_1", "draw", "{}"),)))
        with closing(Journal(tmp_path / "journal")) as journal:
            journal.write(Acted("one", "", codec.dumps(last)))
        FATE.ends = True
        with up(tmp_path) as (host, pasts):
            await host.recover(pasts)
            await host.get("one", ANYONE).woken(30)
            assert ended(host) == {"valid": 1}

    asyncio.run(play())
    (trace,) = records(tmp_path)
    assert (len(trace.turns), trace.reason, trace.score) == (2, "out of luck", 1.0)


def test_a_record_that_was_kept_as_another_attempt_is_not_kept_again(tmp_path: Path) -> None:
    async def play() -> None:
        for words in ("first", "second"):
            with up(tmp_path) as (host, _):
                live = await host.create(EpisodeSpec(task=0, id=words, member=1), ANYONE)
                await live.answer(words)
                if words == "first":
                    await host.close(words, ANYONE)
        for _ in range(2):
            with up(tmp_path):
                assert [(trace.member, trace.attempt) for trace in records(tmp_path)] == [(1, 0), (1, 1)]

    asyncio.run(play())


def test_an_episode_that_cannot_be_made_is_refused_and_not_written_down(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nor does one that was made before hinder a start; it is there again with a user who can play it."""

    async def play() -> None:
        with up(tmp_path, user=Oracle()) as (host, _):
            with pytest.raises(UsageError, match="'a' has no solution, so the oracle cannot play it"):
                await host.create(EpisodeSpec(task=0), ANYONE)
            assert (host.open, host.room.open("episodes")) == (0, 0)
        await drawn(tmp_path)
        with up(tmp_path, user=Oracle()) as (host, pasts):
            await host.recover(pasts)
            assert (len(pasts), host.open) == (1, 0)
        assert "episode one cannot be had again: task 'a' has no solution" in caplog.text
        with up(tmp_path) as (host, pasts):
            await host.recover(pasts)
            assert host.open == 1

    asyncio.run(play())


def test_one_that_another_version_wrote_down_otherwise_hinders_no_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def play() -> None:
        with closing(Journal(tmp_path)) as journal:
            for name, wanted in (
                ("old", {"task": 0.5}),
                ("new", EpisodeSpec(task="a", id="new", split="test", member=0)),
            ):
                journal.write(Created(name, f"token-{name}", ANYONE, LUCK.fingerprint, codec.dumps(wanted)))
        with closing(Journal(tmp_path)) as journal:
            archive = Archive({})
            archive.recover(journal.pasts())
            host = Host([LUCK], log=journal, archive=archive)
            await host.recover(journal.pasts())
            assert [live.id for live in host.lives(ANYONE)] == ["new"]
            host.executor.close()
        assert "episode old cannot be had again" in caplog.text

    asyncio.run(play())


class Slow:
    """Thinks until the test lets him speak.

    Attributes:
        asked: Set once he is.
        speaks: Set for him to speak.
    """

    name = "slow"

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.speaks = threading.Event()

    def model(self, task: qn.Task[Any], seed: int) -> Model:
        return self

    async def __call__(self, request: Request) -> Reply:
        self.asked.set()
        await come(self.speaks)
        return Reply(Message("assistant", "Late."))


def test_late_user_reply_is_not_logged_for_the_next_session_of_the_name(tmp_path: Path) -> None:
    async def play() -> None:
        user = Slow()
        with up(tmp_path, TALK, user=user) as (host, _):
            await host.create(EpisodeSpec(task=0, id="twice"), ANYONE)
            await come(user.asked)
            await host.close("twice", ANYONE)
            user.asked.clear()
            await host.create(EpisodeSpec(task=0, id="twice"), ANYONE)
            user.speaks.set()
            await host.wait_closed()
            await host.get("twice", ANYONE).ready()
        with up(tmp_path, TALK) as (_, pasts):
            (past,) = pasts
            assert len(past.entries()) == 1  # What he said to the second.

    asyncio.run(play())


def test_a_member_that_goes_on_is_taken(tmp_path: Path) -> None:
    async def play() -> None:
        await drawn(tmp_path)
        with up(tmp_path) as (host, pasts):
            await host.recover(pasts)
            other = await host.create(EpisodeSpec(task=0), ANYONE)
            assert (host.get("one", ANYONE).trace.member, other.trace.member) == (0, 1)

    asyncio.run(play())
