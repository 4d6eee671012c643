"""stale_cache: files are read through a cache that `edit` does not clear.

`write` clears the entry of its file. `edit` was added later and changes the file past the cache: who reads the file
after an edit sees it as it was before.
"""

from __future__ import annotations

import msgspec

from quintain.environments.coding.environment import env as sound
from quintain.environments.coding.state import Coding
from quintain.environments.twins import in_place_of, poisoned
from quintain.resources.repository import Line, Path


class CachedCoding(Coding):
    """A repository whose files are read once."""

    cache: dict[str, str] = msgspec.field(default_factory=dict[str, str])

    @in_place_of(Coding.read)
    def read(self, path: Path, first: Line = 1, last: Line | None = None) -> str:
        key = f"{path}:{first}:{last}"
        if key not in self.cache:
            self.cache[key] = Coding.read(self, path, first, last)
        return self.cache[key]

    @in_place_of(Coding.write)
    def write(self, path: Path, text: str) -> str:
        self.cache = {key: lines for key, lines in self.cache.items() if not key.startswith(f"{path}:")}
        return Coding.write(self, path, text)


env = poisoned(sound, "stale_cache", state=CachedCoding)
