"""V: scores the desk's work call by call, turn by turn, milestone by milestone, and as a whole.

The score is a product: whether the cause is repaired, whether the replies hold the facts, how the ticket is filed, what
else changed, and whether the rules were kept. A solved ticket without the repair is worth nothing.
"""

from __future__ import annotations

import json

import quintain as qn
from quintain.authoring import lawful_step, scores, sound_call
from quintain.environments.faults import reach

from .compliance import breaches
from .damage import unasked
from .goals import CHECKLIST, Answer, Field, Goal
from .state import Support

READS = frozenset({"get_ticket", "search_tickets"})
"""Tools that show what the customer has written."""


@qn.reward(level="step")
def lawful_call(effect: qn.StepView[Support]) -> qn.Score:
    """Scores 0 for a call that broke a rule; a promise that time alone broke counts at the next act."""
    if effect.before.db.digest() == effect.after.db.digest():
        return qn.Score(1.0)
    said = lawful_step(breaches(effect.task, effect.before), breaches(effect.task, effect.after))
    return said if said.value or effect.before.db.diff(effect.after.db) else qn.Score(1.0)


@qn.reward(level="turn", low=-1.0, high=1.0)
def progress(turn: qn.TurnView[Support]) -> qn.Score:
    """Scores the share of the goals that this turn reached; the scores add up to the share reached at the end."""
    return CHECKLIST.progress(turn)


@qn.phase()
def informed(turn: qn.TurnView[Support]) -> bool:
    """The agent has read a ticket of the job."""
    read = [step for step in turn.turn.steps if step.call.name in READS and not step.is_error]
    return any(json.loads(step.call.arguments).get("ticket_id") in turn.task.truth.tickets for step in read)


@qn.phase(after="informed")
def repaired_it(turn: qn.TurnView[Support]) -> bool:
    """The cause is repaired; where nothing is broken, the reply explains it."""
    return not _unrepaired(turn.task, turn.after)


@qn.phase(after="repaired_it")
def closed_it(turn: qn.TurnView[Support]) -> bool:
    """The replies hold all facts as well, and the ticket is filed as it should be."""
    return not CHECKLIST.reasons(turn.task, turn.after)


@qn.reward
def repaired(outcome: qn.EpisodeView[Support]) -> qn.Score:
    """Scores 1 when the whole cause is repaired, else 0; where nothing is broken, when the replies hold all facts."""
    missing = _unrepaired(outcome.task, outcome.state)
    return qn.Score(float(not missing), "; ".join(missing))


@qn.reward
def answered(outcome: qn.EpisodeView[Support]) -> qn.Score:
    """Scores the share of the facts that the replies hold, over all tickets of the job; 0 without a reply."""
    start, answers = outcome.task.world(), [goal for goal in outcome.task.truth.goals if isinstance(goal, Answer)]
    share = sum(goal.share(outcome.state, start) for goal in answers) / len(answers)
    missing = CHECKLIST.reasons(outcome.task, outcome.state, lambda goal: isinstance(goal, Answer))
    return qn.Score(share, "; ".join(missing))


@qn.reward
def filed(outcome: qn.EpisodeView[Support]) -> qn.Score:
    """The share of the ticket's fields that are as the rules say."""
    missing = CHECKLIST.reasons(outcome.task, outcome.state, _is_filing)
    return qn.Score(1.0 - len(missing) / sum(map(_is_filing, outcome.task.truth.goals)), "; ".join(missing))


@qn.reward
def untouched(outcome: qn.EpisodeView[Support]) -> qn.Score:
    """Scores 1 when nothing changed but what the job asked for; half for one stray change, 0 for more."""
    reach(outcome.state)  # Every row is read anew: what cannot be read cannot be judged.
    return scores.untouched(unasked(outcome.task, outcome.state))


@qn.reward
def lawful(outcome: qn.EpisodeView[Support]) -> qn.Score:
    """Scores 0 when others' data was sent out or money given beyond the limit; any other breach halves."""
    return scores.lawful(breaches(outcome.task, outcome.state))


def _is_filing(goal: Goal) -> bool:
    return isinstance(goal, Field) and goal.is_filing


def _unrepaired(task: qn.Task[Support], world: Support) -> list[str]:
    asks_only: bool = task.truth.asks_only
    return CHECKLIST.reasons(
        task, world, lambda goal: not _is_filing(goal) and (asks_only or not isinstance(goal, Answer))
    )


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
