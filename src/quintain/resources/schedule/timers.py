"""`Timers`: one-off calls by the hundred thousand, as rows."""

from __future__ import annotations

from typing import Any

import msgspec

from quintain.errors import UsageError

from .agenda import Agenda, Method, call, check, frozen, named
from .queues import Queue


class Call(msgspec.Struct, frozen=True):
    """A call that is to be made once.

    Attributes:
        due: Seconds since epoch.
        number: Order of insertion; breaks ties, and names the call for `cancel`.
        method: Names of the parts down to the method, joined by dots.
        arguments: Plain data.
    """

    due: float
    number: int
    method: str
    arguments: dict[str, Any]


class Timers(Agenda):
    """As the clock's timers, but set, cancelled and fired in O(log n), and copied in O(1).

    Calls fire in (due, insertion) order, each at its own `now`; they may set others.
    """

    calls: Queue[Call] = msgspec.field(default_factory=lambda: Queue(Call))
    count: int = 0

    def after(self, seconds: float, method: Method, /, **arguments: Any) -> int:
        """Calls `method` with `arguments` in `seconds`. See `at`."""
        return self.at(self.clock.now + seconds, method, **arguments)

    def at(self, due: float, method: Method, /, **arguments: Any) -> int:
        """Calls `method` with `arguments` when the clock reaches `due`; returns the call's number.

        Raises:
            UsageError: `due` is in the past or not a moment, or the method does not exist.
            TypeError: The method belongs to another world or does not take the arguments, or they are not plain data.
        """
        if not self.clock.now <= due < float("inf"):
            raise UsageError(f"a call is due at {due}, but it is {self.clock.now} already")
        name = named(self, method)
        check(self, name, **arguments)
        plain = frozen(arguments)
        self.count += 1
        self.calls[str(self.count)] = Call(float(due), self.count, name, plain)
        self.arm()
        return self.count

    def cancel(self, number: int) -> bool:
        """Cancels a call; False if it was made or never set."""
        if str(number) not in self.calls:
            return False
        del self.calls[str(number)]
        self.arm()
        return True

    def waiting(self) -> list[Call]:
        """Returns the calls that are still to be made, in firing order. Costs O(n log n)."""
        return self.calls.rows()

    def agenda(self) -> Queue[Any]:
        return self.calls

    def latest(self) -> int:
        return self.count

    def run_due(self, key: str, row: Call) -> None:
        del self.calls[key]
        self.arm()
        call(self, row.method, **row.arguments)
