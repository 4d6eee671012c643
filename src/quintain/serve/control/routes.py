"""Rows of the table of routes, and the calls that their handlers get."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec
from starlette.datastructures import QueryParams
from starlette.responses import Response

from quintain import codec
from quintain.serve.episodes.host import Host
from quintain.serve.episodes.secrets import NOTHING, Secrets
from quintain.serve.errors import Denied
from quintain.serve.http.asgi import HttpRequest
from quintain.serve.http.keys import Caller

OCTETS = "application/octet-stream"
_RANK = {"agent": 0, "trainer": 1, "admin": 2}


class ApiCall(NamedTuple):
    """A request that fits its route.

    Attributes:
        names: Parameters in the path.
        query: Of the route's type; None if it has none.
        body: Of the route's type; None if it has none.
        keyed: True if the server asks for keys.
        secrets: Secrets that the request brings for the episode that it begins.
        name: The path and the Idempotency-Key; empty without a key.
        digest: Of all that a request with such a key says, without the values of secrets.
    """

    host: Host
    caller: Caller
    request: HttpRequest
    names: dict[str, str]
    query: Any
    keyed: bool
    body: Any = None
    secrets: Secrets = NOTHING
    name: str = ""
    digest: str = ""

    @property
    def key(self) -> str:
        """Key by which the journal knows this very request; empty without an Idempotency-Key."""
        return f"{self.name} {self.digest}" if self.name else ""

    def has(self, role: str) -> bool:
        """True if the caller's role is this one, or one above it."""
        return _RANK[self.caller.role] >= _RANK[role]

    def need(self, role: str, what: str) -> None:
        """Checks the role of the caller.

        Raises:
            Denied: The role is below this one.
        """
        if not self.has(role):
            raise Denied(f"{what} needs a key of the role {role!r}", 403)


class ApiRoute(NamedTuple):
    """One method of one path.

    Attributes:
        method: Of HTTP.
        path: With parameters in braces.
        handle: Returns a value of the type `answer`, or a whole response.
        answer: Type of the value; `bytes` for octets, a media type for text, None for an empty answer.
        body: Type of the request's body; None for none, `bytes` for octets.
        query: Type of the query; None for none.
        role: The least role that may ask; empty for a route without a key.
        status: Of the answer.
        errors: Statuses of refusals besides those that any request may meet.
        confides: True if a request may bring secrets.
    """

    method: str
    path: str
    handle: Callable[[ApiCall], Awaitable[Any]]
    answer: Any
    body: Any = None
    query: Any = None
    role: str = "agent"
    status: int = 200
    errors: tuple[int, ...] = ()
    confides: bool = False

    @property
    def about(self) -> str:
        """Description of the route, which is its handler's docstring."""
        return (self.handle.__doc__ or "").strip()

    @property
    def name(self) -> str:
        """Id of the operation."""
        return self.handle.__name__.strip("_")

    def response(self, value: Any) -> Response:
        """Returns the response for a handler's value."""
        if isinstance(value, Response):
            return value
        if self.answer is None:
            return Response(status_code=204)
        return Response(codec.json(value), self.status, media_type="application/json")


def converted(query: QueryParams, type_: Any) -> Any:
    """Returns query parameters as a type.

    Raises:
        msgspec.ValidationError: A parameter is unknown, given twice, or not of its type.
    """
    if len(query) != len(query.multi_items()):
        raise msgspec.ValidationError("a parameter is given twice")
    if type_ is None:
        if query:
            raise msgspec.ValidationError(f"this path takes no parameters, got {', '.join(query)}")
        return None
    return msgspec.convert(dict(query), type_, strict=False)
