"""Conversation of a program with its model, independent of HTTP.

The program owns its context: the record has the context that it sends. A reply is a turn. Its calls of the episode's
tools are steps of that turn, which run when the program makes them. Its calls of the program's own tools are text to
the episode, and their results come back in the program's next context.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import Counter, defaultdict
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import msgspec

from quintain.episode import ActorSession
from quintain.errors import BROKEN, EpisodeError
from quintain.harness import Model
from quintain.tools import Tool
from quintain.trace import Message, Reply, Step, Tokens, ToolCall

from .api import ApiRequest, ProgramRequest, Refusal
from .turn import OpenTurn, PendingReply, ToolAccess, gate, key

T = TypeVar("T")

SCOPE_KEY = "dev.quintain.conversation"
"""Key of a request's ASGI scope under which the MCP server finds the conversation."""
_PATIENCE_S = 5.0
"""Seconds that a tool may run after its program has ended."""
_TURN_S = 30.0
"""Seconds that a reply waits for the calls of another; a program may need the reply before it makes them."""


class Conversation:
    """Conversation of one episode's program; `over` is set when the episode has ended.

    `listed` is true if the program has taken the episode's tools over MCP, or is certain to; else they run here.
    """

    def __init__(
        self, session: ActorSession, model: Model, allowed: Sequence[str] = (), *, listed: bool = False
    ) -> None:
        self.session = session
        self.listed = listed
        self.replies = 0
        self.over = asyncio.Event()
        self._model, self._allowed = model, tuple(allowed)
        self._lock = asyncio.Lock()
        self._open: OpenTurn | None = None
        self._held: list[PendingReply] = []
        self._said: defaultdict[bytes, list[tuple[Message, ...]]] = defaultdict(list)
        self._stored: dict[str, tuple[Message, ...]] = {}
        self._own_calls = 0
        self._ids: set[str] = {""}
        self._running: set[asyncio.Task[Any]] = set()
        self._drawing: set[asyncio.Task[Any]] = set()

    async def ask(self, asked: ApiRequest) -> tuple[Reply, str]:
        """Returns the model's reply as the program sees it, and a name for it; raises Refusal if there is none."""
        return await self._whole(self._ask(asked))

    async def call(self, name: str, arguments: str) -> Step:
        """Runs a call that the program makes; raises Refusal if the episode has ended."""
        return await self._whole(self._call(name, arguments))

    async def _whole(self, work: Coroutine[Any, Any, T]) -> T:
        """Returns the result of work that goes on if its client leaves."""
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise Refusal("the program is gone", status=403, code="episode_ended") from None
            raise
        except Refusal:
            raise
        except BROKEN as error:
            self.session.episode.fail(error, component="H", kind="agent_run_error")
            code = error.kind if isinstance(error, EpisodeError) else "episode_ended"
            raise Refusal(f"this episode is broken: {error}", status=403, code=code) from error
        finally:
            if self.session.ended:
                self.over.set()

    async def _ask(self, asked: ApiRequest) -> tuple[Reply, str]:
        context = self._restored(asked)
        while self._drawing and self._is_spent():
            await asyncio.wait(tuple(self._drawing), return_when=asyncio.FIRST_COMPLETED)
        spent, first, drawing = self._is_spent(), len(context), asyncio.current_task()
        assert drawing is not None
        self._drawing.add(drawing)
        try:
            if spent:
                await self._quiet()
            async with self._lock:
                if spent or self._goes_on(context):
                    await self._settle()  # So the program has made the calls that it is going to make.
                self._check()
            reply, context = await self._drawn(asked, context)
        finally:
            self._drawing.discard(drawing)
        sequence = tuple(context[first:])
        name = f"{len(self._stored)}"
        self._said[key(reply.message)].append(sequence)
        start = 1 if asked.instructions else 0
        self._stored[f"resp_{name}"] = (*context[start:first], *sequence)
        return reply, name

    async def _drawn(self, asked: ApiRequest, context: list[Message]) -> tuple[Reply, list[Message]]:
        """Returns the first reply of which the program gets a part, and the context that ends with it."""
        passed = gate(asked, self.session.tools, self._allowed, listed=self.listed)
        while True:
            reply = self._distinct(await self._reply(asked, context, passed.tools))
            self.replies += 1
            here, refused, there = passed.sorted(reply.message.calls)
            if any(call.name in passed.theirs for call in there):
                await self._quiet()
            async with self._lock:
                self._check()
                if not here and not refused:
                    await self._hand_out(PendingReply(tuple(context), reply, self.listed and not asked.tools), passed)
                    return reply, [*context, reply.message]
                await self._settle()
                self._check()
                await self._run_here(context, reply, calls=here, refused=refused)
                self._check()
                if there and not self.listed:
                    kept = msgspec.structs.replace(reply.message, calls=tuple(there))
                    return msgspec.structs.replace(reply, message=kept), list(self.session.messages)
                for call in there:
                    self.session.append(Message("tool", "error: not run; see the other calls", call_id=call.id))
                context = list(self.session.messages)

    async def _reply(self, asked: ApiRequest, context: Sequence[Message], tools: tuple[Tool, ...]) -> Reply:
        request = msgspec.structs.asdict(self.session.request())
        limits = [limit for limit in (request["max_tokens"], asked.max_tokens) if limit is not None]
        request |= {"messages": tuple(context), "tools": _choice(tools, asked.tool_choice)}
        request |= {"max_tokens": min(limits, default=None), "stop": asked.stop, "tool_choice": asked.tool_choice}
        try:
            return _ended_at(await self._model(ProgramRequest(**request)), asked.stop)
        except EpisodeError as error:
            raise Refusal(f"the model failed: {error}", status=403, code="model_failed") from error

    def _is_spent(self) -> bool:
        """True if replies that are not recorded yet, or are being drawn, reach a limit."""
        if not self._held and not self._drawing:
            return False
        config = self.session.config
        usages = [one.reply.usage for one in (*self.session.episode.trace.turns, *self._unrecorded)]
        sizes = [usage.prompt + usage.completion for usage in usages]
        counts = (len(sizes) + len(self._drawing), sum(sizes), max(sizes, default=0))
        limits = (config.max_turns, config.max_tokens, config.context_tokens)
        return any(limit is not None and count >= limit for limit, count in zip(limits, counts, strict=True))

    @property
    def _unrecorded(self) -> list[PendingReply | OpenTurn]:
        return [*self._held, *filter(None, [self._open])]

    async def _quiet(self) -> None:
        """Waits until the open turn, which may be another conversation's of the program, has its calls."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_TURN_S):
                while self._open is not None and not self._open.task.done():
                    await asyncio.wait({self._open.task})

    def _distinct(self, reply: Reply) -> Reply:
        """Returns the reply with call IDs that are unique in the episode, by which programs distinguish calls."""
        calls: list[ToolCall] = []
        for call in reply.message.calls:
            numbered = (f"{call.id or 'call'}_{number}" for number in itertools.count(1))
            name = next(one for one in itertools.chain([call.id], numbered) if one not in self._ids)
            self._ids.add(name)
            calls.append(msgspec.structs.replace(call, id=name))
        return msgspec.structs.replace(reply, message=msgspec.structs.replace(reply.message, calls=tuple(calls)))

    async def _call(self, name: str, arguments: str) -> Step:
        async with self._lock:
            self._check()
            if self._open is not None and (call := self._open.match(name, arguments)) is not None:
                step = await self._open.run(call)
                if not self._open.pending or self.session.ended:
                    await self._close()
                return step
            # The model did not make this call, so it is a turn without tokens.
            await self._settle()
            self._check()
            self._own_calls += 1
            call = ToolCall(f"program_{self._own_calls}", name, arguments)
            turn = await self.session.step(Reply(Message("assistant", calls=(call,)), Tokens([], [])))
            return turn.steps[0]

    async def finish(self) -> Reply | None:
        """Returns the answer of a program that has exited, with its context set; None if there is not one."""
        async with self._lock:  # No call is running, and those that wait are cancelled.
            self._dismiss()
            words = self._held.pop() if self._held and self._held[-1].answers else None
            await self._settle()
            if words is None or self.session.ended:
                return None
            self.session.set_context(words.context)
            return words.reply

    async def abandon(self) -> None:
        """Cancels requests and closes the open turn, or cancels it if its tool does not end."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_S), self._lock:
                self._dismiss()
                await self._close()
        self._dismiss()
        if self._open is not None:
            self._open.task.cancel()
            await asyncio.gather(self._open.task, return_exceptions=True)

    def _dismiss(self) -> None:
        for task in self._running:
            task.cancel()

    async def _hand_out(self, held: PendingReply, passed: ToolAccess) -> None:
        """Records a reply that the program gets, or holds it until its calls or its successor arrive."""
        pending = [(passed.theirs[call.name], call) for call in held.reply.message.calls if call.name in passed.theirs]
        if pending:
            await self._settle()
            self._check()
            self.session.set_context(held.context)
            self._open = OpenTurn(self.session, held, pending)
            return
        # A reply aside comes before an answer that may be the last.
        answered = bool(self._held) and self._held[-1].answers
        self._held.insert(len(self._held) - (held.aside and answered), held)
        if self._open is None:
            last = [self._held.pop()] if self._held[-1].answers else []
            await self._settle()
            self._held += last

    async def _run_here(
        self, context: Sequence[Message], reply: Reply, *, calls: Sequence[ToolCall], refused: Sequence[Message] = ()
    ) -> None:
        """Plays a reply with calls that do not reach the program."""
        left = iter(calls)

        async def course(_: Step | None) -> ToolCall | None:
            return next(left, None)

        self.session.set_context(context)
        await self.session.step(reply, course)
        self.session.append(*refused)

    async def _settle(self) -> None:
        """Records all held replies in their order, until the episode ends."""
        await self._close()
        held, self._held = self._held, []
        for one in held:
            if not self.session.ended:
                await self._run_here(one.context, one.reply, calls=())

    async def _close(self) -> None:
        turn, self._open = self._open, None
        if turn is not None:
            await turn.close()

    def _goes_on(self, context: Sequence[Message]) -> bool:
        """True if a context continues what is not recorded yet, or repeats the request of the open turn."""
        if self._open is not None and tuple(context[: len(self._open.context)]) == self._open.context:
            return True
        return any(one is held.reply.message for one in context for held in self._unrecorded)

    def _check(self) -> None:
        if self.session.ended:
            words = f"this episode has ended: {self.session.episode.trace.reason}"
            raise Refusal(words, status=403, code="episode_ended")

    def _restored(self, asked: ApiRequest) -> list[Message]:
        """Returns the context of a request, with replies as the model gave them and the steps that ran here."""
        if asked.after is not None and asked.after not in self._stored:
            raise Refusal(f"there is no response {asked.after!r} in this episode", status=404, code="not_found")
        restored = [Message("system", asked.instructions)] if asked.instructions else []
        restored += self._stored.get(asked.after or "", ())
        seen: Counter[bytes] = Counter()
        for message in asked.messages:
            name = key(message) if message.role == "assistant" else b""
            said = self._said.get(name) or [(message,)]
            restored += said[min(seen[name], len(said) - 1)]
            seen[name] += 1
        return restored


def _choice(tools: tuple[Tool, ...], name: str) -> tuple[Tool, ...]:
    """Returns the tools that the model may call: all, or the one that it has to call; raises Refusal if none is."""
    chosen = tuple(tool for tool in tools if name in {"", "*", tool.name})
    if name and not chosen:
        offered = ", ".join(tool.name for tool in tools) or "none"
        raise Refusal(f"tool_choice demands a call of {'a tool' if name == '*' else repr(name)}; offered: {offered}")
    return chosen


def _ended_at(reply: Reply, stop: Sequence[str]) -> Reply:
    """Returns the reply up to the first of these texts; its tokens are dropped where they do not match the text."""
    text = reply.message.text
    ends = [text.index(one) for one in stop if one and one in text]
    if not ends:
        return reply
    message = msgspec.structs.replace(reply.message, content=text[: min(ends)], calls=())
    return msgspec.structs.replace(reply, message=message, tokens=None, finish_reason="stop")
