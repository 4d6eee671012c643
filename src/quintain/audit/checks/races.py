"""Class 9, races and tracebacks: checks that no input and no other session breaks an episode.

Odd input (`_race_fuzz`), sessions at the same time, one instance for many threads (`_race_sessions`), and what is left
when episodes are over (`_race_leaks`).
"""

from __future__ import annotations

from ._race_contents import odd_contents as odd_contents
from ._race_fuzz import odd_answers as odd_answers
from ._race_fuzz import odd_calls as odd_calls
from ._race_halves import half_characters as half_characters
from ._race_leaks import memory as memory
from ._race_leaks import resources as resources
from ._race_rows import every_row as every_row
from ._race_sessions import concurrent_sessions as concurrent_sessions
from ._race_sessions import linearizable as linearizable
from ._race_state import state_contract as state_contract
from ._race_stopped import stopped_midway as stopped_midway
