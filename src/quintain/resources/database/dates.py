"""SQL's functions of time in a world whose zone is UTC.

SQLite asks the machine for its zone when it meets the modifiers 'localtime' and 'utc', wherever they come from: text,
a bound value, a column. So calls that have modifiers at all go through here, where these two do nothing; then a second
connection, which has the same clock and no tables, computes them. That takes 2 us a call; those without modifiers, such
as `datetime('now')`, are SQLite's own and take 0.2.
"""

from __future__ import annotations

import functools
from typing import Any

import apsw

_BEFORE = {"date": 1, "time": 1, "datetime": 1, "julianday": 1, "unixepoch": 1, "strftime": 2}
"""Arguments that come before the modifiers."""
_MODIFIERS = 20
"""More modifiers than in any real call."""
_ZONES = {"localtime", "utc"}
_NOTHING = "+0 days"


class Dates:
    """Date functions for one connection.

    Args:
        system: Name of the file system that has the time.
    """

    def __init__(self, system: str) -> None:
        self._system = system
        self._sqlite: Any = None

    def install(self, sqlite: Any) -> None:
        """Takes the place of SQLite's own functions in this connection."""
        for name, before in _BEFORE.items():
            call = functools.partial(self._call, name)
            for count in range(before + 1, before + _MODIFIERS + 1):
                sqlite.create_scalar_function(name, call, count, deterministic=True)

    def close(self) -> None:
        if self._sqlite is not None:
            self._sqlite.close(force=True)

    def _call(self, name: str, *arguments: Any) -> Any:
        if self._sqlite is None:
            self._sqlite = apsw.Connection(":memory:", vfs=self._system)
        before = _BEFORE[name]
        values = list(arguments)
        for place in range(before, len(values)):
            value = values[place]
            if isinstance(value, str) and value.lower() in _ZONES:
                values[place] = _NOTHING
        return self._sqlite.execute(_select(name, len(values)), values).get


@functools.cache
def _select(name: str, count: int) -> str:
    return f"SELECT {name}({', '.join('?' * count)})"
