"""Ground rules of Zendesk's API: callers, headers, errors, lists, limits, jobs."""

from __future__ import annotations

import base64
import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quintain.products import zendesk
from quintain.products.zendesk.tables import Token
from quintain.resources.web import request
from quintain.resources.web.rows import insert
from tests.products.conftest import Client, basic, fresh

HOST = "http://acme.zendesk.localhost/api/v2/"


def raw(world: zendesk.Zendesk, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
    return world.respond(request(method, HOST + path, body, headers=basic() if headers is None else headers))


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Basic"},
        {"authorization": "Basic !!!"},
        {"authorization": "Bearer nothing"},
        basic(token="wrong"),
        basic(email="unknown@acme.example"),
        {"authorization": "Basic " + base64.b64encode(b"admin@acme.example:acme-api-token").decode()},
    ],
)
def test_caller_without_right_credentials_is_refused(headers: dict[str, str]) -> None:
    response = raw(fresh(), "GET", "tickets", headers=headers)
    assert (response.status, response.json()) == (401, {"error": "Couldn't authenticate you"})


def test_anonymous_caller_sees_himself_without_a_number() -> None:
    user = raw(fresh(), "GET", "users/me.json", headers={}).json()["user"]
    assert (user["id"], user["name"]) == (None, "Anonymous user")


def test_one_token_speaks_for_any_user(api: Client) -> None:
    assert Client(api.world, "customer1@mail.example")("GET", "users/me")["user"]["role"] == "end-user"
    assert Client(api.world, "AGENT1@acme.example")("GET", "users/me")["user"]["role"] == "agent"


def test_end_user_reads_his_requests_only(api: Client) -> None:
    customer = Client(api.world, "customer1@mail.example")
    for path in ("tickets", "users", "tickets/1", "triggers", "incremental/tickets?start_time=0", "search?query=x"):
        customer("GET", path, status=403)
        assert customer.last.json()["error"]["title"] == "Forbidden"
    assert [one["id"] for one in customer("GET", "requests")["requests"]] == [1, 6]
    customer("GET", "requests/2", status=404)


@pytest.mark.parametrize("path", ["triggers", "automations", "slas/policies", "ticket_fields"])
def test_agent_writes_no_rules_of_admins(api: Client, path: str) -> None:
    Client(api.world, "agent1@acme.example")("POST", path, {}, status=403)


def test_every_answer_has_the_headers(api: Client) -> None:
    for path, status in (("tickets/1.json", 200), ("nothing", 404), ("tickets/99", 404)):
        api("GET", path, status=status)
        headers = dict(api.last.headers)
        assert headers["content-type"] == "application/json; charset=utf-8"
        assert headers["x-zendesk-api-version"] == "v2"
        assert headers["etag"].startswith('W/"')
        assert len(headers["etag"]) == 36
        assert headers["x-rate-limit"] == "700"
        assert headers["ratelimit-remaining"] == headers["x-rate-limit-remaining"]
        assert {"x-request-id", "x-runtime", "cache-control", "ratelimit-reset"} <= headers.keys()
    api("GET", "tickets")
    assert api.last.header("zendesk-ratelimit-tickets-index") == "total=100; remaining=99; resets=60"


def test_unknown_paths_and_records_have_different_errors(api: Client) -> None:
    api("GET", "nothing", status=404)
    assert api.last.json() == {"error": "InvalidEndpoint", "description": "Not found"}
    for path in ("tickets/99", "users/1", "groups/9223372036854775808", "views/1/tickets", "job_statuses/V3-x"):
        api("GET", path, status=404)
        assert api.last.json() == {"error": "RecordNotFound", "description": "Not found"}
    assert api.world.unsupported == {"/api/v2/nothing": 1}


def test_numbers_of_one_request_are_128_apart(api: Client) -> None:
    audit = api("POST", "tickets", {"ticket": {"subject": "x", "comment": {"body": "y"}}})["audit"]
    numbers = [event["id"] for event in audit["events"]]
    assert {(after - before) % 128 for before, after in itertools.pairwise(numbers)} == {0}
    assert len(str(numbers[0])) == 14


def test_offset_pages_link_to_their_neighbours(api: Client) -> None:
    page = api("GET", "tickets?per_page=4&page=2")
    assert [one["id"] for one in page["tickets"]] == [5, 6, 7, 8]
    assert page["count"] == 10
    assert page["next_page"] == f"{HOST}tickets.json?per_page=4&page=3"
    assert page["previous_page"] == f"{HOST}tickets.json?per_page=4&page=1"
    api("GET", "tickets?per_page=100&page=101", status=400)
    assert api.last.json()["errors"][0]["code"] == "InvalidPaginationDepth"
    api("GET", "tickets?page=x", status=400)


