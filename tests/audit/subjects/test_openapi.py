"""Service over real sockets, described by OpenAPI 3.0 with all places of arguments."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from quintain.audit.subjects import SubjectFailure, openapi
from quintain.errors import UsageError
from tests.audit.subjects.serving import serving

NOTE = {"$ref": "#/components/schemas/Note"}
DOCUMENT: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "notes", "version": "1"},
    "paths": {
        "/reset": {"post": {"operationId": "reset", "requestBody": {"$ref": "#/components/requestBodies/Seed"}}},
        "/notes/{id}": {
            "parameters": [{"$ref": "#/components/parameters/Id"}],
            "get": {
                "operationId": "get_note",
                "summary": "One note.",
                "description": "By its id.",
                "parameters": [
                    {"name": "tags", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
                    {"name": "id", "in": "query", "schema": {"type": "integer"}, "description": "Another id."},
                    {"name": "X-Who", "in": "header", "schema": {"type": "string"}},
                    {"name": "mood", "in": "cookie", "schema": {"type": "string"}},
                    {"name": "deep", "in": "query", "content": {"application/json": {"schema": {"type": "object"}}}},
                ],
                "responses": {"200": {"content": {"application/json": {"schema": NOTE}}}, "404": {"description": "-"}},
            },
        },
        "/notes": {
            "post": {
                "operationId": "add note!",
                "requestBody": {"required": True, "content": {"application/json": {"schema": NOTE}}},
                "responses": {"default": {"$ref": "#/components/responses/Any"}},
            },
            "put": {"requestBody": {"content": {"application/json": {"schema": {"type": "array", "items": NOTE}}}}},
        },
        "/form": {
            "post": {
                "operationId": "form",
                "requestBody": {
                    "content": {"application/x-www-form-urlencoded": {"schema": {"properties": {"a": {}, "b": {}}}}}
                },
            }
        },
        "/text": {"post": {"operationId": "text", "requestBody": {"content": {"text/plain": {"schema": {}}}}}},
        "/bad/{how}": {
            "get": {"operationId": "bad", "parameters": [{"name": "how", "in": "path", "schema": {"type": "string"}}]}
        },
    },
    "components": {
        "parameters": {"Id": {"name": "id", "in": "path", "schema": {"type": "string"}}},
        "requestBodies": {
            "Seed": {"content": {"application/json": {"schema": {"properties": {"seed": {"type": "integer"}}}}}}
        },
        "responses": {"Any": {"content": {"application/json": {"schema": {"type": "object"}}}}},
        "schemas": {
            "Note": {
                "type": "object",
                "required": ["words"],
                "properties": {
                    "words": {"type": "string"},
                    "about": {"type": "string", "nullable": True, "enum": ["a", "b"]},
                    "weight": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
                    "size": {"type": "number", "minimum": 0, "exclusiveMinimum": False},
                    "replies": {"type": "array", "items": NOTE},
                },
            }
        },
    },
}


async def _echo(request: Request) -> Response:
    seen = {"method": request.method, "path": request.url.path, "query": request.query_params.multi_items()}
    wanted = {name: request.headers[name] for name in ("x-who", "cookie", "content-type") if name in request.headers}
    return JSONResponse(seen | {"headers": wanted, "body": (await request.body()).decode()})


async def _bad(request: Request) -> Response:
    answers: dict[str, Response] = {
        "missing": JSONResponse({"detail": "no such note"}, 404),
        "plain": PlainTextResponse("go away", 403),
        "empty": Response(status_code=409),
        "moved": Response(status_code=307, headers={"Location": "/notes"}),
        "crash": PlainTextResponse("traceback", 500),
        "liar": Response("{", headers={"Content-Type": "application/json"}),
        "nothing": Response(status_code=204),
    }
    return answers[request.path_params["how"]]


async def _document(request: Request) -> Response:
    return JSONResponse(DOCUMENT)


@pytest.fixture(scope="module")
def url() -> Generator[str]:
    routes = [
        Route("/openapi.json", _document),
        Route("/bad/{how}", _bad),
        Route("/{rest:path}", _echo, methods=["GET", "POST", "PUT"]),
    ]
    with serving(Starlette(routes=routes)) as address:
        yield address


@pytest.fixture
def subject(url: str) -> Generator[openapi.OpenApiSubject]:
    one = openapi.make(f"{url}/openapi.json")()
    yield one
    one.close()


def test_operations_are_tools_with_one_schema(subject: openapi.OpenApiSubject) -> None:
    tools = {tool["name"]: tool for tool in subject.tools()}
    assert list(tools) == ["get_note", "add_note", "put_notes", "form", "text", "bad"]
    assert tools["get_note"]["description"] == "One note.\n\nBy its id."
    parameters = tools["get_note"]["parameters"]
    assert list(parameters["properties"]) == ["id", "tags", "id_query", "X-Who", "mood", "deep"]
    assert parameters["required"] == ["id"]
    assert parameters["additionalProperties"] is False
    added = tools["add_note"]["parameters"]
    assert added["required"] == ["words"]
    assert added["properties"]["about"] == {"type": ["string", "null"], "enum": ["a", "b", None]}
    assert added["properties"]["weight"] == {"type": "number", "exclusiveMinimum": 0}
    assert added["properties"]["size"] == {"type": "number", "minimum": 0}
    assert added["$defs"]["Note"]["properties"]["replies"]["items"] == {"$ref": "#/$defs/Note"}
    assert list(tools["put_notes"]["parameters"]["properties"]) == ["body"]
    promised = subject.responses()
    assert promised["get_note"]["200"]["$ref"] == "#/$defs/Note"
    assert promised["add_note"] == {"default": {"type": "object"}}
    json.dumps([tools, promised])


def test_arguments_travel_to_their_places(subject: openapi.OpenApiSubject) -> None:
    given = {"id": "a/b c", "tags": ["x", "y"], "id_query": 3, "X-Who": "me", "mood": "calm", "deep": {"k": [True]}}
    seen = subject.call("get_note", given)
    assert (seen["method"], seen["path"]) == ("GET", "/notes/a/b c")
    assert seen["query"] == [["tags", "x"], ["tags", "y"], ["id", "3"], ["deep", '{"k": [true]}']]
    assert seen["headers"] == {"x-who": "me", "cookie": "mood=calm"}
    seen = subject.call("add_note", {"words": "hé", "stray": 1})
    assert json.loads(seen["body"]) == {"words": "hé", "stray": 1}
    assert seen["headers"]["content-type"] == "application/json"
    assert json.loads(subject.call("add_note", {})["body"]) == {}
    assert json.loads(subject.call("put_notes", {"body": [{"words": "x"}]})["body"]) == [{"words": "x"}]
    assert subject.call("put_notes", {})["body"] == ""
    assert subject.call("put_notes", {"stray": True})["query"] == [["stray", "true"]]
    assert subject.call("form", {"a": True, "b": "ä&"})["body"] == "a=true&b=%C3%A4%26"
    assert subject.call("text", {"body": "as it is"})["body"] == "as it is"


def test_client_errors_are_observations(subject: openapi.OpenApiSubject) -> None:
    assert subject.call("bad", {"how": "missing"}) == {"error": {"detail": "no such note"}, "status": 404}
    assert subject.call("bad", {"how": "plain"}) == {"error": "go away", "status": 403}
    assert subject.call("bad", {"how": "empty"}) == {"error": "Conflict", "status": 409}
    assert subject.call("bad", {"how": "moved"})["status"] == 307
    assert subject.call("bad", {"how": "nothing"}) is None
    assert subject.call("bad", {}) == {"error": "bad: it needs 'how'"}
    for part in ("", ".", ".."):
        assert "part of the path" in subject.call("bad", {"how": part})["error"]
    assert subject.call("nope", {}) == {"error": "unknown tool 'nope'"}
    for name, arguments in (
        ("get_note", {"id": "\ud800"}),
        ("get_note", {"id": "x", "X-Who": "a\r\nb: c"}),
        ("get_note", {"id": "x", "X-Who": "\ud800"}),
        ("get_note", {"id": "x", "tags": "\ud800"}),
        ("form", {"a": "\ud800"}),
        ("text", {"body": "\ud800"}),
    ):
        assert subject.call(name, arguments)["error"], arguments
    assert json.loads(subject.call("add_note", {"words": "\ud800"})["body"]) == {"words": "\ud800"}


@pytest.mark.parametrize(("how", "words"), [("crash", "answered 500: traceback"), ("liar", "answers in JSON")])
def test_server_errors_are_failures(subject: openapi.OpenApiSubject, how: str, words: str) -> None:
    with pytest.raises(SubjectFailure, match=words):
        subject.call("bad", {"how": how})


def test_the_services_own_reset_begins_an_episode(subject: openapi.OpenApiSubject, url: str, tmp_path: Path) -> None:
    assert subject.tasks() == ["service"]
    assert subject.absent == ("score",)
    assert json.loads(subject.reset("service", 7)["body"]) == {"seed": 7}
    file = tmp_path / "notes.json"
    paths = {name: item for name, item in DOCUMENT["paths"].items() if name != "/reset"}
    file.write_text(json.dumps(DOCUMENT | {"paths": paths}))
    other = openapi.make(f"{file}#{url}")()
    assert other.absent == ("score", "reset")
    assert other.call("text", {"body": "x"})["body"] == "x"
    with pytest.raises(UsageError, match="no reset operation"):
        other.reset("service", 0)
    other.close()


def test_an_unreachable_service_is_a_failure(tmp_path: Path) -> None:
    with serving(Starlette()) as gone:
        pass
    file = tmp_path / "notes.json"
    file.write_text(json.dumps(DOCUMENT | {"servers": [{"url": gone}]}))
    subject = openapi.make(str(file))()
    with pytest.raises(SubjectFailure, match="ConnectError") as caught:
        subject.call("text", {"body": "x"})
    assert caught.value.kind == "transport_unreachable"
    subject.close()
    with pytest.raises(UsageError, match="cannot read"):
        openapi.make(f"{gone}/openapi.json")


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"swagger": "2.0"}, "only OpenAPI 3"),
        ([], "is not an OpenAPI document but a list"),
        ({"openapi": "3.1.0"}, "describes no operation"),
        ({"openapi": "3.1.0", "paths": []}, "must be an object"),
        ({"openapi": "3.1.0", "paths": {"/x": {"$ref": "other.json#/x"}}}, "which is not in it"),
        ({"openapi": "3.1.0", "paths": {"/x": {"$ref": "#/paths/~1x"}}}, "circle"),
        ({"openapi": "3.1.0", "paths": {"/x": {"get": {}}}}, "says not where the service is"),
        ({"openapi": "3.1.0", "paths": {"/x": {"get": {"operationId": "a", "parameters": {}}}}}, "must be an array"),
        (
            {"openapi": "3.1.0", "paths": {"/x": {"get": {"operationId": "a"}, "put": {"operationId": "a"}}}},
            "two operations",
        ),
    ],
)
def test_a_document_that_cannot_be_used_says_why(document: Any, words: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.json"
    file.write_text(json.dumps(document))
    with pytest.raises(UsageError, match=words):
        openapi.make(str(file))


def test_a_missing_or_invalid_document_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        openapi.make(str(tmp_path / "none.json"))
    (tmp_path / "x.yaml").write_text("openapi: '3.1.0'\npaths: {/x: {get: {operationId: a}}}\n")
    pytest.importorskip("yaml", reason="pip install 'quintain[audit-openapi]'")
    assert openapi.make(f"{tmp_path / 'x.yaml'}#http://127.0.0.1:1")().tools()[0]["name"] == "a"


def test_a_schema_stands_alone() -> None:
    schema = next(one for one in openapi.operations(DOCUMENT) if one.name == "get_note").responses["200"]
    assert set(schema) == {"$ref", "$defs"}
