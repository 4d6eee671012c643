"""Repository: tools that programming agents expect, on files and a sandbox, for any state that has both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from quintain.errors import ToolError
from quintain.state import State
from quintain.tools import tool

from .sandbox import Result, Sandbox
from .workspace import Workspace, shown

Path = Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)]
Line = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]
Text = Annotated[str, msgspec.Meta(min_length=1)]
Command = Annotated[str, msgspec.Meta(min_length=1, max_length=100_000)]

OUTPUT_MAX = 8_000
"""Characters of output that an observation shows; the middle of a longer one is left out."""
MATCHES_MAX = 100


class RepositoryTools(State):
    """Tools to read files (deterministic), and to change them and to run commands on them (stateful).

    The class has no fields, so that it can stand beside other bases. A subclass has a `Workspace` in the field `files`
    and a `Sandbox` in the field `box`.
    """

    if TYPE_CHECKING:
        files: Workspace
        box: Sandbox

    @tool
    def list_files(self, folder: str = "") -> list[str]:
        """List the files of a folder and of the folders in it.

        Args:
            folder: Path of the folder; empty for the whole repository.
        """
        return [shown(one.path) for one in self.files.walk(folder) if one.kind == "file"]

    @tool
    def read(self, path: Path, first: Line = 1, last: Line | None = None) -> str:
        """Read a file. Each line comes with its number and a tab before it.

        Args:
            path: Path of the file.
            first: First line, from 1.
            last: Last line; the end of the file if it is left out.
        """
        lines = self.files.text(path).splitlines()
        if first > max(1, len(lines)) or (last is not None and last < first):
            raise ToolError(f"{path} has {len(lines)} lines, got lines {first} to {last or 'the end'}")
        return "\n".join(f"{number}\t{line}" for number, line in enumerate(lines[first - 1 : last], first))

    @tool
    def search(self, text: Text, glob: str = "**") -> list[str]:
        """Search for a text, as it is, in the files. Returns path, number and content of each line that has it.

        Args:
            text: The text.
            glob: Which files, such as `**/*.py`.
        """
        found = self.files.search(text, glob=glob, limit=MATCHES_MAX)
        return [f"{shown(one.path)}:{one.line}: {one.text.strip()}" for one in found]

    @tool
    def write(self, path: Path, text: str) -> str:
        """Write a whole file; it is made if it is missing.

        Args:
            path: Path of the file.
            text: Its content.
        """
        self.files.write(path, text)
        return f"wrote {path}"

    @tool
    def edit(self, path: Path, old: Text, new: str) -> str:
        """Replace a text that occurs exactly once in a file.

        Args:
            path: Path of the file.
            old: The text, with its indentation and without line numbers.
            new: What takes its place.
        """
        before = self.files.text(path)
        if (found := before.count(old)) != 1:
            raise ToolError(f"the old text occurs {found} times in {path}; give a text that occurs once")
        self.files.write(path, before.replace(old, new))
        return f"edited {path}"

    @tool
    async def bash(self, command: Command) -> str:
        """Run a command in the folder of the repository. Only files persist between commands.

        Args:
            command: For bash.
        """
        result = await self.run("bash", "-c", _without_nul(command))
        return report(result.out + result.err, result)

    async def run(self, *words: str) -> Result:
        """Runs a program on the files; a subclass may fail here, as a service does."""
        return await self.box.run(self.files, words)


class PythonTools(State):
    """Tool to run Python on files (stateful), for a state with the fields that `RepositoryTools` needs."""

    if TYPE_CHECKING:
        files: Workspace
        box: Sandbox

    @tool
    async def python(self, code: Command) -> str:
        """Run Python in an interpreter that keeps its variables, in the folder of the files. Print what to see.

        Args:
            code: One or more statements.
        """
        result = await self.box.python(self.files, _without_nul(code))
        return report(result.out + result.err, result)


class Repository(RepositoryTools):
    """Files, and a sandbox in which commands run on them.

    Attributes:
        files: The files.
        box: The sandbox.
    """

    files: Workspace
    box: Sandbox


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ToolError("a command must not have a NUL character")
    return text


def report(text: str, result: Result) -> str:
    """Returns the output of a program and its status, as an observation shows them."""
    half, text = OUTPUT_MAX // 2, text.rstrip("\n")
    if len(text) > OUTPUT_MAX:
        text = f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"
    limit = f", stopped by the limit of {result.reason}" if result.reason else ""
    return f"{text}\nstatus {result.status}{limit}".lstrip("\n")
