"""Samples of episodes for review, in `RUN/reviews/samples/NAME.json`: drawn by a seed, and blind where they say so."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from quintain import codec
from quintain.errors import UsageError

from .reviews import FOLDER, Hidden, Target


class Drawn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Episode of a sample, and its stratum."""

    target: Target
    stratum: str = ""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """Episodes that several reviewers judge.

    Attributes:
        by: Column whose values are the strata; each stratum gets an equal share.
        blind: Facts that the reviewers do not see.
        strata: Number of episodes of the run in each stratum, for rates that count each by its size.
    """

    name: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][\w.-]{0,63}$")]
    seed: int
    size: Annotated[int, msgspec.Meta(ge=1, le=10_000)]
    by: str = ""
    blind: tuple[Hidden, ...] = ("triage", "reviewers", "reward")
    strata: dict[str, int] = {}
    episodes: tuple[Drawn, ...] = ()

    def order(self, reviewer: str) -> list[Target]:
        """Returns the episodes in this reviewer's own order, so that no episode is late for all."""
        return sorted((one.target for one in self.episodes), key=lambda one: _rank(self.seed, reviewer, one))


def _rank(*parts: object) -> bytes:
    words = json.dumps([msgspec.to_builtins(part) for part in parts]).encode()
    return hashlib.blake2b(words, digest_size=16).digest()


def draw(asked: Any, rows: Sequence[tuple[Target, str]]) -> Sample:
    """Returns a sample of some rows, each an episode with its stratum.

    Args:
        asked: Name, seed, size, by and blind, as JSON types.
        rows: Episodes of the run in any order.

    Raises:
        UsageError: What is asked is not a sample, or there are no rows.
    """
    try:
        sample = msgspec.convert(asked, Sample)
    except msgspec.ValidationError as error:
        raise UsageError(f"this is not a sample: {error}") from error
    if not rows:
        raise UsageError("the run has no episode to draw")
    strata: dict[str, list[Target]] = {}
    for target, stratum in sorted(rows, key=lambda row: _rank(sample.seed, row[0])):
        strata.setdefault(stratum, []).append(target)
    depth = max(map(len, strata.values()))
    turns = (
        Drawn(target=all_[n], stratum=name)
        for n in range(depth)
        for name, all_ in sorted(strata.items())
        if n < len(all_)
    )
    chosen = tuple(one for one, _ in zip(turns, range(sample.size), strict=False))
    sizes = {name: len(all_) for name, all_ in sorted(strata.items())}
    return msgspec.structs.replace(sample, strata=sizes, episodes=chosen)


def write(run: Path, sample: Sample) -> None:
    """Writes a new sample.

    Raises:
        UsageError: The run has a sample of that name, or the folder cannot be written.
    """
    path = _path(run, sample.name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.write(msgspec.json.format(codec.json(sample), indent=1) + b"\n")
    except FileExistsError:
        raise UsageError(f"the run has a sample {sample.name!r}; choose another name") from None
    except OSError as error:
        raise UsageError(f"cannot write {str(path)!r}: {error.strerror}") from error


def read(run: Path, name: str) -> Sample:
    """Returns a sample.

    Raises:
        UsageError: There is none of that name, or the file is not a sample.
    """
    path = _path(run, name)
    try:
        return msgspec.json.decode(path.read_bytes(), type=Sample)
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError(f"the run has no sample {name!r}: {error}") from error


def names(run: Path) -> list[str]:
    """Returns the names of the run's samples."""
    return sorted(path.stem for path in (run / FOLDER / "samples").glob("*.json"))


def _path(run: Path, name: str) -> Path:
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]{0,63}", name):
        raise UsageError(f"a sample's name has letters, digits, '.', '_' and '-', got {name!r}")
    return run / FOLDER / "samples" / f"{name}.json"


def without_rewards(line: bytes) -> bytes:
    """Returns a line of traces without rewards, score and reason of the end."""
    whole = json.loads(line)
    trace = whole["trace"]
    for part in (trace, *trace.get("turns", ())):
        for name in ("rewards", "score", "reason", "criteria"):
            part.pop(name, None)
    return json.dumps(whole).encode()
