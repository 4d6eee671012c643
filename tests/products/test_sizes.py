"""Requests that are too large, too deep or too many: each gets its answer, soon, and none ends the episode."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest

from quintain.products import zendesk
from quintain.products.zendesk.records import SETTINGS
from quintain.products.zendesk.tables import Ticket
from quintain.products.zendesk.wanted import TicketInput
from quintain.resources.web import HttpRequest, HttpResponse
from tests.products.conftest import Client, basic, fresh

LARGE = 10_000_000
SECONDS = 2.0
"""CPU that the answer to a request of ten million bytes may take."""
FORM = {"content-type": "application/x-www-form-urlencoded"}


def send(world: zendesk.Zendesk, method: str, path: str, body: bytes = b"", kind: str = "") -> HttpResponse:
    """Sends a request, measures the answer and what follows from it within some seconds."""
    headers = (*basic().items(), *({"content-type": kind} if kind else {}).items())
    path, _, query = path.partition("?")
    pairs = tuple((name, value) for name, _, value in (one.partition("=") for one in query.split("&") if one))
    began = time.thread_time()
    found = world.respond(HttpRequest(method, path, "acme.zendesk.localhost", pairs, headers, body))
    world.clock.advance(5.0)
    assert time.thread_time() - began < SECONDS, (method, path, found.status)
    return found


SHAPES: dict[str, Callable[[int], Any]] = {
    "texts": lambda size: [f"t{number}" for number in range(size // 10)],
    "numbers": lambda size: [*range(1, size // 8)],
    "objects": lambda size: [{"id": number, "value": "x"} for number in range(size // 28)],
    "addresses": lambda size: [f"a{number}@example.com" for number in range(size // 22)],
    "people": lambda size: [{"user_email": f"a{number}@example.com"} for number in range(size // 32)],
    "keys": lambda size: {str(number): 1 for number in range(size // 11)},
    "words": lambda size: "a b " * (size // 4),
    "digits": lambda size: "1" * size,
    "dots": lambda size: "a@" + "." * size + " b",
    "elements": lambda size: "<div>" * (size // 5),
    "conditions": lambda size: {"all": [{"field": "status", "value": "open"}] * (size // 36), "any": []},
    "lines": lambda size: [{"field": "status", "value": "open"}] * (size // 36),
    "lists": lambda size: msgspec.Raw(b"[" + b"[]," * (size // 3) + b"[]]"),
    "long number": lambda size: msgspec.Raw(b"9" * size),
}
CALLS: list[tuple[str, str, tuple[str, ...]]] = [
    (method, f"{spec.path}{'' if method == 'POST' else '/1'}", (spec.name, name))
    for spec in SETTINGS.values()
    for method in ("POST", "PUT")
    for name in (*(spec.writable or spec.row.settable), "all")
]
CALLS += [
    (method, path, (part, name))
    for method, path, part in (("PUT", "/api/v2/tickets/1", "ticket"), ("POST", "/api/v2/tickets", "ticket"),
                               ("POST", "/api/v2/requests", "request"), ("PUT", "/api/v2/requests/1", "request"))
    for name in (*TicketInput.__struct_fields__, *Ticket.__struct_fields__)
]  # fmt: skip
CALLS += [("PUT", "/api/v2/tickets/1", ("ticket", "comment", name)) for name in ("body", "html_body", "uploads")]
CALLS += [("POST", f"/api/v2/{one}/create_many", (one,)) for one in ("tickets", "users", "organizations")]
CALLS += [("PUT", f"/api/v2/{one}/update_many", (one,)) for one in ("tickets", "users", "organizations")]
CALLS += [
    ("POST", "/api/v2/users", ("user", name)) for name in ("name", "email", "tags", "user_fields", "organization")
]
CALLS += [
    ("POST", "/api/v2/tickets/1/tags", ("tags",)),
    ("POST", "/api/v2/tickets/1/merge", ("ids",)),
    ("PUT", "/api/v2/triggers/reorder", ("trigger_ids",)),
    ("POST", "/api/v2/views/preview", ("view", "all")),
]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_large_body_is_answered_soon(seed: int) -> None:
    drawn = random.Random(seed)
    for method, path, keys in drawn.sample(CALLS, 40):
        value = SHAPES[drawn.choice([*SHAPES])](LARGE)
        for key in reversed(keys):
            value = {key: value} | ({"name": "N", "title": "T", "subject": "S"} if key == keys[-1] else {})
        assert send(fresh(), method, path, msgspec.json.encode(value)).status < 500, (path, keys)


TICKETS: list[tuple[Any, int]] = [
    ({"tags": [f"t{number}" for number in range(1_000_000)]}, 422),
    ({"tags": [f"t{number}" for number in range(1200)]}, 422),
    ({"tags": [f"t{number}" for number in range(900)]}, 200),
    ({"additional_tags": ["x" * 5097]}, 422),
    ({"collaborators": [f"a{number}@example.com" for number in range(49)]}, 422),
    ({"collaborators": [f"a{number}@example.com" for number in range(48)]}, 200),
    ({"email_ccs": [{"user_email": f"a{number}@example.com"} for number in range(300_000)]}, 422),
    ({"follower_ids": [*range(1_000_000)]}, 422),
    ({"subject": "x" * 65_536}, 422),
    ({"custom_fields": [{"id": number, "value": "x"} for number in range(300_000)]}, 200),
    ({"custom_fields": {"1" * 5000: 1}}, 200),
    ({"comment": {"html_body": "<div>" * 13_107 + "x"}}, 422),
    ({"comment": {"html_body": "<b>" * 13_107 + "<i>x</i>"}}, 200),
    ({"comment": {"uploads": [str(number) for number in range(1_000_000)]}}, 422),
    ({"due_at": "0001-01-01T00:00:00+14:00"}, 422),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "status"), TICKETS)
def test_limits_of_a_ticket(fields: Any, status: int) -> None:
    body = msgspec.json.encode({"ticket": fields})
    assert send(fresh(), "PUT", "/api/v2/tickets/1", body).status == status


def test_text_of_nested_html_is_kept(api: Client) -> None:
    api.put(1, comment={"html_body": "<b>" * 5000 + "a<br>b<script>c</script>"})
    assert api("GET", "tickets/1/comments")["comments"][-1]["body"] == "a\nb"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("tickets?page=--5", 400), ("tickets/" + "1" * 5000, 404), ("tickets/show_many?ids=" + "1" * 5000, 200),
        ("search?query=" + "a " * 101, 422), ("search?query=" + "1" * 5000, 200),
        ("search?query=assignee:" + "1" * 5000, 200), ("search?query=group:" + "1" * 5000, 200),
        ("search?query=created<9999-12-31", 422), ("search?query=created>0001-01-01T00:00:00%2B14:00", 422),
        ("search?query=created>" + "9" * 400 + "days", 422), ("search?query=" + "a" * 17_000, 414),
        ("incremental/tickets?start_time=" + "1" * 5000, 422),
        ("help_center/articles/search?query=" + "word " * 2000, 200),
    ],
)  # fmt: skip
def test_limits_of_an_address(api: Client, path: str, status: int) -> None:
    api("GET", path, status=status)


def test_limits_of_rules(api: Client) -> None:
    one: dict[str, Any] = {"field": "status", "operator": "less_than", "value": "solved"}
    long = {"field": "current_tags", "operator": "includes", "value": "ab " * 100_000}
    hours = {"field": "PENDING", "operator": "is", "value": "9" * 6}
    custom = {"field": "custom_fields_" + "1" * 5000, "operator": "is", "value": "x"}
    for conditions, status in (([one] * 500, 201), ([one] * 501, 422), ([one, long], 422), ([one, hours], 422),
                               ([one, custom], 422)):  # fmt: skip
        made = api("POST", "views", {"view": {"title": "V", "all": conditions}}, status=status)
        if status == 201:
            api("GET", f"views/{made['view']['id']}/tickets")
    holiday = {"name": "Ever", "start_date": "0001-01-01", "end_date": "9999-12-31"}
    schedule = api("POST", "business_hours/schedules", {"schedule": {"name": "S", "time_zone": "UTC"}})["schedule"]
    api("POST", f"business_hours/schedules/{schedule['id']}/holidays", {"holiday": holiday}, status=422)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "tickets/1/merge", {"ids": [*range(1, 1_000_000)]}),
        ("POST", "tickets/1/merge", {"ids": [*range(2, 102)], "target_comment": "x" * LARGE}),
        ("PUT", "users/update_many?ids=" + ",".join(map(str, range(100))), {"user": {"details": "x" * LARGE}}),
    ],
)
def test_change_of_several_records_is_small(method: str, path: str, body: Any) -> None:
    assert send(fresh(), method, f"/api/v2/{path}", msgspec.json.encode(body)).status in {400, 413}


@pytest.mark.parametrize("noun", ["users", "organizations", "tickets"])
def test_job_fails_for_an_item_without_a_number(api: Client, noun: str) -> None:
    job = api("PUT", f"{noun}/update_many", {noun: [{"id": ["x"], "name": "N"}, {"id": {"a": 1}}]})["job_status"]
    api.world.clock.advance(10.0)
    found = api("GET", f"job_statuses/{job['id']}")["job_status"]
    assert [one["error"] for one in found["results"]] == [f"{noun[:-1].capitalize()}UpdateFailed"] * 2


def test_job_of_many_large_items_is_done_soon() -> None:
    world = fresh()
    users = [{"name": f"N{number}", "details": "d" * (LARGE // 100)} for number in range(100)]
    body = msgspec.json.encode({"users": users})
    assert send(world, "POST", "/api/v2/users/create_many", body).status == 200
    assert send(world, "GET", "/api/v2/users/count").json()["count"]["value"] > 100


RULES = "/admin/objects-rules/rules"


@pytest.mark.parametrize(
    "path", ["/agent/users/new", "/agent/organizations/new", f"{RULES}/triggers/new", f"{RULES}/custom_statuses/1"]
)
def test_page_cannot_delete_what_has_no_deletion(path: str) -> None:
    assert send(fresh(), "POST", path, b"act=delete", FORM["content-type"]).status == 404


def test_search_for_another_kind_is_empty() -> None:
    found = send(fresh(), "GET", "/agent/search/1?q=type:user a")
    assert (found.status, found.header("content-type")) == (200, "text/html; charset=utf-8")


FORMS = {
    "fields": b"a=1&" * (LARGE // 4), "separators": b"&" * LARGE, "escapes": b"comment=" + b"%41" * 1_398_000,
    "tickets": b"act=merge&" + b"&".join(b"ids=%d" % number for number in range(101)),
    "lines": urlencode({f"conditions-{part}-{number}-field": "status" for part in ("all", "any")
                        for number in range(1, 1000)}).encode(),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("path", ["/agent/tickets/1", "/agent/bulk", f"{RULES}/triggers/new"])
def test_large_form_is_answered_soon(name: str, path: str) -> None:
    assert send(fresh(), "POST", path, FORMS[name], FORM["content-type"]).status < 500


@pytest.mark.parametrize(
    "part", [b"\r\n--x\r\n", b'--x\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\na\r\n']
)
def test_form_of_too_many_parts_is_refused(part: bytes) -> None:
    kind = "multipart/form-data; boundary=x"
    assert send(fresh(), "POST", "/agent/tickets/1", part * (LARGE // len(part)), kind).status == 413
