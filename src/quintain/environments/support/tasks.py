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
    "{what} is yours. Please see to it.",
    "Please work on this until nothing is left for you to do: {what}.",
    "You are on shift. Next in your queue: {what}.",
    "Take over {what}, would you? It came in today.",
)


def tasks(split: str) -> qn.Tasks[Support]:
    """The tasks of a split; families alternate, then levels, then variants."""
    return qn.Tasks(COUNTS[split], functools.partial(_make, split))


def _prompt(case: Case) -> str:
    numbers = [str(ticket.id) for ticket in case.assigned or case.tickets[:1]]
    what = f"ticket {numbers[0]}" if len(numbers) == 1 else f"the matter of tickets {' and '.join(numbers)}"
    text = case.rng.choice(_PROMPTS).format(what=what)
    return text[0].upper() + text[1:]


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
        prompt=_prompt(case),
        start=case.start_function(),
        truth=case.truth(),
        solution=tuple(case.calls),
        answer=answer,
        tags={"family": family, "level": level, "variant": variant.__name__},
    )
