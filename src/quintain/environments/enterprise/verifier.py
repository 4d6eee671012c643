"""V: the world must be what the goal leads to, and nothing else may have changed.

Whatever a step or a turn is worth is for credit assignment. The score is the product of the last two criteria.
"""

from __future__ import annotations

import quintain as qn
from quintain.authoring import sound_call

from .desk import Desk
from .goals import CallGoal, Verdict, judge


@qn.reward(level="step")
def own_name(effect: qn.StepView[Desk]) -> qn.Score:
    """Scores 0 for a call that changed records in the name of another employee than the task's."""
    goal: CallGoal = effect.task.truth
    if effect.before.actor == goal.actor or not effect.before.db.diff(effect.after.db):
        return qn.Score(1.0)
    return qn.Score(0.0, f"EMP-{effect.before.actor} wrote, not EMP-{goal.actor}")


@qn.reward(level="turn", low=-1.0, high=1.0)
def progress(turn: qn.TurnView[Desk]) -> qn.Score:
    """Share of the wanted facts that this turn established, less those that it undid.

    It is measured from the task's own start; on a day on which an earlier task went wrong, that is not where the
    episode began.
    """
    if turn.before.db.digest() == turn.after.db.digest():
        return qn.Score(0.0)
    start, goal = turn.task.world(), turn.task.truth
    before, after = judge(goal, start, turn.before), judge(goal, start, turn.after)
    return qn.Score((len(before.missing) - len(after.missing)) / after.total)


@qn.phase()
def signed_in(turn: qn.TurnView[Desk]) -> bool:
    """The task's employee is signed in."""
    goal: CallGoal = turn.task.truth
    return turn.after.actor == goal.actor


@qn.phase(after="signed_in")
def begun(turn: qn.TurnView[Desk]) -> bool:
    """A call of the goal was carried out."""
    goal: CallGoal = turn.task.truth
    wanted = {name for name, _ in goal.calls}
    return any(step.call.name in wanted and not step.is_error for step in turn.turn.steps)


@qn.phase(after="begun")
def finished(turn: qn.TurnView[Desk]) -> bool:
    """Every tool that the goal needs was used with success by now, the last one in this turn."""
    goal: CallGoal = turn.task.truth
    last = {goal.calls[-1][0]}
    if not any(step.call.name in last and not step.is_error for step in turn.turn.steps):
        return False
    return not judge(goal, turn.task.world(), turn.after).missing


@qn.reward
def done(outcome: qn.EpisodeView[Desk]) -> qn.Score:
    """The share of the wanted facts that hold, squared; 0 where nothing of the goal can be done."""
    verdict = _verdict(outcome)
    if not verdict.total:
        return qn.Score(0.0, "nothing of this can be done in this world: " + "; ".join(verdict.left_out))
    share = 1.0 - len(verdict.missing) / verdict.total
    return qn.Score(share * share, "; ".join(verdict.missing))


@qn.reward
def untouched(outcome: qn.EpisodeView[Desk]) -> qn.Score:
    """1 when nothing changed but what the goal leads to; half for one stray fact, 0 for more."""
    stray = _verdict(outcome).stray
    return qn.Score(max(0.0, 1.0 - len(stray) / 2), "; ".join(stray[:20]))


def _verdict(outcome: qn.EpisodeView[Desk]) -> Verdict:
    return judge(outcome.task.truth, outcome.start, outcome.state)


verifier = qn.Verifier(sound_call, own_name, progress, signed_in, begun, finished, done, untouched, combine="product")
