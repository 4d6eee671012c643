"""Queue between processes: bounded, complete, and clear when the other side dies."""

from __future__ import annotations

import functools
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quintain.harness import Request
from quintain.trace import Reply
from quintain.train.curriculum import Sampler
from quintain.train.pipeline import AsyncBatches, pipeline
from quintain.train.queue import Producer, ProducerError
from tests.train.policies import Policy, env, lags, names, tasks


class Swapping(AsyncBatches[Any]):
    """A pipeline whose policy gets the weights of each version, as an endpoint does."""

    policy: Policy

    def advance(self, version: int) -> None:
        self.policy.version = version
        super().advance(version)


class Noting(Policy):
    """A policy that writes down each request, and can kill its process or fail at a version."""

    def __init__(self, notes: Path, fate: str) -> None:
        super().__init__(turns=lambda request: 1 + request.seed % 3)
        self.notes, self.fate = notes, fate

    async def __call__(self, request: Request) -> Reply:
        if self.version == 2 and self.fate == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        with self.notes.open("a") as file:
            file.write(request.messages[1].text + "\n")
        reply = await super().__call__(request)
        return reply if self.fate != "versionless" else Reply(reply.message, reply.tokens)


def make(notes: Path, *, count: int | None = None, fate: str = "") -> AsyncBatches[Any]:
    policy = Noting(notes, fate)
    given = Sampler(tasks(20)) if count is None else tasks(count)
    pipe = pipeline(env(), policy, given, batch_groups=2, group=2, bound=1)
    pipe.__class__ = Swapping
    pipe.policy = policy  # type: ignore[attr-defined]
    return pipe


def broken(notes: Path) -> AsyncBatches[Any]:
    raise LookupError(f"no environment in {notes.name}")


@pytest.fixture
def started(tmp_path: Path) -> Any:
    made: list[Producer] = []

    def start(make: Callable[..., AsyncBatches[Any]], **options: Any) -> Producer:
        made.append(Producer(functools.partial(make, tmp_path / "notes", **options)))
        return made[-1]

    yield start
    for one in made:
        one.close()


def test_each_group_crosses_once_and_within_the_bound(started: Any) -> None:
    batches = started(make, count=9)
    found = []
    for version, batch in enumerate(batches):
        assert max(lags(batch.rows, version)) <= 1
        found += names(batch.rows)
        batches.advance(version + 1)
    assert len(found) == len(set(found)) == 18
    assert {task for task, _, _, _ in found} == {f"t{n}" for n in range(9)}
    assert list(batches) == []


def test_play_stops_when_the_trainer_stops_reading(started: Any, tmp_path: Path) -> None:
    batches = started(make)
    next(batches)
    begun, before = 0, -1
    while begun != before:
        before = begun
        time.sleep(0.3)
        begun = len(set((tmp_path / "notes").read_text().split()))
    assert begun == (1 + 1) * 2
    batches.advance(1)
    assert next(batches).ledger.groups == 2


def test_a_process_that_is_killed_is_noticed(started: Any) -> None:
    batches = started(make, fate="killed")
    with pytest.raises(ProducerError, match="ended with exit code -9 before it answered, and groups in play are lost"):
        for version, _ in enumerate(batches):
            batches.advance(version + 1)


@pytest.mark.parametrize(
    ("make", "options", "error"),
    [
        (broken, {}, "the process that plays failed: LookupError: no environment in notes"),
        (
            make,
            {"fate": "versionless"},
            "the process that plays failed: UsageError: episodes of .* have no policy version",
        ),
    ],
)
def test_an_error_of_the_process_is_raised_for_the_trainer(started: Any, make: Any, options: Any, error: str) -> None:
    with pytest.raises(ProducerError, match=error):
        next(started(make, **options))


def test_a_wrong_version_is_refused_with_the_next_batch(started: Any) -> None:
    batches = started(make)
    next(batches)
    batches.advance(5)
    with pytest.raises(ProducerError, match="versions count updates: expected 1, got 5"):
        next(batches)


def test_the_process_ends_when_the_trainer_closes(started: Any) -> None:
    batches = started(make)
    next(batches)
    batches.close()
    assert batches._process.exitcode == 0
