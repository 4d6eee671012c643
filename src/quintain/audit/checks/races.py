"""Class 9, races, tracebacks and load: checks that no input and no other session breaks an episode.

Odd input (`_race_fuzz`), sessions at the same time and under load, one instance for many threads (`_race_sessions`),
and what is left when episodes are over (`_race_leaks`).
"""

from __future__ import annotations

from ._race_contents import odd_contents
from ._race_fuzz import goes_on, odd_answers, odd_calls
from ._race_halves import half_characters
from ._race_leaks import close, resources
from ._race_memory import memory
from ._race_rows import every_row
from ._race_sessions import concurrent_sessions, linearizable, load
from ._race_state import state_contract
from ._race_stopped import stopped_midway

__all__ = [
    "close",
    "concurrent_sessions",
    "every_row",
    "goes_on",
    "half_characters",
    "linearizable",
    "load",
    "memory",
    "odd_answers",
    "odd_calls",
    "odd_contents",
    "resources",
    "state_contract",
    "stopped_midway",
]
