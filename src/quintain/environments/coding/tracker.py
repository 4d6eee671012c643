"""Issues of a repository, and the older ones among which those of a task stand, written as people write them."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from quintain.state import Rng

Resolution = Literal["fixed", "duplicate", "cannot_reproduce", "not_planned"]

DAY = 86_400.0


class Issue(msgspec.Struct, kw_only=True):
    """Row of the tracker. Times are text, in UTC; None stands for an empty field."""

    title: str
    body: str | None = None
    author: str
    assignee: str | None = None
    labels: list[str] = []
    status: Literal["open", "closed"] = "open"
    resolution: Resolution | None = None
    created_at: str
    comments: list[str] = []


class _Pools(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Words of `tracker.toml`."""

    people: tuple[str, ...]
    titles: tuple[str, ...]
    bodies: tuple[str, ...]
    things: tuple[str, ...]
    systems: tuple[str, ...]
    labels: tuple[str, ...]
    comments: tuple[str, ...]


@functools.cache
def _pools() -> _Pools:
    return msgspec.convert(tomllib.loads((Path(__file__).parent / "tracker.toml").read_text("utf-8")), _Pools)


def stamp(at: float) -> str:
    """Returns a time as text, such as 2026-03-02 09:41."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")


def person(rng: Rng) -> str:
    """Returns the name of an account."""
    return rng.choice(_pools().people)


def older(rng: Rng, count: int, *, until: float, modules: Sequence[str]) -> list[Issue]:
    """Returns issues of the time before, oldest first.

    Args:
        rng: Random stream.
        count: How many.
        until: Time at which the last of them was created.
        modules: Modules of the package, which some of them name.
    """
    pools = _pools()
    ages = sorted((rng.below(900 * 24 * 60) + 60 for _ in range(count)), reverse=True)
    return [_issue(pools, rng, at=until - minutes * 60.0, modules=modules) for minutes in ages]


def _issue(pools: _Pools, rng: Rng, *, at: float, modules: Sequence[str]) -> Issue:
    words = {"thing": rng.choice(pools.things), "module": rng.choice(modules), "system": rng.choice(pools.systems)}
    title, body = rng.choice(pools.titles).format(**words), rng.choice(pools.bodies).format(**words)
    is_open = rng.below(5) == 0
    return Issue(
        title=_typed(rng, title),
        body=None if rng.below(100) < 12 else _typed(rng, body),
        author=rng.choice(pools.people),
        assignee=None if rng.below(100) < 55 else rng.choice(pools.people),
        labels=sorted({rng.choice(pools.labels) for _ in range(rng.below(3))}),
        status="open" if is_open else "closed",
        resolution=None if is_open else rng.choice(_ENDS),
        created_at=stamp(at),
        comments=[_typed(rng, rng.choice(pools.comments).format(**words)) for _ in range(rng.below(4))],
    )


_ENDS: tuple[Resolution, ...] = ("fixed", "fixed", "fixed", "duplicate", "cannot_reproduce", "not_planned")


def _typed(rng: Rng, text: str) -> str:
    """Returns a text as somebody types it: in a hurry, with a slip, or with care."""
    habit = rng.below(10)
    if habit == 0:
        return text.lower().rstrip(".")
    if habit == 1:
        return f"{text}!!"
    if habit == 2 and len(text) > 12:
        place = 4 + rng.below(len(text) - 8)
        return text[:place] + text[place + 1] + text[place] + text[place + 2 :]
    return text
