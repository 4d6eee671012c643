"""E: the help desk, put together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import quintain as qn
from quintain.environments.twins import maker
from quintain.errors import UsageError

from . import pages
from .harness import browsing, harness
from .state import Helpdesk, HelpdeskPages
from .tasks import tasks
from .verifier import verifier

env: qn.Environment[Helpdesk] = qn.Environment(
    "helpdesk",
    tasks=tasks,  # T
    harness=harness,  # H
    verifier=verifier,  # V
    state=Helpdesk,  # S
    config=qn.Config(max_turns=120),  # C
)


def _browsed(name: str, tasks: Callable[[str], qn.Tasks[Any]]) -> qn.Environment[Helpdesk]:
    parts: dict[str, Any] = {"tasks": tasks, "harness": browsing, "verifier": verifier, "state": HelpdeskPages}
    return qn.Environment(name, **parts, config=qn.Config(max_turns=400))


in_pages = _browsed("helpdesk_pages", pages.tasks)
"""Environment with the same tasks, but `report`, for an agent that works in the product's pages with a browser."""


varied = _browsed("helpdesk_varied", pages.varied_tasks)
"""The same, each task in one of the variants of the pages: other names, styles, orders of columns."""
_made = maker(env, f"{__package__}.twins")


def make(*, interface: str = "api", twin: str = "") -> qn.Environment[Helpdesk]:
    """Returns the environment.

    Args:
        interface: "api" for tools that are requests to the API, "pages" for those of a browser, "varied" for a
            browser and other looks of the pages in each task.
        twin: Class of a planted bug; twins have the tools of the API.

    Raises:
        UsageError: The interface or the twin is unknown, or both are given.
    """
    found = {"pages": in_pages, "varied": varied}.get(interface)
    if (found is None and interface != "api") or (found and twin):
        raise UsageError(
            f"expected interface api, pages or varied, and a twin with api only; got {interface!r} and {twin!r}"
        )
    return found or _made(twin=twin)
