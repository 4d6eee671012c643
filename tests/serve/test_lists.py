"""Lists of tasks, which authors may make as they are asked for."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from functools import partial
from typing import Any

import pytest

import quintain as qn
from quintain.serve.episodes import task_lists as lists
from quintain.serve.episodes.executor import TRIALS
from quintain.serve.episodes.host import Host
from quintain.task import Task
from tests.serve.environments import counter


def test_a_long_list_is_not_taken_for_a_quick_one_because_short_ones_were() -> None:
    held: list[bool] = []

    def tell(task: Task[Any], _split: str, _place: int) -> str:
        held.append(threading.current_thread() is threading.main_thread())
        return task.id

    async def play() -> None:
        host = Host([counter])
        with contextlib.closing(host.executor):
            for _ in range(TRIALS + 1):
                assert await lists.shown(host, counter, "train", part=slice(1), describe=partial(tell)) == ["train-1"]
            assert held == [False] * TRIALS + [True], "short ones are known to be quick"
            held.clear()
            assert len(await lists.shown(host, counter, "train", part=slice(None), describe=partial(tell))) == 5
            assert not any(held)

    asyncio.run(play())


def test_a_task_is_made_once_for_all_who_list_it_while_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Making the thousand tasks of a split takes seconds, and an audit's processes each list them."""
    monkeypatch.setattr(lists, "KEPT", 4)
    made: list[int] = []

    def make(place: int) -> Task[Any]:
        made.append(place)
        return counter.tasks("train")[place]

    parts: dict[str, Any] = {"harness": counter.harness, "verifier": counter.verifier, "state": counter.state}
    env = qn.Environment("made", tasks=lambda split: qn.Tasks(5, make), **parts)

    def tell(task: Task[Any], _split: str, place: int) -> str:
        return f"{place} {task.id}"

    async def play() -> None:
        host = Host([env])

        async def shown(part: slice) -> list[str]:
            return await lists.shown(host, env, "train", part=part, describe=tell)

        with contextlib.closing(host.executor):
            assert await shown(slice(1, 4)) == await shown(slice(1, 4)) == ["1 train-2", "2 train-3", "3 train-4"]
            assert made == [1, 2, 3]
            assert await shown(slice(None)) == ["0 train-1", "1 train-2", "2 train-3", "3 train-4", "4 train-5"]
            assert made == [1, 2, 3, 0, 4]
            assert await shown(slice(1, 2)) == ["1 train-2"]
            assert made == [1, 2, 3, 0, 4, 1], "the oldest had to go"

    asyncio.run(play())
