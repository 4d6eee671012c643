"""Check: a function from an `AuditContext` to findings, declared by a decorator.

    @check("x.read_your_writes", "stale_cache", needs=("state",), value=60)
    def read_your_writes(ctx: AuditContext) -> Iterator[Finding]:
        '''Does each read show each write?'''

A check is registered by an entry point in the group `quintain.checks`, whose value is a check or a module of checks, or
given to `quintain audit --plugin path/to/file.py`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

import msgspec

from quintain import plugins
from quintain.errors import DefinitionError, UsageError

from .finding import CLASSES, Confidence, Finding, Severity

if TYPE_CHECKING:
    from .context import AuditContext

Run = Callable[["AuditContext"], Iterable[Finding | None]]
Level = Literal["static", "dynamic", "trace"]


class NotChecked(Exception):
    """Signal that a check cannot judge this subject; the message gives the reason."""


class CheckFields(TypedDict, total=False):
    """Attributes of a check that the decorator takes."""

    level: Level
    needs: tuple[str, ...]
    value: float
    severity: Severity
    reads_prose: bool


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One question about an environment.

    Attributes:
        id: As in OpenEnv's RFC 008 if it means the same, else "x." and a name.
        class_: Slug of the class of bugs that the check looks for.
        level: "static" reads source and data; "dynamic" plays probes; "trace" reads traces.
        needs: Methods that the subject must offer; "a|b" for one of two; "sources" for readable code, "tools" for at
            least one tool, "tasks" for at least one task.
        value: Expected worth for its cost; checks run from the highest to the lowest.
        severity: Default severity of its findings.
        reads_prose: The claim rests on the meaning of English text, so no finding of the check is more than "likely".
        about: The question, for people.
    """

    id: str
    class_: str
    run: Run
    level: Level = "dynamic"
    needs: tuple[str, ...] = ()
    value: float = 50.0
    severity: Severity = "error"
    reads_prose: bool = False
    about: str = ""

    @property
    def at_most(self) -> Confidence:
        """Returns the highest confidence of the check's findings."""
        return "likely" if self.reads_prose else "proven"

    def missing(self, offers: frozenset[str]) -> list[str]:
        """Returns the needs that the subject does not offer."""
        return [need for need in self.needs if not set(need.split("|")) & offers]


def check(id: str, class_: str, /, **fields: Unpack[CheckFields]) -> Callable[[Run], Check]:
    """Makes a check of a function; the first line of its docstring is the question.

    Args:
        id: Id of the check; "x." and a name if OpenEnv's RFC 008 has no such check.
        class_: Slug of the class of bugs that the check looks for; an unknown one raises DefinitionError.
        fields: Further attributes of `Check`.
    """
    if class_ not in CLASSES:
        raise DefinitionError(f"check {id!r}: no class {class_!r}; there are {', '.join(CLASSES)}")

    def make(run: Run) -> Check:
        if not run.__doc__:
            raise DefinitionError(f"check {id!r} needs a docstring: the question that it asks")
        return Check(id=id, class_=class_, run=run, about=run.__doc__.strip().splitlines()[0], **fields)

    return make


def registered() -> list[Check]:
    """Returns the checks of all installed distributions; raises UsageError for a plugin that is none."""
    return ordered(one for name in plugins.names("checks") for one in checks_of(plugins.load("checks", name)))


def from_file(path: Path) -> list[Check]:
    """Returns the checks in a Python file; raises UsageError if the file does not load or has no check."""
    return checks_of(plugins.module(path))


def checks_of(found: Any) -> list[Check]:
    if isinstance(found, Check):
        return [found]
    there = [one for one in vars(found).values() if isinstance(one, Check)] if isinstance(found, ModuleType) else []
    if not there:
        raise UsageError(f"{found!r} is neither a check nor a module with checks in it")
    return there


def ordered(checks: Iterable[Check]) -> list[Check]:
    """Returns checks by descending value, each id once."""
    by_id: dict[str, Check] = {}
    for one in checks:
        if by_id.setdefault(one.id, one) is not one and by_id[one.id] != one:
            raise UsageError(f"two checks are called {one.id!r}")
    return sorted(by_id.values(), key=lambda one: (-one.value, one.id))


def chosen(checks: Sequence[Check], ids: Sequence[str], classes: Sequence[str]) -> list[Check]:
    """Returns the checks with one of the ids or classes; all if both are empty. An unknown one raises UsageError."""
    for class_ in classes:
        if class_ not in CLASSES:
            raise UsageError(f"unknown class {class_!r}; the classes are {', '.join(CLASSES)}")
    known = {one.id for one in checks}
    for wanted in (one for one in ids if one not in known):
        near = ", ".join(difflib.get_close_matches(wanted, sorted(known), n=3, cutoff=0.4)) or "none"
        raise UsageError(f"unknown check {wanted!r}; close ids: {near}; --list shows all {len(known)}")
    return [one for one in checks if one.id in ids or one.class_ in classes or not (ids or classes)]