def test_cursor_pages_give_each_row_once(api: Client) -> None:
    seen: list[int] = []
    path = "tickets?page[size]=3&sort=-updated_at"
    while True:
        page = api("GET", path)
        seen += [one["id"] for one in page["tickets"]]
        if not page["meta"]["has_more"]:
            break
        path = page["links"]["next"].removeprefix(HOST)
    assert sorted(seen) == [*range(1, 11)]
    assert json.loads(base64.b64decode(page["meta"]["after_cursor"]))["o"] == "-updated_at,-id"
    back = api("GET", page["links"]["prev"].removeprefix(HOST))
    assert [one["id"] for one in back["tickets"]] == seen[-4:-1]


@pytest.mark.parametrize(
    "query",
    ["page[size]=101", "page[size]=2&sort=subject", "page[after]=x", "page[after]=eyJvIjoiaWQiLCJ2IjoiIn0=",
     "page[after]=W10=", "page[after]=bnVsbA=="],
)  # fmt: skip
def test_cursor_that_is_not_of_this_list_is_refused(api: Client, query: str) -> None:
    api("GET", f"tickets?{query}", status=400)
    assert api.last.json()["errors"][0]["code"] == "InvalidPaginationParameter"


def test_limit_of_requests_refuses_and_the_wait_passes(api: Client) -> None:
    api.world.limit, api.world.step_s = 3, 0.05
    for _ in range(3):
        api("GET", "tickets/1")
    api("GET", "tickets/1", status=429)
    assert api.last.json()["error"] == "APIRateLimitExceeded"
    wait, now = int(api.last.header("retry-after")), api.world.clock.now
    assert 0 < wait <= 60
    api("GET", "tickets/1")
    assert api.world.clock.now == now + wait


def test_updates_of_one_ticket_are_limited(api: Client) -> None:
    for number in range(30):
        api.put(1, tags=[f"t{number}"])
    api.put(1, refused=429, tags=["x"])
    api.put(2, tags=["x"])


def test_job_passes_through_its_states(api: Client) -> None:
    api.world.step_s = 0.05
    tickets = [{"subject": f"n{n}", "comment": {"body": "x"}} for n in range(10)] + [{"subject": "no text"}]
    job = api("POST", "tickets/create_many", {"tickets": tickets})["job_status"]
    assert (job["status"], job["progress"], job["results"], job["total"]) == ("queued", None, None, 11)
    assert job["id"].startswith("V3-")
    assert len(job["id"]) == 35
    seen = []
    while job["status"] != "completed":
        job = api("GET", f"job_statuses/{job['id']}")["job_status"]
        seen.append(job["status"])
    assert {"working", "completed"} == {*seen} - {"queued"}
    assert job["message"].startswith("Completed at 2026-01-05 09:")
    assert job["results"][0] == {"index": 0, "id": 11, "account_id": api.world.account_id}
    assert job["results"][10] == {
        "index": 10, "id": None, "error": "TicketCreationFailed", "details": "Description: cannot be blank",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "tickets/create_many", {"tickets": [{}] * 101}),
        ("PUT", "tickets/update_many?ids=" + ",".join(["1"] * 101), {}),
        ("GET", "tickets/show_many?ids=" + ",".join(["1"] * 101), None),
    ],
)
def test_more_than_100_values_are_refused(api: Client, method: str, path: str, body: Any) -> None:
    api(method, path, body, status=400)
    words = "Parameter  cannot specify more than 100 values"
    assert api.last.json() == {"error": "TooManyValues", "description": words, "max_count": 100}


@pytest.mark.parametrize("method", ["POST", "PUT"])
@pytest.mark.parametrize(
    "path", ["tickets", "tickets/1", "users", "macros", "tickets/create_many", "triggers", "webhooks"]
)
@pytest.mark.parametrize(
    "body", [b"{", b"\xff\xfe", b"[]", b'{"ticket":[]}',
        b'{"ticket":"x","user":3,"macro":[1],"trigger":"t","tickets":7,"webhook":2}',
             b"[" * 50_000, b'{"ticket":{"comment":' + b"[" * 5000 + b"]" * 5000 + b"}}"]
)  # fmt: skip
def test_malformed_bodies_are_the_callers_mistake(api: Client, method: str, path: str, body: bytes) -> None:
    response = raw(api.world, method, path, body)
    assert 400 <= response.status < 500


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "asleep"}, {"priority": 7}, {"assignee_id": "x"}, {"requester_id": 5}, {"group_id": 2**70},
        {"due_at": "soon"}, {"custom_status_id": 1}, {"email_ccs": [{"user_id": "x"}]}, {"email_ccs": 3}, {"tags": 5},
        {"comment": {"body": "x", "uploads": ["no"]}}, {"comment": [1]}, {"custom_fields": [3]},
        {"requester": {"email": "@"}},
        {"assignee_email": "x@x.example"}, {"comment": {"body": "x", "author_id": "y"}}, {"follower_ids": ["x"]},
        {"collaborators": [None]}, {"subject": {"a": 1}}, {"external_id": []}, {"problem_id": 1},
        {"collaborator_ids": {"a": 1}},
    ],
)  # fmt: skip
def test_fields_of_a_wrong_type_are_the_callers_mistake(api: Client, fields: dict[str, Any]) -> None:
    before = api.world.db.logical_digest()
    response = raw(api.world, "PUT", "tickets/1", {"ticket": fields})
    assert response.status in {400, 422}, response.body
    assert api.world.db.logical_digest() == before


