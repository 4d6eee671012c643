"""S: a repository, its issue tracker, a change under review, and a sandbox that runs commands and tests."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal

import msgspec

import quintain as qn
from quintain.environments.faults import Faulty, reach
from quintain.resources.sandbox import Limits, Result, Sandbox
from quintain.resources.workspace import Workspace, shown

from .tracker import Issue

Path = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Line = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]

OUTPUT_MAX = 8_000
"""Characters of output that an observation shows; the middle of a longer one is left out."""
MATCHES_MAX = 100
LISTED_MAX = 30
LIMITS = Limits(seconds=20, memory_bytes=256 * 2**20)

_VARIES = (
    (re.compile(r"^(Ran \d+ tests?) in [0-9.]+s$", re.MULTILINE), r"\1"),
    (re.compile(r"\b0x[0-9a-f]{6,}"), "0x0"),
)
"""Parts of a test report that differ from run to run: seconds and addresses."""


class Comment(msgspec.Struct, frozen=True):
    """Comment of a review on one line of the new version."""

    path: str
    line: int
    text: str


class Listed(msgspec.Struct, frozen=True):
    """Line of a list of issues."""

    number: str
    title: str
    created_at: str
    labels: list[str]


class Coding(Faulty):
    """A repository in work; the tracker, the sandbox and the review are services, which can fail.

    Attributes:
        files: The repository.
        issues: The tracker, by number.
        reviewed: Number of lines of each file of the change under review, in its new version; empty without one.
        comments: Comments of the review.
        box: Where commands and tests run.
    """

    graded: ClassVar[bool] = True
    """Part of the work is paid in part; the audit holds the reward to that."""
    rates: ClassVar[dict[str, float]] = {"missing issues.body": 0.12, "missing issues.assignee": 0.55}
    """Share of empty fields, as in the trackers that this one stands for; the audit checks it."""

    files: Workspace
    issues: qn.Table[Issue]
    reviewed: dict[str, int] = {}
    comments: list[Comment] = []
    box: Sandbox = msgspec.field(default_factory=lambda: Sandbox(limits=LIMITS))

    # -- files

    @qn.tool
    def list_files(self, folder: str = "") -> list[str]:
        """List the files of a folder and of the folders in it.

        Args:
            folder: Path of the folder; empty for the whole repository.
        """
        return [shown(one.path) for one in self.files.walk(folder) if one.kind == "file"]

    @qn.tool
    def read(self, path: Path, first: Line = 1, last: Line | None = None) -> str:
        """Read a file. Each line comes with its number and a tab before it.

        Args:
            path: Path of the file.
            first: First line, from 1.
            last: Last line; the end of the file if it is left out.
        """
        return self._numbered(path, first, last)

    @qn.tool
    def search(self, text: Annotated[str, msgspec.Meta(min_length=1)], glob: str = "**") -> list[str]:
        """Search for a text, as it is, in the files. Returns path, number and content of each line that has it.

        Args:
            text: The text.
            glob: Which files, such as `**/*.py`.
        """
        found = self.files.search(text, glob=glob, limit=MATCHES_MAX)
        return [f"{shown(one.path)}:{one.line}: {one.text.strip()}" for one in found]

    @qn.tool
    def write(self, path: Path, text: str) -> str:
        """Write a whole file; it is made if it is missing.

        Args:
            path: Path of the file.
            text: Its content.
        """
        self.files.write(path, text)
        return f"wrote {path}"

    @qn.tool
    def edit(self, path: Path, old: Annotated[str, msgspec.Meta(min_length=1)], new: str) -> str:
        """Replace a text that occurs exactly once in a file.

        Args:
            path: Path of the file.
            old: The text, with its indentation and without line numbers.
            new: What takes its place.
        """
        before = self.files.text(path)
        if (found := before.count(old)) != 1:
            raise qn.ToolError(f"the old text occurs {found} times in {path}; give a text that occurs once")
        self.files.write(path, before.replace(old, new))
        return f"edited {path}"

    # -- programs

    @qn.tool
    async def bash(self, command: Annotated[str, msgspec.Meta(min_length=1, max_length=20_000)]) -> str:
        """Run a command in the folder of the repository. Only files persist between commands.

        Args:
            command: For bash.
        """
        if "\0" in command:
            raise qn.ToolError("a command must not have a NUL character")
        result = await self._run("bash", "-c", command)
        return _cut(result.out + result.err) + f"\n{_status(result)}"

    @qn.tool
    async def run_tests(self) -> str:
        """Run the tests of the folder `tests` with unittest, and return their report."""
        result = await self._run("python3", "-m", "unittest", "discover", "-s", "tests", "-t", ".")
        report = result.out + result.err
        for pattern, instead in _VARIES:
            report = pattern.sub(instead, report)
        return _cut(report) + f"\n{_status(result)}"

    # -- the tracker

    @qn.tool
    def list_issues(self, status: Literal["open", "closed"] = "open") -> list[Listed]:
        """List issues, newest first.

        Args:
            status: Which ones.
        """
        reach(self)
        numbers = sorted((key for key, one in self.issues.items() if one.status == status), key=int, reverse=True)
        found = [(key, self.issues[key]) for key in numbers[:LISTED_MAX]]
        return [Listed(key, one.title, one.created_at, one.labels) for key, one in found]

    @qn.tool
    def read_issue(self, number: str) -> Issue:
        """Read an issue.

        Args:
            number: Its number.
        """
        reach(self)
        return self._issue(number)

    @qn.tool
    def close_issue(
        self, number: str, resolution: Literal["fixed", "duplicate", "cannot_reproduce", "not_planned"], note: str
    ) -> str:
        """Close an open issue.

        Args:
            number: Its number.
            resolution: How it ended.
            note: Comment for those who reported it.
        """
        reach(self)
        issue = self._issue(number)
        if issue.status == "closed":
            raise qn.ToolError(f"issue {number} is closed already, as {issue.resolution}")
        issue.status, issue.resolution = "closed", resolution
        issue.comments = [*issue.comments, note]
        self.issues[number] = issue
        return f"closed issue {number} as {resolution}"

    # -- the review

    @qn.tool
    def comment(
        self, path: Path, line: Line, text: Annotated[str, msgspec.Meta(min_length=10, max_length=2_000)]
    ) -> str:
        """Comment on a line of the change under review.

        Args:
            path: Path of a file of the change.
            line: Number of the line in the new version, as it was when the review began.
            text: What is wrong with the line.
        """
        reach(self)
        if path not in self.reviewed:
            known = ", ".join(self.reviewed) or "none, because no change is under review"
            raise qn.ToolError(f"{path} does not belong to the change under review; its files: {known}")
        if line > self.reviewed[path]:
            raise qn.ToolError(f"{path} has {self.reviewed[path]} lines in the new version, got line {line}")
        if any((one.path, one.line) == (path, line) for one in self.comments):
            raise qn.ToolError(f"line {line} of {path} has a comment already")
        self.comments = [*self.comments, Comment(path, line, text)]
        return f"commented on line {line} of {path}"

    # -- inside

    def _numbered(self, path: str, first: int, last: int | None) -> str:
        lines = self.files.text(path).splitlines()
        if first > max(1, len(lines)) or (last is not None and last < first):
            raise qn.ToolError(f"{path} has {len(lines)} lines, got lines {first} to {last or 'the end'}")
        return "\n".join(f"{number}\t{line}" for number, line in enumerate(lines[first - 1 : last], first))

    def _issue(self, number: str) -> Issue:
        if number not in self.issues:
            raise qn.ToolError(f"unknown issue {number!r}; list_issues lists them")
        return self.issues[number]

    async def _run(self, *words: str) -> Result:
        reach(self)
        return await self.box.run(self.files, words)


def _status(result: Result) -> str:
    limit = f", stopped by the limit of {result.reason}" if result.reason else ""
    return f"status {result.status}{limit}"


def _cut(text: str) -> str:
    half = OUTPUT_MAX // 2
    text = text.rstrip("\n")
    return (
        text
        if len(text) <= OUTPUT_MAX
        else f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"
    )
