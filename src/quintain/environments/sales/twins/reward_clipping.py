"""reward_clipping: the share of the goals is stretched to the range of an earlier model, and clipped.

That model reached between a quarter and three quarters of the goals. So who reaches three quarters gets all, with the
note or the letter left out, and who gets as far as a quarter gets no more than who does nothing.
"""

from __future__ import annotations

import quintain as qn
from quintain.environments.sales.environment import env as sound
from quintain.environments.sales.goals import CHECKLIST, Truth
from quintain.environments.sales.state import Sales
from quintain.environments.twins import poisoned

LOW, HIGH = 0.25, 0.75


@qn.reward
def done(outcome: qn.EpisodeView[Sales]) -> qn.Score:
    """The share of the goals reached, squared."""
    truth: Truth = outcome.task.truth
    missing = CHECKLIST.reasons(outcome.task, outcome.state)
    share = (len(truth.goals) - len(missing)) / len(truth.goals)
    stretched = min(1.0, max(0.0, (share - LOW) / (HIGH - LOW)))
    return qn.Score(stretched * stretched, "; ".join(missing))


env = poisoned(sound, "reward_clipping", criterion=done)
