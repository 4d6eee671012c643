"""Operational noise of the clone: one test for each dial, and the laws of its plan."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quintain.products import zendesk
from quintain.resources.web import HttpRequest, HttpResponse, Noise, request
from quintain.resources.web.noise import REFUSALS
from quintain.trace import Observation
from tests.products.conftest import Client, basic, fresh


def noisy(**dials: Any) -> Client:
    world = fresh()
    world.noise = Noise("a task", **dials)
    return Client(world)


def answer(api: Client, method: str, path: str, body: Any = None) -> HttpResponse:
    url = f"http://acme.zendesk.localhost/api/v2/{path}"
    return api.world.respond(request(method, url, body, headers=api.headers))


@settings(max_examples=25)
@given(st.text(max_size=5), st.floats(0.0, 1.0), st.lists(st.integers(0, 10**6), min_size=1, max_size=8))
def test_plan_is_a_pure_function_that_grows_with_its_rate(seed: str, rate: float, numbers: list[int]) -> None:
    for number in numbers:
        some = Noise(seed, stale=rate)
        assert some.plans("stale", number) == Noise(seed, stale=rate).plans("stale", number)
        assert not some.plans("stale", number) or Noise(seed, stale=min(1.0, rate * 2)).plans("stale", number)
        assert Noise(seed, stale=1.0).plans("stale", number)
        assert not Noise(seed).plans("stale", number)


def test_share_of_refusals_is_that_of_the_dial() -> None:
    noise = Noise("x", unavailable=0.2)
    assert sum(noise.plans("unavailable", one) for one in range(2000)) == pytest.approx(400, abs=60)


@pytest.mark.parametrize(("dial", "status", "error"), [
    ("rate_limited", 429, "APIRateLimitExceeded"), ("unavailable", 503, "ServiceUnavailable"),
    ("conflict", 409, "UpdateConflict"),
])  # fmt: skip
def test_refused_request_changes_nothing_and_the_next_one_is_taken(dial: str, status: int, error: str) -> None:
    api = noisy(**{dial: 1.0})
    before = api.world.db.logical_digest()
    body = {"ticket": {"priority": "urgent", "comment": {"body": "Now"}}}
    refused = answer(api, "PUT", "tickets/1", body)
    assert (refused.status, refused.json()["error"]) == (status, error)
    assert refused.header("retry-after") == ("" if dial == "conflict" else "2")
    assert api.world.db.logical_digest() == before
    at = api.world.clock.now
    assert answer(api, "PUT", "tickets/1", body).status == 200
    assert api.world.clock.now - at == (1.0 if dial == "conflict" else 2.0)
    assert answer(api, "PUT", "tickets/1", body).status == status


def test_only_changes_of_a_ticket_conflict() -> None:
    api = noisy(conflict=1.0)
    assert answer(api, "GET", "tickets/1").status == 200
    assert answer(api, "POST", "tickets", {"ticket": {"comment": {"body": "Hello"}}}).status == 201


def test_wrong_credentials_stay_wrong() -> None:
    api = noisy(unavailable=1.0)
    api.headers = basic(token="wrong")
    assert answer(api, "GET", "users/me").status == 401


def test_tool_names_the_trouble_in_its_data_once() -> None:
    world = noisy(rate_limited=1.0).world
    url, header = "http://acme.zendesk.localhost/api/v2/users/me", basic()["authorization"]
    refused, taken = (world.http("GET", url, authorization=header) for _ in range(2))
    assert isinstance(refused, Observation)
    assert (refused.content[:3], refused.data) == ("429", {"planned_fault": "rate_limited"})
    assert taken.startswith("200")


def test_search_sees_what_was_written_at_the_next_index() -> None:
    api = noisy(lag_s=60.0)
    api.world.clock.advance(60.0 - api.world.clock.now % 60.0)
    api("GET", "users/me")
    number = api.ticket(subject="Zebra crossing")["id"]
    assert api("GET", "search?query=type:ticket zebra")["results"] == []
    assert api("GET", "search/count?query=type:ticket zebra")["count"] == 0
    assert api("GET", "search/export?query=zebra&filter[type]=ticket")["results"] == []
    assert api("GET", f"tickets/{number}")["ticket"]["subject"] == "Zebra crossing"
    api.world.clock.advance(60.0)
    assert [one["id"] for one in api("GET", "search?query=type:ticket zebra")["results"]] == [number]


def test_stale_count_is_that_of_the_last_minute() -> None:
    api = noisy(stale=1.0)
    view = api("GET", "views/active")["views"][2]["id"]
    api.world.clock.advance(60.0 - api.world.clock.now % 60.0)
    api("GET", f"views/{view}/count")
    before = api("GET", f"views/{view}/count")["view_count"]["value"]
    api.ticket()
    assert api("GET", f"views/{view}/count")["view_count"]["value"] == before
    api.world.clock.advance(60.0)
    assert api("GET", f"views/{view}/count")["view_count"]["value"] == before + 1


def test_delivery_arrives_twice() -> None:
    seen: list[HttpRequest] = []

    class Company(zendesk.Zendesk):
        def receive(self, sent: HttpRequest) -> HttpResponse:
            seen.append(sent)
            return HttpResponse()

    world = zendesk.account(Company)
    zendesk.populate(world)
    world.noise = Noise("a task", duplicate=1.0)
    api = Client(world)
    hook = api("POST", "webhooks", {"webhook": {"name": "W", "endpoint": "http://x.example", "status": "active"}})
    actions = [{"field": "notification_webhook", "value": [hook["webhook"]["id"], "{}"]}]
    rule = {"title": "T", "conditions": {"all": [{"field": "update_type", "operator": "is", "value": "Create"}]}}
    api("POST", "triggers", {"trigger": {**rule, "actions": actions}})
    api.ticket()
    world.clock.advance(1.0)
    names = [one.header("x-zendesk-webhook-invocation-id") for one in seen]
    assert len(names) == 2
    assert names[0] == names[1]


def test_planned_kinds_are_dials() -> None:
    assert {*REFUSALS} < {*Noise.__struct_fields__}
