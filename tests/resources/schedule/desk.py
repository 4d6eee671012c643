"""A help desk in which everything that waits is set off by something else that waits."""

from __future__ import annotations

import asyncio
from typing import Any

import quintain as qn
from quintain.resources.schedule import (
    Backoff,
    Calendar,
    Cron,
    Daily,
    Day,
    Event,
    Every,
    Exponential,
    Faults,
    Jobs,
    Monthly,
    Outbox,
    Retry,
    Timers,
    Uniform,
    Weekly,
)
from quintain.state import begin

HOUR, DAY = 3600, 86_400
OFFICE = Calendar(
    zone="Europe/Berlin",
    hours={"mon-fri": ("09:00-12:30", "13:30-18:00"), "sat": ("22:00-02:00",)},
    dates={"2026-03-30": Day("closed"), "2026-04-03": Day("Good Friday", ("09:00-11:00",))},
)
START = OFFICE.moment("2026-03-20 07:45")


class Mailbox(qn.State):
    """A part with timers of its own."""

    timers: Timers
    mails: list[str] = []

    def receive(self, event: Event) -> None:
        if self.rng.random() < 0.4:
            raise Retry("full", after=None if self.rng.random() < 0.5 else 90)
        self.mails.append(f"{event.number}/{event.attempt} {event.body}@{self.clock.now}")
        self.timers.after(self.rng.below(3 * HOUR), self.read, mail=event.number)

    def read(self, mail: int) -> None:
        self.mails.append(f"read {mail}@{self.clock.now}")


class Desk(qn.State):
    """A world of all kinds of waiting."""

    jobs: Jobs
    timers: Timers
    outbox: Outbox
    mailbox: Mailbox
    log: list[str] = []

    def note(self, what: str) -> None:
        self.log.append(f"{what}@{self.clock.now}")

    def ticket(self, customer: str) -> None:
        ticket = self.new_id("T")
        self.note(f"{ticket} of {customer}")
        self.outbox.send("opened", {"ticket": ticket}, key=customer, delay=Uniform(0, 2 * HOUR))
        self.timers.at(OFFICE.add(self.clock.now, 4 * HOUR), self.escalate, ticket=ticket, customer=customer)

    def escalate(self, ticket: str, customer: str) -> None:
        self.note(f"{ticket} is late")
        self.outbox.send("escalated", {"ticket": ticket}, key=customer, delay=Exponential(HOUR))
        if self.rng.below(2):
            self.timers.after(0, "note", what=f"{ticket} at once")
        self.clock.after(self.rng.below(HOUR), self.note, what=f"{ticket} by the clock")

    def sweep(self) -> None:
        waiting = self.timers.waiting()
        self.note(f"sweep {len(waiting)}")
        if waiting and self.rng.below(3) == 0:
            self.timers.cancel(waiting[self.rng.below(len(waiting))].number)

    def outage(self, on: bool) -> None:
        self.note(f"outage {on}")
        (self.outbox.pause if on else self.outbox.resume)("escalated")
        if on:
            self.timers.after(5 * HOUR, self.outage, on=False)

    def answered(self, event: Event) -> None:
        self.note(f"{event.topic} {event.number}/{event.attempt}")
        if event.attempt == 1 and self.rng.random() < 0.2:
            raise Retry("try again")


def desk(seed: int = 1) -> Desk:
    world = Desk(
        jobs=Jobs(calendar=OFFICE),
        timers=Timers(),
        outbox=Outbox(faults=Faults(duplicate=0.1, reorder=0.05)),
        mailbox=Mailbox(timers=Timers()),
    )
    world.clock.now = START
    world = asyncio.run(begin(world, seed=seed, task_id="desk"))
    for topic in ("opened", "escalated"):
        world.outbox.subscribe(topic, "mailbox.receive", backoff=Backoff(attempts=4, first=600, most=2 * HOUR))
        world.outbox.subscribe(topic, world.answered, once=topic == "opened")
    jobs = world.jobs
    jobs.add("calls", Every(5400), world.ticket, arguments={"customer": "Ann"})
    jobs.add("aligned", Every(6 * HOUR, aligned=True), world.ticket, arguments={"customer": "Ben"})
    jobs.add("morning", Daily("09:00", "skip"), world.sweep)
    jobs.add("night", Daily("02:30"), world.note, arguments={"what": "backup"})
    jobs.add("weekly", Weekly("fri", "17:00", "previous"), world.outage, arguments={"on": True})
    jobs.add("payday", Monthly(-1, "12:00", closed="previous"), world.note, arguments={"what": "payday"})
    jobs.add("cron", Cron("*/45 8-10 * * mon-fri"), world.ticket, arguments={"customer": "Cleo"}, count=30)
    return world


def record(world: Desk) -> dict[str, Any]:
    """Returns everything that could differ."""
    return {
        "log": world.log,
        "mails": world.mailbox.mails,
        "attempts": list(world.outbox.log.items()),
        "dead": list(world.outbox.dead.items()),
        "clock": world.clock.pack(),
    }