def test_oauth_token_works_and_a_wrong_client_gets_none(api: Client) -> None:
    wrong = api.world.respond(
        request("POST", "http://acme.zendesk.localhost/oauth/tokens", {"grant_type": "client_credentials"})
    )
    assert wrong.status == 401
    person = api("GET", "users/search?query=email:agent1@acme.example")["users"][0]["id"]
    insert(api.world.db, Token(id=5, value="secret", user_id=person, client="robot"))
    grant = {
        "grant_type": "client_credentials",
        "client_id": "robot",
        "client_secret": "secret",
        "scope": "tickets:read",
    }
    found = api.world.respond(request("POST", "http://acme.zendesk.localhost/oauth/tokens", grant)).json()
    headers = {"authorization": f"Bearer {found['access_token']}"}
    assert raw(api.world, "GET", "users/me", headers=headers).json()["user"]["id"] == person
    assert raw(api.world, "PUT", "tickets/1", {"ticket": {}}, headers).status == 403


def test_large_comment_is_kept_whole(api: Client) -> None:
    text = "ä<b>&'\"" * 9_000
    ticket = api.ticket(comment={"body": text})
    assert api("GET", f"tickets/{ticket['id']}/comments")["comments"][0]["body"] == text


KEYS = ["field", "operator", "value", "all", "any", "id", "body", "user_id", "metric"]
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 2**70)
    | st.sampled_from(["", "x", "1", "open", "{{ticket.id}}", "a@b.example"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)
TICKET = """comment status tags custom_fields followers email_ccs assignee_id requester metadata collaborators due_at
problem_id subject updated_stamp safe_update custom_status_id via_followup_source_id"""
USER = "name email role tags user_fields organization organization_id phone photo ticket_restriction"
FIRM = "name domain_names tags organization_fields id external_id"
NAMES = {
    "ticket": ("tickets", "tickets/1", TICKET),
    "user": ("users", "users/me", USER),
    "organization": ("organizations", "organizations/create_or_update", FIRM),
    "trigger": ("triggers", "triggers/reorder", "title conditions actions position all any category_id active"),
    "automation": ("automations", "automations/1", "title conditions actions all any"),
    "macro": ("macros", "macros/1", "title actions restriction position"),
    "view": ("views", "views/preview", "title conditions restriction output all any"),
    "sla_policy": ("slas/policies", "slas/policies/reorder", "title filter policy_metrics position"),
    "ticket_field": ("ticket_fields", "ticket_fields/1", "title type custom_field_options required position"),
    "ticket_form": ("ticket_forms", "ticket_forms/1", "name ticket_field_ids agent_conditions"),
    "webhook": ("webhooks", "webhooks/x", "name endpoint subscriptions authentication http_method"),
    "schedule": ("business_hours/schedules", "business_hours/schedules/1", "name time_zone intervals"),
    "satisfaction_rating": ("tickets/1/satisfaction_rating", "x", "score comment reason"),
}


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_any_json_is_answered_without_a_bug(data: st.DataObject) -> None:
    world = fresh()
    for _ in range(4):
        noun = data.draw(st.sampled_from(sorted(NAMES)))
        first, second, names = NAMES[noun]
        fields = data.draw(st.dictionaries(st.sampled_from(names.split()), JSON, max_size=3))
        usual = {
            "title": "t",
            "name": "n",
            "comment": {"body": "b"},
            "endpoint": "https://x.example",
            "time_zone": "UTC",
        }
        method, path = data.draw(
            st.sampled_from([("POST", first), ("PUT", second), ("POST", second), ("PUT", "tickets/2")])
        )
        body = {noun: {name: usual[name] for name in usual if name in names} | fields, "ids": data.draw(JSON)}
        assert raw(world, method, path, body).status < 500
    for path in ("tickets/1", "views", "tickets/1/audits", "triggers", "users", "search?query=x"):
        assert raw(world, "GET", path).status == 200
    raw(world, "POST", "tickets", {"ticket": {"comment": {"body": "b"}, "priority": "high"}})
    world.clock.advance(7200)


@pytest.mark.parametrize("path", ["views/active", "triggers/active", "macros/compact", "problems"])
def test_narrowed_list_without_an_id_is_listed(api: Client, path: str) -> None:
    found = api("GET", path)
    rows = next(value for value in found.values() if isinstance(value, list))
    assert found["count"] == len(rows)
    assert all(row["active"] for row in rows)
