"""Measurements of tickets and the clocks of SLA policies.

Clocks run with and without a policy. A policy is looked for after the triggers of each update, and only then. A breach
is an action due at the computed moment; a target that has passed already is breached at the moment of the update.
"""

from __future__ import annotations

import functools
from copy import copy
from datetime import date, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from quintain.resources.database.standing import known
from quintain.resources.schedule import Calendar, Day
from quintain.resources.web.rows import find, insert, save
from quintain.resources.web.world import moment

from . import tables as tb
from .account import Desk, channel, seconds
from .conditions import Answers, compiled, decoded

if TYPE_CHECKING:
    from .commit import Update

EVENT_METRICS = {
    "first_reply_time": "reply_time",
    "next_reply_time": "reply_time",
    "total_resolution_time": "resolution_time",
}
"""Names in metric events where they differ from those in policies."""
ALWAYS = {
    "requester_wait_time": {"new", "open", "hold"},
    "agent_work_time": {"new", "open"},
    "total_resolution_time": {"new", "open", "pending", "hold"},
}
"""Metrics of status: the states in which their clocks run. They pause in the others, and solving ends them."""
METRICS = (*ALWAYS, "first_reply_time", "next_reply_time", "periodic_update_time", "pausable_update_time")
_WAITS = {"agent_wait": ("pending",), "requester_wait": ("new", "open", "hold"), "on_hold": ("hold",)}
_ENDED = ("solved", "closed")
_WEEK = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_SCHEDULE = "SELECT id, time_zone, intervals FROM zd_schedules ORDER BY id IS NOT ?, id LIMIT 1"
_HOLIDAYS = "SELECT name, start_date, end_date FROM zd_holidays WHERE schedule_id = ? ORDER BY id"
_POLICIES = "SELECT id, title, description, filter, policy_metrics FROM zd_sla_policies ORDER BY position, id"


# -- business hours


class Interval(msgspec.Struct):
    """Open hours in minutes from Sunday 00:00."""

    start_time: Annotated[int, msgspec.Meta(ge=0, lt=10080)]
    end_time: Annotated[int, msgspec.Meta(gt=0, le=10080)]


def calendar(world: Desk, schedule_id: int | None = None) -> Calendar:
    """Returns the hours of a schedule, or of the first one; without any, it is always open."""
    for number, zone, intervals in known(world.db, _SCHEDULE, schedule_id):
        return hours_of(zone, intervals, tuple(known(world.db, _HOLIDAYS, number)))
    return _ALWAYS_OPEN


@functools.lru_cache(maxsize=256)
def hours_of(zone: str, intervals: str, holidays: tuple[tuple[str, str, str], ...]) -> Calendar:
    """Returns business hours; raises UsageError if the zone does not exist or intervals overlap."""
    hours: dict[str, list[tuple[int, int]]] = {day: [] for day in _WEEK}
    for one in msgspec.json.decode(intervals):
        start, end = int(one["start_time"]), int(one["end_time"])
        while start < end:
            day = start // 1440
            stop = min(end, (day + 1) * 1440)
            hours[_WEEK[day % 7]].append((start - day * 1440, stop - day * 1440))
            start = stop
    week = {day: tuple(f"{a // 60:02}:{a % 60:02}-{b // 60:02}:{b % 60:02}" for a, b in sorted(spans))
            for day, spans in hours.items() if spans}  # fmt: skip
    dates: dict[str, Day] = {}
    for name, first, last in holidays:
        for number in range((date.fromisoformat(last) - date.fromisoformat(first)).days + 1):
            dates[(date.fromisoformat(first) + timedelta(number)).isoformat()] = Day(name)
    return Calendar(zone=zone, hours=week, dates=dates)


_ALWAYS_OPEN = Calendar(hours={"mon-sun": ("00:00-24:00",)})


# -- measurements


def metric_of(world: Desk, ticket: tb.Ticket, before: tb.Ticket | None) -> tb.Metric:
    """Returns the measurements of a ticket, new ones for a new ticket."""
    found = find(world.db, tb.Metric, ticket.id) if before is not None else None
    if found is not None:
        return found
    at, now = world.clock.now, world.now
    return tb.Metric(id=ticket.id, ticket_id=ticket.id, created_at=now, updated_at=now, since=at)


def count(made: Update) -> None:
    """Counts what an update did to a ticket, before its triggers look."""
    now, ticket, before, metric = made.world.now, made.ticket, made.before, made.metric
    made.previous_metric = None if before is None else copy(metric)
    if made.comment is not None:
        metric.latest_comment_added_at = now
        metric.replies += made.comment.public and made.comment.by_agent and before is not None
    if made.actor.id == ticket.requester_id:
        metric.requester_updated_at = now
    if made.actor.id == ticket.assignee_id:
        metric.assignee_updated_at = now
    _stations(made, before)


def _stations(made: Update, before: tb.Ticket | None) -> None:
    now, ticket, metric = made.world.now, made.ticket, made.metric
    if ticket.assignee_id is not None and (before is None or before.assignee_id != ticket.assignee_id):
        metric.assignee_stations += 1
        metric.assigned_at = now
        metric.initially_assigned_at = metric.initially_assigned_at or now
    if ticket.group_id is not None and (before is None or before.group_id != ticket.group_id):
        metric.group_stations += 1


