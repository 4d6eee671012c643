"""S: the desk's world: one database, the tools of all areas, and what happens by itself as time passes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, ClassVar

import msgspec

import quintain as qn
from quintain.resources.schedule import Every

from .automation import Automations
from .desk import HOUR
from .outside import Outside
from .tools.knowledge import Knowledge
from .tools.orders import Orders
from .tools.people import People
from .tools.tickets import Tickets

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
"""Written out: a locale must have no say in what an agent reads."""
Hours = Annotated[float, msgspec.Meta(ge=0.25, le=504)]


class Support(Knowledge, Orders, Outside, People, Tickets, Automations):
    """A help desk."""

    rates: ClassVar[dict[str, float]] = {
        "missing db.customers.phone": 0.32,
        "missing db.customers.zone": 0.12,
        "missing db.customers.notes": 0.88,
    }
    """Share of empty fields, as at the desks that this one stands for; the audit checks it."""

    @qn.tool
    def now_is(self) -> str:
        """Tell the time: the weekday, and the time in UTC."""
        return self._time_told()

    @qn.tool
    def wait(self, hours: Hours) -> str:
        """Let time pass, in which customers answer, carriers scan, payments are tried again and leads decide.

        Args:
            hours: How long, from a quarter of an hour to three weeks.
        """
        self.clock.advance(hours * HOUR)
        return f"It is {self._time_told()}."

    def _time_told(self) -> str:
        return f"{_WEEKDAYS[datetime.fromtimestamp(self.clock.now, UTC).weekday()]} {self.now}"

    def wind(self) -> None:
        """Set the clockwork of a new world going."""
        self.jobs.add("automations", Every(HOUR, aligned=True), self.sweep)
        self.cue("start")
