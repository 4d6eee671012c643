"""Exit statuses of the commands."""

from __future__ import annotations

from quintain.errors import QuintainError, ReplayDivergence, RunStopped
from quintain.record import PersistenceError

FAILED = 1
USAGE = 2
STOPPED = 3
SUBJECT = 4
"""The subject of an audit could not run."""
UNCHECKED = 5
"""An audit proved no error, but checked too little to say that there is none."""
INTERRUPTED = 130
"""As a shell reports a program that SIGINT ended."""
TERMINATED = 143
"""The same of SIGTERM."""


def status(error: QuintainError) -> int:
    """Returns the exit status for an error."""
    if isinstance(error, RunStopped):
        return STOPPED
    if isinstance(error, ReplayDivergence | PersistenceError):
        return FAILED
    return USAGE
