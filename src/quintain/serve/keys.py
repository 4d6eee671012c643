"""Who asks, and what they may do."""

from __future__ import annotations

from typing import Literal

import msgspec

Role = Literal["agent", "trainer", "admin"]


class Caller(msgspec.Struct, frozen=True):
    """Somebody who was let in.

    Attributes:
        name: Of the key; episodes belong to it.
        role: agent plays its own episodes; trainer also reads their records, rewards and worlds; admin everything.
    """

    name: str
    role: Role


ANYONE = Caller("anyone", "admin")
"""Who asks a server without keys, which listens on loopback alone."""
