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
from typing import TYPE_CHECKING, Any, TypeVar

from quintain import codec
from quintain.errors import UsageError
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
"""Seconds after which a stream begins without an event, so that the client keeps the connection."""

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
        """Seconds since the program's last request or the answer to it."""
        return 0.0 if self._busy else asyncio.get_running_loop().time() - self._last

    def start(self, session: int) -> None:
        """Answers requests from now on; `session` is the number of the POSIX session that the program leads."""
        for guard in self._guards.values():
            guard.session = session
        self._started.set()

    async def handle(self, request: HttpRequest, actions: Callable[[], Awaitable[Actions]]) -> None:
        """Answers a request below the token; `actions` returns the MCP server."""
        place, _, *path = request.segments
        form = FORMATS.get("/".join(path[1:])) or (messages if request.header(b"anthropic-version") else chat)
        self._busy += 1
        try:
            await self._started.wait()  # A request may come before the process ID is set.
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
            # The program itself takes the tools before it asks its model, or never.
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
        """Returns the draw of a reply, which goes on if the client leaves, for the same request that comes again.

        The same request beside a waiting one gets a reply of its own, because programs draw several so.
        """

        async def asking() -> tuple[Reply, str]:
            task = self._left.pop(digest, None)
            if task is None:
                task = asyncio.ensure_future(self.conversation.ask(asked))
                task.add_done_callback(_heard)
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
    """ASGI application that passes each request to the handlers that its token names."""

    def __init__(self) -> None:
        self._handlers: dict[str, ProgramHandlers] = {}
        self._actions: Actions | None = None
        self._loading = asyncio.Lock()

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
            await _refuse(request, _NOWHERE, FORMATS["chat/completions"])
            return
        # The server cancels requests that run when it stops.
        with contextlib.suppress(asyncio.CancelledError):
            await handlers.handle(request, self.load)

    async def aclose(self) -> None:
        """Ends the SDK's session manager."""
        actions, self._actions = self._actions, None
        if actions is not None:
            await actions.aclose()

    async def load(self) -> Actions:
        """Loads the MCP server, which takes a second, before programs need it."""
        async with self._loading:
            if self._actions is None:
                module = await asyncio.to_thread(importlib.import_module, f"{__package__}.actions")
                made: Actions = module.Actions(BODY_BYTES)
                self._actions = made
            return self._actions


async def _name_models(request: HttpRequest, name: str) -> None:
    """Lists the one model, under any name that the request gives."""
    model: dict[str, Any] = {"id": name or "quintain", "object": "model", "created": 0, "owned_by": "quintain"}
    model |= {"type": "model", "display_name": model["id"], "created_at": "1970-01-01T00:00:00Z"}
    await request.reply(model if name else {"object": "list", "data": [model], "has_more": False})


def _heard(task: asyncio.Future[Any]) -> None:
    """Marks the exception of a task as retrieved, because its client may have left."""
    if not task.cancelled():
        task.exception()


async def _result(task: asyncio.Future[T]) -> T:
    return await task


async def _while_there(request: HttpRequest, asking: Callable[[], Awaitable[tuple[Reply, str]]]) -> tuple[Reply, str]:
    """Returns the reply; raises Refusal if the client leaves first."""

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


class Listener:
    """Server on loopback for all programs of an event loop, which runs while one of them does."""

    def __init__(self) -> None:
        self.paths = Paths()
        self.url = ""
        self._users = 0
        self._changing = asyncio.Lock()
        self._server: Any = None
        self._serving: asyncio.Task[None] | None = None

    async def enter(self) -> None:
        async with self._changing:
            if not self._users:
                await self._start()
            self._users += 1

    async def leave(self) -> None:
        async with self._changing:
            self._users -= 1
            if not self._users:
                await self._stop()

    async def _start(self) -> None:
        server = self._server = _server(self.paths)
        # asyncio sets TCP_NODELAY only on sockets whose protocol number is given.
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.bind(("127.0.0.1", 0))
        listening.listen(1024)
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        self._serving = asyncio.create_task(server.serve(sockets=[listening]))

    async def _stop(self) -> None:
        assert self._serving is not None
        self._server.should_exit = True
        self._server.force_exit = True  # No client is left.
        await self._serving
        await self.paths.aclose()


_listeners: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Listener] = weakref.WeakKeyDictionary()


@contextlib.asynccontextmanager
async def opened() -> AsyncGenerator[Listener]:
    """Yields the listener of the running event loop; raises UsageError if the extra `serve` is not installed."""
    listener = _listeners.setdefault(asyncio.get_running_loop(), Listener())
    await listener.enter()
    try:
        yield listener
    finally:
        await listener.leave()


def _server(paths: Paths) -> Any:
    try:
        import uvicorn
    except ModuleNotFoundError as error:
        raise UsageError("programs as agents need an extra: pip install 'quintain[serve]'") from error

    class QuietServer(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Generator[None]:
            """Leaves Ctrl-C to the run."""
            yield

    config = uvicorn.Config(
        paths,
        loop="none",
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,  # The client is the peer of the connection, whatever a header says.
        server_header=False,
        date_header=False,
        timeout_keep_alive=3600,
    )
    return QuietServer(config)
