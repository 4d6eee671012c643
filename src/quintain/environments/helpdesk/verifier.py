"""V: scores of the desk's work, call by call, turn by turn, phase by phase, and as a whole.

The score is a product. What the solution changes and says is the standard; how it was done is free. The factors of
time, satisfaction and service levels are 1 for work that is as fast and as good as that of the solution.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

import quintain as qn
from quintain.authoring import Checklist, per_task, scores
from quintain.authoring import squared as squared_share
from quintain.products.zendesk import tables as tb
from quintain.resources.web.noise import REFUSALS
from quintain.resources.web.rows import select
from quintain.trace import Step

from .draft import Truth
from .effects import Effect, Fact, Key, breached, effects, said
from .state import Helpdesk

CHECKLIST: Checklist[Helpdesk] = Checklist(content=lambda world: world.db.digest())
_READS = frozenset(
    {"show_ticket", "list_comments", "show_tickets", "search", "list_metric_events", "list_groups", "goto", "click"}
)


def _answered_well(step: Step) -> bool:
    """Returns True for a call that was carried out: a refusal of the API begins with its status."""
    return not step.is_error and re.match(r"[345]\d\d\n", str(step.observation)) is None


@qn.reward(level="step")
def possible(effect: qn.StepView[Helpdesk]) -> qn.Score:
    """Scores 1 for a call that the product carried out; not judged where the refusal was planned."""
    text = str(effect.step.observation)
    if effect.step.fault in REFUSALS:
        return qn.Score(None, "a planned refusal")
    return qn.Score(float(_answered_well(effect.step)), "" if _answered_well(effect.step) else text[:80])


@qn.reward(level="step")
def on_task(effect: qn.StepView[Helpdesk]) -> qn.Score:
    """Scores 0 for a call about a single ticket that is none of the task's."""
    if "ticket" not in effect.step.call.name or effect.step.is_error:
        return qn.Score(1.0)
    number = msgspec.json.decode(effect.step.call.arguments or "{}").get("id")
    known = effect.task.truth.tickets
    start = effect.task.world().tickets
    stray = number is not None and number not in known and not (isinstance(number, int) and number > start)
    return qn.Score(float(not stray), f"ticket {number} is not part of the task" if stray else "")


@qn.reward(level="step", low=-1.0, high=0.0)
def idle(effect: qn.StepView[Helpdesk]) -> qn.Score:
    """Scores -1 for a call that showed nothing new and changed nothing."""
    is_idle = not effect.after.is_fresh and not _changed(effect) and effect.step.fault is None
    return qn.Score(-float(is_idle), "nothing new" if is_idle else "")


@qn.reward(level="step")
def effect(view: qn.StepView[Helpdesk]) -> qn.Score:
    """Scores 1 for a call that changed rows."""
    return qn.Score(float(_changed(view)))


def _changed(view: qn.StepView[Helpdesk]) -> bool:
    return bool(view.before.db.digest() != view.after.db.digest())


@qn.reward(level="turn", low=-1.0, high=1.0)
def progress(turn: qn.TurnView[Helpdesk]) -> qn.Score:
    """Scores the share of the goals that this turn reached; the scores add up to the share reached at the end."""
    if not turn.task.truth.goals:
        return qn.Score(0.0)
    return CHECKLIST.progress(turn)


@qn.phase()
def opened(turn: qn.TurnView[Helpdesk]) -> bool:
    """The agent has read something of the account."""
    return any(step.call.name in _READS and _answered_well(step) for step in turn.turn.steps)


@qn.phase(after="opened")
def classified(turn: qn.TurnView[Helpdesk]) -> bool:
    """Fields, tags and rules are as they should be; statuses come later."""
    return not CHECKLIST.reasons(turn.task, turn.after, lambda one: not _is_said(one) and not _is_status(one))


@qn.phase(after="classified")
def responded(turn: qn.TurnView[Helpdesk]) -> bool:
    """Replies and notes hold all facts."""
    return not CHECKLIST.reasons(turn.task, turn.after, _is_said)


@qn.phase(after="responded")
def resolved(turn: qn.TurnView[Helpdesk]) -> bool:
    """All goals are reached."""
    return not CHECKLIST.reasons(turn.task, turn.after)


def _is_said(goal: Any) -> bool:
    return isinstance(goal, Fact) or (isinstance(goal, Effect) and goal.table == "zd_comments")


def _is_status(goal: Any) -> bool:
    return isinstance(goal, Effect) and goal.field == "status"


@qn.reward
def changed(outcome: qn.EpisodeView[Helpdesk]) -> qn.Score:
    """Scores the share of the wanted changes, squared; not judged where none is wanted."""
    goals = [one for one in outcome.task.truth.goals if not _is_said(one)]
    if not goals:
        return qn.Score(None, "no change is wanted")
    return squared_share(CHECKLIST.reasons(outcome.task, outcome.state, lambda one: not _is_said(one)), len(goals))


