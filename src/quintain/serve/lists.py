"""What is asked about the tasks of a split, alike in the protocols that list them; unknown fields are refused."""

from __future__ import annotations

import msgspec


class Split(msgspec.Struct, forbid_unknown_fields=True):
    """Whose tasks."""

    split: str


class Index(msgspec.Struct, forbid_unknown_fields=True):
    """One task; from the end where the index is negative."""

    split: str
    index: int


class Range(msgspec.Struct, forbid_unknown_fields=True):
    """A slice, by Python's rules."""

    split: str
    start: int | None = None
    stop: int | None = None
