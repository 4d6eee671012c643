"""S: a repository, its issue tracker, a change under review, and a sandbox that runs commands and tests."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal

import msgspec

import quintain as qn
from quintain.environments.faults import Faulty, reach
from quintain.resources.repository import Line, Path, RepositoryTools, report
from quintain.resources.sandbox import Limits, Result, Sandbox
from quintain.resources.workspace import Workspace

from .tracker import Issue

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


class Coding(RepositoryTools, Faulty):
    """A repository in work; the tracker, the sandbox and the review are services, which can fail.

    Attributes:
        files: The repository.
        box: The sandbox.
        issues: The tracker, by number.
        reviewed: Number of lines of each file of the change under review, in its new version; empty without one.
        comments: Comments of the review.
    """

    graded: ClassVar[bool] = True
    """Part of the work is paid in part; the audit holds the reward to that."""
    rates: ClassVar[dict[str, float]] = {"missing issues.body": 0.12, "missing issues.assignee": 0.55}
    """Share of empty fields, as in the trackers that this one stands for; the audit checks it."""

    files: Workspace
    box: Sandbox
    issues: qn.Table[Issue]
    reviewed: dict[str, int] = {}
    comments: list[Comment] = []

    # -- programs

    @qn.tool
    async def run_tests(self) -> str:
        """Run the tests of the folder `tests` with unittest, and return their report."""
        result = await self.run("python3", "-m", "unittest", "discover", "-s", "tests", "-t", ".")
        text = result.out + result.err
        for pattern, instead in _VARIES:
            text = pattern.sub(instead, text)
        return report(text, result)

    async def run(self, *words: str) -> Result:
        reach(self)
        return await super().run(*words)

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

    def _issue(self, number: str) -> Issue:
        if number not in self.issues:
            raise qn.ToolError(f"unknown issue {number!r}; list_issues lists them")
        return self.issues[number]
