"""E: the help desk, put together."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import msgspec

import quintain as qn
from quintain.environments.twins import maker
from quintain.errors import UsageError
from quintain.resources.web import Noise

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


def _browsed(name: str, tasks: Callable[[str], qn.Tasks[Any]]) -> qn.Environment[Helpdesk]:
    parts: dict[str, Any] = {"tasks": tasks, "harness": browsing, "verifier": verifier, "state": HelpdeskPages}
    return qn.Environment(name, **parts, config=qn.Config(max_turns=400))


in_pages = _browsed("helpdesk_pages", pages.tasks)
"""Environment with the same tasks for an agent that works in the product's pages with a browser."""


varied = _browsed("helpdesk_varied", functools.partial(pages.tasks, case=pages.VariedCase))
"""Environment with the same tasks, each in a variant of the pages: other names, styles, orders of columns."""
_made = maker(env, f"{__package__}.twins")
_NOISE = tuple(name for name in Noise.__struct_fields__ if name != "seed")
_INTERFACES: dict[str, tuple[qn.Environment[Helpdesk], Any, type[Case]]] = {
    "api": (env, tasks, Case),
    "pages": (in_pages, pages.tasks, pages.PagesCase),
    "varied": (varied, pages.tasks, pages.VariedCase),
}
"""Interface to its environment, what makes its tasks, and what writes one."""


@functools.cache
def _dialled(interface: str, wanted: Shares, noise: Noise) -> qn.Environment[Helpdesk]:
    sound, every, case = _INTERFACES[interface]
    own: Any = functools.partial(every, case=type(case.__name__, (case,), {"shares": wanted, "noise": noise}))
    return qn.Environment(
        sound.name, tasks=own, harness=sound.harness, verifier=verifier, state=sound.state, config=sound.config
    )


def make(*, interface: str = "api", twin: str = "", **dials: float) -> qn.Environment[Helpdesk]:
    """Returns the environment.

    Args:
        interface: "api" for tools that are requests to the API, "pages" for those of a browser, "varied" for a
            browser and other looks of the pages in each task.
        twin: Class of a planted bug; twins have the tools of the API, the measured shares, and no noise.
        dials: Shares of the table `shares` in company.toml, such as typos=0.05, and dials of the product's noise:
            rate_limited, unavailable, conflict, duplicate and stale in [0, 1], lag_s in seconds.

    Raises:
        UsageError: The interface, the twin or a dial is unknown, or a twin is given with another option.
    """
    if interface not in _INTERFACES or (twin and (interface != "api" or dials)):
        wanted = "interface api, pages or varied, and a twin with api and without dials"
        raise UsageError(f"expected {wanted}; got {interface!r} and {twin!r}")
    if dials:
        noisy = {name: dials.pop(name) for name in _NOISE if name in dials}
        try:
            return _dialled(interface, shares(**dials), msgspec.convert(noisy, Noise, strict=False))
        except msgspec.ValidationError as error:
            known = f"shares in [0, 1) are {', '.join(Shares.__struct_fields__)}; dials of noise {', '.join(_NOISE)}"
            raise UsageError(f"{error}; {known}") from error
    return _made(twin=twin) if interface == "api" else _INTERFACES[interface][0]
