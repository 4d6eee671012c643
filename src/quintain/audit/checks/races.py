"""Class 9, races and tracebacks: checks that no input and no other session breaks an episode.

Odd input (`_race_fuzz`), sessions at the same time, one instance for many threads (`_race_sessions`), and what is left
when episodes are over (`_race_leaks`).
"""

from __future__ import annotations

from ._half_done import refused_and_half_done
from ._race_contents import odd_contents
from ._race_fuzz import odd_answers, odd_calls
from ._race_halves import half_characters
from ._race_leaks import memory, resources
from ._race_rows import every_row
from ._race_sessions import concurrent_sessions, linearizable
from ._race_state import state_contract
from ._race_stopped import stopped_midway

__all__ = [
    "concurrent_sessions", "every_row", "half_characters", "linearizable", "memory", "odd_answers", "odd_calls",
    "odd_contents", "refused_and_half_done", "resources", "state_contract", "stopped_midway",
]  # fmt: skip
