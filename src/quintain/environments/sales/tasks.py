"""T: a thousand tasks per split. Task i is a pure function of (split, i); nothing lies on a disk."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable

import quintain as qn

from . import times
from .case import Case
from .crowd import world
from .draft import LEVELS
from .families import demo, duplicates, optout, qualify, reply, revive
from .state import Sales

COUNT = 1000
"""Tasks of a split."""

FAMILIES: dict[str, Callable[[Case], tuple[str, str]]] = {
    "qualify": qualify.write,
    "revive": revive.write,
    "duplicates": duplicates.write,
    "demo": demo.write,
    "optout": optout.write,
    "reply": reply.write,
}
"""Kind of job to what writes one: it fills a case and returns the prompt and the oracle's last words."""


def tasks(split: str) -> qn.Tasks[Sales]:
    """The tasks of a split; families alternate, and with them the levels."""
    return qn.Tasks(COUNT, functools.partial(_make, split))


def _make(split: str, index: int) -> qn.Task[Sales]:
    family = list(FAMILIES)[index % len(FAMILIES)]
    level = LEVELS[index // len(FAMILIES) % len(LEVELS)]
    # The split is part of the key, so no two splits share a stream.
    key = hashlib.blake2b(f"sales/{split}/{index}".encode(), digest_size=16).digest()
    case = Case(key, level)
    prompt, answer = FAMILIES[family](case)
    return qn.Task(
        id=f"{family}-{level}-{index}",
        prompt=f"{prompt}\n\n(It is {times.describe(case.start)}.)",
        # Built when first asked for; the members of a group and the verifier share it.
        start=functools.cache(functools.partial(world, case, key + b"/crowd")),
        truth=case.truth(),
        solution=tuple(case.calls),
        answer=answer,
        tags={"family": family, "level": level},
    )