def follow(made: Update) -> None:
    """Moves clocks and measurements after the rules of an update, and looks for the policy."""
    world, ticket, before, metric = made.world, made.ticket, made.before, made.metric
    if made.ruled is not None:
        _stations(made, made.ruled)
    changed = before is None or before.status != ticket.status
    if changed:
        _status(made, made.hours)
    if changed or made.comment is not None:
        made.metric.clocks = [copy(one) for one in metric.clocks]
        _run(made)
    if any(one.state != "done" for one in metric.clocks):
        _target(made)
    insert(world.db, *made.metric_events)
    if made.previous_metric is None:
        insert(world.db, metric)
    elif metric != made.previous_metric:
        metric.updated_at = world.now
        save(world.db, metric, made.previous_metric)


def _status(made: Update, hours: Calendar) -> None:
    """Adds the time in the status that ends, and what follows from solving and reopening."""
    world, ticket, before, metric, at = made.world, made.ticket, made.before, made.metric, made.world.clock.now
    metric.status_updated_at = world.now
    if before is not None:
        counted = {name: [*values] for name, values in metric.counted.items()}
        spent = counted.setdefault(before.status, [0.0, 0.0])
        spent[0] += at - metric.since
        spent[1] += hours.between(metric.since, at)
        metric.counted, metric.since = counted, at
        for name, states in _WAITS.items():
            waited = [counted.get(state, [0.0, 0.0]) for state in states]
            setattr(metric, f"{name}_time_in_minutes", minutes(sum(a for a, _ in waited), sum(b for _, b in waited)))
        if before.status == "solved" and ticket.status not in _ENDED:
            metric.reopens += 1
            metric.solved_at = None
    if ticket.status == "solved":
        metric.solved_at = world.now
        since = seconds(ticket.created_at)
        full = minutes(at - since, hours.between(since, at))
        metric.full_resolution_time_in_minutes = full
        if metric.first_resolution_time_in_minutes["calendar"] is None:
            metric.first_resolution_time_in_minutes = full


