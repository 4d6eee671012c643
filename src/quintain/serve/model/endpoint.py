"""The model's APIs over HTTP, one path per episode: `/m/{token}/v1/...`, and its tools over MCP: `/e/{token}/mcp`."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import importlib
import secrets
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from quintain import codec
from quintain.serve.errors import ServeError
from quintain.serve.http.asgi import Events, HttpRequest, Receive, Scope, Send
from quintain.trace import Reply

from . import chat, messages, responses
from .api import ApiRequest, Format, Refusal
from .conversation import Conversation
from .peers import Guard

if TYPE_CHECKING:
    from .actions import Actions

T = TypeVar("T")

BODY_BYTES = 50_000_000
"""Bytes of the longest request."""
_QUIET_S = 10.0
"""Seconds after which a stream begins without its first words, so that the line is not taken for dead."""

FORMATS: dict[str, Format] = {"chat/completions": chat, "responses": responses, "messages": messages}
_NOWHERE = Refusal("there is no such path", status=404, code="not_found")


class ProgramHandlers:
    """Handlers for one episode's program.

    Args:
        conversation: The program's conversation with its model.
        bound: Whether only the program itself may connect, even if another process has its secrets.

    Attributes:
        token: The unguessable part of its paths.
        key: The API key that the program must send.
    """

    def __init__(self, conversation: Conversation, *, bound: bool) -> None:
        self.token = secrets.token_urlsafe(24)
        self.key = f"sk-quintain-{secrets.token_urlsafe(24)}"
        self.conversation = conversation
        self._guards = {"m": Guard(), "e": Guard()} if bound else {}
        self._started = asyncio.Event()
        self._left: dict[str, asyncio.Task[tuple[Reply, str]]] = {}
        self._busy = 0
        self._last = asyncio.get_running_loop().time()

    @property
    def quiet_s(self) -> float:
        """Seconds since the program last asked for something, or got it."""
        return 0.0 if self._busy else asyncio.get_running_loop().time() - self._last

    def start(self, session: int) -> None:
        """The program runs: requests are answered from now on.

        Args:
            session: Number of the session that it leads.
        """
        for guard in self._guards.values():
            guard.session = session
        self._started.set()

    async def handle(self, request: HttpRequest, actions: Callable[[], Awaitable[Actions]]) -> None:
        """Answer a request below the token.

        Args:
            request: The request.
            actions: Gives what answers MCP.
        """
        place, _, *path = request.segments
        form = FORMATS.get("/".join(path[1:])) or (messages if request.header(b"anthropic-version") else chat)
        self._busy += 1
        try:
            await self._started.wait()  # It may ask before we have learned its number.
            self._admit(request, place)
            match [place, *path]:
                case ["e", "mcp"]:
                    await (await actions()).handle(request, self.conversation)
                case ["m", "v1", "models", *name]:
                    await _name_models(request, "/".join(name))
                case ["m", "v1", *rest] if "/".join(rest) in FORMATS:
                    await self._ask(request, form)
                case _:
                    await _refuse(request, _NOWHERE, form)
        except Refusal as refusal:
            await _refuse(request, refusal, form)
        except ServeError as error:
            await _refuse(request, Refusal(str(error), status=error.status), form)
        finally:
            self._busy -= 1
            self._last = asyncio.get_running_loop().time()

    def _admit(self, request: HttpRequest, place: str) -> None:
        if place == "m":
            given = request.header(b"x-api-key") or request.header(b"authorization").removeprefix("Bearer ")
            if not hmac.compare_digest(given.encode(), self.key.encode()):
                raise Refusal("the API key is not this episode's", status=401, code="invalid_api_key")
        elif self.conversation.replies and not self.conversation.listed:
            # Whoever comes now is not the program, or it would have come before; its calls are made for it.
            raise Refusal("the program asked its model before it took the tools", status=403, code="too_late")
        if not self._guards:
            return
        client, server = request.scope.get("client"), request.scope.get("server")
        if not client or not server or not self._guards[place].admits(client, server):
            raise Refusal(
                "this secret is bound to another process: the first of the program that used it",
                status=403,
                code="agent_command_not_allowed",
            )

    async def _ask(self, request: HttpRequest, form: Format) -> None:
        if request.method != "POST":
            raise Refusal("this takes POST", status=405, code="method_not_allowed")
        body = await request.body(BODY_BYTES)
        asked = form.read(body)
        asking = self._asked(f"{request.path} {hashlib.sha256(body).hexdigest()}", asked)
        if not asked.stream:
            reply, name = await _while_there(request, asking)
            self._spoken()
            await request.reply(form.whole(asked, reply, name))
            return
        await self._stream(request, form, asked=asked, asking=asking)

    async def _stream(
        self,
        request: HttpRequest,
        form: Format,
        *,
        asked: ApiRequest,
        asking: Callable[[], Awaitable[tuple[Reply, str]]],
    ) -> None:
        waiting = asyncio.ensure_future(_while_there(request, asking))
        await asyncio.wait({waiting}, timeout=_QUIET_S)
        if waiting.done():
            waiting.result()  # A refusal at once has its own status.
        events = Events(request)
        await events.open(b": ready\n\n")
        try:
            reply, name = await events.during(_result(waiting))
        except Refusal as refusal:
            await events.close(form.broken(refusal))
            return
        self._spoken()
        await events.close(b"".join(form.events(asked, reply, name)))

    def _asked(self, digest: str, asked: ApiRequest) -> Callable[[], Awaitable[tuple[Reply, str]]]:
        """The reply to a request; one whose client left stays for the same request that comes again.

        Who asks the same while another one waits wants a reply of his own: so programs draw several.
        """

        async def asking() -> tuple[Reply, str]:
            task = self._left.pop(digest, None)
            if task is None:
                task = asyncio.ensure_future(self.conversation.ask(asked))
                task.add_done_callback(_heard)  # Its client may have left when it is refused.
            try:
                return await asyncio.shield(task)
            except asyncio.CancelledError:
                self._left[digest] = task
                raise

        return asking

    def _spoken(self) -> None:
        for guard in self._guards.values():
            guard.spoken()


class Paths:
    """The application: every request goes to the desk that its token names."""

    def __init__(self) -> None:
        self._desks: dict[str, ProgramHandlers] = {}
        self._actions: Actions | None = None
        self._loading = asyncio.Lock()

    def open(self, desk: ProgramHandlers) -> None:
        self._desks[desk.token] = desk

    def close(self, desk: ProgramHandlers) -> None:
        del self._desks[desk.token]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = HttpRequest(scope, receive, send)
        parts = request.segments
        desk = self._desks.get(parts[1]) if len(parts) > 1 and parts[0] in {"m", "e"} else None
        if desk is None:
            await _refuse(request, _NOWHERE, FORMATS["chat/completions"])
            return
        # What is under way when the door closes, the server cancels.
        with contextlib.suppress(asyncio.CancelledError):
            await desk.handle(request, self.load)

    async def aclose(self) -> None:
        """Ends the SDK's session manager."""
        actions, self._actions = self._actions, None
        if actions is not None:
            await actions.aclose()

    async def load(self) -> Actions:
        """Loads the part that answers MCP, which takes a second, before programs need it."""
        async with self._loading:
            if self._actions is None:
                module = await asyncio.to_thread(importlib.import_module, f"{__package__}.actions")
                made: Actions = module.Actions(BODY_BYTES)
                self._actions = made
            return self._actions


