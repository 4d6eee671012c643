"""action_drift: issues come oldest first, and the description still says newest first.

A tracker was replaced by one that lists in the order of the numbers. An agent that believes the description takes the
first issue for the newest report, and it is the oldest.
"""

from __future__ import annotations

from typing import Literal

from quintain.environments.coding.environment import env as sound
from quintain.environments.coding.state import Coding, Listed
from quintain.environments.twins import in_place_of, poisoned


class DriftedCoding(Coding):
    """A repository with such a tracker."""

    @in_place_of(Coding.list_issues)
    def list_issues(self, status: Literal["open", "closed"] = "open") -> list[Listed]:
        return Coding.list_issues(self, status)[::-1]


env = poisoned(sound, "action_drift", state=DriftedCoding)
