"""Clocks of SLA policies beside a count minute by minute, and the measurements of tickets."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quintain.products.zendesk.account import seconds
from quintain.products.zendesk.sla import METRICS
from tests.products.conftest import Client, fresh

MINUTE = 60.0
OFFICE = [{"start_time": day * 1440 + 540, "end_time": day * 1440 + 1020} for day in range(1, 6)]


def policy(api: Client, *targets: tuple[str, int], business: bool = False, **more: Any) -> None:
    metrics = [{"priority": priority, "metric": metric, "target": target, "business_hours": business}
               for metric, target in targets for priority in ("low", "normal", "high", "urgent")]  # fmt: skip
    api("POST", "slas/policies", {"sla_policy": {"title": "P", "policy_metrics": metrics, **more}})


def office(api: Client) -> None:
    api("POST", "business_hours/schedules", {"schedule": {"name": "Office", "time_zone": "UTC", "intervals": OFFICE}})


def me(api: Client) -> int:
    found: int = api("GET", "users/me")["user"]["id"]
    return found


def metric_events(api: Client, ticket: int) -> list[dict[str, Any]]:
    api.world.clock.advance(90)
    found = api("GET", "incremental/ticket_metric_events?start_time=0")["ticket_metric_events"]
    return [one for one in found if one["ticket_id"] == ticket]


def test_creation_measures_and_activates_every_metric_without_a_policy(api: Client) -> None:
    events = [(one["metric"], one["type"], one["instance_id"]) for one in metric_events(api, 1)]
    names = ("reply_time", "requester_wait_time", "agent_work_time", "resolution_time")
    assert sorted(events) == sorted([(n, "measure", 0) for n in names] + [(n, "activate", 1) for n in names])


def test_policy_sets_its_target_at_the_next_update_of_a_ticket(api: Client) -> None:
    policy(api, ("first_reply_time", 60))
    assert not [one for one in metric_events(api, 1) if one["type"] == "apply_sla"]
    answer = api.put(1, priority="high")
    change = next(one for one in answer["audit"]["events"] if one.get("field_name") == "first_reply_time")
    assert (change["value"], change["previous_value"]) == ({"minutes": 60, "in_business_hours": False}, None)
    assert change["via"]["source"]["rel"] == "sla_target_change"
    applied = next(one for one in metric_events(api, 1) if one["type"] == "apply_sla")
    assert (applied["sla"]["target"], applied["sla"]["policy"]["title"]) == (60, "P")


def test_ticket_without_a_priority_has_no_policy(api: Client) -> None:
    policy(api, ("first_reply_time", 60))
    ticket = api.ticket()
    api.world.clock.advance(90 * MINUTE)
    assert not [one for one in metric_events(api, ticket["id"]) if one["type"] in {"apply_sla", "breach"}]


def test_breach_comes_at_its_moment_and_a_reply_cancels_it(api: Client) -> None:
    policy(api, ("first_reply_time", 60))
    customer = Client(api.world, "customer1@mail.example")
    late = customer("POST", "requests", {"request": {"subject": "x", "comment": {"body": "y"}, "priority": "high"}})[
        "request"
    ]
    kept = customer("POST", "requests", {"request": {"subject": "x", "comment": {"body": "y"}, "priority": "high"}})[
        "request"
    ]
    api.put(kept["id"], comment={"body": "Hello"})
    shown = api("GET", f"tickets/{late['id']}?include=slas")["ticket"]["slas"]["policy_metrics"]
    assert [(one["metric"], one["stage"]) for one in shown] == [("first_reply_time", "active")]
    api.world.clock.advance(61 * MINUTE)
    breach = [one for one in metric_events(api, late["id"]) if one["type"] == "breach"]
    assert [seconds(one["time"]) - seconds(late["created_at"]) for one in breach] == [3600]
    assert not [one for one in metric_events(api, kept["id"]) if one["type"] == "breach"]


def test_target_that_has_passed_is_breached_now_and_not_before(api: Client) -> None:
    api.world.clock.advance(120 * MINUTE)
    policy(api, ("first_reply_time", 60))
    moment = api.put(1, priority="high")["ticket"]["updated_at"]
    breach = [one for one in metric_events(api, 1) if one["type"] == "breach"]
    assert [one["time"] for one in breach] == [moment]


def test_first_policy_with_a_target_for_the_priority_wins(api: Client) -> None:
    only_tagged = {"all": [{"field": "current_tags", "operator": "includes", "value": "vip"}], "any": []}
    policy(api, ("first_reply_time", 10), filter=only_tagged, position=1)
    policy(api, ("first_reply_time", 99), position=2)

    def target(**fields: Any) -> Any:
        events = api.put(1, **fields)["audit"]["events"]
        return next(one["value"]["minutes"] for one in events if one.get("field_name") == "first_reply_time")

    assert target(priority="high") == 99
    assert target(tags=["vip"]) == 10


def test_business_hours_leave_out_nights_weekends_and_holidays(api: Client) -> None:
    office(api)
    schedule = api("GET", "business_hours/schedules")["schedules"][0]["id"]
    holiday = {"holiday": {"name": "Day off", "start_date": "2026-01-06", "end_date": "2026-01-06"}}
    api("POST", f"business_hours/schedules/{schedule}/holidays", holiday)
    policy(api, ("total_resolution_time", 600), business=True)
    ticket = api.ticket(priority="high")
    api.world.clock.advance(5 * 86_400)
    breach = next(one for one in metric_events(api, ticket["id"]) if one["type"] == "breach")
    # Monday from 9:00, eight hours; Tuesday is a holiday; on Wednesday the rest of ten hours.
    assert breach["time"].startswith("2026-01-07T11:00")


def test_measurements_count_calendar_and_business_minutes(api: Client) -> None:
    office(api)
    api.put(1, assignee_id=me(api))
    api.world.clock.advance(30 * MINUTE)
    api.put(1, comment={"body": "Please wait"}, status="pending")
    api.world.clock.advance(86_400)
    api.put(1, status="hold")
    api.world.clock.advance(60 * MINUTE)
    api.put(1, status="solved")
    found = api("GET", "tickets/1/metrics")["ticket_metric"]
    assert found["reply_time_in_minutes"] == {"calendar": 30, "business": 30}
    assert found["agent_wait_time_in_minutes"] == {"calendar": 1440, "business": 480}
    assert found["on_hold_time_in_minutes"] == {"calendar": 60, "business": 60}
    assert found["full_resolution_time_in_minutes"] == {"calendar": 1530, "business": 570}
    assert found["first_resolution_time_in_minutes"] == found["full_resolution_time_in_minutes"]
    assert (found["replies"], found["reopens"], found["assignee_stations"], found["group_stations"]) == (1, 0, 1, 1)


# -- a second count, minute by minute

ACTS = st.tuples(
    st.integers(1, 700),  # minutes before it
    st.sampled_from(["ask", "reply", "note", "open", "pending", "hold", "solved"]),
)


class SlowClocks:
    """Counts of minutes in which each metric ran, by states that are kept for each minute."""

    def __init__(self) -> None:
        self.status, self.minute = "new", 0
        self.running: dict[tuple[str, int], list[int]] = {}
        self.waiting: dict[str, int] = {}
        self.instances = {"next_reply_time": 1, "periodic_update_time": 0, "pausable_update_time": 0}
        self.begin("first_reply_time", 1)
        for name in ("requester_wait_time", "agent_work_time", "total_resolution_time"):
            self.begin(name, 1)

    def begin(self, name: str, instance: int) -> None:
        self.waiting[name] = instance
        self.running[name, instance] = [0, 0]

    def tick(self, is_open: bool) -> None:
        states = {
            "requester_wait_time": ("new", "open", "hold"), "agent_work_time": ("new", "open"),
            "pausable_update_time": ("new", "open", "hold"),
        }  # fmt: skip
        for name, instance in self.waiting.items():
            if self.status in states.get(name, ("new", "open", "pending", "hold")):
                self.running[name, instance][0] += 1
                self.running[name, instance][1] += is_open
        self.minute += 1

    def act(self, act: str) -> None:
        if act == "ask" and self.status in {"pending", "hold", "solved"}:
            self.status = "open"
            self.reopen()
        elif act in {"open", "pending", "hold", "solved"}:
            self.status = act
            if act == "solved":
                self.waiting = {}
            else:
                self.reopen()
        if act == "reply":
            for name in ("first_reply_time", "next_reply_time", "periodic_update_time", "pausable_update_time"):
                self.waiting.pop(name, None)
            for name in ("periodic_update_time", "pausable_update_time"):
                if self.status != "solved":
                    self.instances[name] += 1
                    self.begin(name, self.instances[name])
        if act == "ask" and "first_reply_time" not in self.waiting and "next_reply_time" not in self.waiting:
            self.instances["next_reply_time"] += 1
            self.begin("next_reply_time", self.instances["next_reply_time"])

    def reopen(self) -> None:
        for name in ("requester_wait_time", "agent_work_time", "total_resolution_time"):
            self.waiting.setdefault(name, 1)


@settings(max_examples=40, deadline=None)
@given(st.lists(ACTS, min_size=1, max_size=12))
def test_clocks_count_as_minute_by_minute(acts: list[tuple[int, str]]) -> None:
    api = Client(fresh())
    world = api.world
    office(api)
    world.step_s = 0.0  # Each act is at a full minute.
    world.limit = 10**6
    customer, slow = Client(world, "customer1@mail.example"), SlowClocks()
    world.clock.advance(60 - world.clock.now % 60)
    request = {"request": {"subject": "x", "comment": {"body": "y"}}}
    ticket = customer("POST", "requests", request)["request"]["id"]
    api.put(ticket, assignee_id=me(api), status="new")
    for pause, act in acts:
        for passed in range(pause):
            day, minute = divmod(int(world.clock.now // 60) + passed, 1440)
            slow.tick((day + 4) % 7 in range(1, 6) and 540 <= minute < 1020)
        world.clock.advance(pause * MINUTE)
        world.throttle.windows.clear()
        if act == "ask":
            customer("PUT", f"requests/{ticket}", {"request": {"comment": {"body": "?"}}})
        elif act in {"reply", "note"}:
            api.put(ticket, comment={"body": "!", "public": act == "reply"})
        else:
            api.put(ticket, status=act)
        slow.act(act)
    spent: dict[tuple[str, int], list[int]] = {}
    names = {name: name for name in METRICS} | {"first_reply_time": "reply_time", "next_reply_time": "reply_time",
                                                "total_resolution_time": "resolution_time"}  # fmt: skip
    for one in metric_events(api, ticket):
        if one["type"] == "update_status":
            spent[one["metric"], one["instance_id"]] = [one["status"]["calendar"], one["status"]["business"]]
    ended = {
        (names[name], instance): count for (name, instance), count in slow.running.items()
        if slow.waiting.get(name) != instance
    }  # fmt: skip
    still = {(names[name], instance) for name, instance in slow.waiting.items()}
    assert {key: value for key, value in spent.items() if key not in still} == ended


@pytest.mark.parametrize("steps", [1, 7, 300])
def test_breaches_do_not_depend_on_the_steps_of_time(api: Client, steps: int) -> None:
    policy(api, ("first_reply_time", 45), ("total_resolution_time", 100), ("requester_wait_time", 77))
    api.put(1, priority="high")
    for _ in range(steps):
        api.world.clock.advance(3 * 3600 / steps)
    breach = [one for one in metric_events(api, 1) if one["type"] == "breach"]
    assert [seconds(one["time"]) - seconds("2026-01-05T09:00:00Z") for one in breach] == [45 * 60, 77 * 60, 100 * 60]
