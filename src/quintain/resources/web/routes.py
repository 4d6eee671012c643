"""Routes: path templates in a tree of segments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

Handler = Callable[[Any, Any], Any]
"""Function from the world and the exchange to the answer: a response, or the value of a JSON body."""
H = TypeVar("H", bound=Handler)


@dataclass(frozen=True)
class Route:
    """A method and a path template with the handler that answers them.

    Attributes:
        method: Method of the request.
        path: Template; `{id}` stands for digits, any other name in braces for a segment.
        handler: Function that answers.
        who: Caller that the route needs; its meaning is the product's.
        writes: True if the handler runs in a transaction.
        status: Status of the answer.
        limit: Further rate limit; its meaning is the product's.
    """

    method: str
    path: str
    handler: Handler
    who: str = ""
    writes: bool = False
    status: int = 200
    limit: str = ""


_NUMBER, _ANY = "/number", "/any"
"""Keys of parameters, which no segment of a path can be."""
_SHORT = 200
"""Characters of the paths that are remembered."""
_LONG = 4000
"""Digits from which on a segment is no number: Python reads 4,300 at most."""


@dataclass
class _Node:
    children: dict[str, _Node] = field(default_factory=dict[str, "_Node"])
    routes: dict[str, Route] = field(default_factory=dict[str, Route])


class Routes:
    """The routes of a product. A fixed segment is preferred to `{id}`, and that to another parameter."""

    def __init__(self) -> None:
        self._root = _Node()
        self.all: list[Route] = []
        self._known = functools.lru_cache(maxsize=4096)(self._find)

    def add(self, method: str, path: str, handler: Handler, **options: Any) -> None:
        """Adds a route; `options` are fields of `Route`. A route that is there already stays."""
        options.setdefault("writes", method != "GET")
        self.mount(Route(method, path, handler, **options))

    def mount(self, route: Route) -> None:
        """Adds a route as it is."""
        node = self._root
        for segment in route.path.strip("/").split("/"):
            key = segment if not segment.startswith("{") else _NUMBER if segment == "{id}" else _ANY
            node = node.children.setdefault(key, _Node())
        if route.method not in node.routes:
            node.routes[route.method] = route
            self.all.append(route)
            self._known.cache_clear()

    def route(self, method: str, *paths: str, **options: Any) -> Callable[[H], H]:
        """Returns a decorator that adds a handler under `paths`; `options` are fields of `Route`."""

        def mark(handler: H) -> H:
            for path in paths:
                self.add(method, path, handler, **options)
            return handler

        return mark

    def find(self, method: str, path: str) -> tuple[Route, tuple[str, ...]] | None:
        """Returns the route of a path, and the values of its parameters from left to right."""
        return self._known(method, path) if len(path) < _SHORT else self._find(method, path)

    def _find(self, method: str, path: str) -> tuple[Route, tuple[str, ...]] | None:
        segments = path.strip("/").split("/")
        found = _walk(self._root, segments, 0)
        if found is None:
            return None
        node, values = found
        route = node.routes.get(method)
        return None if route is None else (route, values)


def _walk(node: _Node, segments: list[str], at: int) -> tuple[_Node, tuple[str, ...]] | None:
    if at == len(segments):
        return (node, ()) if node.routes else None
    segment = segments[at]
    for key in (segment, _NUMBER, _ANY) if segment.isdecimal() and len(segment) < _LONG else (segment, _ANY):
        child = node.children.get(key)
        if child is not None and (found := _walk(child, segments, at + 1)) is not None:
            return found if key is segment else (found[0], (segment, *found[1]))
    return None
