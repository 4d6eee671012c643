"""E: the help desk, put together."""

from __future__ import annotations

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

in_pages: qn.Environment[Helpdesk] = qn.Environment(
    "helpdesk_pages",
    tasks=pages.tasks,
    harness=browsing,
    verifier=verifier,
    state=HelpdeskPages,
    config=qn.Config(max_turns=400),
)
"""Environment with the same tasks, but `report`, for an agent that works in the product's pages with a browser."""


_made = maker(env, f"{__package__}.twins")


def make(*, interface: str = "api", twin: str = "") -> qn.Environment[Helpdesk]:
    """Returns the environment.

    Args:
        interface: "api" for tools that are requests to the API, "pages" for those of a browser.
        twin: Class of a planted bug; twins have the tools of the API.

    Raises:
        UsageError: The interface or the twin is unknown, or both are given.
    """
    if interface not in ("api", "pages") or (interface == "pages" and twin):
        raise UsageError(f"expected interface api or pages, and a twin with api only; got {interface!r} and {twin!r}")
    return in_pages if interface == "pages" else _made(twin=twin)
