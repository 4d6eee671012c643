"""Agent programs as harnesses: `CommandHarness("python agent.py")`."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import re
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

import msgspec

from quintain import codec
from quintain.episode import ActorSession
from quintain.errors import EpisodeError, UsageError
from quintain.harness import Harness, Model, Request, Session, ToolLoop
from quintain.replay import ReplayHarness
from quintain.serve.episodes.views import held_tools
from quintain.trace import Message, Reply, Trace

from . import peers
from .conversation import Conversation
from .endpoint import Paths, ProgramHandlers

_PASSED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "USER", "LOGNAME", "SHELL", "SSL_CERT_FILE")
"""Variables of this process that a program gets, without API keys and the user's home."""
_TAIL = 4000
"""Bytes of a program's output that are kept."""
_GRACE_S = 2.0
"""Seconds between SIGTERM and SIGKILL."""
_PR_SET_DUMPABLE = 4
_STANDS = re.compile(r"\{(prompt|system|given|mcp_config)\}")
"""Placeholders in a command's words."""


class ProgramFailure(EpisodeError):
    """Failure of a program, which broke, hung, or could not be started; the component is the harness."""

    def __init__(self, message: str, *, kind: str = "agent_run_error") -> None:
        super().__init__(message, component="H", kind=kind)


class ProgramInput(NamedTuple):
    """Input of a program: its texts, the address of the model's APIs without the version, their key, and its tools."""

    prompt: str
    system: str
    url: str
    key: str
    tools: str
    """Address of the episode's tools, which speaks MCP."""


class Program:
    """Running program, the leader of its own POSIX session, in folders that are removed with it."""

    def __init__(self, process: asyncio.subprocess.Process, output: int, undo: contextlib.ExitStack) -> None:
        self.pid = process.pid
        self._process, self._output, self._undo = process, output, undo
        self._tail = bytearray()
        os.set_blocking(output, False)
        asyncio.get_running_loop().add_reader(output, self._read)

    @classmethod
    async def start(cls, command: str, given: ProgramInput, passed: Collection[str] = ()) -> Program:
        """Starts a program; raises ProgramFailure if it cannot be started.

        `{prompt}`, `{system}`, `{given}` and `{mcp_config}` in the command's words stand for the input, for the folder
        in which all of it lies, and for a file there. A command without `{prompt}` reads it from its standard input;
        without `{system}`, the system prompt is the beginning of the prompt. The command is split as by a shell, and
        runs without one.
        """
        with contextlib.ExitStack() as undo:
            folder = Path(tempfile.mkdtemp(prefix="quintain-"))
            undo.callback(shutil.rmtree, folder, ignore_errors=True)
            output, said = os.pipe()  # Not asyncio's, which waits until all writers have closed it.
            undo.callback(os.close, output)
            apart = "{system}" in command or not given.system
            prompt = given.prompt if apart else f"{given.system}\n\n{given.prompt}"
            place = folder / "given"
            meant = {"system": given.system, "prompt": prompt, "given": place, "mcp_config": place / "mcp.json"}
            # All at once, because placeholders in a text are not filled.
            words = [_STANDS.sub(lambda found: str(meant[found[1]]), word) for word in split(command)]
            try:
                _close_ourselves()
                for path in (folder / "home", folder / "work", place):
                    path.mkdir()
                (place / "prompt.txt").write_text(prompt, "utf-8")
                (place / "system.txt").write_text(given.system, "utf-8")
                servers = {"mcpServers": {"quintain": {"type": "http", "url": given.tools}}}
                (place / "mcp.json").write_bytes(codec.json(servers))
                with (place / "prompt.txt").open("rb") as text:
                    process = await asyncio.create_subprocess_exec(
                        *words,
                        stdin=asyncio.subprocess.DEVNULL if "{prompt}" in command else text,
                        stdout=said,
                        stderr=asyncio.subprocess.STDOUT,
                        cwd=folder / "work",
                        env=_environment(folder, given, passed),
                        start_new_session=True,
                    )
            except (OSError, ValueError) as error:
                raise ProgramFailure(f"the program {words[0]!r} cannot be started: {error}") from error
            finally:
                os.close(said)
            return cls(process, output, undo.pop_all())

    async def wait(self) -> int:
        """Returns the status once the program has ended, negative for a signal; its children may still run."""
        status = await self._process.wait()
        self._read()  # The end of the output may be unread.
        return status

    async def end(self) -> None:
        """Ends the program and all processes of its group."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_GRACE_S):
                    await self._process.wait()
        asyncio.get_running_loop().remove_reader(self._output)
        await asyncio.to_thread(self._undo.close)

    @property
    def said(self) -> str:
        """End of the output."""
        return bytes(self._tail).decode(errors="replace").strip()

    def _read(self) -> None:
        """Reads what lies in the pipe, which holds at most 65,536 bytes."""
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._output, 65_536)
            if not data:  # All writers have closed it.
                asyncio.get_running_loop().remove_reader(self._output)
            self._tail += data
            del self._tail[:-_TAIL]


def split(command: str) -> list[str]:
    """Returns a command's words; raises UsageError if the command is empty or a quotation does not end."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"the command {command!r} cannot be split into words: {error}") from error
    if not words:
        raise UsageError("a command names a program and its arguments, as in 'command:python agent.py'")
    return words


