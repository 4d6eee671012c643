"""E: the help desk, put together."""

from __future__ import annotations

import quintain as qn
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

in_pages: qn.Environment[Helpdesk] = qn.Environment(
    "helpdesk_pages",
    tasks=pages.tasks,
    harness=browsing,
    verifier=verifier,
    state=HelpdeskPages,
    config=qn.Config(max_turns=400),
)
"""Environment with the same tasks, but `report`, for an agent that works in the product's pages with a browser."""


def make(*, interface: str = "api") -> qn.Environment[Helpdesk]:
    """Returns the environment.

    Args:
        interface: "api" for tools that are requests to the API, "pages" for those of a browser.

    Raises:
        UsageError: The interface is unknown.
    """
    made = {"api": env, "pages": in_pages}
    if interface not in made:
        raise UsageError(f"unknown interface {interface!r}; known: {', '.join(made)}")
    return made[interface]
