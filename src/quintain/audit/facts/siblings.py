"""Solutions of many tasks with the results that they read: siblings show where a solution's values come from."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable
from decimal import Decimal
from typing import Any

from quintain.audit.kernel.context import AuditContext

from .data import is_number
from .walks import Solution, walked

SolutionRun = Solution
_WALKED, _CHOSEN = 48, 40
_NUMBER = re.compile(
    r"(?<![\w.])[-+]?\d{1,3}(?:[,'\u2019 ]\d{3})+(?:\.\d+)?(?![\w])|(?<![\w.])[-+]?\d+(?:\.\d+)?(?![\w])"
)


def solution_runs(ctx: AuditContext) -> list[Solution]:
    """Returns the solutions of up to 48 tasks that are paid, some of which the audit did not choose."""
    # What is wrong with one task shows only among its siblings: tasks that are looked at, and then others.
    chosen = ctx.sample_tasks(_CHOSEN)
    rest, room = ctx.not_sampled(_CHOSEN), _WALKED - len(chosen)
    tasks = [*chosen, *ctx.tasks_at(rest[:: max(1, -(-len(rest) // room))][:room])]
    known = ctx.once(("solutions of siblings",), lambda own: walked(own, tasks)).values()
    return [fact for fact in known if isinstance(fact, Solution) and fact.ops and fact.full > 0]


def kinds(
    ctx: AuditContext, alike: Callable[[Solution], Hashable] = lambda solution: skeleton(solution.prompt)
) -> list[list[Solution]]:
    """Returns the solutions by the kind of their task: the same tools in the same order, and a common key.

    Args:
        ctx: Context of the tasks.
        alike: Returns the key; by default the prompt without names and numbers. None: the task is of no kind.
    """
    found: dict[Hashable, list[Solution]] = defaultdict(list)
    for solution in solution_runs(ctx):
        if (common := alike(solution)) is not None:
            found[solution.shape, common].append(solution)
    return list(found.values())


def plain(text: str) -> str:
    """Returns a text without what spelling adds: case, space, marks."""
    return re.sub(r"[^\w@.+]+", "", text).lower()


def decimal(value: Any) -> Decimal | None:
    """Returns the number that a value is, marks between thousands aside; None if it is none."""
    text = repr(value) if is_number(value) else value if isinstance(value, str) else ""
    bare = re.sub(r"(?<=\d)[,'\u2019 ](?=\d{3}(?!\d))", "", text.strip().removeprefix("$").removesuffix("%").strip())
    is_one = re.fullmatch(r"[-+]?(\d{1,25}(\.\d{0,25})?|\.\d{1,25})([eE][-+]?\d{1,3})?", bare)
    return Decimal(bare) if is_one else None


def numbers(text: str, *, alone: bool = False) -> set[Decimal]:
    """Returns the numbers in a text; with `alone`, only those that are not part of a word."""
    found = [*_NUMBER.findall(text), *([] if alone else re.findall(r"\d+(?:\.\d+)?", text))]
    return {amount for amount in map(decimal, found) if amount is not None}


def skeleton(prompt: str) -> tuple[str, ...]:
    """Returns a prompt without what may vary from task to task: words with digits or a first capital."""
    found = re.findall(r"\S+", prompt)
    return tuple("*" if any(sign.isdigit() for sign in item) or item[:1].isupper() else item for item in found)
