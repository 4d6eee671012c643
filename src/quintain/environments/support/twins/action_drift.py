"""action_drift: the rules name a tool that was renamed.

The tool that checks who writes is `verify_identity`; the rules that the agent reads still call it `check_identity`. Who
follows them to the letter calls what does not exist.
"""

from __future__ import annotations

import quintain as qn
from quintain.environments.support.environment import env as sound
from quintain.environments.support.policy import POLICY
from quintain.environments.twins import poisoned

env = poisoned(sound, "action_drift", harness=qn.ToolLoop(system=POLICY.replace("verify_identity", "check_identity")))
