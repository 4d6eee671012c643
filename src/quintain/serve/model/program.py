"""An agent program: how it is started, what it gets to know, and how it is ended."""

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
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from quintain import codec
from quintain.errors import EpisodeError, UsageError

_PASSED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "USER", "LOGNAME", "SHELL", "SSL_CERT_FILE")
"""Variables of the server's environment that a program gets: none in which keys are kept, and not the user's home."""
_TAIL = 4000
"""Bytes of its output that are kept."""
_GRACE_S = 2.0
"""Seconds between SIGTERM and SIGKILL."""
_PR_SET_DUMPABLE = 4
_STANDS = re.compile(r"\{(prompt|system|given|mcp_config)\}")
"""Placeholders in a command's words."""


class ProgramFailure(EpisodeError):
    """The program broke, hung, or could not be started; the fault is the harness's."""

    def __init__(self, message: str, *, kind: str = "agent_run_error") -> None:
        super().__init__(message, component="H", kind=kind)


class ProgramInput(NamedTuple):
    """Input of a program.

    Attributes:
        prompt: The task, or the conversation so far.
        system: The system prompt of the environment.
        url: Address of the model's APIs, without the version.
        key: API key for them.
        tools: Address of the episode's tools, which speaks MCP.
    """

    prompt: str
    system: str
    url: str
    key: str
    tools: str

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables that the clients of the APIs read."""
        return {
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "OPENAI_API_BASE": f"{self.url}/v1",
            "OPENAI_API_KEY": self.key,
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": self.key,
            "QUINTAIN_MCP_URL": self.tools,
        }

    @property
    def whole(self) -> str:
        """Everything in one text, for a program that takes no system prompt."""
        return f"{self.system}\n\n{self.prompt}" if self.system else self.prompt


class Program:
    """A running program, the leader of a session of its own, in folders that are removed with it."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path, output: int) -> None:
        self.pid = process.pid
        self._process = process
        self._folder = folder
        self._output = output
        self._tail = bytearray()
        os.set_blocking(output, False)
        asyncio.get_running_loop().add_reader(output, self._read)

    @classmethod
    async def start(cls, command: str, given: ProgramInput, passed: Collection[str] = ()) -> Program:
        """Starts a program.

        `{prompt}`, `{system}`, `{given}` and `{mcp_config}` in the command's words stand for the input, for the folder
        in which all of it lies, and for a file there. A command without `{prompt}` reads it from its standard input;
        without `{system}`, the system prompt is the beginning of the prompt.

        Args:
            command: The program and its arguments, as a shell would split them; no shell runs it.
            given: Its input.
            passed: Names of further variables of the server's environment that it gets.

        Raises:
            ProgramFailure: It cannot be started.
        """
        folder = Path(tempfile.mkdtemp(prefix="quintain-"))
        output, said = os.pipe()  # Not asyncio's, which waits until all writers have closed it.
        prompt = given.prompt if "{system}" in command else given.whole
        place = folder / "given"
        meant = {"system": given.system, "prompt": prompt, "given": place, "mcp_config": place / "mcp.json"}
        # All at once: what a text says is not ours to fill.
        words = [_STANDS.sub(lambda found: str(meant[found[1]]), word) for word in split(command)]
        try:
            _close_ourselves()
            _write(folder, given, prompt)
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
        except BaseException as error:
            os.close(output)
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, OSError | ValueError):
                raise ProgramFailure(f"the program {words[0]!r} cannot be started: {error}") from error
            raise
        finally:
            os.close(said)
        return cls(process, folder, output)

    async def wait(self) -> int:
        """Returns its status once it has ended, whatever it leaves running; negative for the signal that ended it."""
        status = await self._process.wait()
        self._read()  # What it said last may not have been read.
        return status

    async def end(self) -> None:
        """End it with all that it started and that did not leave its group."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_GRACE_S):
                    await self._process.wait()
        asyncio.get_running_loop().remove_reader(self._output)
        os.close(self._output)
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    @property
    def said(self) -> str:
        """The end of its output."""
        return bytes(self._tail).decode(errors="replace").strip()

    def _read(self) -> None:
        """Take what lies in the pipe, which holds no more than this."""
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._output, 65_536)
            if not data:  # All writers have closed it.
                asyncio.get_running_loop().remove_reader(self._output)
            self._tail += data
            del self._tail[:-_TAIL]


def split(command: str) -> list[str]:
    """A command's words.

    Raises:
        UsageError: There are none, or a quotation does not end.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"the command {command!r} cannot be split into words: {error}") from error
    if not words:
        raise UsageError("a command names a program and its arguments, as in 'command:python agent.py'")
    return words


def _write(folder: Path, given: ProgramInput, prompt: str) -> None:
    """Make the program's folders: its home, its work, and what it is given."""
    place = folder / "given"
    for path in (folder / "home", folder / "work", place):
        path.mkdir()
    (place / "prompt.txt").write_text(prompt, "utf-8")
    (place / "system.txt").write_text(given.system, "utf-8")
    servers = {"mcpServers": {"quintain": {"type": "http", "url": given.tools}}}
    (place / "mcp.json").write_bytes(codec.json(servers))


def _close_ourselves() -> None:
    """Close our memory, environment and files, where real keys are, to the program, which runs as the same user.

    Linux takes that back where a program is executed: ours stays shut, the agent's can be looked at.

    Raises:
        OSError: The kernel refuses.
    """
    if sys.platform == "linux" and ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, f"this process cannot be closed to it, prctl(PR_SET_DUMPABLE): {os.strerror(number)}")


def _environment(folder: Path, given: ProgramInput, passed: Collection[str]) -> dict[str, str]:
    ours: Mapping[str, str] = os.environ
    kept = {name: ours[name] for name in (*_PASSED, *passed) if name in ours}
    home = {"HOME": str(folder / "home"), "TMPDIR": str(folder / "work"), "QUINTAIN_GIVEN": str(folder / "given")}
    return {**home, **kept, **given.variables}