def _close_ourselves() -> None:
    """Closes this process's memory, environment and files to the program, which runs as the same user.

    Linux resets the flag when a program is executed, so it holds for this process alone. OSError: the kernel refuses.
    """
    if sys.platform == "linux" and ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, f"this process cannot be closed to it, prctl(PR_SET_DUMPABLE): {os.strerror(number)}")


def _environment(folder: Path, given: ProgramInput, passed: Collection[str]) -> dict[str, str]:
    """Returns the program's variables: its folders, some of this process's, and those that clients of the APIs read."""
    kept = {name: os.environ[name] for name in (*_PASSED, *passed) if name in os.environ}
    home = {"HOME": str(folder / "home"), "TMPDIR": str(folder / "work"), "QUINTAIN_GIVEN": str(folder / "given")}
    openai = dict.fromkeys(("OPENAI_BASE_URL", "OPENAI_API_BASE"), f"{given.url}/v1") | {"OPENAI_API_KEY": given.key}
    anthropic = {"ANTHROPIC_BASE_URL": given.url, "ANTHROPIC_API_KEY": given.key}
    return {**home, **kept, **openai, **anthropic, "QUINTAIN_MCP_URL": given.tools}


class CommandHarness(msgspec.Struct, frozen=True):
    """Harness that runs an unmodified program as the agent, with the episode's model behind the APIs that it uses.

    The environment's own harness decides how the conversation begins, which other actors speak, and when it ends.
    Each request to the agent starts the program. Its model's replies are turns, and the last one is the reply.

    Attributes:
        command: The program and its arguments; see `Program.start` for what may stand in it.
        own: The environment's harness.
        tools: Patterns of names of the program's own tools that its model may call, such as "bash" or "*".
        mcp: True if the program calls the episode's tools over MCP; False if they are offered to its model and run
            here, and the program sees the text alone. None: True if the program lists the tools before its first
            request to the model, or the command contains `{mcp_config}`.
        passed: Names of further variables of this process's environment that the program gets.
        idle_s: Seconds without a request after which the program fails as hung, above 0.
        bound: True if the secrets are valid for the program's own process alone; a program whose requests come from
            several processes, or from a container, needs False.

    Raises:
        UsageError: The command is empty, `idle_s` is not above 0, or the environment's harness holds tools.
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
        if held := [tool.name for tool in held_tools(self.own)]:
            raise UsageError(
                f"the environment's harness {type(self.own).__name__} holds {', '.join(held)} outside of the world, "
                f"and the program {split(self.command)[0]!r} calls tools of the world alone: hold them in the state, "
                "or replace the harness by one without tools, such as ToolLoop"
            )

    def replay_harness(self, trace: Trace) -> Harness:
        """Returns the harness that replays a record without the program."""
        return ReplayHarness(trace)

    async def play(self, session: Session, model: Model) -> None:
        """Drives one episode.

        After the first start of a program, on Linux only root can inspect this process, and it leaves no core dump.

        Raises:
            UsageError: The world is in another process; the extra `serve` is missing; or secrets cannot be bound here.
            ProgramFailure: The program broke, hung, or could not be started.
        """
        if self.bound and not peers.known():
            raise UsageError("only Linux says whose a connection is: set bound=False to let in who knows the secrets")
        listed = "{mcp_config}" in self.command if self.mcp is None else self.mcp
        if not isinstance(session, ActorSession) or session.episode.env.remote_begin is not None:
            raise UsageError("a program plays beside its world, in one process: not through a session over a wire")
        conversation = Conversation(session, model, self.tools, listed=listed)
        async with Paths.served() as paths:
            stage = _Stage(self, conversation, paths)
            if self.mcp is not False:
                await paths.load()

            async def speak(request: Request) -> Reply:
                return await (stage.speak(request) if request.role == session.role else model(request))

            try:
                with contextlib.suppress(_Over):
                    await self.own.play(session, speak)
            finally:
                await conversation.abandon()
        if stage.trouble is not None:
            raise stage.trouble


class _Over(BaseException):
    """End of the episode, not an Exception, so that a harness which catches those does not stop it."""


class _Stage:
    """Runs of the program in one episode; `trouble` is its failure, if any."""

    def __init__(self, harness: CommandHarness, conversation: Conversation, paths: Paths) -> None:
        self.trouble: ProgramFailure | None = None
        self._harness, self._conversation, self._paths = harness, conversation, paths
        self._heard: list[Message] = []
        self._reply: Reply | None = None

    async def speak(self, request: Request) -> Reply:
        """Runs the program until it exits, and returns its last reply."""
        self._hear(request)
        try:
            await self._run()
        except ProgramFailure as failure:
            self.trouble = failure
            raise _Over from failure
        self._reply = await self._conversation.finish()
        if self._reply is None:
            self._conversation.session.terminate("the program ended")
            raise _Over
        self._heard.append(self._reply.message)
        return self._reply

    async def _run(self) -> None:
        """Runs the program once; raises ProgramFailure if it did not end well, _Over if the episode ended."""
        harness, conversation = self._harness, self._conversation
        handlers = ProgramHandlers(conversation, bound=harness.bound)
        self._paths.open(handlers)
        program = None
        try:
            program = await Program.start(harness.command, self._given(handlers), harness.passed)
            handlers.start(program.pid)
            status, said = await self._watched(program, handlers), program.said
        finally:
            self._paths.close(handlers)
            if program is not None:
                await program.end()
        if conversation.session.ended:
            raise _Over
        for secret in (handlers.key, handlers.token):  # The program may have printed them.
            said = said.replace(secret, "***")
        self._judge(status, f": …{said[-1500:]}" if said else "")

    async def _watched(self, program: Program, handlers: ProgramHandlers) -> int | None:
        """Returns the program's status; 0 if the episode ended first, None if the program hung."""
        ended, over = asyncio.ensure_future(program.wait()), asyncio.ensure_future(self._conversation.over.wait())
        try:
            while (left := self._harness.idle_s - handlers.quiet_s) > 0:
                done, _ = await asyncio.wait({ended, over}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                if done:
                    return ended.result() if ended.done() else 0
            return None
        finally:
            ended.cancel()
            over.cancel()

    def _judge(self, status: int | None, said: str) -> None:
        if status is None:
            words = f"the program asked for nothing for {self._harness.idle_s:g} s{said}"
            raise ProgramFailure(words, kind="agent_timeout")
        if status == -signal.SIGKILL:
            raise ProgramFailure(f"the program was killed from outside{said}", kind="kill_shaped")
        if status:
            ended = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
            raise ProgramFailure(f"the program {ended}{said}")
        if not self._conversation.replies:
            raise ProgramFailure(f"the program ended and never got a reply of its model{said}")

    def _hear(self, request: Request) -> None:
        """Collects the messages since the program's last reply, without its own context."""
        messages = list(request.messages)
        if self._reply is not None:
            said = self._reply.message
            last = max(place for place, one in enumerate(messages) if one == said)
            del messages[: last + 1]
        self._heard += messages

    def _given(self, handlers: ProgramHandlers) -> ProgramInput:
        talk = [one for one in self._heard if one.role != "system"]
        prompt = talk[0].text if len(talk) == 1 else "\n\n".join(f"{one.role}: {one.text}" for one in talk)
        system = "\n\n".join(one.text for one in self._heard if one.role == "system")
        model, tools = (f"{self._paths.url}/{place}/{handlers.token}" for place in "me")
        return ProgramInput(prompt, system, model, handlers.key, f"{tools}/mcp")
