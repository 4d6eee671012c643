"""T: tasks without end; task i of a split is a pure function of (split, i), and nothing lies on a disk."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping

import quintain as qn

from .case import Case
from .draft import LEVELS
from .families import address, charge, lockout, outage, parcel, payment, plan, pricing
from .state import Support

COUNTS = {"train": 2400, "validation": 240, "test": 480}
"""Tasks of a split."""

FAMILIES: Mapping[str, Mapping[str, tuple[Callable[[Case], str], ...]]] = {
    "lockout": lockout.VARIANTS,
    "payment": payment.VARIANTS,
    "charge": charge.VARIANTS,
    "parcel": parcel.VARIANTS,
    "address": address.VARIANTS,
    "plan": plan.VARIANTS,
    "pricing": pricing.VARIANTS,
    "outage": outage.VARIANTS,
}
"""Kind of trouble to the ways in which it comes at each level; each writes a case and returns the last words."""

_PROMPTS = (
    "Ticket {first} is yours. Please see to it.",
    "Please work on ticket {first} until nothing is left for you to do.",
    "You are on shift. Your next ticket is number {first}.",
    "Take over ticket {first}, would you? The customer has written to us today.",
)


def tasks(split: str) -> qn.Tasks[Support]:
    """The tasks of a split; families alternate, then levels, then variants."""
    return qn.Tasks(COUNTS[split], functools.partial(_make, split))


def _make(split: str, index: int) -> qn.Task[Support]:
    family = list(FAMILIES)[index % len(FAMILIES)]
    level = LEVELS[index // len(FAMILIES) % len(LEVELS)]
    # The split is part of the key, so no two splits share a stream.
    key = hashlib.blake2b(f"support/{split}/{index}".encode(), digest_size=16).digest()
    case = Case(key, level)
    variants = FAMILIES[family][level]
    variant = variants[index // (len(FAMILIES) * len(LEVELS)) % len(variants)]
    answer = variant(case)
    return qn.Task(
        id=f"{family}-{level}-{index}",
        prompt=case.rng.choice(_PROMPTS).format(first=case.tickets[0].id),
        start=case.start_function(),
        truth=case.truth(),
        solution=tuple(case.calls),
        answer=answer,
        tags={"family": family, "level": level, "variant": variant.__name__},
    )
