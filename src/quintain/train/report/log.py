"""Log of a training run: a folder with `training.jsonl`, one line per update, and the state of the sampler."""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from quintain.errors import TraceError, UsageError
from quintain.record import PersistenceError
from quintain.rollouts import Group
from quintain.train.curriculum import AdaptiveSampler, Sampler, StageSampler

from .counts import Counts

FILE = "training.jsonl"
SAMPLER = "sampler.json"
LOOKED_AT = 1_000
"""Most tasks whose weight is asked for at an update, evenly spread."""


class SamplerPicture(msgspec.Struct, frozen=True, omit_defaults=True):
    """State of a sampler after an update.

    Attributes:
        weights: Tasks by tenths of their weight, for a sampler that has weights; of at most `LOOKED_AT` tasks.
        unsolved: Number of tasks that were played often and never solved in part.
        stage: Number of the stage.
    """

    weights: tuple[int, ...] = ()
    unsolved: int | None = None
    stage: int | None = None


class Update(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Update of the weights.

    Attributes:
        step: Number of the update.
        version: Policy version that the update starts from.
        seed: Seed of the run.
        time: When it was logged, in seconds since 1970.
        wall_s: Seconds since the update before.
        scores: Lowest and highest score that an invalid episode may have had.
        counts: What is counted of its groups.
        sampler: Picture of the sampler.
        metrics: Finite numbers of the trainer, such as its loss.
    """

    step: int
    version: int
    seed: int
    time: float
    wall_s: float
    scores: tuple[float, float]
    counts: Counts
    sampler: SamplerPicture | None = None
    metrics: dict[str, float] = {}


class TrainingLog(contextlib.AbstractContextManager["TrainingLog"]):
    """Writer of the log of one run. One process writes at a time.

    Args:
        folder: Made if it does not exist; a log that is there already is continued.
        seed: Of the run; reports treat folders as independent repetitions.
        scores: Lowest and highest score, as `quintain.report.score_range` returns them. A score outside widens them.
        tag: Tag of a task that names its level.

    Raises:
        UsageError: Another process is writing, or the log is of another seed.
        TraceError: A line of the log is damaged.
    """

    def __init__(
        self, folder: str | Path, *, seed: int = 0, scores: tuple[float, float] = (0.0, 1.0), tag: str = "level"
    ) -> None:
        self.path = Path(folder) / FILE
        self._seed, self._scores, self._tag = seed, scores, tag
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        with contextlib.ExitStack() as held:  # What is refused must leave no lock behind.
            held.callback(os.close, self._file)
            self._claim()
            self._held = held.pop_all()
        self._before = time.perf_counter()

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Lets another process continue the log."""
        self._held.close()

    def _claim(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(f"another process is writing to {self.path}") from error
        for found in read_updates(self.path.parent)[:1]:
            if found.seed != self._seed:
                raise UsageError(f"{self.path} is of seed {found.seed}, got {self._seed}; choose another folder")
        os.ftruncate(self._file, self.path.read_bytes().rfind(b"\n") + 1)  # A torn line was never acknowledged.

    def update(
        self,
        groups: Iterable[Group],
        *,
        step: int,
        version: int | None = None,
        stale: Iterable[Group] = (),
        sampler: Sampler[Any] | None = None,
        metrics: Mapping[str, float] | None = None,
    ) -> Update:
        """Writes a line; when this returns it is on disk. A step that was logged before replaces it and later ones.

        Args:
            groups: Groups that were delivered for this update, those with too few valid episodes included.
            step: Number of the update, 0 and up.
            version: Policy version that the update starts from; by default `step`.
            stale: Groups that were dropped because their tokens were too old.
            sampler: What chose the tasks. `sampler.json` gets its state, for `Sampler.load`.
            metrics: Numbers of the trainer.

        Raises:
            UsageError: A metric is not finite, a token is newer than `version`, or the step is negative.
            PersistenceError: The disk is full or broken.
        """
        if step < 0:
            raise UsageError(f"step must be >= 0, got {step}")
        numbers = _finite(step, metrics or {})
        counts, used = Counts(), step if version is None else version
        batch = [(group, False) for group in groups] + [(group, True) for group in stale]
        for group, is_stale in batch:
            counts.add(group, stale=is_stale, version=used, tag=self._tag)
        seen = [trace.score for group, _ in batch for trace in group.traces if trace.score is not None]
        self._scores = min(self._scores[0], *seen, math.inf), max(self._scores[1], *seen, -math.inf)
        now = time.perf_counter()
        done = Update(
            step=step,
            version=used,
            seed=self._seed,
            time=time.time(),
            wall_s=now - self._before,
            scores=self._scores,
            counts=counts,
            sampler=None if sampler is None else _picture(sampler),
            metrics=numbers,
        )
        self._append(msgspec.json.encode(done) + b"\n")
        if sampler is not None:
            self._keep(sampler.save())
        self._before = now
        return done

    def _append(self, line: bytes) -> None:
        end = os.fstat(self._file).st_size
        try:
            while line:
                line = line[os.write(self._file, line) :]  # A full disk takes a part, and refuses the rest.
            os.fdatasync(self._file)
        except OSError as error:
            os.ftruncate(self._file, end)
            raise PersistenceError(f"cannot write to {self.path}: {error.strerror}; make room and continue") from error

    def _keep(self, state: bytes) -> None:
        path = self.path.with_name(SAMPLER)
        new = path.with_suffix(".new")
        try:
            with new.open("wb") as file:
                file.write(state)
                file.flush()
                os.fsync(file.fileno())
            new.replace(path)  # So that a crash leaves the state before or after, and no half of one.
        except OSError as error:
            raise PersistenceError(f"cannot write to {path}: {error.strerror}; make room and continue") from error


def _finite(step: int, metrics: Mapping[str, float]) -> dict[str, float]:
    for name, value in metrics.items():
        if not math.isfinite(value):
            raise UsageError(f"step {step}: metric {name!r} is {value}, expected a finite number; stop the trainer")
    return {name: float(value) for name, value in metrics.items()}


def _picture(sampler: Sampler[Any]) -> SamplerPicture:
    stage = None
    if isinstance(sampler, StageSampler):
        stage = sampler.stage
        sampler = sampler.stages[stage]
    if not isinstance(sampler, AdaptiveSampler):
        return SamplerPicture(stage=stage)
    places = range(0, len(sampler.tasks), -(-len(sampler.tasks) // LOOKED_AT))
    tenths = [min(9, int(10 * sampler.weight(sampler.tasks[place]))) for place in places]
    weights = tuple(tenths.count(tenth) for tenth in range(10))
    return SamplerPicture(weights=weights, unsolved=len(sampler.unsolved()), stage=stage)


def read_updates(folder: str | Path) -> list[Update]:
    """Returns the updates of a log by step; a step that was logged again replaces the one before and all after it.

    An unfinished last line was never acknowledged and is left out.

    Raises:
        UsageError: The folder has no log.
        TraceError: A line is damaged; the message names file and line.
    """
    path = Path(folder) / FILE
    try:
        *lines, _ = path.read_bytes().split(b"\n")
    except OSError as error:
        raise UsageError(
            f"cannot read {str(path)!r}: {error.strerror}; expected the folder of a TrainingLog"
        ) from error
    found: list[Update] = []
    for number, line in enumerate(lines, 1):
        try:
            update = msgspec.json.decode(line, type=Update)
        except msgspec.DecodeError as error:
            raise TraceError(f"{path}, line {number} is not an update: {error}") from error
        while found and found[-1].step >= update.step:
            found.pop()
        found.append(update)
    return found
