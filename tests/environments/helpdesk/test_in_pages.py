"""The solution played in the product's pages: its end equals that of the solution played through the API."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from typing import Any

import pytest

import quintain as qn
from quintain.environments.helpdesk import env, in_pages, make
from quintain.environments.helpdesk.environment import varied
from quintain.environments.helpdesk.family import FAMILIES
from quintain.environments.helpdesk.pages import TOOLS, VariedCase
from quintain.environments.helpdesk.state import Helpdesk
from quintain.errors import UsageError
from quintain.models.agents import oracle

LEVELS = ("easy", "medium", "hard")
FAST = {"rules", "triage"}
"""Families with the most kinds of controls in their pages; `make test-all` plays all."""
EVERY = [
    pytest.param(name, level, marks=[] if level == "easy" and name in FAST else [pytest.mark.slow])
    for level in LEVELS
    for name in FAMILIES
]


def pair(family: str, level: str) -> tuple[qn.Task[Any], qn.Task[Any]]:
    """Returns a task for the API, and the same for pages."""
    index = LEVELS.index(level) * len(FAMILIES) + list(FAMILIES).index(family)
    clicked = in_pages.tasks("validation")[index]
    return env.task("validation", clicked.id), clicked


def played(task: qn.Task[Any], without: int | None = None) -> str:
    """Plays a solution in a world in which requests take no time; returns the changed rows as text.

    The driver of pages sends more requests, so identifiers are replaced by their rank, and names of jobs by the job's.
    """
    start: Helpdesk = task.world()
    world = start.copy()
    world.step_s = 0.0
    for number, (tool, arguments) in enumerate(task.solution or ()):
        if number != without:
            getattr(world, tool)(**arguments)
    world.clock.advance(60.0)
    text = "\n".join(f"{one.table} {one.key} {one.after}" for one in start.db.diff(world.db))
    # The hex of a name may hold digits that look like an identifier.
    for number, (name,) in enumerate(world.db.execute("SELECT name FROM web_jobs ORDER BY id")):
        text = text.replace(name, f"job {number}")
    made = sorted({one for one in re.findall(r"\b\d{14}\b", text) if int(one) > start.last_id})
    return re.sub(r"\b\d{14}\b", lambda found: f"new {made.index(found[0])}" if found[0] in made else found[0], text)


@pytest.mark.parametrize(("family", "level"), EVERY)
def test_solution_in_pages_leaves_the_state_of_the_api(family: str, level: str) -> None:
    called, clicked = pair(family, level)
    assert (called.prompt, called.truth) == (clicked.prompt, clicked.truth)
    assert called.world().db.digest() == clicked.world().db.digest()
    left = played(clicked)
    assert left or family == "report"
    assert left == played(called)


@pytest.mark.parametrize("level", LEVELS[:2])
def test_answer_of_a_report_stands_on_its_pages(level: str) -> None:
    _, clicked = pair("report", level)
    world = clicked.world().copy()
    pages = [getattr(world, tool)(**arguments) for tool, arguments in clicked.solution or ()]
    until = re.search(r"to (\d{4}-\d\d-\d\d \d\d:\d\d) \(excluded\)", str(clicked.prompt))
    assert until is not None
    rows = re.findall(r"row \"(\S+ \S+) #\d+ ([^\"]+)\"", "\n".join(pages))
    groups = Counter(group for at, group in rows if at < until[1])
    if level == "easy":
        assert clicked.answer == str(groups.total())
    else:
        name, number = min(groups.items(), key=lambda one: (-one[1], one[0]))
        assert clicked.answer == f"{name}: {number}"


def test_comparison_finds_a_click_that_is_missing() -> None:
    called, clicked = pair("triage", "easy")
    calls = clicked.solution or ()
    last = max(number for number, (tool, _) in enumerate(calls) if tool == "select")
    assert played(clicked, without=last) != played(called)


@pytest.mark.parametrize(("family", "level"), EVERY)
def test_oracle_in_pages_scores_one(family: str, level: str) -> None:
    _, clicked = pair(family, level)
    trace = asyncio.run(qn.rollout(in_pages, clicked, oracle())).trace
    assert (trace.score, trace.failure) == (1.0, None)
    assert {one.value for one in trace.every_reward() if one.name == "possible"} == {1.0}


@pytest.mark.parametrize(
    "family", [pytest.param(one, marks=[pytest.mark.slow] * (one not in FAST)) for one in FAMILIES]
)
def test_oracle_scores_one_in_a_variant_of_the_pages(family: str) -> None:
    place = list(FAMILIES).index(family)
    plain, other = in_pages.tasks("validation")[place], varied.tasks("validation")[place]
    assert (plain.id, plain.prompt, plain.truth) == (other.id, other.prompt, other.truth)
    assert plain.world().look != other.world().look
    assert plain.world().db.digest() == other.world().db.digest()
    trace = asyncio.run(qn.rollout(varied, other, oracle())).trace
    assert (trace.score, trace.failure) == (1.0, None)


def test_variants_have_other_names_styles_and_announcements() -> None:
    looks = [VariedCase(bytes([number]), "easy").look() for number in range(30)]
    for name in ("classes", "labels", "announcement", "rows", "moved"):
        assert len({str(getattr(one, name)) for one in looks}) > 2


def test_agent_in_pages_has_the_tools_of_a_browser_alone() -> None:
    task = in_pages.tasks("train")[0]
    assert {one.name for one in in_pages.for_task(task).tools_of("agent")} == set(TOOLS)


def test_interface_is_chosen_by_name() -> None:
    assert (make(), make(interface="pages")) == (env, in_pages)
    with pytest.raises(UsageError, match="interface api, pages or varied"):
        make(interface="phone")
