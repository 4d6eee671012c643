"""The table of what can be asked, from which requests are answered and the OpenAPI document is made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from quintain import codec
from quintain.serve.asgi import JSON, Request
from quintain.serve.episodes.host import Host
from quintain.serve.episodes.secrets import NOTHING, Secrets
from quintain.serve.errors import Denied, ServeError
from quintain.serve.keys import Caller

from .once import Said

OCTETS = "application/octet-stream"
_RANK = {"agent": 0, "trainer": 1, "admin": 2}


class Method(ServeError):
    """The path is there, but not for this method."""

    status = 405

    def __init__(self, allowed: Sequence[str]) -> None:
        super().__init__(f"this path takes {', '.join(allowed)}")
        self.allowed = ", ".join(allowed)


class Asked(NamedTuple):
    """A request that fits its route.

    Attributes:
        names: The parts of the path that stand in braces in its pattern.
        query: As the route's type.
        body: As the route's type; None where it has none.
        keyed: Whether the server asks for keys.
        secrets: What the request confides to the episode that it begins.
        name: The path and the Idempotency-Key; empty where there is none.
        digest: Of all that a request with such a key says, but for what its secrets are.
    """

    host: Host
    caller: Caller
    request: Request
    names: dict[str, str]
    query: Any
    body: Any
    keyed: bool
    secrets: Secrets = NOTHING
    name: str = ""
    digest: str = ""

    @property
    def key(self) -> str:
        """Under which the next process knows this very request, too; empty where it has no Idempotency-Key."""
        return f"{self.name} {self.digest}" if self.name else ""

    def has(self, role: str) -> bool:
        """Whether the caller's role is this one, or one above it."""
        return _RANK[self.caller.role] >= _RANK[role]

    def need(self, role: str, what: str) -> None:
        """See to it that the caller may do something.

        Raises:
            Denied: He may not.
        """
        if not self.has(role):
            raise Denied(f"{what} needs a key of the role {role!r}", 403)


class Route(NamedTuple):
    """One thing that can be asked.

    Attributes:
        method: Of HTTP.
        path: Its parts in braces are names.
        handle: Answers: with a value, or with a whole answer.
        answer: Type of the value; `bytes` for octets, `str` for text.
        body: Type of the request's body; None for none, `bytes` for octets.
        query: Type of what follows the "?".
        role: The least that may ask; empty where everybody may.
        status: Of the answer.
        errors: Statuses of refusals beside those that any request may meet.
        confides: Whether it may bring secrets.
    """

    method: str
    path: str
    handle: Callable[[Asked], Awaitable[Any]]
    answer: Any
    body: Any = None
    query: Any = None
    role: str = "agent"
    status: int = 200
    errors: tuple[int, ...] = ()
    confides: bool = False

    @property
    def about(self) -> str:
        """What it does, in the words of its handler."""
        return (self.handle.__doc__ or "").strip()

    @property
    def name(self) -> str:
        return self.handle.__name__.strip("_")


class Router:
    """Finds the route of a request."""

    def __init__(self, routes: tuple[Route, ...]) -> None:
        self.routes = routes
        self._by_length: dict[int, list[tuple[list[str], Route]]] = {}
        for route in routes:
            parts = route.path.strip("/").split("/")
            self._by_length.setdefault(len(parts), []).append((parts, route))

    def find(self, method: str, parts: Sequence[str]) -> tuple[Route, dict[str, str]] | None:
        """The route and the names in the path; None where there is no such path.

        Raises:
            Method: The path takes other methods.
        """
        found = [
            (names, route)
            for pattern, route in self._by_length.get(len(parts), ())
            if (names := _matched(pattern, parts)) is not None
        ]
        fewest = min((len(names) for names, _ in found), default=0)  # A path's own word goes before a name.
        here = [(names, route) for names, route in found if len(names) == fewest]
        for names, route in here:
            if route.method == method:
                return route, names
        if here:
            raise Method([route.method for _, route in here])
        return None


def said(route: Route, value: Any) -> Said:
    """The whole answer that a handler's value means."""
    if isinstance(value, Said):
        return value
    if route.answer is None:
        return Said(204, b"", ())
    return Said(route.status, codec.json(value), (JSON,))


def _matched(pattern: Sequence[str], parts: Sequence[str]) -> dict[str, str] | None:
    names: dict[str, str] = {}
    for wanted, part in zip(pattern, parts, strict=True):
        if wanted.startswith("{"):
            names[wanted[1:-1]] = part
        elif wanted != part:
            return None
    return names


def queried(text: str, type_: Any) -> Any:
    """What follows the "?" as a type.

    Raises:
        msgspec.ValidationError: It does not fit.
    """
    import urllib.parse

    values = urllib.parse.parse_qsl(text, keep_blank_values=True)
    names = [name for name, _ in values]
    if len(set(names)) != len(names):
        raise msgspec.ValidationError("a parameter is given twice")
    if type_ is None:
        if values:
            raise msgspec.ValidationError(f"this path takes no parameters, got {', '.join(names)}")
        return None
    return msgspec.convert(dict(values), type_, strict=False)
