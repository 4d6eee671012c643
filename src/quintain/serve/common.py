"""What the processes behind one port have in common, made before any of them."""

from __future__ import annotations

import contextlib
from typing import NamedTuple

from .counts import slots
from .mail import Mail
from .tally import Tally


class Common(NamedTuple):
    """It.

    Attributes:
        held: What is open, and how often was asked; what a process holds goes with it.
        counted: What was done since the server began.
        mail: By which they hand each other connections; None for one that is alone.
    """

    held: Tally
    counted: Tally
    mail: Mail | None

    @classmethod
    def of(cls, count: int, environments: int) -> Common:
        """For so many processes and environments."""
        return cls(Tally(count), Tally(count, slots=slots(environments)), Mail(count) if count > 1 else None)

    def join(self, number: int) -> None:
        """Be one of them from now on, in the place of the one before."""
        self.held.number = self.counted.number = number
        self.held.clear()

    def close(self) -> None:
        """End it, after all of them."""
        with contextlib.ExitStack() as stack:
            for one in (self.mail, self.held, self.counted):
                if one is not None:
                    stack.callback(one.close)
