"""T: tasks without end; task i of a split is a pure function of (split, i)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quintain.authoring import generated
from quintain.task import Tasks

from .draft import Case
from .family import FAMILIES

COUNTS = {"train": 3300, "validation": 330, "test": 660}
"""Tasks of a split."""


def _writer(name: str) -> Callable[[Case], str]:
    return lambda case: case.write(name)


WRITERS = {name: _writer(name) for name in FAMILIES}
"""Writers of tasks by the names of their families."""


def tasks(split: str, case: type[Case] = Case) -> Tasks[Any]:
    """Returns the tasks of a split, written by a class of cases."""
    return generated("helpdesk", case, WRITERS, counts=COUNTS)(split)
