"""The control plane on the wire: routes, bodies, who may, and refusals as RFC 9457 problems."""

from __future__ import annotations

import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import msgspec

from quintain import codec
from quintain.errors import UsageError
from quintain.serve.asgi import Request, again_headers, parsed
from quintain.serve.episodes.host import Host
from quintain.serve.episodes.request_secrets import HEADER, brought
from quintain.serve.errors import Finished, ServeError, Unknown, Void
from quintain.serve.keys import Caller

from .asking import Create
from .once import Once, Said, check
from .openapi import REFUSED
from .routes import OCTETS, Asked, Method, Route, queried, said
from .table import ROUTER
from .wire import Problem

_log = logging.getLogger(__name__)

SNAPSHOTS = 64
"""Times the longest body that a snapshot may have: it holds a whole world."""
NOBODY = Caller("", "agent")
"""Who asks what needs no key."""


class Media(ServeError):
    """The body is of a type that is not taken here."""

    status = 415


class Control:
    """Answers what stands in the table.

    Args:
        host: What is served.
        keyed: Whether the server asks for keys.
    """

    def __init__(self, host: Host, *, keyed: bool = False) -> None:
        self._host = host
        self._keyed = keyed
        self._once = Once()

    def is_open(self, request: Request) -> bool:
        """Whether a request needs no key: probes, and the document that says how to send one."""
        try:
            found = _found(request)
        except Method:
            return False
        return found is not None and not found[0].role

    async def enter(self, request: Request, admit: Callable[[Request], Caller]) -> None:
        """Answer a request.

        Args:
            request: It.
            admit: Says who asks, and raises Denied; not asked where no key is needed.
        """
        try:
            caller = NOBODY if self.is_open(request) else admit(request)
            answer = await self._answer(request, caller)
        except Exception as error:  # noqa: BLE001  # each has its status, and what nobody thought of is logged
            await self.refuse(request, error)
            return
        await request.answer(answer.status, answer.body, answer.headers)

    async def refuse(self, request: Request, error: Exception) -> None:
        """Say no, or that something broke; what broke is told to the log, not to the caller."""
        status, words = _blamed(error)
        if status >= 500 and not isinstance(error, ServeError):
            _log.exception("%s %s broke", request.method, request.path, exc_info=error)
        problem = Problem(title=HTTPStatus(status).phrase, status=status, detail=words)
        headers = [(b"content-type", REFUSED.encode())]
        if isinstance(error, ServeError):
            headers += again_headers(error)
        if isinstance(error, Method):
            headers.append((b"allow", error.allowed.encode()))
        await request.answer(status, codec.json(problem), headers)

    async def _answer(self, request: Request, caller: Caller) -> Said:
        if request.scope["type"] != "http":
            raise Unknown("there is no WebSocket here")
        found = _found(request)
        if found is None:
            raise Unknown(f"there is no {request.path}; /v1/openapi.json says what there is")
        route, names = found
        key = request.header(b"idempotency-key")
        asked = Asked(
            self._host,
            caller,
            request,
            names,
            query=queried(request.scope.get("query_string", b"").decode("latin-1"), route.query),
            body=None,
            keyed=self._keyed,
        )
        if route.role:
            asked.need(route.role, route.about.partition(".")[0].lower())
        asked = asked._replace(body=await self._body(request, route))
        if route.confides:
            within = asked.body.secrets if isinstance(asked.body, Create) else {}
            asked = asked._replace(secrets=brought(request, within))
        if not key or request.method != "POST":
            return said(route, await route.handle(asked))
        check(key)
        body = await self._raw(request, route)
        asked = asked._replace(name=f"{request.path} {key}", digest=_digest(asked, body))

        async def work() -> Said:
            return said(route, await route.handle(asked))

        # In memory, where the secrets are anyhow, another value is another request.
        whole = b"\n".join((asked.digest.encode(), body, request.header(HEADER).encode()))
        return await self._once.do((caller.name, asked.name), codec.digest(whole), work)

    async def _raw(self, request: Request, route: Route) -> bytes:
        most = self._host.limits.body_bytes
        return await request.body(most * SNAPSHOTS if route.body is bytes else most)

    async def _body(self, request: Request, route: Route) -> Any:
        if route.body is None:
            return None
        wanted = OCTETS if route.body is bytes else "application/json"
        given = request.header(b"content-type").partition(";")[0].strip().lower()
        if given != wanted:
            raise Media(f"the body must be {wanted}, not {given or 'without a type'}")
        data = await self._raw(request, route)
        return data if route.body is bytes else parsed(data, route.body)


def _digest(asked: Asked, body: bytes) -> str:
    """Of a request, for the journal.

    Who reads the journal could try what a short secret is until the digest is the same, so there are only names of
    secrets in it. No key of ours could help: it would have to be kept there, too, for the process after this one.
    """
    if isinstance(asked.body, Create) and asked.body.secrets:
        body = codec.json(asked.body.plain)
    names = (name.encode() for name in asked.secrets.names)
    query = asked.request.scope.get("query_string", b"")
    return codec.digest(b"\n".join((asked.request.path.encode(), query, body, *names)))


def _found(request: Request) -> tuple[Route, dict[str, str]] | None:
    return ROUTER.find(request.method, request.path.strip("/").split("/"))


def _blamed(error: Exception) -> tuple[int, str]:
    """The status of what was raised, and words for the caller."""
    if isinstance(error, Void):
        return Finished.status, str(error)
    if isinstance(error, ServeError):
        return error.status, str(error)
    if isinstance(error, msgspec.ValidationError):
        return 422, str(error)
    if isinstance(error, msgspec.DecodeError | UnicodeDecodeError):
        return 400, str(error)
    if isinstance(error, UsageError):
        return 422, str(error)
    return 500, "the server broke over this; its log says how"