async def _name_models(request: HttpRequest, name: str) -> None:
    """Lists the one model, under whatever name it is asked for."""
    model: dict[str, Any] = {"id": name or "quintain", "object": "model", "created": 0, "owned_by": "quintain"}
    model |= {"type": "model", "display_name": model["id"], "created_at": "1970-01-01T00:00:00Z"}
    await request.reply(model if name else {"object": "list", "data": [model], "has_more": False})


def _heard(task: asyncio.Future[Any]) -> None:
    if not task.cancelled():
        task.exception()


async def _result(task: asyncio.Future[T]) -> T:
    return await task


async def _while_there(request: HttpRequest, asking: Callable[[], Awaitable[tuple[Reply, str]]]) -> tuple[Reply, str]:
    """The reply, unless the client leaves first: then it stays for the same request that comes again."""

    async def left() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    reply, leaving = asyncio.ensure_future(asking()), asyncio.ensure_future(left())
    try:
        await asyncio.wait({reply, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if reply.done():
            return reply.result()
        raise Refusal("the client left before its answer", status=499, code="client_left")
    finally:
        leaving.cancel()
        reply.cancel()


async def _refuse(request: HttpRequest, refusal: Refusal, form: Format) -> None:
    document = form.error(refusal)
    if request.segments[:1] == ["e"]:  # MCP's own
        said = {"code": -32600, "message": f"{refusal.code}: {refusal}"}
        document = {"jsonrpc": "2.0", "id": None, "error": said}
    headers = [(b"content-type", b"application/json"), (b"x-should-retry", b"false")]
    await request.answer(refusal.status, codec.json(document), headers)
