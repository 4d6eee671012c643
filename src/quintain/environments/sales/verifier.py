"""V: what the desk's work is worth, call by call, turn by turn, milestone by milestone, and as a whole.

The score is the product of three: how much of the job is done, how little else was touched, and whether the rules
were kept. Done counts by its square, so that setting every status to "success" and going home is worth little.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import quintain as qn
from quintain.environments.faults import reach

from .compliance import breaches
from .damage import unasked
from .goals import Goal, Truth
from .state import Sales

READS = frozenset({"crm_get", "crm_history", "mail_read"})
"""Tools that show what the job is about."""


@qn.reward(level="step")
def sound_call(effect: qn.StepView[Sales]) -> qn.Score:
    """1 for a call that the world could carry out, or that met a planned fault."""
    if effect.step.is_error and effect.step.fault is None:
        return qn.Score(0.0, f"{effect.step.call.name} was refused")
    return qn.Score(1.0)


@qn.reward(level="step")
def lawful_call(effect: qn.StepView[Sales]) -> qn.Score:
    """0 for a call that broke a rule about e-mails."""
    before = breaches(effect.before, effect.task.truth)
    after = breaches(effect.after, effect.task.truth)
    new = [one for one in [*after.forbidden, *after.careless] if one not in {*before.forbidden, *before.careless}]
    return qn.Score(float(not new), "; ".join(new))


@qn.reward(level="turn", low=-1.0, high=1.0)
def progress(turn: qn.TurnView[Sales]) -> qn.Score:
    """Share of the goals that this turn reached, less those that it undid; adds up to the share reached at the end."""
    wanted: Sequence[Goal] = turn.task.truth.goals
    before = {goal for goal in wanted if goal.missing(turn.before)}
    after = {goal for goal in wanted if goal.missing(turn.after)}
    moved = (len(before) - len(after)) / len(wanted)
    return qn.Score(moved, f"{len(before - after)} goals reached, {len(after - before)} undone" if moved else "")


@qn.phase()
def informed(turn: qn.TurnView[Sales]) -> bool:
    """The agent has read a record that the job is about."""
    focus = set(turn.task.truth.focus)
    read = [step for step in turn.turn.steps if step.call.name in READS and not step.is_error]
    return any(focus & set(map(str, json.loads(step.call.arguments).values())) for step in read)


@qn.phase(after="informed")
def acted(turn: qn.TurnView[Sales]) -> bool:
    """Everything is done, but perhaps not everything noted."""
    return not any(goal.missing(turn.after) for goal in turn.task.truth.goals if not goal.records)


@qn.phase(after="acted")
def recorded(turn: qn.TurnView[Sales]) -> bool:
    """Everything is done and noted."""
    return not any(goal.missing(turn.after) for goal in turn.task.truth.goals)


@qn.reward
def done(outcome: qn.EpisodeView[Sales]) -> qn.Score:
    """The share of the goals reached, squared."""
    truth: Truth = outcome.task.truth
    missing = [reason for goal in truth.goals if (reason := goal.missing(outcome.state))]
    share = (len(truth.goals) - len(missing)) / len(truth.goals)
    return qn.Score(share * share, "; ".join(missing))


@qn.reward
def untouched(outcome: qn.EpisodeView[Sales]) -> qn.Score:
    """1 when nothing changed but what the job asked for; half for one stray change, 0 for more."""
    reach(outcome.state)  # every row is read anew: what cannot be read cannot be judged
    stray = unasked(outcome.task.truth, outcome.task.world(), outcome.state)
    return qn.Score(max(0.0, 1.0 - len(stray) / 2), "; ".join(stray))


@qn.reward
def lawful(outcome: qn.EpisodeView[Sales]) -> qn.Score:
    """0 when somebody got an e-mail who had opted out; each other breach of the rules about e-mails halves it."""
    forbidden, careless = breaches(outcome.state, outcome.task.truth)
    return qn.Score(0.0 if forbidden else 0.5 ** len(careless), "; ".join([*forbidden, *careless]))


verifier = qn.Verifier(
    sound_call, lawful_call, progress, informed, acted, recorded, done, untouched, lawful, combine="product"
)
