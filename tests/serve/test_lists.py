"""Lists of tasks, which authors may make as they are asked for."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Any

from quintain.serve import lists
from quintain.serve.crew import TRIALS
from quintain.serve.host import Host
from quintain.task import Task
from tests.serve.environments import counter


def test_a_long_list_is_not_taken_for_a_quick_one_because_short_ones_were() -> None:
    held: list[bool] = []

    def tell(task: Task[Any], _split: str, _place: int) -> str:
        held.append(threading.current_thread() is threading.main_thread())
        return task.id

    async def play() -> None:
        host = Host([counter])
        with contextlib.closing(host.crew):
            for _ in range(TRIALS + 1):
                assert await lists.shown(host, counter, "train", part=slice(1), tell=tell) == ["train-1"]
            assert held == [False] * TRIALS + [True], "short ones are known to be quick"
            held.clear()
            assert len(await lists.shown(host, counter, "train", part=slice(None), tell=tell)) == 5
            assert not any(held)

    asyncio.run(play())
