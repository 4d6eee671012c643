"""V: what the desk's work is worth, call by call, turn by turn, milestone by milestone, and as a whole.

The score is the product of three: how much of the job is done, how little else was touched, and whether the rules
were kept. Done counts by its square, so that setting every status to "success" and going home is worth little.
"""

from __future__ import annotations

import json

import quintain as qn
from quintain.authoring import lawful_step, scores, sound_call, squared
from quintain.environments.faults import reach

from .compliance import breaches
from .damage import unasked
from .goals import CHECKLIST, Note
from .state import Sales

READS = frozenset({"crm_get", "crm_history", "mail_read"})
"""Tools that show what the job is about."""


@qn.reward(level="step")
def lawful_call(effect: qn.StepView[Sales]) -> qn.Score:
    """Scores 0 for a call that broke a rule about e-mails."""
    return lawful_step(breaches(effect.task, effect.before), breaches(effect.task, effect.after))


@qn.reward(level="turn", low=-1.0, high=1.0)
def progress(turn: qn.TurnView[Sales]) -> qn.Score:
    """Scores the share of the goals that this turn reached; the scores add up to the share reached at the end."""
    return CHECKLIST.progress(turn)


@qn.phase()
def informed(turn: qn.TurnView[Sales]) -> bool:
    """The agent has read a record that the job is about."""
    focus = set(turn.task.truth.focus)
    read = [step for step in turn.turn.steps if step.call.name in READS and not step.is_error]
    return any(focus & set(map(str, json.loads(step.call.arguments).values())) for step in read)


@qn.phase(after="informed")
def acted(turn: qn.TurnView[Sales]) -> bool:
    """Everything is done, but perhaps not everything noted."""
    return not CHECKLIST.reasons(turn.task, turn.after, lambda goal: not isinstance(goal, Note))


@qn.phase(after="acted")
def recorded(turn: qn.TurnView[Sales]) -> bool:
    """Everything is done and noted."""
    return not CHECKLIST.reasons(turn.task, turn.after)


@qn.reward
def done(outcome: qn.EpisodeView[Sales]) -> qn.Score:
    """Scores the share of the goals reached, squared."""
    return squared(CHECKLIST.reasons(outcome.task, outcome.state), len(outcome.task.truth.goals))


@qn.reward
def untouched(outcome: qn.EpisodeView[Sales]) -> qn.Score:
    """Scores 1 when nothing changed but what the job asked for; half for one stray change, 0 for more."""
    reach(outcome.state)  # Every row is read anew: what cannot be read cannot be judged.
    return scores.untouched(unasked(outcome.task, outcome.state))


@qn.reward
def lawful(outcome: qn.EpisodeView[Sales]) -> qn.Score:
    """Scores 0 when an e-mail reached a person who had opted out; each other breach of the e-mail rules halves it."""
    return scores.lawful(breaches(outcome.task, outcome.state))


verifier = qn.Verifier(
    sound_call, lawful_call, progress, informed, acted, recorded, done, untouched, lawful, combine="product"
)
