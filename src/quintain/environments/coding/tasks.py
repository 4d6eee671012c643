"""T: repairs, reviews and functions. The splits share neither packages nor functions."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable

import quintain as qn
from quintain.authoring import LEVELS, Level, key_of

from . import families
from .case import Case
from .description import functions, packages
from .state import Coding

PACKAGES = {
    "train": ("intervals", "ledger", "scheduler", "settings"),
    "validation": ("inventory", "tablefmt"),
    "test": ("router", "textindex"),
}
"""Packages of each split."""
PLACES = {"train": (0, 1, 2), "validation": (3,), "test": (4,)}
"""Functions of each split: by their place in the list of a level, modulo 5."""

Write = Callable[[Case], str]


def tasks(split: str) -> qn.Tasks[Coding]:
    """Returns the tasks of a split; families and levels alternate."""
    columns = [[(*key, write) for write in writes] for key, writes in _columns(split).items()]
    order = [one for row in itertools.zip_longest(*columns) for one in row if one]

    def make(index: int) -> qn.Task[Coding]:
        family, level, write = order[index]
        case = Case(key_of("coding", split, index), level)
        answer = write(case)
        return case.task(f"{family}-{level}-{index}", answer=answer, tags={"family": family, "level": level})

    return qn.Tasks(len(order), make)


@functools.cache
def _columns(split: str) -> dict[tuple[str, Level], list[Write]]:
    """Returns what writes the tasks of a split, by family and level."""
    names = ("repair", "review", "function")
    found: dict[tuple[str, Level], list[Write]] = {(name, level): [] for level in LEVELS for name in names}
    for name in PACKAGES[split]:
        package = packages()[name]
        following = [*package.defects[1:], package.defects[0]]
        for defect, other in zip(package.defects, following, strict=True):
            for level in LEVELS:
                chosen = (defect, other) if level == "hard" else (defect,)
                for family, write in (("repair", families.repair), ("review", families.review)):
                    one = functools.partial(write, name=name, package=package, defects=chosen)
                    found[family, level].append(one)
    for level in LEVELS:
        listed = [function for function in functions() if function.level == level]
        mine = [function for place, function in enumerate(listed) if place % 5 in PLACES[split]]
        found["function", level] += [functools.partial(families.complete, function=function) for function in mine]
    return found