def minutes(calendar_s: float, business_s: float) -> tb.Json:
    """Returns seconds of both kinds in whole minutes."""
    return {"calendar": int(calendar_s // 60), "business": int(business_s // 60)}


# -- clocks


def _run(made: Update) -> None:
    """Starts, pauses and ends clocks by the status and the comment of an update."""
    status, metric = made.ticket.status, made.metric
    if made.before is None:
        for name in ("first_reply_time", *ALWAYS):
            _emit(made, tb.SlaClock(name, 0, "", 0.0), "measure")
    latest = {one.metric: one for one in metric.clocks}
    for name, states in ALWAYS.items():
        clock = latest.get(name)
        if clock is None and status not in _ENDED:
            clock = _start(made, name, 1)
        if clock is not None:
            _move(made, clock, "done" if status in _ENDED else "active" if status in states else "paused")
    said = made.comment
    if said is not None and said.public:
        (_answered if said.by_agent else _asked)(made, latest)
    for clock in metric.clocks:
        if clock.metric not in ALWAYS and clock.state != "done":
            waits = clock.metric == "pausable_update_time" and status == "pending"
            _move(made, clock, "done" if status in _ENDED else "paused" if waits else "active")


def _answered(made: Update, latest: dict[str, tb.SlaClock]) -> None:
    """Ends the clocks that waited for an agent, and starts those of the next update."""
    metric = made.metric
    for name in ("first_reply_time", "next_reply_time", "periodic_update_time", "pausable_update_time"):
        clock = latest.get(name)
        if clock is not None and clock.state != "done":
            _move(made, clock, "done")
            if name == "first_reply_time":
                metric.reply_time_in_minutes = minutes(clock.calendar_s, clock.business_s)
    if made.ticket.status not in _ENDED:
        for name in ("periodic_update_time", "pausable_update_time"):
            last = latest.get(name)
            _start(made, name, last.instance + 1 if last else 1)


def _asked(made: Update, latest: dict[str, tb.SlaClock]) -> None:
    """Starts the clock of a reply if no reply is waited for already."""
    if made.ticket.status in _ENDED:
        return
    first, later = latest.get("first_reply_time"), latest.get("next_reply_time")
    if first is None:
        _start(made, "first_reply_time", 1)
    elif first.state == "done" and (later is None or later.state == "done"):
        _start(made, "next_reply_time", later.instance + 1 if later else 2)


def _start(made: Update, name: str, instance: int) -> tb.SlaClock:
    clock = tb.SlaClock(name, instance, "active", made.world.clock.now)
    # Of the metrics that repeat, an ended clock without a breach to report is not needed any more.
    made.metric.clocks = [one for one in made.metric.clocks if one.metric != name or one.state != "done"]
    made.metric.clocks.append(clock)
    _emit(made, clock, "activate")
    return clock


def _move(made: Update, clock: tb.SlaClock, state: str) -> None:
    if clock.state == state:
        return
    now = made.world.clock.now
    if clock.state == "active":
        clock.calendar_s += now - clock.since
        clock.business_s += made.hours.between(clock.since, now)
    clock.state, clock.since = state, now
    verb = {"active": "activate", "paused": "pause", "done": "fulfill"}[state]
    _emit(made, clock, verb)
    if state == "done":
        clock.breach_at = None
        spent = minutes(clock.calendar_s, clock.business_s)
        _emit(made, clock, "update_status", status=spent)


def _emit(made: Update, clock: tb.SlaClock, type: str, **more: Any) -> None:
    made.metric_events.append(_event(made.world, made.ticket.id, clock, type=type, **more))


def _event(world: Desk, ticket_id: int, clock: tb.SlaClock, *, type: str, **more: Any) -> Any:
    name, at = EVENT_METRICS.get(clock.metric, clock.metric), world.now
    return tb.MetricEvent(
        id=world.new_number(),
        ticket_id=ticket_id,
        metric=name,
        instance_id=clock.instance,
        type=type,
        time=at,
        more=more,
    )


# -- policies


def _policy(made: Update) -> tuple[tuple[Any, ...] | None, dict[str, tb.Json]]:
    """Returns the first policy that holds and has a target for the priority, and its targets by metric."""
    priority = made.ticket.priority
    if priority is None:
        return None, {}
    for record in known(made.world.db, _POLICIES):
        targets = {one["metric"]: one for one in decoded(record[4]) if one.get("priority") == priority}
        if targets and compiled(record[3])(Answers(made)):
            return record, targets
    return None, {}


def _target(made: Update) -> None:
    """Gives the running clocks their targets; what they have counted is kept."""
    policy, targets = _policy(made)
    at, metric = made.world.clock.now, made.metric
    metric.clocks = [*metric.clocks]  # The measurements before the update have the list as it was.
    for index, old in enumerate(metric.clocks):
        if old.state == "done":
            continue
        found = targets.get(old.metric)
        target, business = (int(found["target"]), bool(found.get("business_hours"))) if found else (None, False)
        clock, by = copy(old), policy if found else None
        if (old.target, old.business_hours, old.policy_id) != (target, business, by[0] if by else None):
            _retarget(made, clock, by, target=target, business=business)
        clock.breach_at = _breach(made, clock, at)
        if clock.breach_at is not None and clock.breach_at <= at:
            clock.breached, clock.breach_at = True, None
            _emit(made, clock, "breach", deleted=False)
        if clock != old:
            metric.clocks[index] = clock
    _wait(made.world, metric, made.ticket.id)


def _wait(world: Desk, metric: tb.Metric, ticket_id: int) -> None:
    """Waits for the first breach of a ticket instead of another."""
    due = [one.breach_at for one in metric.clocks if one.breach_at is not None]
    if metric.next_breach is not None:
        world.cancel(f"sla {ticket_id}")
    metric.next_breach = moment(min(due)) if due else None
    if due:
        world.at(min(due), "breach", ticket_id, key=f"sla {ticket_id}")


def _retarget(made: Update, clock: tb.SlaClock, policy: Any, *, target: int | None, business: bool) -> None:
    before, clock.target = clock.target, target
    was, clock.business_hours = clock.business_hours, business
    clock.policy_id, clock.breached = policy[0] if policy else None, clock.breached and target == before
    values = [
        None if one is None else {"minutes": one, "in_business_hours": hours}
        for one, hours in ((target, business), (before, was))
    ]
    if policy:
        details = {"id": policy[0], "title": policy[1], "description": policy[2]}
        sla = {"target": target, "business_hours": business, "policy": details}
        _emit(made, clock, "apply_sla", sla=sla)
    if values[0] == values[1]:
        return
    via = channel("rule", "sla_target_change", id=clock.policy_id, title=policy[1] if policy else None)
    made.event("Change", value=values[0], field_name=clock.metric, previous_value=values[1], via=via)


def _breach(made: Update, clock: tb.SlaClock, now: float) -> float | None:
    """Returns the moment of a clock's breach, at the earliest now; None if it has no target, rests or was breached."""
    if clock.target is None or clock.state != "active" or clock.breached:
        return None
    if not clock.business_hours:
        return max(now, clock.since + clock.target * 60 - clock.calendar_s)
    left = clock.target * 60 - clock.business_s - made.hours.between(clock.since, now)
    return now if left <= 0 else made.hours.add(now, left)


def breach(world: Desk, ticket_id: int) -> None:
    """Breaches the clocks of a ticket whose moment has come, and waits for the next."""
    metric = find(world.db, tb.Metric, ticket_id)
    if metric is None:
        return
    before, now = copy(metric), world.clock.now
    metric.clocks = [copy(one) for one in metric.clocks]
    for clock in metric.clocks:
        if clock.breach_at is not None and clock.breach_at <= now:
            clock.breached, clock.breach_at = True, None
            insert(world.db, _event(world, ticket_id, clock, type="breach", deleted=False))
    _wait(world, metric, ticket_id)
    save(world.db, metric, before)
