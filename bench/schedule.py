"""Time at scale: three weeks of a thousand hourly jobs, a hundred thousand timers, events, and business hours per call.

Beside jobs and timers stands the world's own clock doing the same, which keeps a sorted list; beside the calendar a
clock on the wall that is read minute by minute.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import gc
from collections.abc import Callable, Iterator
from zoneinfo import ZoneInfo

from _table import Row, cpu, main, row

import quintain as qn
from quintain import resource
from quintain.resources.schedule import Calendar, Day, Event, Every, Jobs, Outbox, Timers

HOUR, DAY = 3600, 86_400


class Desk(qn.State):
    jobs: Jobs
    timers: Timers
    outbox: Outbox
    ticks: int = 0

    def tick(self, number: int = 0) -> None:
        self.ticks += 1

    def again(self, every: float) -> None:
        self.ticks += 1
        self.clock.after(every, self.again, every=every)

    def take(self, event: Event) -> None:
        self.ticks += 1


def desk() -> Desk:
    return Desk(jobs=Jobs(), timers=Timers(), outbox=Outbox())


def spent(work: Callable[[], object], times: int = 1) -> float:
    """Microseconds of CPU per piece of work; it is done once, for it cannot be done twice."""
    gc.collect()
    return cpu(work, repeats=1) / times * 1e6


def jobs(count: int, days: int) -> Iterator[Row]:
    by_rule, by_clock = desk(), desk()
    for number in range(count):
        every = HOUR + number / 1000  # each hour, but no two at the same moment
        by_rule.jobs.add(f"job {number}", Every(every), by_rule.tick)
        by_clock.clock.after(every, by_clock.again, every=every)
    made = days * 24 * count
    mine = spent(lambda: by_rule.clock.advance(days * DAY), made)
    clock = spent(lambda: by_clock.clock.advance(days * DAY), made)
    what = f"{count:,} hourly jobs, {days} days"
    yield row(f"{what}, one occurrence", mine, "us", peer="the clock's timers", peer_value=clock)
    yield row(f"{what}, all of it", mine * made / 1e6, "s", peer="the clock's timers", peer_value=clock * made / 1e6)

    together = desk()
    for number in range(count):
        together.jobs.add(f"job {number}", Every(HOUR, aligned=True), together.tick)
    one = spent(lambda: together.clock.advance(days * DAY), made)
    yield row(f"{what}, all on the hour, one occurrence", one, "us")


def timers(count: int, cancelled: int) -> Iterator[Row]:
    rows, clock = desk(), desk()
    dues = [float(number * 7919 % count) for number in range(count)]

    def fill(world: Desk, setter: Timers | qn.State) -> None:
        at = setter.at if isinstance(setter, Timers) else setter.clock.at
        for number, due in enumerate(dues):
            at(due, world.tick, number=number)

    def cancel(drop: Callable[[int], bool]) -> None:
        for number in range(1, cancelled + 1):
            drop(number * (count // cancelled))

    what, beside = f"{count:,} timers", "the clock's timers"
    mine, peer = spent(lambda: fill(rows, rows.timers), count), spent(lambda: fill(clock, clock), count)
    yield row(f"{what}, set one", mine, "us", peer=beside, peer_value=peer)
    yield row(f"{what}, first fork", spent(rows.copy), "us")
    mine, peer = (cpu(world.copy, repeats=5) * 1e6 for world in (rows, clock))
    yield row(f"{what}, fork", mine, "us", peer=beside, peer_value=peer)
    mine, peer = (cpu(lambda w=world: asyncio.run(resource.digest(w)), repeats=5) * 1e6 for world in (rows, clock))
    yield row(f"{what}, digest", mine, "us", peer=beside, peer_value=peer)
    mine, peer = (cpu(lambda w=world: asyncio.run(resource.dump(w)), repeats=3) * 1e3 for world in (rows, clock))
    yield row(f"{what}, dump", mine, "ms", peer=beside, peer_value=peer)
    stored = asyncio.run(resource.dump(rows))
    yield row(f"{what}, load", spent(lambda: resource.load(Desk, stored)) / 1e3, "ms")
    mine = spent(lambda: cancel(rows.timers.cancel), cancelled)
    peer = spent(lambda: cancel(clock.clock.cancel), cancelled)
    yield row(f"{what}, cancel one", mine, "us", peer=beside, peer_value=peer)
    left = count - cancelled
    mine, peer = (spent(lambda world=world: world.clock.advance(count), left) for world in (rows, clock))
    assert rows.ticks == clock.ticks == left
    yield row(f"{what}, fire one", mine, "us", peer=beside, peer_value=peer)


def events(count: int) -> Iterator[Row]:
    world = desk()
    world.outbox.subscribe("ticket", world.take)

    def send() -> None:
        for number in range(count):
            world.outbox.send("ticket", {"number": number}, key=f"K{number % 100}", delay=float(number % 977))

    yield row(f"{count:,} events of 100 keys, send one", spent(send, count), "us")
    yield row(f"{count:,} events of 100 keys, deliver one", spent(lambda: world.clock.advance(DAY), count), "us")
    assert world.ticks == count


def naive(calendar: Calendar, start: float, end: float) -> float:
    """Business seconds, by a look at the wall every minute."""
    zone, total = ZoneInfo(calendar.zone), 0
    for minute in range(int(start), int(end), 60):
        wall = dt.datetime.fromtimestamp(minute, zone)
        closed = wall.weekday() >= 5 or f"{wall:%m-%d}" in {"12-25", "12-26"}
        total += 60 * (not closed and 9 * 60 <= wall.hour * 60 + wall.minute < 17 * 60)
    return total


def calendar(times: int) -> Iterator[Row]:
    years = [f"{year}-12-{day}" for year in range(2020, 2040) for day in (25, 26)]
    office = Calendar(
        zone="Europe/Berlin", hours={"mon-fri": ("09:00-17:00",)}, dates={date: Day("Christmas") for date in years}
    )
    start = office.moment("2026-03-23 10:30")
    week, decade = start + 7 * DAY, start + 3653 * DAY
    calls: dict[str, Callable[[], object]] = {
        "is_open": lambda: office.is_open(start),
        "next_open": lambda: office.next_open(start),
        "add 8 hours": lambda: office.add(start, 8 * HOUR),
        "add 2,000 hours": lambda: office.add(start, 2000 * HOUR),
        "between, a week": lambda: office.between(start, week),
        "between, ten years": lambda: office.between(start, decade),
    }
    assert office.between(start, week) == naive(office, start, week)
    slow = spent(lambda: naive(office, start, week))
    for name, work in calls.items():
        work()  # the changes of the zone's years are found once

        def repeated(work: Callable[[], object] = work) -> None:
            for _ in range(times):
                work()

        best = cpu(repeated, repeats=3) / times * 1e6
        beside = {"peer": "minute by minute", "peer_value": slow} if name == "between, a week" else {}
        yield row(f"calendar, {name}", best, "us", **beside)


def measure(quick: bool) -> Iterator[Row]:  # noqa: FBT001
    yield from jobs(5 if quick else 1_000, 1 if quick else 21)
    yield from timers(50 if quick else 100_000, 5 if quick else 100)
    yield from events(50 if quick else 50_000)
    yield from calendar(2 if quick else 5_000)


if __name__ == "__main__":
    main("Time at scale", measure)
