"""Time at scale: business hours, recurring jobs, calls by the hundred thousand, and events with delay and retry.

    Calendar   when a business is open; how much of its time lies between two moments
    Timers     one-off calls
    Jobs       recurring calls
    Outbox     events on their way to those who subscribed

The last three are parts of a world. Each keeps its rows in a resource that is copied in O(1), and sets one timer in the
world's clock for all of them. Whatever they do depends on the moments at which they do it, never on how the caller cuts
time: three weeks at once and hour by hour give the same world.
"""

from __future__ import annotations

from .calendars import Calendar, Day
from .delays import Backoff, Delay, Exponential, Uniform
from .jobs import Job, Jobs
from .outbox import Attempt, Delivery, Event, Faults, Outbox, Retry
from .queues import Queue
from .rules import Cron, Daily, Every, Monthly, Rule, Weekly
from .timers import Call, Timers

__all__ = [
    "Attempt",
    "Backoff",
    "Calendar",
    "Call",
    "Cron",
    "Daily",
    "Day",
    "Delay",
    "Delivery",
    "Event",
    "Every",
    "Exponential",
    "Faults",
    "Job",
    "Jobs",
    "Monthly",
    "Outbox",
    "Queue",
    "Retry",
    "Rule",
    "Timers",
    "Uniform",
    "Weekly",
]
