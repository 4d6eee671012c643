"""Idle episodes are closed in time; those in which something runs are not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from quintain.serve.episodes.host import PATIENCE_S, EpisodeSpec, Host
from quintain.serve.episodes.live import BUILD_S, Live
from quintain.serve.errors import Gone, Unknown
from quintain.serve.http.keys import ANYONE
from quintain.serve.http.limits import Limits
from quintain.serve.http.server import expire
from quintain.serve.openenv.session import EnvSession
from quintain.serve.openenv.wire import Reset
from tests.serve.environments import Gates, counter, gated

LONG_S = 3600.0


@pytest.mark.parametrize("key", ["", "a key"])
def test_an_episode_is_idle_from_the_end_of_its_last_call_on(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUINTAIN_TEST_FOLDER", str(tmp_path))
    gates = Gates(tmp_path)

    async def play() -> None:
        host = Host([gated], limits=Limits(idle_s=60.0))
        live = await host.create(EpisodeSpec(task=0), ANYONE)
        calling = asyncio.create_task(live.call("hold", '{"gate": "long"}', key=key))
        await asyncio.to_thread(gates.await_entry, "long")
        live.touched -= LONG_S
        await expire(host)
        assert host.open == 1
        live.touched -= LONG_S
        gates.open("long")
        await calling
        await expire(host)
        assert host.open == 1
        live.touched -= LONG_S
        await expire(host)
        assert host.open == 0
        host.executor.close()

    asyncio.run(play())


def test_while_its_world_is_built_an_episode_is_in_use_but_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And from then on, when it can be used, its time begins."""
    monkeypatch.setenv("QUINTAIN_TEST_FOLDER", str(tmp_path))
    gates = Gates(tmp_path)

    async def play() -> None:
        host = Host([gated], limits=Limits(idle_s=60.0))
        wanted = EpisodeSpec(split="train", task=1)
        live, hangs = await host.create(wanted, ANYONE), await host.create(wanted, ANYONE)
        await asyncio.to_thread(gates.await_entry, "start")
        live.touched -= 61.0
        hangs.touched -= BUILD_S + 1
        await expire(host)
        assert (live.status, hangs.status) == ("starting", "closed")
        gates.open("start")
        await live.ready()
        await expire(host)
        assert host.open == 1
        live.touched -= 61.0
        await expire(host)
        assert host.open == 0
        host.executor.close()

    asyncio.run(play())


def test_a_session_is_in_use_while_it_is_reset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUINTAIN_TEST_FOLDER", str(tmp_path))
    gates = Gates(tmp_path)

    async def play() -> None:
        host = Host([gated], limits=Limits(idle_s=60.0))
        session = EnvSession(host, gated, ANYONE, id="s")
        assert not session.is_idle(60.0)
        session.touched -= 61.0
        assert session.is_idle(60.0)
        resetting = asyncio.create_task(session.reset(Reset(split="train", index=1)))
        await asyncio.to_thread(gates.await_entry, "start")
        assert not session.is_idle(60.0)
        session.touched -= 61.0
        gates.open("start")
        await resetting
        assert not session.is_idle(60.0)
        host.executor.close()

    asyncio.run(play())


def by_id(host: Host, live: Live) -> Live:
    return host.get(live.id, ANYONE)


def by_token(host: Host, live: Live) -> Live:
    return host.by_token(live.token)


@pytest.mark.parametrize("ask", [by_id, by_token])
def test_an_episode_is_kept_by_who_asks_for_it_and_then_gone_for_all(ask: Callable[[Host, Live], Live]) -> None:
    async def play() -> None:
        host = Host([counter], limits=Limits(idle_s=60.0))
        live = await host.create(EpisodeSpec(task=0), ANYONE)
        await live.ready()
        live.touched -= LONG_S
        assert ask(host, live) is live
        await expire(host)
        assert host.open == 1
        live.touched -= LONG_S
        await expire(host)
        with pytest.raises(Unknown):
            ask(host, live)
        with pytest.raises(Gone):
            await live.call("add", '{"by": 1}')
        assert not live.trace.turns
        assert host.owner(live.token) is None
        host.executor.close()

    asyncio.run(play())


def test_closing_an_episode_does_not_wait_for_running_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUINTAIN_TEST_FOLDER", str(tmp_path))
    gates = Gates(tmp_path)

    async def play() -> None:
        host = Host([gated])
        live = await host.create(EpisodeSpec(task=0), ANYONE)
        calling = asyncio.create_task(live.call("hold", '{"gate": "long"}'))
        await asyncio.to_thread(gates.await_entry, "long")
        async with asyncio.timeout(PATIENCE_S / 2):
            await host.close(live.id, ANYONE)
        assert not calling.done()
        gates.open("long")
        await host.wait_closed()
        assert calling.done()
        host.executor.close()

    asyncio.run(play())
