"""Keys of requests that another process was given to answer: they are of these requests, here where they lead, too."""

from __future__ import annotations

from collections import OrderedDict

from .journal.entries import Closed, Log, Passed

MOST = 20_000
"""Keys that are known; of more, the oldest are forgotten."""


class PassedOn:
    """They, of one process.

    Args:
        log: Where they are written down.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._known = OrderedDict(log.passed)

    def request(self, id: str) -> str | None:
        """Digest of the request that was passed on.

        Args:
            id: What it makes would be called here.
        """
        return self._known.get(id)

    def add(self, id: str, request: str) -> None:
        """A request is about to be passed on.

        Raises:
            Unavailable: It cannot be written down, so it must not be.
        """
        if id not in self._known:
            self._log.write(Passed(id, request))
            self._known[id] = request
        if len(self._known) > MOST:
            self.drop(next(iter(self._known)))

    def drop(self, id: str) -> None:
        """It was refused, so that nothing was done under its key."""
        if self._known.pop(id, None) is not None:
            self._log.write(Closed(id))
