"""A check: a function that is given a `AuditContext` and yields findings, with what it needs written above it.

    @check("x.read_your_writes", "stale_cache", needs=("state",), value=60)
    def read_your_writes(ctx: AuditContext) -> Iterator[Finding]:
        \"\"\"What was written is what is read, after each write, by each read.\"\"\"

It is registered by an entry point in the group `quintain.checks`, whose value is the check or a module of checks, or
given to `quintain audit --plugin path/to/file.py`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from quintain import plugins
from quintain.errors import DefinitionError, UsageError

from .finding import CLASSES, Finding, Severity

if TYPE_CHECKING:
    from .context import AuditContext

Run = Callable[["AuditContext"], Iterable[Finding | None]]
Level = Literal["static", "dynamic", "trace"]


class NotChecked(Exception):
    """A check cannot say anything about this subject; the message says why."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One question to an environment.

    Attributes:
        id: As in OpenEnv's RFC 008 where it means the same, else "x." and a name.
        class_: Slug of the class that it looks for.
        level: "static" reads source and data; "dynamic" plays probes; "trace" reads traces.
        needs: Methods that the subject must offer; "a|b" for one of two; "sources" for readable code, "tools" for at
            least one tool, "tasks" for at least one task.
        value: Expected worth for its cost; checks run from the highest to the lowest.
        severity: Of its findings, unless one says otherwise.
        alone: No other check may run meanwhile: it measures time or memory.
        about: The question, for people.
    """

    id: str
    class_: str
    run: Run
    level: Level = "dynamic"
    needs: tuple[str, ...] = ()
    value: float = 50.0
    severity: Severity = "error"
    alone: bool = False
    about: str = ""

    def missing(self, offers: frozenset[str]) -> list[str]:
        """What it needs and the subject does not offer."""
        return [need for need in self.needs if not set(need.split("|")) & offers]


def check(id: str, class_: str, /, **fields: Any) -> Callable[[Run], Check]:
    """Make a check of a function; its docstring's first line is the question.

    Raises:
        DefinitionError: No such class, or no docstring.
    """
    if class_ not in CLASSES:
        raise DefinitionError(f"check {id!r}: no class {class_!r}; there are {', '.join(CLASSES)}")

    def make(run: Run) -> Check:
        if not run.__doc__:
            raise DefinitionError(f"check {id!r} needs a docstring: the question that it asks")
        return Check(id=id, class_=class_, run=run, about=run.__doc__.strip().splitlines()[0], **fields)

    return make


def registered() -> list[Check]:
    """Every check of every installed distribution, the most valuable first.

    Raises:
        UsageError: A plugin does not load, is no check, or two checks have one id.
    """
    return ordered(one for name in plugins.names("checks") for one in checks_of(plugins.load("checks", name)))


def from_file(path: Path) -> list[Check]:
    """The checks in a Python file.

    Raises:
        UsageError: It does not load or has none.
    """
    return checks_of(plugins.module(path))


def checks_of(found: Any) -> list[Check]:
    """A check, or those of a module."""
    if isinstance(found, Check):
        return [found]
    there = [one for one in vars(found).values() if isinstance(one, Check)] if isinstance(found, ModuleType) else []
    if not there:
        raise UsageError(f"{found!r} is neither a check nor a module with checks in it")
    return there


def ordered(checks: Iterable[Check]) -> list[Check]:
    """Most valuable first; each id once."""
    by_id: dict[str, Check] = {}
    for one in checks:
        if by_id.setdefault(one.id, one) is not one and by_id[one.id] != one:
            raise UsageError(f"two checks are called {one.id!r}")
    return sorted(by_id.values(), key=lambda one: (-one.value, one.id))


def chosen(checks: Sequence[Check], ids: Sequence[str], classes: Sequence[str]) -> list[Check]:
    """Those with one of the ids or classes; all when nothing is named.

    Raises:
        UsageError: No check has that id, or there is no such class.
    """
    for class_ in classes:
        if class_ not in CLASSES:
            raise UsageError(f"there is no class {class_!r}; there are {', '.join(CLASSES)}")
    known = {one.id for one in checks}
    for wanted in ids:
        if wanted not in known:
            near = ", ".join(difflib.get_close_matches(wanted, sorted(known), n=3, cutoff=0.4)) or "none like it"
            raise UsageError(f"there is no check {wanted!r}, there is {near}; --list shows all {len(known)}")
    if not ids and not classes:
        return list(checks)
    return [one for one in checks if one.id in ids or one.class_ in classes]
