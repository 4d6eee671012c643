"""Events come in the order of their keys, are tried again, and end in the log or as dead letters."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quintain as qn
from quintain.errors import UsageError
from quintain.resources.schedule import Backoff, Event, Exponential, Faults, Outbox, Retry, Uniform
from quintain.state import Rng, begin

DAY = 86_400
PLAIN = Backoff(first=10.0, factor=2.0, most=60.0, jitter=0.0)


class Desk(qn.State):
    outbox: Outbox
    refusals: dict[str, int] = {}
    """How often a body is still to be refused."""
    log: list[str] = []

    def take(self, event: Event) -> None:
        left = self.refusals.get(event.body, 0)
        if left:
            self.refusals[event.body] = left - 1
            raise Retry(f"{left} left")
        self.log.append(f"{event.body}@{self.clock.now:g}")

    def copy_in(self, event: Event) -> None:
        self.log.append(f"copy of {event.body}, attempt {event.attempt}@{self.clock.now:g}")

    def take_half(self, event: Event) -> None:
        if self.rng.below(2):
            raise Retry("heads")

    def wait_a_week(self, event: Event) -> None:
        if event.attempt == 1:
            raise Retry("on holiday", after=7)
        self.take(event)

    def answer(self, event: Event) -> None:
        self.outbox.send("ping", event.body)

    def same_key(self, event: Event) -> None:
        """Sends behind itself, then refuses itself once: what it sent must wait."""
        if event.attempt == 1:
            self.outbox.send("t", "behind", key=event.key)
            raise Retry
        self.log.append(f"{event.body}@{self.clock.now:g}")

    def broken(self, event: Event) -> None:
        raise KeyError("bug")

    def refuse(self, event: Event) -> None:
        raise qn.ToolError("no")

    def no_event(self) -> None:
        raise AssertionError("never called")


def desk(**faults: float) -> Desk:
    return asyncio.run(begin(Desk(outbox=Outbox(faults=Faults(**faults))), seed=1, task_id="t"))


def subscribed(backoff: Backoff = PLAIN) -> Desk:
    world = desk()
    world.outbox.subscribe("t", world.take, backoff=backoff)
    return world


def outcomes(world: Desk) -> list[tuple[float, int, int, str]]:
    return [(line.at, line.event, line.attempt, line.outcome) for line in world.outbox.log.values()]


def test_an_event_arrives_after_its_delay() -> None:
    world = subscribed()
    world.outbox.subscribe("t", "copy_in")
    assert world.outbox.send("t", "a", delay=5) == 1
    assert world.outbox.send("t", "b") == 2
    world.clock.advance(5)
    assert world.log == ["b@0", "copy of b, attempt 1@0", "a@5", "copy of a, attempt 1@5"]
    assert outcomes(world) == [(0, 2, 1, "delivered")] * 2 + [(5, 1, 1, "delivered")] * 2
    assert world.outbox.waiting() == []


def test_events_of_one_key_do_not_overtake() -> None:
    world = subscribed()
    for body, key, delay in (("a", "k", 9), ("b", "k", 1), ("c", "other", 2), ("d", None, 3), ("e", "k", 20)):
        world.outbox.send("t", body, key=key, delay=delay)
    world.clock.advance(30)
    assert world.log == ["c@2", "d@3", "a@9", "b@9", "e@20"]


def test_nor_while_the_earlier_one_is_being_retried() -> None:
    world = subscribed()
    world.refusals = {"a": 2}
    for body, key in (("a", "k"), ("b", "k"), ("c", "other")):
        world.outbox.send("t", body, key=key)
    world.clock.advance(29)
    assert world.log == ["c@0"]
    world.clock.advance(1)
    assert world.log == ["c@0", "a@30", "b@30"]
    refused = [(0, 1, 1, "refused"), (10, 1, 2, "refused"), (30, 1, 3, "delivered")]
    assert [line for line in outcomes(world) if line[1] == 1] == refused
    assert next(iter(world.outbox.log.values())).reason == "2 left"


def test_one_subscriber_does_not_hold_up_another() -> None:
    world = subscribed()
    world.outbox.subscribe("t", world.copy_in)
    world.refusals = {"a": 2}
    world.outbox.send("t", "a", key="k")
    world.outbox.send("t", "b", key="k")
    world.clock.advance(60)
    assert world.log == ["copy of a, attempt 1@0", "copy of b, attempt 1@0", "a@30", "b@30"]


def test_the_order_holds_across_topics_of_one_subscriber() -> None:
    world = subscribed()
    world.outbox.subscribe("u", world.take)
    world.outbox.send("t", "created", key="T1", delay=8)
    world.outbox.send("u", "closed", key="T1")
    world.clock.advance(10)
    assert world.log == ["created@8", "closed@8"]


def test_a_dead_letter_lets_the_next_one_pass_and_can_be_sent_again() -> None:
    world = subscribed(backoff=Backoff(attempts=3, first=1, jitter=0))
    world.refusals = {"a": 4}
    world.outbox.send("t", "a", key="k")
    world.outbox.send("t", "b", key="k")
    world.clock.advance(60)
    assert world.log == ["b@3"]
    ((number, letter),) = world.outbox.dead.items()
    assert (number, letter.event.body, letter.event.attempt) == ("1", "a", 3)
    assert outcomes(world)[2] == (3, 1, 3, "dead")
    with pytest.raises(UsageError, match="dead letter 7 does not exist; there is 1"):
        world.outbox.redeliver(7)
    world.outbox.redeliver(1)
    world.clock.advance(60)
    assert world.log == ["b@3", "a@61"]
    assert len(world.outbox.dead) == 0


def test_the_subscriber_may_say_when() -> None:
    world = desk()
    world.outbox.subscribe("t", world.wait_a_week)
    world.outbox.send("t", "a")
    world.clock.advance(10)
    assert world.log == ["a@7"]


def test_events_of_a_subscriber_wait_behind_the_refused_one() -> None:
    world = desk()
    world.outbox.subscribe("t", world.same_key, backoff=PLAIN)
    world.outbox.send("t", "first", key="k")
    world.clock.advance(100)
    assert world.log[0] == "first@10"
    assert outcomes(world)[:3] == [(0, 1, 1, "refused"), (10, 1, 2, "delivered"), (10, 2, 1, "refused")]


def test_an_outage_holds_events_and_lets_them_go_in_order() -> None:
    world = subscribed()
    world.outbox.subscribe("u", world.copy_in)
    world.outbox.pause("t")
    world.outbox.pause("t")
    for body, key, delay in (("a", "k", 5), ("b", "k", 1), ("c", None, 2), ("late", None, 50)):
        world.outbox.send("t", body, key=key, delay=delay)
    world.outbox.send("u", "other topic")
    world.clock.advance(20)
    assert world.log == ["copy of other topic, attempt 1@0"]
    assert [row.held for row in world.outbox.waiting()] == [False, True, False, True]
    world.outbox.resume("t")
    world.outbox.resume("t")
    world.clock.advance(40)
    assert world.log[1:] == ["a@20", "b@20", "c@20", "late@50"]
    assert {line[2] for line in outcomes(world)} == {1}, "waiting does not count as an attempt"


def test_unsubscribed_gets_what_is_on_its_way() -> None:
    world = subscribed()
    world.outbox.send("t", "a", delay=5)
    world.outbox.unsubscribe("t", world.take)
    world.clock.advance(5)
    assert world.log == ["a@5"]
    with pytest.raises(UsageError, match="topic 't' has no subscriber; there is none"):
        world.outbox.send("t", "b")
    with pytest.raises(UsageError, match="'take' has not subscribed to 't'; it has to none"):
        world.outbox.unsubscribe("t", "take")


@pytest.mark.parametrize("once", [True, False])
def test_a_lost_word_brings_an_event_again(once: bool) -> None:
    world = desk(duplicate=0.5)
    world.outbox.subscribe("t", world.copy_in, backoff=Backoff(attempts=3, first=10), once=once)
    for number in range(40):
        world.outbox.send("t", number, key="k")
    world.clock.advance(10_000)
    assert world.outbox.waiting() == []
    again = [line for line in outcomes(world) if line[2] > 1]
    assert len(again) > 5
    assert max(line[2] for line in again) == 3, "the word of the last attempt does not get lost"
    assert {line[3] for line in again} == ({"duplicate"} if once else {"delivered"})
    assert len(world.log) == 40 + (0 if once else len(again)), "exactly one effect, or every attempt"
    taken = [int(line.split()[2].rstrip(",")) for line in world.log]
    assert taken == sorted(taken), "a repeated event still holds up those behind it"


def test_event_taken_once_never_becomes_a_dead_letter() -> None:
    """The event comes again after a lost acknowledgement, and is refused until the attempts are used up."""
    world = desk(duplicate=0.5)
    world.outbox.subscribe("t", world.take_half, backoff=Backoff(attempts=3, first=1), once=False)
    for number in range(200):
        world.outbox.send("t", str(number))
    world.clock.advance(DAY)
    lines = list(world.outbox.log.values())
    taken = {line.event for line in lines if line.outcome == "delivered"}
    dead = {letter.event.number for letter in world.outbox.dead.values()}
    assert dead == {line.event for line in lines if line.outcome == "dead"}
    assert (taken | dead, taken & dead) == (set(range(1, 201)), set())
    refused_last = [line for line in lines if line.attempt == 3 and line.outcome == "refused"]
    assert refused_last, "or nothing was tried"
    assert {line.event for line in refused_last} <= taken


def test_reordering_breaks_the_order_of_a_key() -> None:
    world = desk(reorder=0.5)
    world.outbox.subscribe("t", world.take)
    for number in range(40):
        world.outbox.send("t", str(number), key="k", delay=Uniform(0, 100))
    world.clock.advance(100)
    taken = [int(line.partition("@")[0]) for line in world.log]
    assert sorted(taken) == list(range(40)) != taken


def test_delays_are_drawn_by_the_world() -> None:
    def arrivals(seed: int) -> list[str]:
        world = asyncio.run(begin(subscribed(), seed=seed, task_id="t"))
        for delay in (Uniform(5, 10), Exponential(20), 3, 0.25):
            world.outbox.send("t", str(delay), delay=delay)
        world.clock.advance(1000)
        return world.log

    assert arrivals(1) == arrivals(1) != arrivals(2)
    rng = Rng(b"delays")
    uniform = [Uniform(5, 10).draw(rng) for _ in range(2000)]
    assert 5 <= min(uniform) < 5.1
    assert 9.9 < max(uniform) <= 10
    exponential = [Exponential(20).draw(rng) for _ in range(2000)]
    assert min(exponential) >= 0
    assert sum(exponential) / 2000 == pytest.approx(20, rel=0.1)
    assert all(round(draw, 3) == draw for draw in exponential)


POLICIES = st.builds(
    Backoff, first=st.floats(0, 1000), factor=st.floats(1, 1e300), most=st.floats(0, 1e6), jitter=st.floats(0, 1)
)


@given(st.integers(1, 200), POLICIES)
def test_the_back_off_is_exponential_with_jitter(attempt: int, policy: Backoff) -> None:
    wait = policy.wait(attempt, Rng(b"k"))
    power = (attempt - 1) * math.log(policy.factor) + math.log(policy.first or 1)
    plain = min(math.exp(min(power, 100)) if policy.first else 0.0, policy.most)
    slack = 0.001 + 1e-9 * plain
    assert plain * (1 - policy.jitter) - slack <= wait <= plain * (1 + policy.jitter) + slack
    assert wait == policy.wait(attempt, Rng(b"k"))


def test_waits_double_up_to_the_most() -> None:
    rng = Rng(b"k")
    assert [PLAIN.wait(attempt, rng) for attempt in range(1, 6)] == [10, 20, 40, 60, 60]


TOPICS = st.sampled_from(["t", "u"])
KEYS = st.sampled_from(["k", "l", None])
SENDS = st.tuples(TOPICS, KEYS, st.integers(0, 30))
OUTAGES = st.tuples(TOPICS, st.booleans(), st.integers(0, 20))


@settings(deadline=None)
@given(
    st.lists(st.tuples(SENDS, OUTAGES), max_size=12), st.dictionaries(st.integers(0, 11).map(str), st.integers(1, 6))
)
def test_first_in_first_out_for_each_key(
    sends: list[tuple[tuple[str, str | None, int], tuple[str, bool, int]]], refusals: dict[str, int]
) -> None:
    """Delayed, refused or held events keep the order of their key."""
    world = desk()
    world.refusals = dict(refusals)
    for topic in ("t", "u"):
        world.outbox.subscribe(topic, world.take, backoff=Backoff(attempts=3, first=4))
    for number, ((topic, key, delay), (name, pause, seconds)) in enumerate(sends):
        world.outbox.send(topic, str(number), key=key, delay=delay)
        (world.outbox.pause if pause else world.outbox.resume)(name)
        world.clock.advance(seconds)
    for name in ("t", "u"):
        world.outbox.resume(name)
    world.clock.advance(10_000)
    assert world.outbox.waiting() == []
    assert len(world.outbox.lanes) == 0
    lines = list(world.outbox.log.values())
    for wanted in ("k", "l"):
        order = [line.event for line in lines if line.key == wanted]
        assert order == sorted(order)
    assert sorted(line.event for line in lines if line.outcome in {"delivered", "dead"}) == list(
        range(1, len(sends) + 1)
    )
    taken = sorted(int(line.partition("@")[0]) for line in world.log)
    assert taken == [number for number in range(len(sends)) if refusals.get(str(number), 0) < 3]


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        (lambda w: w.outbox.send("x", 1), UsageError, "topic 'x' has no subscriber; there is t"),
        (lambda w: w.outbox.send("t", object()), TypeError, "unsupported"),
        (lambda w: w.outbox.send("t", 1, delay=-1), UsageError, "a delay is 0 or more seconds, got -1"),
        (lambda w: w.outbox.subscribe("t", w.take), UsageError, "'take' has subscribed to 't' already"),
        (
            lambda w: w.outbox.subscribe("t", "no"),
            UsageError,
            "Desk has no method 'no'; it has answer, broken, copy_in",
        ),
        (lambda w: w.outbox.subscribe("t", w.no_event), TypeError, r"'no_event' takes \(self\).*too many positional"),
        (lambda w: w.outbox.subscribe("t", desk().take), TypeError, "is not a method of this Desk"),
        (lambda w: w.outbox.redeliver(1), UsageError, "dead letter 1 does not exist; there is none"),
        (lambda w: Faults(duplicate=1), UsageError, "from 0, and less than 1, got Faults"),
        (lambda w: Uniform(3, 2), UsageError, "0 <= low <= high, got 3 and 2"),
        (lambda w: Exponential(-1), UsageError, "a mean delay is 0 or more seconds, got -1"),
        (lambda w: Backoff(attempts=0), UsageError, "attempts >= 1, waits >= 0"),
        (lambda w: Backoff(jitter=2), UsageError, "jitter from 0 to 1"),
        (lambda w: Retry(after=-1), UsageError, "the next attempt is in 0 or more seconds, got -1"),
    ],
)
def test_nonsense_is_refused(wrong: Callable[[Desk], object], error: type[Exception], says: str) -> None:
    world = subscribed()
    before = world.copy()
    with pytest.raises(error, match=says):
        wrong(world)
    assert world == before


@pytest.mark.parametrize(
    ("method", "error", "says"), [("broken", KeyError, "bug"), ("refuse", RuntimeError, "ToolError")]
)
def test_an_ordinary_exception_is_a_bug_of_the_world(method: str, error: type[Exception], says: str) -> None:
    world = desk()
    world.outbox.subscribe("t", method)
    world.outbox.send("t", "a")
    with pytest.raises(error, match=says):
        world.clock.advance(1)


def test_an_echo_is_stopped_and_named() -> None:
    world = desk()
    world.outbox.limit = 20
    world.outbox.subscribe("ping", world.answer)
    world.outbox.send("ping", "hello")
    with pytest.raises(
        RuntimeError, match=r"Outbox: Delivery\(.*topic='ping'.* is one of over 20 that set off each other"
    ):
        world.clock.advance(1)
