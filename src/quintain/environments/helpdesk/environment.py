"""E: the help desk, put together."""

from __future__ import annotations

import functools
from typing import Any

import msgspec

import quintain as qn
from quintain.environments.twins import maker
from quintain.errors import UsageError

from . import pages
from .draft import Case
from .harness import browsing, harness
from .state import Helpdesk, HelpdeskPages
from .tasks import tasks
from .verifier import verifier
from .words import Shares, shares

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


@functools.cache
def _untidy(interface: str, wanted: Shares) -> qn.Environment[Helpdesk]:
    case, every, sound = (pages.PagesCase, pages.tasks, in_pages) if interface == "pages" else (Case, tasks, env)
    own: Any = functools.partial(every, case=type(case.__name__, (case,), {"shares": wanted}))
    return qn.Environment(
        sound.name, tasks=own, harness=sound.harness, verifier=verifier, state=sound.state, config=sound.config
    )


def make(*, interface: str = "api", twin: str = "", **untidy: float) -> qn.Environment[Helpdesk]:
    """Returns the environment.

    Args:
        interface: "api" for tools that are requests to the API, "pages" for those of a browser.
        twin: Class of a planted bug; twins have the tools of the API, and the measured shares.
        untidy: Shares of the table `shares` in company.toml, such as typos=0.05.

    Raises:
        UsageError: The interface, the twin or a share is unknown, or a twin is given with another option.
    """
    if interface not in ("api", "pages") or (twin and (interface == "pages" or untidy)):
        raise UsageError(f"expected interface api or pages, and a twin alone; got {interface!r} and {twin!r}")
    if untidy:
        try:
            return _untidy(interface, shares(**untidy))
        except msgspec.ValidationError as error:
            raise UsageError(
                f"{error}; the shares are {', '.join(Shares.__struct_fields__)}, each in [0, 1)"
            ) from error
    return in_pages if interface == "pages" else _made(twin=twin)
