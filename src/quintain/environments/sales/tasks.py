"""T: a thousand tasks per split. Task i is a pure function of (split, i); nothing lies on a disk."""

from __future__ import annotations

from collections.abc import Callable

from quintain.authoring import generated

from .case import Case
from .families import demo, duplicates, optout, qualify, reply, revive

COUNT = 1000
"""Tasks of a split."""

FAMILIES: dict[str, Callable[[Case], str]] = {
    "qualify": qualify.write,
    "revive": revive.write,
    "duplicates": duplicates.write,
    "demo": demo.write,
    "optout": optout.write,
    "reply": reply.write,
}
"""Kind of job to the function that writes one: it fills a case and returns the oracle's last words."""

tasks = generated("sales", Case, FAMILIES, counts=dict.fromkeys(("train", "validation", "test"), COUNT))
