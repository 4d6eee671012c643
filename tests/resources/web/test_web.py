"""The kit of products, with a small product."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from quintain import resource
from quintain.errors import DefinitionError
from quintain.resources.web import HttpRequest, request, route_tools
from quintain.resources.web.door import MAX_BODY, Door, serving
from quintain.resources.web.rates import SWEPT, Rates
from quintain.tools import collect
from tests.resources.web import ROUTES, Library, library


def call(world: Library, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    response = world.respond(request(method, f"http://a.shop.localhost{path}", body))
    return response.status, response.json() if response.body else None


def shelf(*titles: str) -> Library:
    world = library()
    for title in titles:
        assert call(world, "POST", "/books", {"book": {"title": title}})[0] == 201
    return world


def test_resource_creates_shows_updates_and_deletes() -> None:
    world = library()
    response = world.respond(
        request("POST", "http://a.shop.localhost/books.json", {"book": {"title": "Emma", "pages": "7"}})
    )
    book = response.json()["book"]
    assert (response.status, response.header("location")) == (
        201,
        f"http://a.shop.localhost/books/{book['id']}.json",
    )
    assert book == {
        "url": book["url"],
        "id": book["id"],
        "title": "Emma",
        "pages": 7,
        "tags": [],
        "lent": False,
        "created_at": "1970-01-01T00:00:01Z",
    }
    path = f"/books/{book['id']}"
    assert call(world, "PUT", path, {"book": {"lent": True, "tags": ["x"], "secret": "no"}})[1]["book"]["tags"] == ["x"]
    assert call(world, "GET", path)[1]["book"]["lent"] is True
    assert call(world, "DELETE", path) == (204, None)
    assert call(world, "GET", path) == (404, {"error": "missing"})


def test_name_of_a_parameter_is_no_segment() -> None:
    for path in ("/books/{id}", "/books/{}", "/books//number"):
        assert call(library(), "GET", path) == (404, {"error": "no such path"}), path


def test_windows_that_have_ended_are_removed() -> None:
    rates = Rates()
    for second in range(1000):
        assert rates.take(f"key {second}", 1, period_s=60.0, now=float(second))[0] == 0
    assert len(rates.windows) < SWEPT


def test_resource_reports_all_invalid_fields() -> None:
    world = shelf("Emma")
    status, body = call(world, "POST", "/books", {"book": {"title": "EMMA", "pages": "many", "lent": 2**70}})
    assert status == 422
    assert sorted(body) == ["lent", "pages", "title"]
    assert body["title"] == [["Title: EMMA has already been taken", "DuplicateValue"]]
    assert call(world, "POST", "/books", {})[1] == {"title": [["Title: cannot be blank", "BlankValue"]]}


@pytest.mark.parametrize("body", [b"{", b"[1]", b"\xff", b"[" * 100_000])
def test_body_that_is_not_an_object_is_refused(body: bytes) -> None:
    assert call(library(), "POST", "/books", body)[0] == 422


def test_pages_by_cursor_give_each_row_once() -> None:
    world = shelf(*"abcde")
    seen, after = [], "0"
    while True:
        page = call(world, "GET", f"/books?after={after}")[1]
        seen += [book["title"] for book in page["books"]]
        after = page["last"][0]
        if not page["more"]:
            break
    assert seen == [*"abcde"]
    back = call(world, "GET", f"/books?before={after}")[1]
    assert ([book["title"] for book in back["books"]], back["more"]) == (["c", "d"], True)
    assert call(world, "GET", "/books?page=3")[1]["total"] == 5
    ids = ",".join(str(book["id"]) for book in call(world, "GET", "/books")[1]["books"])
    assert len(call(world, "GET", f"/books/show_many?ids={ids}")[1]["books"]) == 2


def test_refusal_rolls_back_all_rows_and_actions() -> None:
    world = library()
    before = world.db.logical_digest()
    response = world.respond(request("POST", "http://a/spoil"))
    assert (response.status, response.header("x-why"), response.header("x-seen")) == (409, "test", "/spoil")
    assert world.db.logical_digest() == before
    world.clock.advance(10)
    assert world.notes == []


def test_bug_is_raised_and_rolled_back() -> None:
    world = library()
    with pytest.raises(ZeroDivisionError):
        call(world, "POST", "/bug")
    assert call(world, "GET", "/books/count")[1]["count"]["value"] == 0


@pytest.mark.parametrize("steps", [[100], [1] * 100, [15, 85]])
def test_actions_run_at_their_moments_in_any_partition_of_time(steps: list[int]) -> None:
    world = library()
    call(world, "POST", "/later")
    for step in steps:
        world = world.copy()
        world.clock.advance(step)
    assert world.notes == [[11.0, 1], [21.0, 2], [21.0, 3]]


def test_action_that_was_cancelled_does_not_run() -> None:
    world = library()
    call(world, "POST", "/later?cancel=1")
    world.clock.advance(100)
    assert world.notes == [[11.0, 1], [21.0, 2]]


def test_caller_who_was_asked_to_wait_is_taken_to_have_waited() -> None:
    world = library()
    assert [call(world, "GET", "/limited")[0] for _ in range(3)] == [200, 200, 429]
    assert world.clock.now == 3
    assert call(world, "GET", "/limited") == (200, {"left": 1})
    assert world.clock.now == 61


def test_job_works_on_one_item_after_the_other() -> None:
    world = library()
    world.step_s = 0.01
    call(world, "POST", "/books/create_many", {"books": [{"title": t} for t in "abc"]})
    counts = [call(world, "GET", "/books/count")[1]["count"]["value"] for _ in range(8)]
    assert counts[0] == 0
    assert sorted({*counts}) == [0, 1, 2, 3]


def test_moment_of_a_request_sets_the_clock() -> None:
    world = library()
    world.respond(HttpRequest("GET", "/books", moment=50.0))
    world.respond(HttpRequest("GET", "/books", moment=40.0))
    assert world.clock.now == 50.0


def test_fork_and_dump_behave_like_the_origin() -> None:
    world = shelf("a")
    call(world, "POST", "/later")
    loaded = asyncio.run(resource.loaded(Library, asyncio.run(resource.dump(world))))
    twin = world.copy()
    for one in (world, twin, loaded):
        call(one, "POST", "/books", {"book": {"title": "b"}})
        one.clock.advance(30)
    digests = {asyncio.run(resource.digest(one)) for one in (world, twin, loaded)}
    assert len(digests) == 1
    assert len(world.notes) == 3


def test_tool_http_reaches_the_product() -> None:
    assert shelf("a").http("get", "http://a.shop.localhost/books/count").startswith("200\n{")


def test_tools_made_from_routes_are_described_and_answer() -> None:
    tools = collect(Library)
    assert tools["book_show"].parameters["properties"]["id"] == {"type": "integer", "description": "Part of the path."}
    assert [tools[name].parameters["required"] for name in ("book_show", "book_create")] == [["id"], []]
    assert tools["set_later"].description == "Sets actions that are due later."
    world = library()
    world.authorization = "Bearer x"
    made = tools["book_create"].bind(world)(**tools["book_create"].decode('{"body": {"book": {"title": "Emma"}}}'))
    status, _, text = made.partition("\n")
    number = json.loads(text)["book"]["id"]
    shown = tools["book_show"].bind(world)(**tools["book_show"].decode(f'{{"id": {number}}}'))
    assert (status, shown[:3], tools["book_show"].bind(world)(id=1, query={})[:3]) == ("201", "200", "404")


@pytest.mark.parametrize("name", ["later", "lost"])
def test_tool_of_an_unknown_route_or_a_taken_name_is_refused(name: str) -> None:
    with pytest.raises(DefinitionError, match=name):
        route_tools(ROUTES, {name: ("POST", "/later" if name == "later" else "/lost")}, host="x")


# -- the door


def fetch(url: str, data: bytes | None = None, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers or {}), timeout=20) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_door_finds_worlds_by_host_and_by_token() -> None:
    door = Door()
    door.add("one", shelf("a"), ["token-of-one"])
    door.add("two", shelf("b", "c"), ["token-of-two"])
    with serving(door) as address:
        for headers, total in (
            ({"Host": "two.library.localhost"}, 2),
            ({"Host": "one.library.localhost:80"}, 1),
            ({"Authorization": "Bearer token-of-two"}, 2),
            ({"Authorization": "Basic dTp0b2tlbi1vZi1vbmU="}, 1),
        ):
            assert json.loads(fetch(f"{address}/books/count", headers=headers)[1])["count"]["value"] == total
        assert fetch(f"{address}/books/count")[0] == 401
        assert fetch(f"{address}/books/count", headers={"Authorization": "Basic %%%"})[0] == 401


def test_door_answers_500_for_a_bug_and_ends_that_world() -> None:
    door = Door()
    door.add("one", library())
    with serving(door) as address:
        assert fetch(f"{address}/bug", b"")[0] == 500
        assert fetch(f"{address}/books/count")[0] == 500
    assert door.failures == {"one": "POST /bug: ZeroDivisionError: a bug"}


def test_door_refuses_a_body_that_is_too_long() -> None:
    door = Door()
    door.add("one", library())
    with serving(door) as address:
        assert fetch(f"{address}/books", b"x" * (MAX_BODY + 1))[0] == 413
        assert fetch(f"{address}/books/count")[0] == 200


def test_record_of_a_door_with_real_time_replays() -> None:
    record: list[HttpRequest] = []
    world, again = library(), library()
    door = Door(lambda key, asked: record.append(asked), wall=1000.0)
    door.add("one", world)
    with serving(door) as address:
        for title in "abc":
            fetch(f"{address}/books", json.dumps({"book": {"title": title}}).encode())
    for one in record:
        again.respond(one)
    assert len(record) == 3
    assert asyncio.run(resource.digest(again)) == asyncio.run(resource.digest(world))


def test_control_advances_the_clock() -> None:
    world, door = library(), Door()
    door.add("one", world)
    with serving(door) as address:
        assert json.loads(fetch(f"{address}/__control__/advance?seconds=5", b"")[1]) == {"now": 5.0}
        assert fetch(f"{address}/__control__/else", b"")[0] == 404
        assert fetch(f"{address}/__control__/advance?seconds=-5", b"")[0] == 400
