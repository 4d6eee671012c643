"""A task while it is being written: a repository, its tracker, what is wrong, and how it is mended."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import quintain as qn
from quintain import authoring
from quintain.authoring import Level
from quintain.judges.code import HiddenTest
from quintain.resources.sandbox import Sandbox
from quintain.resources.workspace import Workspace
from quintain.state import Rng

from . import tracker
from .description import HOLE, Defect, Edit, Function, Package
from .state import LIMITS, Coding
from .tracker import DAY, Issue
from .verifier import Flaw, Truth

OLDER = {"easy": 14, "medium": 22, "hard": 36}
"""Issues of the time before."""

_EXAMPLES = """import doctest
import unittest

import solution


def load_tests(loader, tests, pattern):
    tests.addTests(doctest.DocTestSuite(solution))
    return tests
"""


class Case(authoring.Draft[Coding]):
    """A task in the making.

    Attributes:
        files: The repository as the agent finds it.
        reviewed: Number of lines of each file under review.
        reports: Issues of the job, by number.
        harmless: Edits of the change under review that must stay.
    """

    def __init__(self, key: bytes, level: Level) -> None:
        super().__init__(key, level)
        self.files: dict[str, str] = {}
        self.reviewed: dict[str, int] = {}
        self.reports: dict[str, Issue] = {}
        self.harmless: Sequence[Edit] = ()
        self._tests: tuple[HiddenTest, ...] = ()
        self._flaws: list[Flaw] = []
        self._package = self._code = ""
        self._may_change: tuple[str, ...] = ()
        day = datetime(2025, 1, 6, 8, tzinfo=UTC) + timedelta(days=self.rng.below(600), minutes=self.rng.below(600))
        self.start = day.timestamp()
        self._number = 60 + self.rng.below(400)

    # -- what is in the repository

    def seed(self, name: str, package: Package, edits: Sequence[Edit]) -> None:
        """Takes a package with some edits."""
        self.files = package.edited(edits)
        self._package, self._tests, self._may_change = name, package.tests, (f"{name}/",)

    def stub(self, function: Function) -> None:
        """Takes a function that is to be completed."""
        self.files = {
            "README.md": "# solution\n\nOne function. Its docstring is the specification; `tests` runs its examples.\n",
            "solution.py": function.stub,
            "tests/__init__.py": "",
            "tests/test_examples.py": _EXAMPLES,
        }
        self._package, self._tests, self._may_change = function.name, function.tests, ("solution.py",)
        self._code = f"from solution import {function.name}"
        self._flaws = [Flaw(path="solution.py", tests=(test.name,)) for test in function.tests]

    def flaw(self, defect: Defect) -> Flaw:
        """Adds a defect that is to be repaired, with its lines in the file as it is now."""
        text = self.files[defect.file]
        begin = text[: text.index(defect.new)].count("\n")
        matcher = difflib.SequenceMatcher(a=defect.old.splitlines(), b=defect.new.splitlines(), autojunk=False)
        spans = [code[3:] for code in matcher.get_opcodes() if code[0] != "equal"]
        first, last = begin + spans[0][0] + 1, begin + spans[-1][1]
        # Where lines are only missing, both neighbours of the gap are right.
        made = Flaw(path=defect.file, tests=defect.tests, first=min(first, max(1, last)), last=max(first, last))
        self._flaws.append(made)
        return made

    def report(self, defect: Defect) -> str:
        """Opens an issue about a defect and returns its number."""
        self._number += 1 + self.rng.below(4)
        at = self.start - DAY * (5.2 - 2.5 * len(self.reports) - self.rng.below(24) / 10)
        self.reports[str(self._number)] = Issue(
            title=defect.title,
            body=defect.symptom.strip(),
            author=tracker.person(self.rng),
            labels=["bug"],
            created_at=tracker.stamp(at),
        )
        return str(self._number)

    # -- how it is mended

    def mend(self, defect: Defect) -> None:
        """Adds the call that repairs a defect to the solution."""
        self.play("edit", path=defect.file, old=defect.new, new=defect.old)

    def complete(self, function: Function) -> None:
        """Adds the call that completes a function to the solution."""
        self.play("edit", path="solution.py", old=HOLE, new=function.body.rstrip("\n"))

    # -- the task

    def truth(self) -> Truth:
        return Truth(
            package=self._package,
            tests=self._tests,
            flaws=tuple(self._flaws),
            issues=tuple(self.reports),
            may_change=self._may_change,
            code=self._code,
            kept=tuple((edit.file, edit.new) for edit in self.harmless),
        )

    def world(self) -> Coding:
        rng = Rng(key=authoring.key_of(self.key.hex(), "tracker"))
        modules = sorted(path.rpartition("/")[2] for path in self.files if path.endswith(".py") and "test" not in path)
        older = tracker.older(rng, OLDER[self.level], until=self.start - 6 * DAY, modules=modules)
        first = min(map(int, self.reports), default=self._number) - 1
        gaps = [1 + rng.below(3) for _ in older]
        numbers = [first - sum(gaps[place + 1 :]) for place in range(len(older))]
        rows = {str(number): issue for number, issue in zip(numbers, older, strict=True)} | self.reports
        state = Coding(
            files=Workspace(self.files),
            box=Sandbox(limits=LIMITS),
            issues=qn.Table(Issue, rows),
            reviewed=self.reviewed,
        )
        state.clock.now = self.start
        return state
