"""A factory for each seeded bug, under its name: `desk__stale_read_after_merge` and so on."""

from __future__ import annotations

from .registry import FOUND

globals().update({name: factory for name, (_, factory) in FOUND.items()})
