"""V: hidden tests decide what is repaired; comments, the tracker and all other files are compared with the task.

The score is a product: what is repaired, how the change was reviewed, whether the issues are closed, and what else was
touched. An issue that is closed without the repair is worth nothing.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

import quintain as qn
from quintain.authoring import per_task, scores, sound_call
from quintain.environments.faults import reach
from quintain.judges.code import HiddenTest, HiddenTests, TestOutcome, run_tests
from quintain.resources.workspace import shown

from .state import Coding

READS = frozenset({"read", "search", "read_issue"})


class Flaw(msgspec.Struct, frozen=True, kw_only=True):
    """A defect, or a hidden test of a function that is not written yet.

    Attributes:
        path: File that has to change.
        tests: Hidden tests that pass when it is repaired.
        first, last: Its lines in the version under review; 0 where nothing is reviewed.
    """

    path: str
    tests: tuple[str, ...]
    first: int = 0
    last: int = 0


class Truth(msgspec.Struct, frozen=True, kw_only=True):
    """Truth of a task, for the verifier.

    Attributes:
        package: The hidden tests are those of this package, or of this function.
        tests: Hidden tests.
        flaws: What is to be repaired. All other hidden tests pass at the start and must pass at the end.
        issues: Numbers of the issues to close.
        may_change: Beginnings of the paths that may change; new files may also be in `tests/`.
        code: Source that imports the code under test, in its process.
        kept: Paths and texts of the harmless parts of a reviewed change, which must stay.
    """

    package: str
    tests: tuple[HiddenTest, ...]
    flaws: tuple[Flaw, ...]
    issues: tuple[str, ...] = ()
    may_change: tuple[str, ...]
    code: str = ""
    kept: tuple[tuple[str, str], ...] = ()


def _content(world: Coding) -> str:
    return world.files.digest()


@per_task(_content)
def _slot(task: qn.Task[Coding], world: Coding) -> dict[str, list[TestOutcome]]:
    """Returns a place for the outcomes of the hidden tests on these files, which stays the same for equal files."""
    del task, world
    return {}


async def outcomes(task: qn.Task[Coding], world: Coding) -> dict[str, str]:
    """Returns why each hidden test fails on the files of a world; empty for one that passes."""
    truth: Truth = task.truth
    slot = _slot(task, world)
    if "all" not in slot:
        names = {truth.package: truth.package} if truth.code else {}
        hidden = HiddenTests(tests=truth.tests, names=names)
        slot["all"] = await run_tests(world.box, world.files, hidden, code=truth.code)
    return {one.name: one.failure for one in slot["all"]}


@qn.phase()
def informed(turn: qn.TurnView[Coding]) -> bool:
    """The agent has read a file that has to change, or an issue of the job."""
    truth: Truth = turn.task.truth
    wanted = {*truth.issues, *(flaw.path for flaw in truth.flaws)}
    read = [step for step in turn.turn.steps if step.call.name in READS and not step.is_error]
    return any(wanted & set(map(str, json.loads(step.call.arguments).values())) for step in read)


@qn.phase(after="informed")
def changed(turn: qn.TurnView[Coding]) -> bool:
    """A file that has to change is another one."""
    start = turn.task.world().files
    paths = {flaw.path for flaw in turn.task.truth.flaws}
    return any(change.path in paths for change in start.diff(turn.after.files))


@qn.phase(after="changed")
def tested(turn: qn.TurnView[Coding]) -> bool:
    """The agent has run the tests after a change."""
    return any(step.call.name == "run_tests" and not step.is_error for step in turn.turn.steps)


@qn.reward
async def repaired(outcome: qn.EpisodeView[Coding]) -> qn.Score:
    """Scores the share of the flaws that are repaired, squared; each other hidden test that now fails takes a half."""
    reach(outcome.state)  # The tests run on the same service as those of the agent.
    truth: Truth = outcome.task.truth
    found = await outcomes(outcome.task, outcome.state)
    return repair_score(truth, found)


def repair_score(truth: Truth, found: dict[str, str]) -> qn.Score:
    """Returns the score for the outcomes of the hidden tests."""
    open_ = [f"{flaw.path}: {name}: {found[name]}" for flaw in truth.flaws for name in flaw.tests if found[name]]
    left = sum(any(found[name] for name in flaw.tests) for flaw in truth.flaws)
    wanted = {name for flaw in truth.flaws for name in flaw.tests}
    broken = [f"{name} fails now: {why}" for name, why in found.items() if why and name not in wanted]
    share = 1.0 - left / len(truth.flaws)
    details: dict[str, Any] = {"flaws": len(truth.flaws), "repaired": len(truth.flaws) - left, "broken": len(broken)}
    return qn.Score(share * share * max(0.0, 1.0 - len(broken) / 2), "; ".join([*open_, *broken]), details)


@qn.reward
def found(outcome: qn.EpisodeView[Coding]) -> qn.Score:
    """Scores 0.5 + 0.5 * hits / (defects + comments elsewhere); None without a review.

    A hit is a defect with a comment on one of its lines. The fraction is the Jaccard index: a repair without
    comments is worth half, and comments on every line hardly more.
    """
    if not outcome.state.reviewed:
        return qn.Score(None, "nothing is reviewed")
    flaws: tuple[Flaw, ...] = outcome.task.truth.flaws
    hit: set[Flaw] = set()
    stray: list[str] = []
    for one in outcome.state.comments:
        meant = {flaw for flaw in flaws if flaw.path == one.path and flaw.first <= one.line <= flaw.last}
        hit |= meant
        stray += [] if meant else [f"{one.path}:{one.line} is not a defect"]
    missed = [f"no comment on {flaw.path}:{flaw.first}" for flaw in flaws if flaw not in hit]
    return qn.Score(0.5 + len(hit) / (len(flaws) + len(stray)) / 2, "; ".join([*missed, *stray]))


@qn.reward
def closed(outcome: qn.EpisodeView[Coding]) -> qn.Score:
    """Scores 1 less half of the share of the job's issues that are not closed as fixed; None without an issue."""
    numbers: tuple[str, ...] = outcome.task.truth.issues
    if not numbers:
        return qn.Score(None, "no issue belongs to the job")
    left = [one for one in numbers if outcome.state.issues[one].resolution != "fixed"]
    reasons = "; ".join(f"issue {one} is not closed as fixed" for one in left)
    return qn.Score(1.0 - len(left) / len(numbers) / 2, reasons)


@qn.reward
def untouched(outcome: qn.EpisodeView[Coding]) -> qn.Score:
    """Scores 1 when nothing changed but what the job asked for; half for one stray change, 0 for more."""
    reach(outcome.state)
    return scores.untouched(stray_changes(outcome.task, outcome.state))


def stray_changes(task: qn.Task[Coding], world: Coding) -> list[str]:
    """Returns changes of files and issues that no part of the job explains."""
    truth: Truth = task.truth
    start = task.world()
    files = [
        f"{shown(change.path)} was {'deleted' if change.after is None else 'changed' if change.before else 'added'}"
        for change in start.files.diff(world.files)
        if not change.path.startswith(truth.may_change)
        and not (change.before is None and change.path.startswith("tests/"))
    ]
    kept = {path: world.files.text(path) if world.files.exists(path) else "" for path, _ in truth.kept}
    lost = [f"{path} lost a part of the change" for path, text in truth.kept if text not in kept[path]]
    issues = [change.key for change in start.issues.diff(world.issues) if change.key not in truth.issues]
    return [*files, *lost, *(f"issue {key} was changed" for key in issues)]


verifier = qn.Verifier(sound_call, informed, changed, tested, repaired, found, closed, untouched, combine="product")
