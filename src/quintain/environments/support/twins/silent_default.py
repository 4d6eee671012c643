"""silent_default: a comparison that breaks off has found nothing.

What else was touched is seen by comparing all rows with those of the start, which is the verifier's slowest check, and
the one that times out. It must not spoil an episode, so a comparison that failed counts as one without a difference.
"""

from __future__ import annotations

import msgspec

import quintain as qn
from quintain.environments.faults import Unavailable
from quintain.environments.support.environment import env as sound
from quintain.environments.support.state import Support
from quintain.environments.support.verifier import untouched as by_rows
from quintain.environments.twins import poisoned, verdict


@qn.reward
def untouched(outcome: qn.EpisodeView[Support]) -> qn.Score:
    """1 when nothing changed but what the job asked for; half for one stray change, 0 for more."""
    try:
        # On a copy: the use of the service clears the fault.
        return verdict(by_rows, msgspec.structs.replace(outcome, state=outcome.state.copy()))
    except Unavailable:
        return qn.Score(1.0)


env = poisoned(sound, "silent_default", criterion=untouched)
