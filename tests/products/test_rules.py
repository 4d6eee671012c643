"""Triggers beside a slow reference, views beside a reading of every ticket, automations, macros, webhooks."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quintain.products.zendesk.account import Desk
from quintain.products.zendesk.actions import now_of
from quintain.products.zendesk.commit import Update
from quintain.products.zendesk.conditions import Answers, compiled, faults, sql
from quintain.products.zendesk.tables import PRIORITIES, STATUSES, TYPES, Ticket
from quintain.resources.web import HttpRequest, HttpResponse
from quintain.resources.web.rows import select
from tests.products.conftest import Client, fresh

HOUR = 3600.0


def trigger(api: Client, *every: tuple[str, str, Any], actions: dict[str, Any], **more: Any) -> int:
    conditions = {"all": [{"field": f, "operator": o, "value": v} for f, o, v in every], "any": more.pop("any", [])}
    done = [{"field": name, "value": value} for name, value in actions.items()]
    body = {"trigger": {"title": "T", "conditions": conditions, "actions": done, **more}}
    found: int = api("POST", "triggers", body)["trigger"]["id"]
    return found


def admin(api: Client) -> int:
    found: int = api("GET", "users/me")["user"]["id"]
    return found


def quiet(api: Client) -> None:
    """Removes the seeded triggers."""
    for one in api("GET", "triggers")["triggers"]:
        api("DELETE", f"triggers/{one['id']}", status=204)


def test_trigger_acts_in_the_same_audit(api: Client) -> None:
    quiet(api)
    number = trigger(
        api, ("status", "is", "new"), ("priority", "is", "urgent"), actions={"status": "open", "current_tags": "vip"}
    )
    answer = api("POST", "tickets", {"ticket": {"comment": {"body": "x"}, "priority": "urgent"}})
    assert (answer["ticket"]["status"], answer["ticket"]["tags"]) == ("open", ["vip"])
    changes = [one for one in answer["audit"]["events"] if one["type"] == "Change"]
    assert {one["field_name"]: (one["previous_value"],
        one["value"]) for one in changes if one["field_name"] in {"status", "tags"}} == {
        "status": ("new", "open"), "tags": ([], ["vip"]),
    }  # fmt: skip
    assert changes[0]["via"]["source"]["from"] == {"deleted": False, "title": "T", "id": number, "revision_id": 1}
    assert changes[0]["via"]["source"]["rel"] == "trigger"


def test_later_trigger_sees_earlier_changes_and_each_fires_once(api: Client) -> None:
    quiet(api)
    trigger(api, ("current_tags", "includes", "b"), actions={"current_tags": "c"}, position=1)
    trigger(api, ("current_tags", "includes", "a"), actions={"current_tags": "b"}, position=2)
    trigger(api, ("current_tags", "includes", "c"), actions={"remove_tags": "a"}, position=3)
    trigger(api, ("current_tags", "not_includes", "a"), actions={"current_tags": "a"}, position=4)
    assert api.ticket(tags=["a"])["tags"] == ["a", "b", "c"]


def test_notification_has_the_final_state(api: Client) -> None:
    quiet(api)
    trigger(
        api,
        ("update_type", "is", "Create"),
        actions={"notification_user": ["requester_id", "{{ticket.status}}", "{{ticket.tags}}"]},
    )
    trigger(api, ("update_type", "is", "Create"), actions={"current_tags": "late", "status": "pending"})
    answer = api("POST", "tickets", {"ticket": {"comment": {"body": "x"}}})
    event = next(one for one in answer["audit"]["events"] if one["type"] == "Notification")
    assert (event["subject"], event["body"], event["recipients"]) == ("Pending", "late", [admin(api)])


@pytest.mark.parametrize(
    ("field", "operator", "value", "fires"),
    [
        ("status", "changed", None, True), ("status", "not_changed", None, False), ("status", "value", "solved", True),
        ("status", "value_previous", "open", True), ("status", "not_value", "solved", False),
        ("status", "not_value_previous", "open", False), ("priority", "changed", None, False),
        ("status", "greater_than", "open", True), ("status", "less_than", "solved", False),
        ("comment_is_public", "is", "true", True), ("comment_is_public", "is", "false", False),
        ("comment_is_public", "is", "not_relevant", True), ("role", "is", "agent", True), ("role", "is", "end_user",
            False),
        ("comment_includes_word", "includes", "fixed nothing", True), ("comment_includes_word", "includes", "fix",
            False),
        ("comment_includes_word", "is", "all fix", True), ("subject_includes_word", "not_includes", "question", False),
        ("assignee_id", "is", "current_user", True), ("assignee_id", "is", "requester_id", False),
        ("requester_role", "is", "end_user", True), ("update_type", "is", "Create", False), ("via_id", "is", "0", True),
        ("current_via_id", "is", "5", True), ("replies", "is", "1", True), ("reopens", "less_than", "1", True),
        ("agent_stations", "greater_than", "0", True), ("in_business_hours", "is", "true", True), ("attachment", "is",
            "true", False),
    ],
)  # fmt: skip
def test_condition_fires_on_a_solving_reply(api: Client, field: str, operator: str, value: Any, fires: bool) -> None:
    quiet(api)
    api.put(1, assignee_id=admin(api))
    trigger(api, (field, operator, value), actions={"current_tags": "fired"})
    ticket = api.put(1, status="solved", comment={"body": "All fixed!", "public": True})["ticket"]
    assert (ticket["tags"] == ["fired"]) is fires


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("trigger", {"conditions": {"all": [{"field": "nothing", "operator": "is", "value": 1}]}}),
        ("trigger", {"conditions": {"all": [{"field": "status", "operator": "near", "value": 1}]}}),
        ("trigger", {"actions": [{"field": "launch", "value": 1}]}),
        ("trigger", {"actions": []}),
        ("automation", {"conditions": {"all": [{"field": "status", "operator": "is", "value": "open"}]}}),
        ("automation", {"conditions": {"all": [{"field": "OPEN", "operator": "greater_than", "value": 1}]}}),
        ("view", {"conditions": {"all": [{"field": "current_tags", "operator": "includes", "value": "x"}]}}),
        ("view", {"conditions": {"all": [{"field": "status", "operator": "changed"}]}}),
    ],
)
def test_rule_that_is_not_valid_is_refused(api: Client, kind: str, body: dict[str, Any]) -> None:
    fields = {"title": "x", "actions": [{"field": "current_tags", "value": "x"}], **body}
    api("POST", f"{kind}s", {kind: fields}, status=422)


def test_triggers_are_reordered_and_defined(api: Client) -> None:
    ids = [one["id"] for one in api("GET", "triggers")["triggers"]]
    api("PUT", "triggers/reorder", {"trigger_ids": [ids[2], ids[0]]})
    assert [one["id"] for one in api("GET", "triggers")["triggers"]][:3] == [ids[2], ids[0], ids[1]]
    api("PUT", "triggers/reorder", {"trigger_ids": [1]}, status=404)
    definitions = api("GET", "triggers/definitions")["definitions"]
    assert {"status", "role", "comment_is_public"} <= {one["subject"] for one in definitions["conditions_all"]}
    assert "notification_user" in {one["subject"] for one in definitions["actions"]}


# -- second interpreters

VALUES: dict[str, list[Any]] = {
    "status": [*STATUSES, ""], "priority": [*PRIORITIES, ""], "type": [*TYPES, ""], "ticket_type_id": ["1", "2", "3",
        "4"],
    "assignee_id": ["", "current_user", "requester_id", "1"], "group_id": ["", "1"], "current_tags": ["a", "a b", "c"],
    "custom_fields_5": ["x", "", "true", "3"], "satisfaction_score": ["unoffered", "offered", "good"],
    "ticket_is_public": ["public", "private"],
}  # fmt: skip
OPERATORS = {
    "status": ("is", "is_not", "less_than", "greater_than"), "priority": ("is", "is_not", "less_than", "greater_than"),
    "current_tags": ("includes", "not_includes"), "custom_fields_5": ("is", "is_not", "present", "not_present"),
}  # fmt: skip


@st.composite
def conditions(draw: st.DrawFn) -> dict[str, str]:
    name = draw(st.sampled_from(sorted(VALUES)))
    operator = draw(st.sampled_from(OPERATORS.get(name, ("is", "is_not"))))
    return {"field": name, "operator": operator, "value": draw(st.sampled_from(VALUES[name]))}


def slow(ticket: Ticket, one: dict[str, str], me: int) -> bool:
    """Reads one condition without any preparation."""
    name, op, value = one["field"], one["operator"], one["value"]
    if name == "current_tags":
        return any(tag in ticket.tags for tag in value.split()) is (op == "includes")
    if name == "ticket_type_id":
        name, value = "type", TYPES[int(value) - 1]
    now: Any = {
        "custom_fields_5": ticket.custom.get("5"), "satisfaction_score": ticket.satisfaction_rating["score"],
        "ticket_is_public": "public" if ticket.is_public else "private",
    }.get(name, getattr(ticket, name, None))  # fmt: skip
    text = (
        "" if now is None else {True: "true", False: "false"}.get(now, str(now)) if isinstance(now, bool) else str(now)
    )
    if op in {"present", "not_present"}:
        return (text != "") is (op == "present")
    if op in {"less_than", "greater_than"}:
        order = {"status": STATUSES, "priority": PRIORITIES}[name]
        if text not in order or value not in order:
            return False
        return order.index(text) < order.index(value) if op == "less_than" else order.index(text) > order.index(value)
    value = {"current_user": str(me), "requester_id": str(ticket.requester_id)}.get(value, value)
    return (text == value) is (op == "is")


@settings(max_examples=150, deadline=None)
@given(st.lists(conditions(), max_size=3), st.lists(conditions(), max_size=3), st.integers(0, 2**32))
def test_conditions_read_three_times_agree(every: list[dict[str, str]], some: list[dict[str, str]], seed: int) -> None:
    api = Client(fresh())
    me = admin(api)
    db = api.world.db
    for number in range(1, 11):
        mix = seed + 7919 * number
        values = (
            STATUSES[mix % 6],
            [*PRIORITIES, None][mix % 5],
            [*TYPES, None][mix // 3 % 5],
            [None, me, 1][mix // 5 % 3],
        )
        custom = [{}, {"5": "x"}, {"5": True}, {"5": ""}, {"5": 3}][mix // 7 % 5]
        tags = [[], ["a"], ["b"], ["a", "c"]][mix // 11 % 4]
        columns = ("status", "priority", "type", "assignee_id", "custom", "tags", "is_public")
        sql_ = f"UPDATE zd_tickets SET {', '.join(f'{name} = ?' for name in columns)} WHERE id = ?"
        texts = (msgspec.json.encode(custom).decode(), msgspec.json.encode(tags).decode())
        db.execute(sql_, *values, *texts, mix // 13 % 2, number)
    rule = {"all": every, "any": some}
    where, values = sql(rule, now_of(api.world, me))
    tickets = select(db, Ticket, "1 ORDER BY id")
    actor = api.world.user(me)
    assert actor is not None
    holds = compiled(msgspec.json.encode(rule))
    fast = [one.id for one in tickets if holds(Answers(Update(api.world, actor, one, one, {})))]
    simple = [
        one.id for one in tickets
        if all(slow(one, c, me) for c in every) and (not some or any(slow(one, c, me) for c in some))
    ]  # fmt: skip
    assert fast == simple
    assert [one for (one,) in db.execute(f"SELECT id FROM zd_tickets WHERE {where} ORDER BY id", *values)] == simple


RULE_ACTIONS = (("current_tags", "a"), ("current_tags", "b"), ("remove_tags", "a"), ("status", "open"), ("status",
    "pending"),
                ("priority", "urgent"), ("priority", "low"))  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(conditions(), st.sampled_from(RULE_ACTIONS)), max_size=6), st.sampled_from(PRIORITIES))
def test_triggers_run_as_the_slow_reference(rules: list[tuple[dict[str, str], tuple[str, str]]], priority: str) -> None:
    rules = [one for one in rules if not faults("trigger", {"all": [one[0]]})]
    api = Client(fresh())
    api.world.db.execute("DELETE FROM zd_triggers")
    for position, (condition, (name, value)) in enumerate(rules):
        trigger(api, tuple(condition.values()), actions={name: value}, position=position)  # type: ignore[arg-type]
    me = admin(api)
    ticket = select(api.world.db, Ticket, "id = 1")[0]
    ticket.priority = priority
    fired: set[int] = set()
    while True:
        found = [n for n, one in enumerate(rules) if n not in fired and slow(ticket, one[0], me)]
        if not found:
            break
        changed = False
        for number in found:  # The reference asks again from the first after each change.
            fired.add(number)
            before = (ticket.status, ticket.priority, [*ticket.tags])
            name, value = rules[number][1]
            if name == "current_tags":
                ticket.tags = sorted({*ticket.tags, value})
            elif name == "remove_tags":
                ticket.tags = [tag for tag in ticket.tags if tag != value]
            else:
                setattr(ticket, name, value)
            if before != (ticket.status, ticket.priority, ticket.tags):
                changed = True
                break
        if not changed:
            break
    after = api.put(1, priority=priority)["ticket"]
    assert (after["status"], after["priority"], after["tags"]) == (ticket.status, ticket.priority, ticket.tags)


# -- views, automations, macros, webhooks


def test_view_lists_the_tickets_of_its_conditions(api: Client) -> None:
    api.put(1, status="pending")
    api.put(2, assignee_id=admin(api))
    views = {one["title"]: one["id"] for one in api("GET", "views")["views"]}
    for title, ids in (("Your unsolved tickets", [2]), ("Pending tickets", [1]), ("Recently solved tickets", [])):
        assert [one["id"] for one in api("GET", f"views/{views[title]}/tickets")["tickets"]] == ids
    rows = api("GET", f"views/{views['Pending tickets']}/execute")
    assert [column["id"] for column in rows["columns"]] == [
        "subject",
        "requester",
        "created",
        "updated",
        "group",
        "assignee",
    ]
    assert (rows["rows"][0]["ticket"]["id"], rows["rows"][0]["subject"]) == (1, "Question 1")
    count = api("GET", f"views/{views['Pending tickets']}/count")["view_count"]
    assert (count["value"], count["pretty"], count["fresh"]) == (None, "...", False)
    assert api("GET", f"views/{views['Pending tickets']}/count")["view_count"]["value"] == 1
    for _ in range(4):
        api("GET", f"views/{views['Pending tickets']}/tickets")
    api("GET", f"views/{views['Pending tickets']}/tickets", status=429)


def test_personal_view_is_seen_by_its_owner_alone(api: Client) -> None:
    agent, other = Client(api.world, "agent1@acme.example"), Client(api.world, "agent2@acme.example")
    number = agent("GET", "users/me")["user"]["id"]
    conditions = {"all": [{"field": "status", "operator": "is", "value": "open"}]}
    agent("POST", "views", {"view": {"title": "Mine", "conditions": conditions}}, status=403)
    restriction = {"type": "User", "id": number}
    view = agent("POST", "views", {"view": {"title": "Mine", "conditions": conditions, "restriction": restriction}})[
        "view"
    ]
    agent("GET", f"views/{view['id']}")
    other("GET", f"views/{view['id']}", status=404)
    assert "Mine" not in [one["title"] for one in other("GET", "views")["views"]]


def test_solved_ticket_closes_after_four_days(api: Client) -> None:
    api.put(1, status="solved", assignee_id=admin(api))
    api.world.clock.advance(97 * HOUR)
    assert api("GET", "tickets/1")["ticket"]["status"] == "solved"
    api.world.clock.advance(HOUR)
    assert api("GET", "tickets/1")["ticket"]["status"] == "closed"
    audit = api("GET", "tickets/1/audits")["audits"][-1]
    assert (audit["author_id"], audit["via"]["source"]["rel"]) == (-1, "automation")


def test_solved_ticket_closes_after_28_days_without_automations(api: Client) -> None:
    for one in api("GET", "automations")["automations"]:
        api("DELETE", f"automations/{one['id']}", status=204)
    api.put(1, status="solved", assignee_id=admin(api))
    api.world.clock.advance(28 * 24 * HOUR - HOUR)
    assert api("GET", "tickets/1")["ticket"]["status"] == "solved"
    api.world.clock.advance(2 * HOUR)
    assert api("GET", "tickets/1")["ticket"]["status"] == "closed"


@pytest.mark.parametrize("steps", [1, 40, 2000])
def test_automation_of_an_hour_fires_once_in_any_partition_of_time(api: Client, steps: int) -> None:
    conditions = {"all": [{"field": "PENDING", "operator": "is", "value": "4"}]}
    actions = [{"field": "notification_user", "value": ["requester_id", "s", "b"]}]
    api("POST", "automations", {"automation": {"title": "A", "conditions": conditions, "actions": actions}})
    api.put(1, status="pending")
    before = api.world.db.execute("SELECT count(*) FROM zd_mails WHERE subject = 's'")[0][0]
    for _ in range(steps):
        api.world.clock.advance(24 * HOUR / steps)
    assert api.world.db.execute("SELECT count(*) FROM zd_mails WHERE subject = 's'")[0][0] - before == 1


def test_macro_shows_its_changes_without_saving(api: Client) -> None:
    macro = next(one for one in api("GET", "macros")["macros"] if one["title"] == "Close and redirect to topics")
    before = api.world.db.logical_digest()
    found = api("GET", f"tickets/1/macros/{macro['id']}/apply")["result"]["ticket"]
    assert (found["status"], found["comment"]["body"]) == ("solved", "Please see our help center, Customer.")
    assert api.world.db.logical_digest() == before


def test_webhook_is_signed_and_kept(api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    quiet(api)
    fields = {"name": "W", "endpoint": "https://hooks.example/x", "http_method": "POST", "request_format": "json"}
    hook = api("POST", "webhooks", {"webhook": fields})["webhook"]
    assert len(hook["id"]) == 26
    trigger(
        api, ("update_type", "is", "Create"), actions={"notification_webhook": [hook["id"], '{"id": {{ticket.id}}}']}
    )
    seen: list[HttpRequest] = []

    def receive(world: Desk, sent: HttpRequest) -> HttpResponse:
        seen.append(sent)
        return HttpResponse()

    monkeypatch.setattr(Desk, "receive", receive)
    api.ticket()
    api("GET", "users/me")
    assert seen[0].body == b'{"id": 11}'
    secret = api("GET", f"webhooks/{hook['id']}/signing_secret")["signing_secret"]["secret"]
    stamp = seen[0].header("x-zendesk-webhook-signature-timestamp").encode()
    digest = hmac.new(secret.encode(), stamp + seen[0].body, hashlib.sha256).digest()
    assert seen[0].header("x-zendesk-webhook-signature") == base64.b64encode(digest).decode()
    run = api("GET", f"webhooks/{hook['id']}/invocations")["invocations"][0]
    assert run["status"] == "success"
    assert len(api("GET", f"webhooks/{hook['id']}/invocations/{run['id']}/attempts")["attempts"]) == 1
    api("DELETE", f"webhooks/{hook['id']}", status=422)
    api("POST", "webhooks", {"webhook": {**fields, "subscriptions": ["conditional_ticket_events", "x"]}}, status=422)


def test_webhook_is_tried_again_when_the_receiver_asks(api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    quiet(api)
    hook = api("POST", "webhooks", {"webhook": {"name": "W", "endpoint": "https://hooks.example/x"}})["webhook"]
    trigger(api, ("update_type", "is", "Create"), actions={"notification_webhook": [hook["id"], "{}"]})
    answers = [HttpResponse(503, b"", [("retry-after", "30")]), HttpResponse(409), HttpResponse()]
    monkeypatch.setattr(Desk, "receive", lambda world, sent: answers.pop(0))
    api.ticket()
    api.world.clock.advance(60)
    run = api("GET", f"webhooks/{hook['id']}/invocations")["invocations"][0]
    attempts = api("GET", f"webhooks/{hook['id']}/invocations/{run['id']}/attempts")["attempts"]
    assert [one["response"]["status"] for one in attempts] == [503, 409, 200]
    assert run["status"] == "success"
