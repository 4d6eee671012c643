"""Families of tasks: each function writes one into a case and returns the oracle's last words."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from .case import Case
from .description import Defect, Function, Package


def repair(case: Case, name: str, package: Package, *, defects: Sequence[Defect]) -> str:
    """Repair what one or two issues report. The easy task names the file, the hard one not even the issues."""
    case.seed(name, package, defects)
    numbers = [case.report(defect) for defect in defects]
    place = f" The defect is in `{defects[0].file}`." if case.level == "easy" else ""
    reports = f"issue {numbers[0]} reports" if len(numbers) == 1 else "the two newest open issues report"
    case.request = (
        f"In the Python package `{name}`, {reports} a wrong behaviour.{place} Repair the cause, keep all other "
        f"behaviour as it is, and close {'it' if len(numbers) == 1 else 'both'} as fixed."
    )
    if len(numbers) > 1:
        case.play("list_issues")
    for number, defect in zip(numbers, defects, strict=True):
        case.play("read_issue", number=number)
        words = re.findall(r"[A-Za-z_]{4,}", defect.symptom) if case.level != "easy" else ()
        if word := next((word for word in words if word in case.files[defect.file]), ""):
            case.play("search", text=word, glob="**/*.py")
    _mend(case, defects)
    for number, defect in zip(numbers, defects, strict=True):
        case.flaw(defect)
        case.play("close_issue", number=number, resolution="fixed", note=f"Repaired in {defect.file}.")
    return f"Repaired: {', '.join(defect.title for defect in defects)}."


def review(case: Case, name: str, package: Package, *, defects: Sequence[Defect]) -> str:
    """Review a change with one or two defects, among harmless edits unless the task is easy; then repair them."""
    case.harmless = package.changes if case.level != "easy" else ()
    case.seed(name, package, [*case.harmless, *defects])
    changed = sorted({edit.file for edit in (*case.harmless, *defects)})
    diff = "".join(
        line if line.endswith("\n") else f"{line}\n"
        for path in changed
        for line in difflib.unified_diff(
            package.files[path].splitlines(keepends=True),
            case.files[path].splitlines(keepends=True),
            f"a/{path}",
            f"b/{path}",
        )
    )
    case.reviewed = {path: len(case.files[path].splitlines()) for path in changed}
    case.request = (
        f"Review this change of the Python package `{name}`. The repository holds its new version. Comment on a line "
        "of each defect that the change introduces, by its number in the new version, and do not comment on harmless "
        f"lines. Then repair the defects, and keep the rest of the change.\n\n```diff\n{diff}```"
    )
    for defect in defects:
        flaw = case.flaw(defect)
        case.play("comment", path=flaw.path, line=flaw.first, text=f"This introduces a defect: {defect.title}.")
    _mend(case, defects)
    return f"The change introduces {len(defects)} defect{'s' * (len(defects) > 1)}, which I have repaired."


def complete(case: Case, function: Function) -> str:
    """Complete a function by its docstring."""
    case.stub(function)
    case.request = (
        f"Complete the function `{function.name}` in `solution.py`. Its docstring is the specification; hidden tests "
        "check all of it."
    )
    case.play("read", path="solution.py")
    case.complete(function)
    case.play("run_tests")
    return f"The function {function.name} is complete."


def _mend(case: Case, defects: Sequence[Defect]) -> None:
    """Adds to the solution: reads the files, repairs the defects, and runs the tests."""
    for path in sorted({defect.file for defect in defects}):
        case.play("read", path=path)
    for defect in defects:
        case.mend(defect)
    case.play("run_tests")
