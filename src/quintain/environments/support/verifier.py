"""V: what the desk's work is worth, call by call, turn by turn, milestone by milestone, and as a whole.

The score is a product: whether the cause is repaired, whether the customer was told, how the ticket is filed, what else
was touched, and whether the rules were kept. A solved ticket without the repair is worth nothing.
"""

from __future__ import annotations

import json

import quintain as qn
from quintain.environments.faults import reach

from .compliance import breaches
from .damage import unasked
from .goals import Field, Told, Truth
from .state import Support

READS = frozenset({"get_ticket", "search_tickets"})
"""Tools that show what the customer has written."""


@qn.reward(level="step")
def sound_call(effect: qn.StepView[Support]) -> qn.Score:
    """1 for a call that the world could carry out, or that met a planned fault."""
    if effect.step.is_error and effect.step.fault is None:
        return qn.Score(0.0, f"{effect.step.call.name} was refused")
    return qn.Score(1.0)


@qn.reward(level="step")
def lawful_call(effect: qn.StepView[Support]) -> qn.Score:
    """0 for a call that broke a rule; a promise that was broken meanwhile is told at the next act."""
    if not effect.before.db.diff(effect.after.db):
        return qn.Score(1.0)
    truth, start = effect.task.truth, effect.task.world()
    before, after = breaches(truth, start, effect.before), breaches(truth, start, effect.after)
    new = [one for one in [*after.forbidden, *after.careless] if one not in {*before.forbidden, *before.careless}]
    return qn.Score(float(not new), "; ".join(new))


@qn.reward(level="turn", low=-1.0, high=1.0)
def progress(turn: qn.TurnView[Support]) -> qn.Score:
    """Share of the goals that this turn reached, less those that it undid; adds up to the share reached at the end."""
    truth: Truth = turn.task.truth
    start = turn.task.world()
    before = [goal.missing(turn.before, start) for goal in truth.goals]
    after = [goal.missing(turn.after, start) for goal in truth.goals]
    reached = sum(bool(old) and not new for old, new in zip(before, after, strict=True))
    undone = sum(bool(new) and not old for old, new in zip(before, after, strict=True))
    why = f"{reached} goals reached, {undone} undone" if reached or undone else ""
    return qn.Score((reached - undone) / len(truth.goals), why)


@qn.phase()
def informed(turn: qn.TurnView[Support]) -> bool:
    """The agent has read a ticket of the job."""
    read = [step for step in turn.turn.steps if step.call.name in READS and not step.is_error]
    return any(json.loads(step.call.arguments).get("ticket_id") in turn.task.truth.tickets for step in read)


@qn.phase(after="informed")
def repaired_it(turn: qn.TurnView[Support]) -> bool:
    """The cause is repaired; where nothing is broken, the customer was told so."""
    return not _unrepaired(turn.task, turn.after)


@qn.phase(after="repaired_it")
def closed_it(turn: qn.TurnView[Support]) -> bool:
    """The customer was told as well, and the ticket is filed as it should be."""
    start = turn.task.world()
    return not any(goal.missing(turn.after, start) for goal in turn.task.truth.goals)


@qn.reward
def repaired(outcome: qn.EpisodeView[Support]) -> qn.Score:
    """1 when the whole cause is repaired, else 0; where nothing is broken, when the customer was told all of it."""
    missing = _unrepaired(outcome.task, outcome.state)
    return qn.Score(float(not missing), "; ".join(missing))


@qn.reward
def answered(outcome: qn.EpisodeView[Support]) -> qn.Score:
    """The share of the facts that the customer was told, over all tickets of the job; 0 without a reply."""
    start, told = outcome.task.world(), [goal for goal in outcome.task.truth.goals if isinstance(goal, Told)]
    share = sum(goal.share(outcome.state, start) for goal in told) / len(told)
    return qn.Score(share, "; ".join(filter(None, (goal.missing(outcome.state, start) for goal in told))))


@qn.reward
def filed(outcome: qn.EpisodeView[Support]) -> qn.Score:
    """The share of the ticket's fields that are as the rules say."""
    wanted = [goal for goal in outcome.task.truth.goals if isinstance(goal, Field) and goal.is_filing]
    missing = list(filter(None, (goal.missing(outcome.state, outcome.task.world()) for goal in wanted)))
    return qn.Score(1.0 - len(missing) / len(wanted), "; ".join(missing))


@qn.reward
def untouched(outcome: qn.EpisodeView[Support]) -> qn.Score:
    """1 when nothing changed but what the job asked for; half for one stray change, 0 for more."""
    reach(outcome.state)  # every row is read anew: what cannot be read cannot be judged
    stray = unasked(outcome.task.truth, outcome.task.world(), outcome.state)
    return qn.Score(max(0.0, 1.0 - len(stray) / 2), "; ".join(stray))


@qn.reward
def lawful(outcome: qn.EpisodeView[Support]) -> qn.Score:
    """0 when others' data was told or money given beyond the limit; any other breach halves."""
    forbidden, careless = breaches(outcome.task.truth, outcome.task.world(), outcome.state)
    return qn.Score(0.0 if forbidden else 0.5 ** len(careless), "; ".join([*forbidden, *careless]))


def _unrepaired(task: qn.Task[Support], world: Support) -> list[str]:
    truth: Truth = task.truth
    start = task.world()
    repairs = [
        goal
        for goal in truth.goals
        if not (isinstance(goal, Field) and goal.is_filing) and (truth.asks_only or not isinstance(goal, Told))
    ]
    return list(filter(None, (goal.missing(world, start) for goal in repairs)))


verifier = qn.Verifier(
    sound_call,
    lawful_call,
    progress,
    informed,
    repaired_it,
    closed_it,
    repaired,
    answered,
    filed,
    untouched,
    lawful,
    combine="product",
)
