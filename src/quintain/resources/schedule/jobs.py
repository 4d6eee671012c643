"""`Jobs`: calls that recur. However far the world advances, each occurrence is made, in order, at its own `now`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from quintain.errors import UsageError

from .agenda import Agenda, Method, call, check, frozen, named
from .calendars import Calendar
from .queues import Queue
from .rules import Rule, following


class Job(msgspec.Struct, frozen=True):
    """A call that recurs.

    Attributes:
        name: Names it for `pause`, `resume` and `cancel`.
        number: Order of insertion; jobs that are due at one moment run in it.
        due: The next occurrence, in seconds since epoch; infinity while it is paused.
        rule: When it recurs.
        method: Names of the parts down to the method, joined by dots.
        arguments: Plain data.
        start: When it was added.
        left: Occurrences still to come; None for no end.
        until: No occurrence is later; infinity for no end.
        made: Occurrences so far.
    """

    name: str
    number: int
    due: float
    rule: Rule
    method: str
    arguments: dict[str, Any]
    start: float
    left: int | None
    until: float
    made: int = 0

    @property
    def paused(self) -> bool:
        """True if it waits for `resume`."""
        return self.due == math.inf


class Jobs(Agenda):
    """Recurring calls by name.

    Attributes:
        calendar: Gives the zone in which rules are read, and the days that count as business days.
        jobs: A row for each that has occurrences to come.
        count: Jobs added so far.
    """

    calendar: Calendar = Calendar()
    jobs: Queue[Job] = msgspec.field(default_factory=lambda: Queue(Job))
    count: int = 0

    def add(
        self,
        name: str,
        rule: Rule,
        method: Method,
        *,
        arguments: Mapping[str, Any] | None = None,
        count: int | None = None,
        until: float = math.inf,
    ) -> Job:
        """Calls `method` with `arguments` at each occurrence later than now.

        Args:
            name: Name of the job, unique.
            rule: Rule of the occurrences.
            method: Of this world or of one of its parts.
            arguments: Plain data.
            count: Number of occurrences after which the job is gone; None for no end.
            until: The last moment at which it may occur, in seconds since epoch.

        Raises:
            UsageError: The name is taken, the method does not exist, or the rule has no occurrence.
            TypeError: The method belongs to another world or does not take the arguments, or they are not plain data.
        """
        if name in self.jobs:
            raise UsageError(f"there is a job {name!r} already: {self.jobs[name].rule}")
        if count is not None and count < 1:
            raise UsageError(f"a job has 1 or more occurrences, got {count}")
        found, given, now = named(self, method), frozen(arguments or {}), self.clock.now
        check(self, found, **given)
        due = following(rule, self.calendar, after=now, start=now)
        if due is None or due > until:
            raise UsageError(f"job {name!r} never occurs: {rule} after {now}, and until {until}")
        self.count += 1
        self._put(job := Job(name, self.count, due, rule, found, given, now, count, float(until)))
        return job

    def pause(self, name: str) -> None:
        """Makes no more calls until `resume`; occurrences in between are left out.

        Raises:
            UsageError: The job does not exist.
        """
        self._put(msgspec.structs.replace(self.job(name), due=math.inf))

    def resume(self, name: str) -> None:
        """Continues with the first occurrence later than now. A job that was not paused stays as it is.

        Raises:
            UsageError: The job does not exist.
        """
        job = self.job(name)
        if job.paused:
            self._move(job, after=self.clock.now)

    def cancel(self, name: str) -> None:
        """Deletes a job.

        Raises:
            UsageError: The job does not exist.
        """
        self.job(name)
        del self.jobs[name]
        self.arm()

    def job(self, name: str) -> Job:
        """Returns the job of that name.

        Raises:
            UsageError: There is none; one whose last occurrence was made is gone.
        """
        if name not in self.jobs:
            some = ", ".join(name for name, _ in zip(self.jobs, range(10), strict=False)) or "none"
            raise UsageError(f"job {name!r} does not exist; there is {some}")
        return self.jobs[name]

    def all(self) -> list[Job]:
        """Returns all jobs in firing order, paused ones last. Costs O(n log n)."""
        return self.jobs.rows()

    def agenda(self) -> Queue[Any]:
        return self.jobs

    def latest(self) -> int:
        return self.count

    def run_due(self, key: str, row: Job) -> None:
        left = None if row.left is None else row.left - 1
        self._move(msgspec.structs.replace(row, left=left, made=row.made + 1), after=row.due)
        call(self, row.method, **row.arguments)

    def _move(self, job: Job, *, after: float) -> None:
        """To its next occurrence, or out."""
        due = None if job.left == 0 else following(job.rule, self.calendar, after=after, start=job.start)
        if due is None or due > job.until:
            del self.jobs[job.name]
            self.arm()
        else:
            self._put(msgspec.structs.replace(job, due=due))

    def _put(self, job: Job) -> None:
        self.jobs[job.name] = job
        self.arm()
