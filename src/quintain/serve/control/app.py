"""The control plane: a Starlette application of one table of routes, with RFC 9457 problems as refusals."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPMethod, HTTPStatus
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request as StarletteRequest
from starlette.responses import Response
from starlette.routing import Route

from quintain import codec
from quintain.errors import UsageError
from quintain.serve.episodes.host import Host
from quintain.serve.episodes.request_secrets import HEADER, brought
from quintain.serve.errors import Finished, ServeError, Unknown, Void
from quintain.serve.http.asgi import HttpRequest, again_headers, parsed
from quintain.serve.http.keys import NOBODY, Caller

from .answers import Problem
from .bodies import Create
from .once import Once, check
from .openapi import REFUSED
from .routes import OCTETS, ApiCall, ApiRoute, converted
from .table import ROUTES

SNAPSHOTS = 64
"""Longest body of a snapshot, as a multiple of other bodies: a snapshot holds a whole world."""
METHODS = [str(method) for method in HTTPMethod]
"""All methods reach the endpoint of a path, which refuses those that the table lacks."""
OPEN = frozenset(route.path for route in ROUTES if not route.role)

_REQUEST, _CALLER = "quintain.request", "quintain.caller"


class Control:
    """Answers requests by the table of routes.

    Args:
        host: The environments and episodes.
        keyed: True if the server asks for keys.
    """

    def __init__(self, host: Host, *, keyed: bool = False) -> None:
        self._host = host
        self._keyed = keyed
        self._once = Once()
        paths: dict[str, dict[str, ApiRoute]] = {}
        for route in ROUTES:
            paths.setdefault(route.path, {})[route.method] = route
        errors = (HTTPException, ServeError, UsageError, msgspec.DecodeError, UnicodeDecodeError, Exception)
        self._app = Starlette(
            routes=[Route(path, self._endpoint(routes), methods=METHODS) for path, routes in paths.items()],
            exception_handlers=dict.fromkeys(errors, _refused),
        )
        self._app.router.redirect_slashes = False

    async def enter(self, request: HttpRequest, admit: Callable[[HttpRequest], Caller]) -> None:
        """Answers a request; `admit` returns its caller or raises Denied, unless the route needs no key."""
        try:
            caller = NOBODY if request.path in OPEN else admit(request)
            if request.scope["type"] != "http":
                raise Unknown("there is no WebSocket here")
        except ServeError as error:
            await self.refuse(request, error)
            return
        scope = {**request.scope, _REQUEST: request, _CALLER: caller}
        await self._app(scope, request.receive, request.send)

    async def refuse(self, request: HttpRequest, error: ServeError) -> None:
        """Answers with a refusal."""
        response = _problem(error)
        headers = [pair for pair in response.raw_headers if pair[0] != b"content-length"]
        await request.answer(response.status_code, bytes(response.body), headers)

    def _endpoint(self, routes: dict[str, ApiRoute]) -> Callable[[StarletteRequest], Awaitable[Response]]:
        async def endpoint(request: StarletteRequest) -> Response:
            route = routes.get(request.method)
            if route is None:
                allowed = ", ".join(routes)
                raise HTTPException(405, f"this path takes {allowed}", {"allow": allowed})
            return await self._answer(request, route)

        return endpoint

    async def _answer(self, asked: StarletteRequest, route: ApiRoute) -> Response:
        request: HttpRequest = asked.scope[_REQUEST]
        query = converted(asked.query_params, route.query)
        call = ApiCall(self._host, asked.scope[_CALLER], request, asked.path_params, query=query, keyed=self._keyed)
        if route.role:
            call.need(route.role, route.about.partition(".")[0].lower())
        most = self._host.limits.body_bytes * (SNAPSHOTS if route.body is bytes else 1)
        call = call._replace(body=await _body(request, route, most))
        if route.confides:
            call = call._replace(secrets=brought(request, call.body.secrets if isinstance(call.body, Create) else {}))
        key = request.header(b"idempotency-key")
        if not key or request.method != "POST":
            return route.response(await route.handle(call))
        check(key)
        raw = await request.body(most)
        call = call._replace(name=f"{request.path} {key}", digest=_digest(call, raw))

        async def work() -> Response:
            return route.response(await route.handle(call))

        # Secrets are in memory anyway, so that another value makes another request here.
        whole = b"\n".join((call.digest.encode(), raw, request.header(HEADER).encode()))
        return await self._once.do((call.caller.name, call.name), codec.digest(whole), work)


async def _body(request: HttpRequest, route: ApiRoute, most: int) -> Any:
    if route.body is None:
        return None
    wanted = OCTETS if route.body is bytes else "application/json"
    given = request.header(b"content-type").partition(";")[0].strip().lower()
    if given != wanted:
        raise HTTPException(415, f"the body must be {wanted}, not {given or 'without a type'}")
    data = await request.body(most)
    return data if route.body is bytes else parsed(data, route.body)


def _digest(call: ApiCall, body: bytes) -> str:
    """Returns the digest of a request for the journal, with the names of secrets only.

    With a value in it, a reader of the journal could try short values until the digest is the same. A salt would not
    help: it would have to be in the journal, too.
    """
    if isinstance(call.body, Create) and call.body.secrets:
        body = codec.json(call.body.plain)
    names = (name.encode() for name in call.secrets.names)
    query = call.request.scope.get("query_string", b"")
    return codec.digest(b"\n".join((call.request.path.encode(), query, body, *names)))


async def _refused(request: StarletteRequest, error: Exception) -> Response:
    if isinstance(error, HTTPException) and error.status_code == HTTPStatus.NOT_FOUND:
        error = Unknown(f"there is no {request.url.path}; /v1/openapi.json says what there is")
    return _problem(error)


def _problem(error: Exception) -> Response:
    """Returns an error as a problem; of what is not expected the log has the words, and the client has not."""
    status, words = 500, "the server broke over this; its log says how"
    headers: dict[str, str] = {}
    if isinstance(error, HTTPException):
        status, words, headers = error.status_code, error.detail, dict(error.headers or {})
    elif isinstance(error, ServeError):
        status, words = Finished.status if isinstance(error, Void) else error.status, str(error)
        headers = {name.decode(): value.decode() for name, value in again_headers(error)}
    elif isinstance(error, msgspec.ValidationError | UsageError):
        status, words = 422, str(error)
    elif isinstance(error, msgspec.DecodeError | UnicodeDecodeError):
        status, words = 400, str(error)
    problem = Problem(title=HTTPStatus(status).phrase, status=status, detail=words)
    return Response(codec.json(problem), status, headers, REFUSED)
