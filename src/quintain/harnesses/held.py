"""Tools that a harness holds itself: the same State classes as in a world, but outside of it and of its digest.

A harness answers a call of such a tool after the turn of its reply. The call is in the reply, its result in the
context that the next turn adds; it is not a step of the world, and no fault is injected. A replay makes the same calls
and gets the same results.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from quintain.errors import DefinitionError, ToolError
from quintain.harness import Model, Session
from quintain.state import State
from quintain.tools import Tool, collect, observe
from quintain.trace import Content, ToolCall

T = TypeVar("T")


class Host(Protocol):
    """Episode of a harness as a held tool sees it: the session, the model, and the actors that were opened.

    Attributes:
        session: The agent's session.
        model: The model of every role.
    """

    session: Session
    model: Model

    def actor(self, role: str) -> Session:
        """Returns the session of a role, which is opened once."""
        ...

    async def delegate(self, agent: str, prompt: str) -> str:
        """Lets a subagent play a task; returns its answer."""
        ...

    async def keep(self, name: str, open: Callable[[], AbstractAsyncContextManager[T]]) -> T:
        """Returns what `open` gave first under this name; it is closed with the episode."""
        ...


class Kept(Generic[T]):
    """Context manager that a task of its own enters and leaves.

    A server resumes a harness in another task for each reply, and clients of MCP must be closed in the task that opened
    them.

    Attributes:
        task: Ends when the context is left.
        value: What the context manager gave, or the error of entering it.
    """

    def __init__(self, open: Callable[[], AbstractAsyncContextManager[T]]) -> None:
        self._loop = asyncio.get_running_loop()
        self._released = asyncio.Event()
        self.value: asyncio.Future[T] = self._loop.create_future()
        self.task = self._loop.create_task(self._hold(open))

    def release(self) -> None:
        """Lets the task leave the context, from any thread."""
        self._loop.call_soon_threadsafe(self._released.set)

    async def _hold(self, open: Callable[[], AbstractAsyncContextManager[T]]) -> None:
        try:
            async with open() as value:
                self.value.set_result(value)
                await self._released.wait()
        except BaseException as error:
            if self.value.done():
                raise
            self.value.set_exception(error)  # Whoever waits for the value raises it.


class Errand(msgspec.Struct, frozen=True):
    """Result of a held tool that needs more than its state: `run` returns what the agent reads."""

    run: Callable[[Host], Awaitable[Any]]


class Toolbox:
    """The held tools of one episode.

    Args:
        states: Their states; each is copied.

    Raises:
        DefinitionError: Two tools have one name.
    """

    def __init__(self, states: Sequence[State]) -> None:
        self.states = {type(one).__name__: one.copy() for one in states}
        self._tools: dict[str, tuple[Tool, State]] = {}
        for state in self.states.values():
            for name, tool in tools_of(type(state)).items():
                if name in self._tools:
                    raise DefinitionError(f"two of the harness's tools are named {name!r}; leave one out")
                self._tools[name] = tool, state

    def tools(self, others: Sequence[Tool]) -> tuple[Tool, ...]:
        """Returns the world's tools and the held ones.

        Raises:
            DefinitionError: The world has a tool of the same name.
        """
        if taken := sorted({one.name for one in others} & self._tools.keys()):
            raise DefinitionError(f"world and harness both have a tool {taken[0]!r}; leave out one of the two")
        return (*others, *(tool for tool, _ in self._tools.values()))

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    @property
    def finished(self) -> str | None:
        """Reason for which a held state ended the episode; None while it goes on."""
        return next((state.finished for state in self.states.values() if state.finished is not None), None)

    def arguments(self, call: ToolCall, *, strict: bool = True) -> dict[str, Any]:
        """Returns the arguments of a call of a held tool; raises msgspec.DecodeError or RecursionError if unfit."""
        return self._tools[call.name][0].decode(call.arguments, strict=strict)

    async def call(self, call: ToolCall, host: Host) -> Content:
        """Makes a call of a held tool; returns what the agent reads."""
        tool, state = self._tools[call.name]
        try:
            arguments = tool.decode(call.arguments, strict=host.session.config.arguments == "strict")
            result = tool.bind(state)(**arguments)
            result = await result if inspect.isawaitable(result) else result
        except (msgspec.DecodeError, RecursionError) as error:
            return f"error: {error}"
        except ToolError as refusal:
            return str(refusal)
        return observe(await result.run(host) if isinstance(result, Errand) else result)


@functools.cache
def tools_of(type_: type[State]) -> dict[str, Tool]:
    """Returns the tools of a class of states by name."""
    return collect(type_)
