"""An agent program as a harness: `CommandHarness("python agent.py")`."""

from __future__ import annotations

import asyncio
import contextlib
import signal

import msgspec

from quintain.episode import ActorSession
from quintain.errors import UsageError
from quintain.harness import Harness, Model, Request, Session, ToolLoop
from quintain.replay import ReplayHarness
from quintain.trace import Message, Reply, Trace

from . import peers
from .conversation import Conversation
from .endpoint import ProgramHandlers
from .listener import Listener, opened
from .program import Program, ProgramFailure, ProgramInput, split


class CommandHarness(msgspec.Struct, frozen=True):
    """Lets an unmodified program be the agent, with the episode's model behind the APIs that it already speaks.

    The environment's own harness goes on: it says how the conversation begins, who else speaks, and when it ends.
    Whenever it asks the agent, the program is started; what it does until it exits are turns, its last words the reply.

    Attributes:
        command: The program and its arguments; see `Program.start` for what may stand in it.
        own: The environment's harness.
        tools: Patterns of names of the program's own tools that its model may call, such as "bash" or "*".
        mcp: Whether it is the program that calls the episode's tools, over MCP; else they are offered to its model
            and run here, and the program sees the words alone. None: it is, if it takes the list of tools before it
            first asks its model, or the command says `{mcp_config}`.
        passed: Names of further variables of our environment that it gets.
        idle_s: Seconds without a request after which it hangs, above 0.
        bound: Whether its secrets are good for the program's own process alone; a program whose requests come from
            several processes, or from a container, needs False.

    Raises:
        UsageError: The command says nothing, or `idle_s` is not above 0.
    """

    command: str
    own: Harness = ToolLoop()
    tools: tuple[str, ...] = ()
    mcp: bool | None = None
    passed: tuple[str, ...] = ()
    idle_s: float = 600.0
    bound: bool = True

    def __post_init__(self) -> None:
        split(self.command)
        if not self.idle_s > 0:
            raise UsageError(f"idle_s must be above 0, got {self.idle_s}")

    def replay_harness(self, trace: Trace) -> Harness:
        """Returns the harness that replays a record without the program."""
        return ReplayHarness(trace)

    async def play(self, session: Session, model: Model) -> None:
        """Drives one episode.

        Once a program was started, on Linux only root can look into this process, and it leaves no core dump.

        Raises:
            UsageError: The world is elsewhere; the extra `serve` is missing; or secrets cannot be bound here.
            ProgramFailure: The program broke, hung, or could not be started.
        """
        if self.bound and not peers.known():
            raise UsageError("only Linux says whose a connection is: set bound=False to let in who knows the secrets")
        listed = "{mcp_config}" in self.command if self.mcp is None else self.mcp
        conversation = Conversation(_beside(session), model, self.tools, listed=listed)
        async with opened() as door:
            stage = _Stage(self, conversation, door)
            if self.mcp is not False:
                await door.paths.load()

            async def speak(request: Request) -> Reply:
                return await (stage.speak(request) if request.role == session.role else model(request))

            try:
                with contextlib.suppress(_Over):
                    await self.own.play(session, speak)
            finally:
                await conversation.abandon()
        if stage.trouble is not None:
            raise stage.trouble


def _beside(session: Session) -> ActorSession:
    """The session of an episode in this process.

    Raises:
        UsageError: It is one over a wire.
    """
    if not isinstance(session, ActorSession) or session.episode.env.remote_begin is not None:
        raise UsageError("a program plays beside its world, in one process: not through a session over a wire")
    return session


class _Over(BaseException):
    """The episode has ended, or must; not an Exception, so that a harness which catches those lets it through."""


class _Stage:
    """The program in one episode, from start to start.

    Attributes:
        trouble: What went wrong with it.
    """

    def __init__(self, harness: CommandHarness, conversation: Conversation, door: Listener) -> None:
        self.trouble: ProgramFailure | None = None
        self._harness, self._conversation, self._door = harness, conversation, door
        self._heard: list[Message] = []
        self._reply: Reply | None = None

    async def speak(self, request: Request) -> Reply:
        """Run the program until it exits; its last words."""
        self._hear(request)
        try:
            status, said = await self._run()
            if self._conversation.session.ended:
                raise _Over
            _judge(status, said, replies=self._conversation.replies)
        except ProgramFailure as failure:
            self.trouble = failure
            raise _Over from failure
        self._reply = await self._conversation.finish()
        if self._reply is None:
            self._conversation.session.terminate("the program ended")
            raise _Over
        self._heard.append(self._reply.message)
        return self._reply

    async def _run(self) -> tuple[int, str]:
        """Start it and wait; its status, and what to say of its output."""
        harness, conversation = self._harness, self._conversation
        desk = ProgramHandlers(conversation, bound=harness.bound)
        self._door.paths.open(desk)
        program = None
        try:
            program = await Program.start(harness.command, self._given(desk), harness.passed)
            desk.start(program.pid)
            return await self._watched(program, desk), _quoted(program.said, desk)
        finally:
            self._door.paths.close(desk)
            if program is not None:
                await program.end()

    async def _watched(self, program: Program, desk: ProgramHandlers) -> int:
        """Returns the program's status; 0 if the episode ended first."""
        ended, over = asyncio.ensure_future(program.wait()), asyncio.ensure_future(self._conversation.over.wait())
        try:
            while (left := self._harness.idle_s - desk.quiet_s) > 0:
                done, _ = await asyncio.wait({ended, over}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                if done:
                    return ended.result() if ended.done() else 0
        finally:
            ended.cancel()
            over.cancel()
        said = _quoted(program.said, desk)
        raise ProgramFailure(
            f"the program asked for nothing for {self._harness.idle_s:g} s{said}", kind="agent_timeout"
        )

    def _hear(self, request: Request) -> None:
        """Collects the messages since the program last spoke, without its own context."""
        messages = list(request.messages)
        if self._reply is not None:
            said = self._reply.message
            last = max(place for place, one in enumerate(messages) if one == said)
            del messages[: last + 1]
        self._heard += messages

    def _given(self, desk: ProgramHandlers) -> ProgramInput:
        talk = [one for one in self._heard if one.role != "system"]
        prompt = talk[0].text if len(talk) == 1 else "\n\n".join(f"{one.role}: {one.text}" for one in talk)
        url = self._door.url
        return ProgramInput(
            prompt=prompt,
            system="\n\n".join(one.text for one in self._heard if one.role == "system"),
            url=f"{url}/m/{desk.token}",
            key=desk.key,
            tools=f"{url}/e/{desk.token}/mcp",
        )


def _judge(status: int, said: str, *, replies: int) -> None:
    """Raise where a program did not end well."""
    if status == -signal.SIGKILL:
        raise ProgramFailure(f"the program was killed from outside{said}", kind="kill_shaped")
    if status:
        ended = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        raise ProgramFailure(f"the program {ended}{said}")
    if not replies:
        raise ProgramFailure(f"the program ended and never got a reply of its model{said}")


def _quoted(said: str, desk: ProgramHandlers) -> str:
    """The end of its output without the secrets, which it may have printed."""
    for secret in (desk.key, desk.token):
        said = said.replace(secret, "***")
    return f": …{said[-1500:]}" if said else ""