@qn.reward
def answered(outcome: qn.EpisodeView[Helpdesk]) -> qn.Score:
    """Scores the share of the facts that replies, notes and the answer hold, squared."""
    truth: Truth = outcome.task.truth
    goals = [one for one in truth.goals if _is_said(one)]
    missing = CHECKLIST.reasons(outcome.task, outcome.state, _is_said)
    if truth.answer_due and outcome.answer.casefold().split() != truth.answer_due.casefold().split():
        missing.append(f"the answer is not {truth.answer_due!r}")
    total = len(goals) + bool(truth.answer_due)
    return squared_share(missing, total) if total else qn.Score(None, "nothing is to be said")


def _content(world: Helpdesk) -> str:
    return str(world.db.digest())


@per_task(_content)
def stray(task: qn.Task[Helpdesk], world: Helpdesk) -> list[str]:
    """Returns the effects that the task did not want. Internal notes on its tickets are free."""
    truth: Truth = task.truth
    wanted = {one.key for one in truth.goals if isinstance(one, Effect)}
    free = {f"new ticket_id={number}, public=0" for number in truth.tickets}
    return [_words(key) for key in effects(task.world(), world) if key not in wanted and not _is_free(key, free)]


def _is_free(key: Key, notes: set[str]) -> bool:
    return key[0] == "zd_comments" and key[1].rpartition(", author_id")[0] in notes


def _words(key: Key) -> str:
    return " ".join(key).rstrip()


@qn.reward
def untouched(outcome: qn.EpisodeView[Helpdesk]) -> qn.Score:
    """Scores 1 when nothing changed but what is wanted; half for one stray change, 0 for more."""
    return scores.untouched(stray(outcome.task, outcome.state))


@qn.reward
def lawful(outcome: qn.EpisodeView[Helpdesk]) -> qn.Score:
    """Scores 0 if a reply holds what it may not hold, such as another amount or data of an account."""
    start = outcome.task.world()
    broken = [
        f"a reply on {number} holds {pattern}"
        for number, pattern in outcome.task.truth.never
        if re.search(pattern, said(start, outcome.state, number, public=True), re.IGNORECASE)
    ]
    return qn.Score(float(not broken), "; ".join(broken))


@qn.reward
def resolution_time(outcome: qn.EpisodeView[Helpdesk]) -> qn.Score:
    """Scores 1 within the budget of the task's time, which is three times that of the solution; later less."""
    spent = outcome.state.clock.now - outcome.task.world().clock.now
    budget: float = outcome.task.truth.budget_s
    return qn.Score(min(1.0, budget / spent) if spent > budget else 1.0, f"{spent / 60:.0f} minutes")


@qn.reward
def satisfaction(outcome: qn.EpisodeView[Helpdesk]) -> qn.Score:
    """Scores the rating that customers would give: all their facts at once, and not more than two letters.

    A customer who is left without facts halves the score of the share; not judged where no reply is wanted.
    """
    start, goals = outcome.task.world(), outcome.task.truth.goals
    asked = {one.ticket for one in goals if isinstance(one, Fact) and one.public}
    if not asked:
        return qn.Score(None, "no customer waits for a reply")
    bad = {one.ticket for one in goals if isinstance(one, Fact) and one.public and one.missing(outcome.state, start)}
    where = "ticket_id = ? AND public = 1 AND by_agent = 1"
    for number in asked - bad:
        letters = [len(select(world.db, tb.Comment, where, number)) for world in (start, outcome.state)]
        bad |= {number} if letters[1] - letters[0] > 2 else set()
    return qn.Score(1.0 - len(bad) / len(asked) / 2, ", ".join(f"ticket {one}" for one in sorted(bad)))


@qn.reward
def sla_compliance(outcome: qn.EpisodeView[Helpdesk]) -> qn.Score:
    """Scores the share of the scene's tickets without a breach that the solution avoids; not judged without a scene."""
    truth: Truth = outcome.task.truth
    if not truth.watched:
        return qn.Score(None, "no clock is the task's")
    new = [one for one in breached(outcome.state, truth.watched) if one not in truth.breached]
    return qn.Score(1.0 - len({one.split()[0] for one in new}) / len(truth.watched), ", ".join(new))


verifier = qn.Verifier(
    possible,
    on_task,
    idle,
    effect,
    progress,
    opened,
    classified,
    responded,
    resolved,
    changed,
    answered,
    untouched,
    lawful,
    resolution_time,
    satisfaction,
    sla_compliance,
    combine="product",
)
