"""action_drift: lines are counted from 0, and the descriptions still say from 1.

The reader was replaced by one that counts from 0. A comment takes numbers from 1 as before: an agent that comments on
the number it has read comments on the line before.
"""

from __future__ import annotations

from quintain.environments.coding.environment import env as sound
from quintain.environments.coding.state import Coding, Line, Path
from quintain.environments.twins import in_place_of, poisoned


class DriftedCoding(Coding):
    """A repository with such a reader."""

    @in_place_of(Coding.read)
    def read(self, path: Path, first: Line = 1, last: Line | None = None) -> str:
        lines = [line.partition("\t") for line in Coding.read(self, path, first, last).split("\n")]
        return "\n".join(f"{int(number) - 1}\t{text}" for number, _, text in lines)


env = poisoned(sound, "action_drift", state=DriftedCoding)
