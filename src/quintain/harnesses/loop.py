"""The loops: `SingleTurn`, and `AgentLoop` with context management, tools of its own, reflection and a final answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar, cast

import msgspec

from quintain import resource
from quintain.environment import settings
from quintain.errors import DefinitionError
from quintain.harness import Model, Request, Session, set_system_prompt
from quintain.state import State
from quintain.tools import Tool
from quintain.trace import Message, Reply, Step, ToolCall, Turn

from .budget import Count, Counter, View, quarter
from .held import Kept, Toolbox, tools_of
from .sources import Sources, labelled
from .strategies import Strategy
from .subagents import Delegating, LocalSession, Subagent, delegated
from .text_tools import TextTools
from .tools import FinalAnswer, Notes, Todo

T = TypeVar("T")

REFLECTION = "Reflect before you go on: what is done, what is open, what went wrong, and what is the next step?"
CONTINUE = "Go on with the next step."
NUDGE = "Go on. Call `answer` when the task is done."
AGENTIC = """Work in a loop until the task is done:
1. Observe: read what the last calls returned.
2. Orient: compare it with the task and with your plan. Keep the plan with `todo_write`, and facts with `note`.
3. Decide: choose the next step.
4. Act: call tools; independent calls may stand in one reply.
Call `answer` once, when the task is done or cannot be done."""


class SingleTurn(msgspec.Struct, frozen=True):
    """Harness that requests one reply, runs its calls and ends the episode.

    Attributes:
        system: The agent's system prompt; none if empty.
    """

    system: str = ""

    async def play(self, session: Session, model: Model) -> None:
        """Plays one episode to its end."""
        set_system_prompt(session, self.system)
        if not session.ended:
            await session.step(await model(session.request()))
        session.terminate("the agent answered")


class AgentLoop:
    """Tool loop with a strategy for long contexts, tools of its own, text-format calls, reflection and a final answer.

    A reply without calls ends the episode, unless the tools have a `FinalAnswer`: then only that ends it. With a
    strategy or a budget, each tool result begins with its id, and the agent has the tool `recall`.

    Args:
        system: The agent's system prompt; none if empty.
        tools: States whose tools the harness holds, such as `Todo()`; each episode gets copies.
        context: Strategy for long contexts; None keeps all.
        budget: Most tokens of the context's messages, None for no limit. Tool schemas come on top. An episode whose
            newest turn does not fit ends.
        count: Counts the tokens of a text; by default characters / 4, rounded up.
        text_tools: Format of calls for models without native ones; None for native calls.
        subagents: Agents by name to which the agent can give tasks by the tool `task`.
        reflect_every: Turns between two requests to reflect; 0 for none. A reply to one may hold no calls.
        reflection: Words of that request.

    Raises:
        DefinitionError: The budget is below 1, or `reflect_every` is negative.
    """

    def __init__(
        self,
        *,
        system: str = "",
        tools: Sequence[State] = (),
        context: Strategy | None = None,
        budget: int | None = None,
        count: Count = quarter,
        text_tools: TextTools | None = None,
        subagents: Mapping[str, Subagent] | None = None,
        reflect_every: int = 0,
        reflection: str = REFLECTION,
    ) -> None:
        if (budget is not None and budget < 1) or reflect_every < 0:
            raise DefinitionError(f"needs budget >= 1 and reflect_every >= 0, got {budget} and {reflect_every}")
        self.system, self.reflect_every, self.reflection = system, reflect_every, reflection
        self.tools, self.context, self.text_tools = tuple(tools), context, text_tools
        self.budget, self.count, self.subagents = budget, count, dict(subagents or {})
        # For the fingerprint, which takes what has no bytes by its name alone.
        self.setup = [
            settings(context),
            [(type(one).__name__, resource.split(one).plain) for one in self.tools],
            [(name, settings(one), settings(one.harness)) for name, one in self.subagents.items()],
        ]

    @property
    def manages(self) -> bool:
        """True if the context is managed: results have ids, and can be recalled."""
        return self.context is not None or self.budget is not None

    @property
    def held(self) -> tuple[State, ...]:
        """States whose tools the harness holds, those that come with its options included."""
        given = {name: one.max_tasks for name, one in self.subagents.items()}
        tasks = (Delegating(left=given),) if given else ()
        return (*self.tools, *tasks, *((Sources(),) if self.manages else ()))

    @property
    def held_tools(self) -> tuple[Tool, ...]:
        """Tools that the harness holds outside of the world."""
        return tuple(self.described(tool) for one in self.held for tool in tools_of(type(one)).values())

    def described(self, tool: Tool) -> Tool:
        """Returns a tool; `task` with the agents that there are."""
        if tool.name != "task" or not self.subagents:
            return tool
        agents = (f"- {name}: {one.description}" for name, one in self.subagents.items())
        return msgspec.structs.replace(tool, description="\n".join((tool.description, "", "Agents:", *agents)))

    async def play(self, session: Session, model: Model) -> None:
        """Plays one episode to its end."""
        set_system_prompt(session, self.system)
        await AgentPlay(self, session, model).run()


def agentic(system: str = "", *, reflect_every: int = 8, tools: Sequence[State] = (), **options: Any) -> AgentLoop:
    """Returns the loop observe, orient, decide, act, with to-do list, notes, reflection and a final answer.

    Args:
        system: Words before those that explain the loop.
        reflect_every: Turns between two requests to reflect.
        tools: More states whose tools the harness holds.
        options: Further arguments of `AgentLoop`.
    """
    words = f"{system}\n\n{AGENTIC}".strip()
    held = (Todo(), Notes(), FinalAnswer(), *tools)
    return AgentLoop(system=words, tools=held, reflect_every=reflect_every, **options)


class AgentPlay:
    """Episode of an `AgentLoop`.

    Attributes:
        session: The agent's session.
        model: The model of every role.
    """

    def __init__(self, loop: AgentLoop, session: Session, model: Model) -> None:
        self.session, self.model = session, model
        self._loop = loop
        self._count = Counter(loop.count)
        self._head = tuple(session.messages)
        self._body: list[Message] = []
        self._changed = False  # True if the session has another context than head and body.
        self._actors: dict[str, Session] = {}
        self._kept: dict[str, Kept[Any]] = {}
        self._tools = Toolbox(loop.held)
        self._sources = cast(Sources, self._tools.states.get("Sources", Sources()))
        self._turns = 0
        self._acted = 0  # Turns since the last request to reflect.
        self._reflects = False  # True if the next reply is a reflection.

    async def run(self) -> None:
        """Plays to the end."""
        error: BaseException | None = None
        try:
            await self._run()
        except BaseException as raised:
            error = raised
            raise
        finally:
            for one in self._kept.values():
                one.release()
            if not isinstance(error, GeneratorExit):  # A server drops a suspended harness, outside of any task.
                await asyncio.gather(*(one.task for one in self._kept.values()), return_exceptions=error is not None)

    async def _run(self) -> None:
        while await self._arrange():
            reply, errors = self._read(await self.model(self._request()))
            turn = await step_without(self.session, reply, self._tools)
            if self.session.ended:
                return
            await self._answer_calls(turn)
            self._turns += 1
            if (reason := self._tools.finished) is not None:
                self.session.terminate(reason)
            elif not self.session.ended:
                self._say_more(reply, errors)

    def actor(self, role: str) -> Session:
        """Returns the session of a role, which is opened once."""
        if role not in self._actors:
            self._actors[role] = self.session.add_actor(role)
        return self._actors[role]

    async def delegate(self, agent: str, prompt: str) -> str:
        """Lets a subagent play a task; returns its answer."""
        return await delegated(self._loop.subagents[agent], prompt, session=self.session, model=self.model)

    async def keep(self, name: str, open: Callable[[], AbstractAsyncContextManager[T]]) -> T:
        """Returns what `open` gave first under this name; it is closed with the episode."""
        if (kept := self._kept.get(name)) is None:
            kept = self._kept[name] = Kept(open)
        return cast(T, await asyncio.shield(kept.value))

    async def _arrange(self) -> bool:
        """Shortens the context and gives it to the session; returns whether the episode goes on."""
        loop, session = self._loop, self.session
        if loop.manages and not session.ended:
            view = View(
                head=self._head,
                body=self._body,
                sources=self._sources,
                held=self._tools.states,
                count=self._count,
                budget=loop.budget,
                ask=self._ask,
            )
            body = self._body if loop.context is None else await loop.context.arrange(view)
            if (fitted := view.fit(body, loop.budget)) is None:
                session.terminate("the context does not fit its budget", truncated=True)
            elif fitted is not self._body:
                self._body, self._changed = fitted, True
        if self._changed and not session.ended:
            session.set_context([*self._head, *self._body])
            self._changed = False
        return not session.ended

    async def _ask(self, role: str, prompt: str) -> str:
        """Asks the model of a role, without tools, as a turn of the record; the empty text after the end."""
        if self.session.ended:
            return ""
        actor = self.actor(role)
        actor.set_context([Message("user", prompt)])
        reply = await self.model(msgspec.structs.replace(actor.request(), tools=()))
        await actor.step(msgspec.structs.replace(reply, message=msgspec.structs.replace(reply.message, calls=())))
        return reply.message.text

    def _request(self) -> Request:
        request = self.session.request()
        tools = [self._loop.described(tool) for tool in self._tools.tools(request.tools)]
        request = msgspec.structs.replace(request, tools=tuple(tools))
        return request if self._loop.text_tools is None else self._loop.text_tools.render(request)

    def _read(self, reply: Reply) -> tuple[Reply, list[str]]:
        """Returns the reply with its calls, and errors of their format; an answer by call becomes the reply's text."""
        errors: list[str] = []
        if self._loop.text_tools is not None:
            reply, errors = self._loop.text_tools.parse(reply, turn=self._turns)
        message = reply.message
        for call in message.calls if "FinalAnswer" in self._tools.states else ():
            if call.name == "answer" and (text := self._text_of(call)) not in {None, message.text}:
                said = "\n".join(filter(None, (message.reasoning, message.text)))
                message = msgspec.structs.replace(message, content=text, reasoning=said)
        return msgspec.structs.replace(reply, message=message), errors

    def _text_of(self, call: ToolCall) -> str | None:
        try:
            return cast(str, self._tools.arguments(call, strict=self.session.config.arguments == "strict")["text"])
        except (msgspec.DecodeError, RecursionError):
            return None  # The agent reads the error when the call is made.

    async def _answer_calls(self, turn: Turn) -> None:
        """Adds a turn to the body: with the results of the held tools, and with an id before each result."""
        steps, results = iter(turn.steps), list[Message]()
        for call in turn.reply.message.calls:
            is_held = call.name in self._tools
            content = await self._tools.call(call, self) if is_held else next(steps).observation
            if self._loop.manages:
                results.append(labelled(self._sources.add(call, content), call, content))
            else:
                results.append(Message("tool", content, call_id=call.id))
            self._changed |= is_held or self._loop.manages
        self._body += [turn.reply.message, *results]

    def _say(self, text: str) -> None:
        self._body.append(Message("user", text))
        self._changed = True

    def _say_more(self, reply: Reply, errors: list[str]) -> None:
        """Appends what the agent hears after its results; or ends the episode after an answer."""
        reflected, self._reflects = self._reflects, False
        self._acted = 0 if reflected else self._acted + 1
        if errors:
            self._say("\n".join(errors))
        elif not reply.message.calls and not reflected:
            if "FinalAnswer" not in self._tools.states:
                self.session.terminate("the agent answered")
                return
            self._say(NUDGE)
        elif not reply.message.calls:
            self._say(CONTINUE)
        if self._acted and self._acted == self._loop.reflect_every:
            self._reflects = True
            self._say(self._loop.reflection)


async def step_without(session: Session, reply: Reply, held: Toolbox) -> Turn:
    """Plays a reply without the calls of held tools."""
    if not any(call.name in held for call in reply.message.calls):
        return await session.step(reply)
    left = iter([call for call in reply.message.calls if call.name not in held])

    async def source(_: Step | None) -> ToolCall | None:
        return next(left, None)

    return await cast(LocalSession, session).step(reply, source)
