"""Search beside a naive one, with and without an index."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quintain.products.zendesk.account import seconds
from quintain.products.zendesk.search import index, parse
from quintain.products.zendesk.tables import PRIORITIES, STATUSES, Comment, Ticket
from quintain.resources.web.rows import select
from tests.products.conftest import Client, fresh

WORDS = ("paper", "pap", "jam", "printer", "ink", "red ink", "the red", "in", "x-ray", "ray", "Paper")
TEXTS = ("Paper jam in the printer", "No red ink left", "x-ray of the paperclip", "Ink, red; jam!", "reprinter")


def find(api: Client, query: str) -> list[int]:
    return [
        one["id"] for one in api("GET", f"search?query={quote(query)}")["results"] if one["result_type"] == "ticket"
    ]


@pytest.fixture
def shop() -> Client:
    return stocked(indexed=0)


def stocked(indexed: int) -> Client:
    """Returns an account with a ticket for each text, some of which come after the index."""
    api = Client(fresh())
    for number, text in enumerate(TEXTS):
        if number == indexed:
            index(api.world)
        api.ticket(
            subject=text[:9], comment={"body": text}, priority=PRIORITIES[number % 4], tags=["a"] if number % 2 else []
        )
    if indexed == len(TEXTS):
        index(api.world)
    api.put(12, comment={"body": "jam again"}, subject="Other")
    return api


def test_terms_are_read_with_operators_and_quotes() -> None:
    found = [tuple(one) for one in parse('status<solved -tags:"a b" "red ink" x* created>=2026-01-01')]
    assert found == [
        ("status", "<", "solved", False, False), ("tags", ":", "a b", True, True), ("", "", "red ink", False, True),
        ("", "", "x*", False, False), ("created", ">=", "2026-01-01", False, False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("type:ticket pap", [13, 11]), ("type:ticket rinter", []), ('type:ticket "red ink"', [12]), ("type:ticket 12",
            [12]),
        ("type:ticket ink -jam", []), ("type:ticket jam priority:low", [11]), ("type:ticket tags:a", [14, 12]),
        ("type:ticket tags:none jam", [11]), ("type:ticket priority>=high jam", [14]),
        ("priority:high priority:low jam type:ticket", [11]),
        ("type:ticket subject:other", [12]), ("type:ticket comment:again", [12]), ("type:ticket assignee:none jam",
            [14, 12, 11]),
        ("type:ticket requester:me", [15, 14, 13, 12, 11]), ("type:ticket requester:customer1@mail.example", [6, 1]),
        ('type:ticket requester:"Customer 2"', [7, 2]), ("type:ticket group:support jam", []),
        ('group:"Level 2" type:ticket', []),
        ("type:ticket created<2025-01-01", []), ("type:ticket created>1hour jam", [14, 12, 11]),
        ("type:ticket solved:none jam", [14, 12, 11]),
        ("type:ticket status:new jam order_by:created sort:asc", [11, 12, 14]), ("type:ticket jam via:web", []),
        ("type:ticket nokey:7", []),
        ("type:ticket external_id:none jam", [14, 12, 11]), ("type:ticket has_attachment:true", []),
        ("type:ticket satisfaction:offered", []),
    ],
)  # fmt: skip
def test_query_finds(shop: Client, query: str, ids: list[int]) -> None:
    assert find(shop, query) == ids


def test_search_finds_people_and_firms(api: Client) -> None:
    api("POST", "organizations", {"organization": {"name": "Initech", "notes": "paper"}})
    for query, names in (("type:organization ini", ["Initech"]), ("type:user role:admin", ["Ada Admin"]),
        ("type:group level", ["Level 2"]),
                         ("type:user email:customer1@mail.example", ["Customer 1"]), ("type:user agent -2 -3",
                             ["Agent 1"])):  # fmt: skip
        assert [one["name"] for one in api("GET", f"search?query={quote(query)}")["results"]] == names
    assert api("GET", "search/count?query=type:group")["count"] == 2


def test_search_refuses_what_the_original_refuses(api: Client) -> None:
    api("GET", "search?query=x&page[size]=2", status=400)
    api("GET", "search", status=422)
    api("GET", "search?query=type:ticket&page=11", status=422)
    assert api.last.json()["error"] == "invalid"
    api("GET", "search?query=created%3Csoon", status=422)
    api("GET", "search/export?query=x", status=400)
    page = api("GET", "search/export?query=printer&filter[type]=ticket&page[size]=4")
    assert ([one["id"] for one in page["results"]], page["meta"]["has_more"]) == ([1, 2, 3, 4], True)
    page = api("GET", page["links"]["next"].partition("/api/v2/")[2])
    assert [one["id"] for one in page["results"]] == [5, 6, 7, 8]


def naive(api: Client, terms: list[tuple[str, str, bool]]) -> list[int]:
    """Reads every text of every ticket."""
    comments: dict[int, list[str]] = {}
    for one in select(api.world.db, Comment):
        comments.setdefault(one.ticket_id, []).append(one.plain_body)

    def holds(ticket: Ticket, key: str, value: str) -> bool:
        if key == "status<":
            return STATUSES.index(ticket.status) < STATUSES.index(value)
        if key == "priority:":
            return ticket.priority == value
        if key == "tags:":
            return value in ticket.tags
        if key == "created>":
            return seconds(ticket.created_at) > seconds(value)
        phrase = " ".join(re.findall(r"[^\W_]+", value.lower()))
        texts = [ticket.subject or "", *comments.get(ticket.id, [])]
        return any(f" {phrase}" in " " + " ".join(re.findall(r"[^\W_]+", text.lower())) for text in texts)

    return [
        one.id for one in select(api.world.db, Ticket, "1 ORDER BY id DESC")
        if all(holds(one, key, value) is not negated for key, value, negated in terms)
    ]  # fmt: skip


TERMS = st.one_of(
    st.tuples(st.just(""), st.sampled_from(WORDS), st.booleans()),
    st.tuples(st.just("status<"), st.sampled_from(STATUSES), st.booleans()),
    st.tuples(st.just("priority:"), st.sampled_from(PRIORITIES), st.booleans()),
    st.tuples(st.just("tags:"), st.sampled_from(["a", "b"]), st.booleans()),
    st.tuples(st.just("created>"), st.sampled_from(["2026-01-05T09:00:03Z", "2026-01-05T08:00:00Z"]), st.booleans()),
)
SHOPS: dict[int, Any] = {}


@settings(max_examples=120, deadline=None)
@given(st.lists(TERMS, min_size=1, max_size=4, unique_by=lambda one: one[0]), st.integers(0, 5))
def test_search_agrees_with_a_naive_one(terms: list[tuple[str, str, bool]], indexed: int) -> None:
    if indexed not in SHOPS:
        SHOPS[indexed] = stocked(indexed)
    api = Client(SHOPS[indexed].world.copy())
    query = " ".join(f'{"-" * negated}{key}"{value}"' for key, value, negated in terms)
    assert find(api, f"type:ticket {query}") == naive(api, terms)
