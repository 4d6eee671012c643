"""Requests and responses as plain data, and the refusal that a handler raises."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

Pairs = tuple[tuple[str, str], ...]

JSON = ("content-type", "application/json; charset=utf-8")
MOST_ADDRESS = 16_384
"""Characters of a path with its query."""


class HttpRequest(msgspec.Struct, frozen=True):
    """A request as a product receives it.

    Attributes:
        method: In capital letters.
        path: Decoded, without the query.
        host: Host and port, as the client sent them.
        query: Names and values, decoded, in the order of the URL.
        headers: Names in lower case.
        body: Bytes of the body.
        moment: Time at which the request is handled, in seconds since epoch; None for the world's pace.
    """

    method: str
    path: str
    host: str = ""
    query: Pairs = ()
    headers: Pairs = ()
    body: bytes = b""
    moment: float | None = None

    def header(self, name: str) -> str:
        """Returns the first value of a header; empty if it is missing."""
        return next((value for key, value in self.headers if key == name), "")


def request(
    method: str, url: str, body: bytes | dict[str, Any] | None = None, *, headers: dict[str, str] | None = None
) -> HttpRequest:
    """Returns the request of a method and a URL; a dict is sent as JSON."""
    parts = urlsplit(url)
    given = tuple((name.lower(), value) for name, value in (headers or {}).items())
    if isinstance(body, dict):
        body, given = msgspec.json.encode(body), (JSON, *given)
    query = tuple(parse_qsl(parts.query, keep_blank_values=True))
    return HttpRequest(method, parts.path, parts.netloc, query, given, body or b"")


class HttpResponse(msgspec.Struct):
    """An answer.

    Attributes:
        status: Status code.
        body: Bytes of the body.
        headers: Names in lower case, and values.
    """

    status: int = 200
    body: bytes = b""
    headers: list[tuple[str, str]] = []

    def json(self) -> Any:
        """Returns the body, decoded."""
        return msgspec.json.decode(self.body)

    def header(self, name: str) -> str:
        """Returns the first value of a header; empty if it is missing."""
        return next((value for key, value in self.headers if key == name), "")


class Refuse(Exception):
    """Refusal of a request: all that it changed is rolled back, and this is the answer.

    Args:
        status: Status code.
        body: JSON of the answer.
        headers: Further headers.
    """

    def __init__(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        super().__init__(f"{status} {body}")
        self.status, self.body, self.headers = status, body, headers or {}

    def response(self) -> HttpResponse:
        """Returns the answer."""
        return answer(self.body, self.status, headers=tuple(self.headers.items()))


def too_large(words: str, status: int = 413) -> Refuse:
    """Returns the refusal of a request that is larger than any honest one."""
    error = {413: "RequestEntityTooLarge", 414: "RequestURITooLong", 431: "RequestHeaderFieldsTooLarge"}[status]
    return Refuse(status, {"error": error, "description": words})


def answer(body: Any, status: int = 200, *, headers: Pairs = ()) -> HttpResponse:
    """Returns a response with a JSON body; bytes are sent as they are, None as an empty body."""
    if isinstance(body, HttpResponse):
        return body
    if body is None:
        return HttpResponse(status, b"", list(headers))
    if isinstance(body, bytes):
        return HttpResponse(status, body, list(headers))
    return HttpResponse(status, msgspec.json.encode(body), [JSON, *headers])
