"""The OpenAPI 3.1 document, made of the table of routes and the types that they take and give."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, cast

import msgspec

from quintain import __version__, codec
from quintain.errors import KINDS

from .answers import Problem
from .routes import OCTETS, ApiRoute

REFUSED = "application/problem+json"
_REF = "#/components/schemas/{name}"
_SECURE = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}
_BASE64 = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_ALWAYS = (400, 403, 405, 422, 429, 500, 503)
"""Statuses of all routes: 403 is for foreign origins, 500 for an author's code that raises outside of calls."""
_UNREAD = (400, 503)
"""Answers of the HTTP server, to a request that cannot be read or a connection too many, in plain text."""
_AGAIN = ("Retry-After", "integer", "Seconds to wait.")
_HEADERS = {
    401: ("WWW-Authenticate", "string", "How to say who asks."),
    405: ("Allow", "string", "The methods that there are."),
    429: _AGAIN,
    503: _AGAIN,
}
"""Headers of refusals: name, type and description."""
_OWN = {"properties": {"role": {"const": "assistant"}, "call_id": {"type": "null"}}}
"""Schema of a model's own message, which has the assistant's role and answers no call."""


@functools.cache
def document(routes: tuple[ApiRoute, ...], *, keyed: bool) -> bytes:
    """Returns the document of a server, which asks for keys if `keyed`, as JSON."""
    structs = {type_ for route in routes for type_ in (route.body, route.answer) if not _is_plain(type_)}
    types = [Problem, *sorted(structs, key=str)]
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    known = dict(zip(types, schemas, strict=True))
    _bound(components)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, known, keyed=keyed)
        if route.status == 201:
            paths[route.path]["post"]["responses"]["201"]["links"] = _links(routes)
    whole = {
        "openapi": "3.1.0",
        "info": {
            "title": "Quintain's control plane",
            "version": __version__,
            "description": "Environments and episodes for trainers and operators. Errors are RFC 9457 problems.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": components} | ({"securitySchemes": _SECURE} if keyed else {}),
    }
    return codec.json(whole)


def _bound(components: dict[str, Any]) -> None:
    """Adds the bounds of values that their types lack."""
    components["Failure"]["properties"]["kind"]["enum"] = sorted(KINDS)
    for name in ("ReplyBody", "StepBody"):
        asked = components[name]["properties"]
        asked["reply"] = {"allOf": [asked["reply"], {"properties": {"message": _OWN}}]}
    for tokens in components["Usage"]["properties"].values():
        tokens["minimum"] = 0
    for schema in _schemas(components):
        if schema.get("type") == "integer":  # As many bits as a record holds.
            schema.setdefault("minimum", -(2**63))
            schema.setdefault("maximum", 2**64 - 1)
        if schema.get("contentEncoding") == "base64":
            schema["pattern"] = _BASE64


def _schemas(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in some JSON."""
    if isinstance(value, dict):
        held = cast(dict[str, Any], value)
        yield held
        for one in held.values():
            yield from _schemas(one)
    elif isinstance(value, list):
        for one in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _schemas(one)


def _links(routes: tuple[ApiRoute, ...]) -> dict[str, Any]:
    """Returns the operations for the episode of an answer."""
    return {
        route.name: {"operationId": route.name, "parameters": {"id": "$response.body#/id"}}
        for route in routes
        if "{id}" in route.path
    }


def _operation(route: ApiRoute, known: dict[Any, Any], *, keyed: bool) -> dict[str, Any]:
    answer = {"description": HTTPStatus(route.status).phrase, **_content(route.answer, known)}
    about: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.about.partition(".")[0],
        "description": route.about,
        "parameters": [*_parameters(route)],
        "responses": {str(route.status): answer} | {str(status): _refusal(status) for status in _statuses(route)},
        "security": [{"bearer": []}, {"header": []}] if keyed and route.role else [],
    }
    if route.body is not None:
        about["requestBody"] = {"required": True, **_content(route.body, known)}
    return about


def _statuses(route: ApiRoute) -> set[int]:
    """Returns every status of a refusal that the route may give."""
    if_so = {401: bool(route.role), 413: route.method == "POST", 415: route.body is not None}
    return {*_ALWAYS, *route.errors, *(status for status, may in if_so.items() if may)}


def _content(type_: Any, known: dict[Any, Any]) -> dict[str, Any]:
    """Returns the content of a body or an answer, by the type in the table of routes."""
    if type_ is None:
        return {}
    if type_ is bytes:
        return {"content": {OCTETS: {"schema": {}}}}
    if isinstance(type_, str):
        return {"content": {type_.partition(";")[0]: {"schema": {"type": "string"}}}}
    return {"content": {"application/json": {"schema": {"type": "object"} if type_ is dict else known[type_]}}}


def _refusal(status: int) -> dict[str, Any]:
    content: dict[str, Any] = {REFUSED: {"schema": {"$ref": _REF.format(name="Problem")}}}
    if status in _UNREAD:
        content["text/plain"] = {"schema": {"type": "string"}}
    found = {"description": HTTPStatus(status).phrase, "content": content}
    if status in _HEADERS:
        name, kind, about = _HEADERS[status]
        found["headers"] = {name: {"schema": {"type": kind}, "description": about}}
    return found


def _parameters(route: ApiRoute) -> Iterator[dict[str, Any]]:
    def row(place: str, name: str, schema: Any, **more: Any) -> dict[str, Any]:
        return {"name": name, "in": place, "required": place == "path", "schema": schema, **more}

    for name in re.findall(r"{(\w+)}", route.path):
        yield row("path", name, {"type": "string", "minLength": 1})
    if route.query is not None:
        _, components = msgspec.json.schema_components([route.query], ref_template=_REF)
        for name, schema in components[route.query.__name__]["properties"].items():
            yield row("query", name, schema)
    if route.confides:
        about = 'Secrets as base64 of JSON, {"NAME": {"value": "..."}}. They are in no answer, and not written down.'
        secrets = {"type": "string", "contentEncoding": "base64", "writeOnly": True}
        yield row("header", "X-Secrets", secrets, description=about)
    if route.method == "POST":
        about = "The same request under the same key is done once, and answered the same."
        schema = {"type": "string", "maxLength": 255, "pattern": "^[!-~]*$"}
        yield row("header", "Idempotency-Key", schema, description=about)


def _is_plain(type_: Any) -> bool:
    return type_ is None or type_ in {bytes, dict} or isinstance(type_, str)
