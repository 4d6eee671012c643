"""Tools over a product: one that sends any request, and tools made from its routes."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlencode

import quintain as qn
from quintain.errors import DefinitionError

from .messages import request
from .noise import Shown
from .routes import Routes
from .world import Web


class HttpTool(Web):
    """Mixin with the one tool `http`, which reaches every product of the world."""

    @qn.tool
    def http(self, method: str, url: str, body: str = "", *, authorization: str = "") -> Shown:
        """Send a request to one of the products.

        Args:
            method: Such as GET, POST, PUT or DELETE.
            url: Address with query.
            body: JSON of the request.
            authorization: Value of the header of that name.
        """
        headers = {"content-type": "application/json"} | ({"authorization": authorization} if authorization else {})
        response = self.respond(request(method.upper(), url, body.encode(), headers=headers))
        return self.met.show(f"{response.status}\n{response.body.decode(errors='replace')}")


def route_tools(routes: Routes, names: Mapping[str, tuple[str, ...]], *, host: str, base: type[Web] = Web) -> type[Web]:
    """Returns a class with a tool for each of the named routes, whose description is that of the handler.

    A tool takes the parameters of its path, a query, and a body unless it reads. The field `authorization` of the mixin
    is the header that all send.

    Args:
        routes: The routes of the product.
        names: Name of each tool to method, path template and, where the handler has none, a description.
        host: Host that the tools ask.
        base: World that the class derives from. Give it where the world has fields: only one base may have some.

    Raises:
        DefinitionError: The product does not have such a route, or a world has a method of that name.
    """
    known = {(one.method, one.path): one for one in routes.all}
    members: dict[str, Any] = {"__module__": __name__, "__annotations__": {"authorization": str}, "authorization": ""}
    for name, (method, path, *words) in names.items():
        if (method, path) not in known or hasattr(base, name):
            taken = f"the name of a method of {base.__name__}"
            raise DefinitionError(f"tool {name!r} of {method} {path}: no such route, or {taken}")
        doc = "".join(words) or inspect.getdoc(known[method, path].handler) or name
        members[name] = _tool(name, method, path, host=host, doc=doc)
    make = cast(Any, type(Web))
    return cast(type[Web], make("RouteTools", (base,), members, kw_only=True))


def _tool(name: str, method: str, path: str, *, host: str, doc: str) -> Any:
    parts = [part.strip("{}") for part in path.split("/") if part.startswith("{")]
    params = [part if parts.count(part) == 1 else f"{part}{number}" for number, part in enumerate(parts, 1)]
    types: dict[str, Any] = {part: int if part.startswith("id") else str for part in params}
    types["query"] = dict[str, str]
    if method != "GET":
        types["body"] = dict[str, Any]

    def tool(self: Any, **given: Any) -> Shown:
        address = path
        for part in params:
            head, _, rest = address.partition("{")
            address = f"{head}{given[part]}{rest.partition('}')[2]}"
        url = f"http://{host}{address}?{urlencode(given.get('query') or {})}"
        headers = {"authorization": self.authorization} if self.authorization else None
        response = self.respond(request(method, url, given.get("body") or None, headers=headers))
        return self.met.show(f"{response.status}\n{response.body.decode(errors='replace')}")

    words = {"query": "Parameters of the query.", "body": "JSON of the request."}
    lines = "\n".join(f"    {part}: {words.get(part, 'Part of the path.')}" for part in types)
    optional: dict[str, Any] = {part: {} for part in words if part in types}
    kinds = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)] + [
        inspect.Parameter(part, inspect.Parameter.KEYWORD_ONLY, default=optional.get(part, inspect.Parameter.empty))
        for part in types
    ]
    tool.__name__, tool.__doc__ = name, f"{doc}\n\nArgs:\n{lines}"
    tool.__annotations__ = {**types, "return": Shown}
    cast(Any, tool).__signature__ = inspect.Signature(kinds)
    return qn.tool(tool)
