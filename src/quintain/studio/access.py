"""Access to the studio: only under its names, only from its own page, only with the token or a key.

Here are also the headers of each answer.
"""

from __future__ import annotations

import base64
import binascii
import os
import secrets
from collections.abc import Callable, Iterable, MutableMapping
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "quintain_studio"
POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; img-src data:; style-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
OwnerOf = Callable[[str], str | None]
"""Receives a key; returns the name of its owner as a reviewer's, or None if the key gives no access."""

HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}


def token(state: Path) -> str:
    """Returns the token of this user; a new one is written to a file that only the user can read."""
    path = state / "studio-token"
    if not path.exists():
        state.mkdir(parents=True, exist_ok=True)
        made = path.with_name(f"{path.name}-{os.getpid()}")
        with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(24))
        made.replace(path)
    return path.read_text("ascii")


class Guard:
    """ASGI application around the studio's. It answers only requests of its own page, with the token or a key.

    Args:
        app: The studio.
        secret: The token; it gives access only where there are no keys.
        port: Port of the server; a request names it with `localhost` or an address of this machine itself.
        hosts: Further values of the header `Host`, each with the port if the browser sends one.
        owner_of: Check of keys, which requests carry as the password of HTTP's basic scheme, or as a bearer token.
        writes: The studio's page may write, too.
    """

    def __init__(
        self,
        app: ASGIApp,
        secret: str,
        port: int,
        *,
        hosts: Iterable[str] = (),
        owner_of: OwnerOf | None = None,
        writes: bool = False,
    ) -> None:
        self._app, self._secret, self._owner_of = app, secret, owner_of
        self._methods = {"GET", "HEAD", "POST", "PUT"} if writes else {"GET", "HEAD"}
        self._hosts = {*(f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")), *map(str.lower, hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, as an ASGI application."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                _add(message, HEADERS)
            await send(message)

        answer = self._refusal(Request(scope))
        await (answer or self._app)(scope, receive, protected)

    def _refusal(self, request: Request) -> Response | None:
        host, origin = request.headers.get("host", "").lower(), request.headers.get("origin")
        if host not in self._hosts:
            return _refuse(HTTPStatus.MISDIRECTED_REQUEST, f"this is the studio of another address than {host!r}")
        # A browser names the origin with each request that writes.
        own = {f"http://{host}", f"https://{host}"}  # A proxy may speak TLS for the studio.
        if origin not in own and not (origin is None and request.method in {"GET", "HEAD"}):
            return _refuse(HTTPStatus.FORBIDDEN, f"pages of {origin!r} may not ask the studio")
        if request.method not in self._methods:
            return _refuse(HTTPStatus.METHOD_NOT_ALLOWED, "the studio only reads")
        return self._without_token(request) if self._owner_of is None else self._without_key(request, self._owner_of)

    def _without_key(self, request: Request, owner_of: OwnerOf) -> Response | None:
        owner = owner_of(_presented(request.headers.get("authorization", "")))
        if owner is None:
            words = "the studio wants a key of role admin, as the password or as `Authorization: Bearer KEY`"
            return _refuse(HTTPStatus.UNAUTHORIZED, words, {"WWW-Authenticate": 'Basic realm="studio"'})
        request.scope["reviewer"] = owner
        return None

    def _without_token(self, request: Request) -> Response | None:
        given = request.query_params.get("token")
        if request.url.path == "/" and given is not None and self._is_token(given):
            rest = urlencode([pair for pair in request.query_params.multi_items() if pair[0] != "token"])
            answer = RedirectResponse(f"/?{rest}" if rest else "/", HTTPStatus.SEE_OTHER)
            answer.set_cookie(COOKIE, self._secret, max_age=30 * 86400, httponly=True, samesite="strict")
            return answer
        if not self._is_token(request.cookies.get(COOKIE, "")):
            return _refuse(HTTPStatus.UNAUTHORIZED, "open the address that `quintain studio` printed; it has a token")
        return None

    def _is_token(self, given: str) -> bool:
        return secrets.compare_digest(given.encode("utf-8", "replace"), self._secret.encode())


def _presented(header: str) -> str:
    """Returns the key in a header `Authorization`; empty if it has none."""
    scheme, _, value = header.partition(" ")
    if scheme.lower() != "basic":
        return value if scheme.lower() == "bearer" else ""
    try:
        return base64.b64decode(value, validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _refuse(status: HTTPStatus, words: str, headers: dict[str, str] | None = None) -> Response:
    return PlainTextResponse(words + "\n", status, headers)


def _add(message: MutableMapping[str, Any], headers: dict[str, str]) -> None:
    found = MutableHeaders(scope=message)
    for name, value in headers.items():
        found.setdefault(name, value)
