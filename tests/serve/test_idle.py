"""What nobody asks for is closed in time; where something is being done, somebody waits for it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from quintain.serve.host import Host, Wanted
from quintain.serve.keys import ANYONE
from quintain.serve.limits import Limits
from quintain.serve.server import expire
from tests.serve.environments import Gates, gated

LONG_S = 3600.0


@pytest.mark.parametrize("key", ["", "a key"])
def test_an_episode_is_idle_from_the_end_of_its_last_call_on(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUINTAIN_TEST_FOLDER", str(tmp_path))
    gates = Gates(tmp_path)

    async def play() -> None:
        host = Host([gated], limits=Limits(idle_s=60.0))
        live = await host.create(Wanted(task=0), ANYONE)
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
        host.crew.close()

    asyncio.run(play())
