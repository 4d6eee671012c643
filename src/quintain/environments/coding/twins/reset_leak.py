"""reset_leak: the process keeps the results of searches, and the next episode gets them.

A search reads all files, so its matches are kept until a file changes. They are kept by the class: the next episode in
this process that searches for the same text gets the lines of another repository, or of another version.
"""

from __future__ import annotations

from typing import ClassVar

from quintain.environments.coding.environment import env as sound
from quintain.environments.coding.state import Coding
from quintain.environments.twins import in_place_of, poisoned
from quintain.resources.repository import Path, Text


class IndexedCoding(Coding):
    """A repository that searches once for the same text."""

    matches: ClassVar[dict[tuple[str, str], list[str]]] = {}

    @in_place_of(Coding.search)
    def search(self, text: Text, glob: str = "**") -> list[str]:
        if (text, glob) not in self.matches:
            self.matches[text, glob] = Coding.search(self, text, glob)
        return self.matches[text, glob]

    @in_place_of(Coding.write)
    def write(self, path: Path, text: str) -> str:
        self.matches.clear()
        return Coding.write(self, path, text)

    @in_place_of(Coding.edit)
    def edit(self, path: Path, old: Text, new: str) -> str:
        self.matches.clear()
        return Coding.edit(self, path, old, new)


env = poisoned(sound, "reset_leak", state=IndexedCoding)
