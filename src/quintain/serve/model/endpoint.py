"""The model's APIs over HTTP, one path per episode: `/m/{token}/v1/...`, and its tools over MCP: `/e/{token}/mcp`."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import importlib
import secrets
import socket
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import TYPE_CHECKING, Any, ClassVar

from quintain import codec
from quintain.errors import UsageError
from quintain.serve.errors import ServeError
from quintain.serve.http.asgi import Events, HttpRequest, Receive, Scope, Send
from quintain.trace import Reply

from . import chat, messages, responses
from .api import ApiRequest, Format, Refusal
from .conversation import SCOPE_KEY, Conversation
from .peers import Guard

if TYPE_CHECKING:
    from quintain.serve.http.mcp_sdk import Manager

BODY_BYTES = 50_000_000
"""Bytes of the longest request."""
_QUIET_S = 10.0
"""Seconds after which a stream begins without an event, so that the client keeps the connection."""

FORMATS: dict[str, Format] = {"chat/completions": chat, "responses": responses, "messages": messages}
_NOWHERE = Refusal("there is no such path", status=404, code="not_found")
_NOT_POST = Refusal("this takes POST", status=405, code="method_not_allowed")


class ProgramHandlers:
    """Handlers for one episode's program, with `token` in its paths, and `key` as the API key that it must send.

    If they are `bound`, only the program itself may connect, even if another process has its secrets.
    """

    def __init__(self, conversation: Conversation, *, bound: bool) -> None:
        self.token = secrets.token_urlsafe(24)
        self.key = f"sk-quintain-{secrets.token_urlsafe(24)}"
        self.conversation = conversation
        self._guards = {"m": Guard(), "e": Guard()} if bound else {}
        self._started = asyncio.Event()
        self._left: dict[bytes, asyncio.Task[tuple[Reply, str]]] = {}
        self._busy = 0
        self._last = asyncio.get_running_loop().time()

    @property
    def quiet_s(self) -> float:
        """Seconds since the program's last request or the answer to it."""
        return 0.0 if self._busy else asyncio.get_running_loop().time() - self._last

    def start(self, session: int) -> None:
        """Answers requests from now on; `session` is the number of the POSIX session that the program leads."""
        for guard in self._guards.values():
            guard.session = session
        self._started.set()

    async def handle(self, request: HttpRequest, tools: Callable[[], Awaitable[Manager]]) -> None:
        """Answers a request below the token; `tools` returns the MCP server."""
        place, _, *path = request.segments
        known = FORMATS.get("/".join(path[1:]))
        form = known or (messages if request.header(b"anthropic-version") else chat)
        self._busy += 1
        try:
            await self._started.wait()  # A request may come before the process ID is set.
            self._admit(request, place)
            if [place, *path[:2]] == ["m", "v1", "models"]:
                await _name_models(request, "/".join(path[2:]))
            elif [place, *path] != ["e", "mcp"] and not (known and [place, path[0]] == ["m", "v1"]):
                await _refuse(request, _NOWHERE, form)
            elif request.method != "POST":
                await _refuse(request, _NOT_POST, form)
            elif place == "m":
                await self._ask(request, form)
            else:
                scope = {**request.scope, SCOPE_KEY: self.conversation}
                await (await tools()).handle(scope, request.receive, request.send)
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
            # The program itself takes the tools before it asks its model, or never.
            raise Refusal("the program asked its model before it took the tools", status=403, code="too_late")
        client, server = request.scope.get("client"), request.scope.get("server")
        if self._guards and not (client and server and self._guards[place].admits(client, server)):
            words = "this secret is bound to another process: the first of the program that used it"
            raise Refusal(words, status=403, code="agent_command_not_allowed")

    async def _ask(self, request: HttpRequest, form: Format) -> None:
        body = await request.body(BODY_BYTES)
        asked = form.read(body)
        digest = hashlib.sha256(request.path.encode() + body).digest()
        if not asked.stream:
            await request.reply(form.whole(asked, *await self._reply(request, asked, digest)))
            return
        waiting = asyncio.ensure_future(self._reply(request, asked, digest))
        await asyncio.wait({waiting}, timeout=_QUIET_S)
        if waiting.done():
            waiting.result()  # A refusal at once has its own status.
        events = Events(request)
        await events.open(b": ready\n\n")
        try:
            frames = b"".join(form.events(asked, *await events.during(asyncio.wait_for(waiting, None))))
        except Refusal as refusal:
            frames = form.broken(refusal)
        await events.close(frames)

    async def _reply(self, request: HttpRequest, asked: ApiRequest, digest: bytes) -> tuple[Reply, str]:
        """Returns the reply, which is drawn on if the client leaves, for the same request that comes again.

        The same request beside a waiting one gets a reply of its own, because programs draw several so.
        """
        drawing = self._left.pop(digest, None) or asyncio.ensure_future(self.conversation.ask(asked))
        # Its exception counts as retrieved also if the client has left.
        drawing.add_done_callback(lambda task: task.cancelled() or task.exception())

        async def left() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass

        leaving = asyncio.ensure_future(left())
        try:
            await asyncio.wait({drawing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            if not drawing.done():
                self._left[digest] = drawing
        if not drawing.done():
            raise Refusal("the client left before its answer", status=499, code="client_left")
        reply = drawing.result()
        for guard in self._guards.values():
            guard.spoken()
        return reply


class Paths:
    """ASGI application that passes each request to the handlers that its token names, and its server at `url`."""

    _of_loops: ClassVar[weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Paths]] = weakref.WeakKeyDictionary()

    def __init__(self) -> None:
        self.url = ""
        self._handlers: dict[str, ProgramHandlers] = {}
        self._tools: Manager | None = None
        self._changing = asyncio.Lock()
        self._users = 0
        self._server: Any = None
        self._serving: asyncio.Task[None] | None = None

    def open(self, handlers: ProgramHandlers) -> None:
        self._handlers[handlers.token] = handlers

    def close(self, handlers: ProgramHandlers) -> None:
        del self._handlers[handlers.token]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = HttpRequest(scope, receive, send)
        parts = request.segments
        handlers = self._handlers.get(parts[1]) if len(parts) > 1 and parts[0] in {"m", "e"} else None
        if handlers is None:
            await _refuse(request, _NOWHERE, chat)
            return
        # The server cancels requests that run when it stops.
        with contextlib.suppress(asyncio.CancelledError):
            await handlers.handle(request, self.load)

    async def load(self) -> Manager:
        """Loads the MCP server, which takes a second, before programs need it."""
        async with self._changing:
            if self._tools is None:
                module = await asyncio.to_thread(importlib.import_module, f"{__package__}.actions")
                made: Manager = module.manager(BODY_BYTES)
                self._tools = made
            return self._tools

    async def aclose(self) -> None:
        """Ends the MCP server."""
        tools, self._tools = self._tools, None
        if tools is not None:
            await tools.aclose()

    @classmethod
    @contextlib.asynccontextmanager
    async def served(cls) -> AsyncGenerator[Paths]:
        """Yields the event loop's paths, served while a program has them; raises UsageError without the extra."""
        self = cls._of_loops.setdefault(asyncio.get_running_loop(), cls())
        async with self._changing:
            if not self._users:
                self._start()
            self._users += 1
        try:
            yield self
        finally:
            async with self._changing:
                self._users -= 1
                if not self._users and self._serving is not None:
                    self._server.should_exit = self._server.force_exit = True  # No client is left.
                    await self._serving
                    await self.aclose()

    def _start(self) -> None:
        try:
            import uvicorn
        except ModuleNotFoundError as error:
            raise UsageError("programs as agents need an extra: pip install 'quintain[serve]'") from error

        class QuietServer(uvicorn.Server):
            @contextlib.contextmanager
            def capture_signals(self) -> Generator[None]:
                """Leaves Ctrl-C to the run."""
                yield

        # The client is the peer of the connection, whatever a header of a proxy says.
        off: dict[str, Any] = dict.fromkeys(("access_log", "proxy_headers", "server_header", "date_header"), False)
        kinds: dict[str, Any] = {"loop": "none", "http": "httptools", "ws": "none", "lifespan": "off"}
        self._server = QuietServer(uvicorn.Config(self, log_config=None, timeout_keep_alive=3600, **kinds, **off))
        # asyncio sets TCP_NODELAY only on sockets whose protocol number is given.
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.bind(("127.0.0.1", 0))
        listening.listen(1024)
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        self._serving = asyncio.create_task(self._server.serve(sockets=[listening]))


async def _name_models(request: HttpRequest, name: str) -> None:
    """Lists the one model, under any name that the request gives."""
    model: dict[str, Any] = {"id": name or "quintain", "object": "model", "created": 0, "owned_by": "quintain"}
    model |= {"type": "model", "display_name": model["id"], "created_at": "1970-01-01T00:00:00Z"}
    await request.reply(model if name else {"object": "list", "data": [model], "has_more": False})


async def _refuse(request: HttpRequest, refusal: Refusal, form: Format) -> None:
    document = form.error(refusal)
    if request.segments[:1] == ["e"]:  # MCP's own
        error = {"code": -32600, "message": f"{refusal.code}: {refusal}"}
        document = {"jsonrpc": "2.0", "id": None, "error": error}
    headers = [(b"content-type", b"application/json"), (b"x-should-retry", b"false")]
    await request.answer(refusal.status, codec.json(document), headers)
