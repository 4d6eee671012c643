"""`Outbox`: events on their way to those who subscribed, with delay, order, retry and dead letters.

    lane    what waits for one subscriber under one key: a linked list, of which only the first row has a time

Each subscriber gets a delivery of its own. An event never overtakes an earlier one of its key on the way to the same
subscriber, whatever their topics, not even while that one is being retried or its topic is paused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from quintain import codec
from quintain.errors import UsageError
from quintain.table import Table

from .agenda import Agenda, call, check, named
from .delays import Backoff, Delay, drawn
from .queues import Queue

replace = msgspec.structs.replace

Outcome = Literal["delivered", "refused", "dead", "duplicate"]
"""Taken; to be tried again; refused for the last time and never taken; taken before, and kept from the subscriber."""


class Retry(Exception):
    """Raised by a subscriber that cannot take an event now. What it changed before stays: look first, then act.

    Args:
        reason: Stands in the log.
        after: Seconds to the next attempt; by default what the back-off says.
    """

    def __init__(self, reason: str = "", *, after: float | None = None) -> None:
        if after is not None and not 0 <= after < math.inf:
            raise UsageError(f"the next attempt is in 0 or more seconds, got {after}")
        super().__init__(reason)
        self.reason, self.after = reason, after


class Event(msgspec.Struct, frozen=True):
    """Event as a subscriber receives it.

    Attributes:
        number: From 1, in the order of sending.
        topic: Topic of its subscribers.
        key: Events of one key come in the order of sending; None if order does not matter.
        body: Plain data.
        sent: Time of sending, in seconds since epoch.
        attempt: From 1; more after a refusal, or after a lost acknowledgement.
    """

    number: int
    topic: str
    key: str | None
    body: Any
    sent: float
    attempt: int


class Subscription(msgspec.Struct, frozen=True):
    """A method that is called with the events of a topic."""

    topic: str
    method: str
    backoff: Backoff
    once: bool


class Delivery(msgspec.Struct, frozen=True):
    """Event on its way to one subscriber.

    Attributes:
        due: The next attempt; infinity while it waits for an earlier event, or for its topic to be resumed.
        number: Order among deliveries.
        event: As it was sent; `attempt` counts those made.
        to: The subscription at the time of sending.
        ready: Earliest time of an attempt.
        ordered: True if it is in a lane.
        behind: Number of the next delivery in its lane; 0 for none.
        held: True if it waits for its topic to be resumed.
        taken: True if the subscriber took it, and the acknowledgement was lost.
    """

    due: float
    number: int
    event: Event
    to: Subscription
    ready: float
    ordered: bool
    behind: int = 0
    held: bool = False
    taken: bool = False


class Attempt(msgspec.Struct, frozen=True):
    """A line of the log."""

    at: float
    event: int
    topic: str
    key: str | None
    method: str
    attempt: int
    outcome: Outcome
    reason: str = ""


class Faults(msgspec.Struct, frozen=True, kw_only=True):
    """Faults between sender and subscriber; probabilities from 0, up to but not including 1.

    Attributes:
        duplicate: The acknowledgement of an event is lost, so it is delivered again.
        reorder: An event leaves its lane: it waits for none, and none waits for it.
    """

    duplicate: float = 0.0
    reorder: float = 0.0

    def __post_init__(self) -> None:
        if not (0 <= self.duplicate < 1 and 0 <= self.reorder < 1):
            raise UsageError(f"a probability of a fault is from 0, and less than 1, got {self}")


class Lane(msgspec.Struct, frozen=True):
    """The first and the last delivery of those that wait for one another."""

    first: int
    last: int


class Outbox(Agenda):
    """Events with delivery.

    Attributes:
        faults: What goes wrong on the way.
        deliveries: What is on its way.
        log: Every attempt, in order.
        dead: What was refused for the last time, by the delivery's number.
        paused: Topics of which nothing is delivered.
        count: Deliveries made out so far.
        events: Events sent so far.
    """

    faults: Faults = Faults()
    subscriptions: list[Subscription] = []
    deliveries: Queue[Delivery] = msgspec.field(default_factory=lambda: Queue(Delivery))
    lanes: Table[Lane] = msgspec.field(default_factory=lambda: Table(Lane))
    log: Table[Attempt] = msgspec.field(default_factory=lambda: Table(Attempt))
    dead: Table[Delivery] = msgspec.field(default_factory=lambda: Table(Delivery))
    paused: list[str] = []
    count: int = 0
    events: int = 0

    def subscribe(
        self,
        topic: str,
        method: Callable[[Event], object] | str,
        *,
        backoff: Backoff = Backoff(),  # noqa: B008 (frozen)
        once: bool = True,
    ) -> None:
        """Calls `method` with each event of a topic that is sent from now on.

        Args:
            topic: Exactly this one.
            method: Of this world or of one of its parts. It raises `Retry` to refuse.
            backoff: Waits before the next attempts of a refused event.
            once: True to withhold an event that it has taken and that comes again; the log shows a duplicate.

        Raises:
            UsageError: The method has subscribed already, or does not exist.
            TypeError: The method belongs to another world, or does not take one event.
        """
        name = named(self, method)
        check(self, name, None)
        if any((one.topic, one.method) == (topic, name) for one in self.subscriptions):
            raise UsageError(f"{name!r} has subscribed to {topic!r} already")
        self.subscriptions.append(Subscription(topic, name, backoff, once))

    def unsubscribe(self, topic: str, method: Callable[[Event], object] | str) -> None:
        """Sends a subscriber no more events of a topic. Events on their way are still delivered.

        Raises:
            UsageError: The method has not subscribed.
        """
        name = named(self, method)
        left = [one for one in self.subscriptions if (one.topic, one.method) != (topic, name)]
        if len(left) == len(self.subscriptions):
            raise UsageError(f"{name!r} has not subscribed to {topic!r}; it has to {self._topics(name)}")
        self.subscriptions = left

    def send(self, topic: str, body: Any, *, key: str | None = None, delay: Delay = 0.0) -> int:
        """Sends an event to all subscribers of its topic; returns the event's number.

        Args:
            topic: Topic of the subscribers.
            body: Plain data.
            key: Events of one key reach each subscriber in the order of sending.
            delay: Seconds to the first attempt, or their distribution.

        Raises:
            UsageError: The topic has no subscriber, or the delay is negative.
            TypeError: The body is not plain data.
        """
        found = [one for one in self.subscriptions if one.topic == topic]
        if not found:
            raise UsageError(f"topic {topic!r} has no subscriber; there is {self._topics()}")
        plain, now = codec.loads(codec.dumps(body), object), self.clock.now
        ready = now + drawn(delay, self.rng)
        self.events += 1
        event = Event(self.events, topic, key, plain, now, 0)
        for one in found:
            self._post(event, one, ready)
        return event.number

    def pause(self, topic: str) -> None:
        """Delivers nothing of a topic until `resume`, as in an outage. Waiting does not count as an attempt."""
        if topic not in self.paused:
            self.paused.append(topic)

    def resume(self, topic: str) -> None:
        """Delivers what was held, now and in the order of sending. Costs O(deliveries)."""
        if topic in self.paused:
            self.paused.remove(topic)
            for row in [row for row in self.deliveries.rows() if row.held and row.event.topic == topic]:
                self._put(replace(row, due=self.clock.now, held=False))

    def redeliver(self, number: int) -> None:
        """Tries a dead letter again, now, as if it were sent now; its attempts begin anew.

        Raises:
            UsageError: No dead letter has that number.
        """
        if str(number) not in self.dead:
            raise UsageError(f"dead letter {number} does not exist; there is {', '.join(self.dead) or 'none'}")
        row = self.dead.pop(str(number))
        self._post(replace(row.event, attempt=0), row.to, self.clock.now)

    def waiting(self) -> list[Delivery]:
        """Returns the deliveries on their way, by the next attempt; those without a time come last."""
        return self.deliveries.rows()

    def agenda(self) -> Queue[Any]:
        return self.deliveries

    def latest(self) -> int:
        return self.count

    def run_due(self, key: str, row: Delivery) -> None:
        if row.event.topic in self.paused:
            self._put(replace(row, due=math.inf, held=True))
            return
        event = replace(row.event, attempt=row.event.attempt + 1)
        row = replace(row, event=event)
        self._leave(row)
        if row.taken and row.to.once:
            self._acknowledge(row, "duplicate")
            return
        try:
            call(self, row.to.method, event)
        except Retry as refusal:
            self._refuse(row, refusal)
        else:
            self._acknowledge(replace(row, taken=True), "delivered")

    def _acknowledge(self, row: Delivery, outcome: Outcome) -> None:
        """Done with it, unless the word of it gets lost and there is an attempt left."""
        self._note(row, outcome)
        lost = bool(self.faults.duplicate) and self.rng.random() < self.faults.duplicate
        if lost and row.event.attempt < row.to.backoff.attempts:
            self._return(row, self.clock.now + row.to.backoff.wait(row.event.attempt, self.rng))

    def _refuse(self, row: Delivery, refusal: Retry) -> None:
        last = row.event.attempt >= row.to.backoff.attempts
        if last and not row.taken:
            self._note(row, "dead", refusal.reason)
            self.dead[str(row.number)] = replace(row, due=math.inf, behind=0)
            return
        self._note(row, "refused", refusal.reason)
        if last:
            return
        wait = row.to.backoff.wait(row.event.attempt, self.rng) if refusal.after is None else refusal.after
        self._return(row, self.clock.now + wait)

    def _note(self, row: Delivery, outcome: Outcome, reason: str = "") -> None:
        event = row.event
        self.log[f"{row.number}.{event.attempt}"] = Attempt(
            self.clock.now, event.number, event.topic, event.key, row.to.method, event.attempt, outcome, reason
        )

    # -- lanes

    def _post(self, event: Event, to: Subscription, ready: float) -> None:
        """Puts a delivery behind all of its lane."""
        self.count += 1
        number, due = self.count, ready
        ordered = event.key is not None and not (self.faults.reorder and self.rng.random() < self.faults.reorder)
        if ordered:
            name = _lane(to, event)
            lane = self.lanes.get(name)
            if lane is not None:
                due = math.inf
                last = self.deliveries[str(lane.last)]
                self.deliveries[str(lane.last)] = replace(last, behind=number)
            self.lanes[name] = Lane(number if lane is None else lane.first, number)
        self._put(Delivery(due, number, event, to, ready, ordered))

    def _leave(self, row: Delivery) -> None:
        """Takes the first of a lane out, so that the next one gets a time."""
        del self.deliveries[str(row.number)]
        if row.ordered:
            name = _lane(row.to, row.event)
            if row.behind:
                self.lanes[name] = replace(self.lanes[name], first=row.behind)
                following = self.deliveries[str(row.behind)]
                self.deliveries[str(row.behind)] = replace(following, due=max(self.clock.now, following.ready))
            else:
                del self.lanes[name]
        self.arm()

    def _return(self, row: Delivery, due: float) -> None:
        """Puts one that has left back before all of its lane."""
        behind = 0
        if row.ordered:
            name = _lane(row.to, row.event)
            lane = self.lanes.get(name)
            if lane is not None:
                behind = lane.first
                self.deliveries[str(behind)] = replace(self.deliveries[str(behind)], due=math.inf)
            self.lanes[name] = Lane(row.number, row.number if lane is None else lane.last)
        self._put(replace(row, due=due, ready=due, behind=behind))

    def _put(self, row: Delivery) -> None:
        self.deliveries[str(row.number)] = row
        self.arm()

    # -- subscriptions

    def _topics(self, method: str | None = None) -> str:
        found = {one.topic for one in self.subscriptions if method in (None, one.method)}
        return ", ".join(sorted(found)) or "none"


def _lane(to: Subscription, event: Event) -> str:
    return f"{to.method} {event.key}"
