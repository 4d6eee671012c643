"""T: tasks without end; task i of a split is a pure function of (split, i), and nothing lies on a disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from quintain.authoring import generated

from .case import Case
from .families import address, charge, lockout, outage, parcel, payment, plan, pricing

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

tasks = generated("support", Case, FAMILIES, counts=COUNTS)
