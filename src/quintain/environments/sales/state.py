"""S: the desk's world, composed of a CRM, a mailbox and the calendars. They share one clock."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

import quintain as qn
from quintain.environments.faults import Faulty

from . import times
from .calendar import Calendar
from .crm import Crm
from .mail import Mail

FRESH = 90_000
"""Numbers of rows that the episode makes begin behind it, which separates them from older rows."""
PREFIXES = ("N-", "M-", "E-")
"""Letters of what is made during the episode: entries, e-mails, meetings."""

Hours = Annotated[float, msgspec.Meta(ge=0.25, le=72)]


class Sales(Faulty):
    """A sales-development desk; CRM, mailbox and calendars are services, which can fail."""

    graded: ClassVar[bool] = True
    """Part of the work is paid in part; the audit holds the reward to that."""
    rates: ClassVar[dict[str, float]] = {
        "missing crm.contacts.phone": 0.27,
        "missing crm.contacts.title": 0.51,
        "missing crm.contacts.zone": 0.36,
    }
    """Share of empty fields, as in the CRMs that this one stands for; the audit checks it."""

    crm: Crm
    mail: Mail
    calendar: Calendar

    @qn.tool
    def now(self, zone: str = "UTC") -> str:
        """Tell the time.

        Args:
            zone: Time zone such as Europe/Berlin.
        """
        if zone not in times.ZONES:
            raise qn.ToolError(f"unknown time zone {zone!r}; known: {', '.join(times.ZONES)}")
        return times.describe(self.clock.now, zone)

    @qn.tool
    def wait(self, hours: Hours) -> str:
        """Let time pass. Scheduled e-mails leave and answers arrive meanwhile.

        Args:
            hours: How long.
        """
        self.clock.advance(hours * times.HOUR)
        return f"It is {times.describe(self.clock.now)}. Unread messages: {self.mail.unread}."

    def fresh(self, prefix: str) -> list[str]:
        """Ids of what was made during the episode, oldest first."""
        return [f"{prefix}{n}" for n in range(FRESH + 1, self.shared.counters.get(prefix, FRESH) + 1)]
