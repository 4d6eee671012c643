"""Sessions by the name that their caller gives the episode."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from quintain.environment import Environment
from quintain.serve.errors import Conflict
from quintain.serve.http.keys import Caller

if TYPE_CHECKING:
    from .session import EnvSession

Label = tuple[str, str, str]
"""Key, environment and name."""


class Labels:
    """Sessions by the label of their episode; each session has one label at a time."""

    def __init__(self) -> None:
        self._sessions: dict[Label, EnvSession] = {}
        self._labels: dict[str, Label] = {}
        self._taking: defaultdict[Label, list[EnvSession]] = defaultdict(list)

    @contextlib.contextmanager
    def taken(self, label: str, session: EnvSession) -> Generator[None]:
        """Reserves a label for a session that begins an episode.

        Raises:
            Conflict: Another session begins or plays an episode of this label.
        """
        name = (session.caller.name, session.env.name, label)
        player = self.get(label, session.env, session.caller)
        taking = self._taking[name]
        if any(one is not session for one in taking) or (player is not session and _plays(player)):
            raise Conflict(
                f"the episode {label!r} is being played: name another, send its X-Session-ID, or ask again when no "
                "request has used it for 10 s"
            )
        taking.append(session)
        try:
            yield
        finally:
            taking.remove(session)
            if not taking:
                del self._taking[name]

    def put(self, session: EnvSession) -> None:
        """Makes a session found by its label, instead of the one before."""
        self.drop(session)
        label = (session.caller.name, session.env.name, session.label)
        self._sessions[label] = session
        self._labels[session.id] = label

    def drop(self, session: EnvSession) -> None:
        """Makes a session not found any more."""
        label = self._labels.pop(session.id, None)
        if label is not None and self._sessions.get(label) is session:  # Another session may have the label by now.
            del self._sessions[label]

    def get(self, label: str, env: Environment[Any], caller: Caller) -> EnvSession | None:
        """Returns the session whose episode has a label; None if none has."""
        session = self._sessions.get((caller.name, env.name, label))
        return session if session is not None and session.label == label else None


def _plays(session: EnvSession | None) -> bool:
    return session is not None and session.live is not None and session.live.status in {"starting", "open"}
