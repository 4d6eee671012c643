"""Sessions of a server, by their ids and by the labels of their episodes."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from quintain.environment import Environment
from quintain.serve.episodes.actions import LEFT, LOST, Stop
from quintain.serve.episodes.host import Host
from quintain.serve.errors import Unavailable, Unknown
from quintain.serve.http.keys import Caller

from .labels import Labels
from .session import EnvSession

_NUMBER = re.compile(r"[1-9][0-9]{0,17}")
"""Number of an episode in its session, at the end of its id. Ids of clients may look the same."""
REUSE_S = 10.0
"""Seconds without a request after which another session may take the label of an episode that goes on."""
SWEEP_S = 5.0
"""Seconds between two searches for idle sessions."""


class Sessions:
    """All sessions of a process; `labels` finds them by what their episodes are called.

    Args:
        host: Its episodes.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._known: dict[str, EnvSession] = {}
        self.labels = Labels()
        self._is_sweeping = False

    def __contains__(self, session: EnvSession) -> bool:
        return session.id in self._known

    def __len__(self) -> int:
        return self._host.room.open("sessions")

    @property
    def most(self) -> int:
        """Most sessions at once."""
        return self._host.limits.episodes

    @property
    def draining(self) -> bool:
        """True while the server shuts down."""
        return self._host.draining

    @property
    def frame_bytes(self) -> int:
        """Length of the longest frame."""
        return self._host.limits.body_bytes

    @property
    def idle_s(self) -> float:
        """Seconds without a request after which an episode expires."""
        return self._host.limits.idle_s

    def open(self, env: Environment[Any], caller: Caller, *, attached: bool = False) -> EnvSession:
        """A new session without an episode.

        Raises:
            Full: There are too many.
            Unavailable: The server is shutting down.
        """
        if self._host.draining:
            raise Unavailable("the server is shutting down")
        self._host.room.enter("sessions", caller.name)
        session = EnvSession(self._host, env, caller, id=self._host.ids.new())
        session.attached = attached
        self._add(session)
        return session

    async def find(self, id: str, env: Environment[Any], caller: Caller) -> EnvSession:
        """A session by its id; one of an earlier run of this server when its episode is there again.

        Raises:
            Unknown: There is none for this caller and environment.
        """
        session = self._known.get(id) or self._resumed(id, env, caller)
        if session is None or session.env is not env or not caller.may(session.caller):
            raise Unknown(f"Unknown session_id: {id}")
        session.touch(caller)
        await session.catch_up()
        return session

    async def labelled(self, label: str, env: Environment[Any], caller: Caller) -> EnvSession:
        """A session by what its caller calls the episode.

        Args:
            label: That.
            env: The environment.
            caller: He.

        Raises:
            Unknown: There is none.
        """
        session = self.labels.get(label, env, caller)
        if session is not None:
            session.touch(caller)
            return session
        session = self._resumed(label.rpartition("-")[0], env, caller)
        if session is None or session.label != label:
            raise Unknown(f"there is no episode {label!r}: POST /reset begins one")
        session.touch(caller)
        await session.catch_up()
        return session

    async def close(self, session: EnvSession, why: Stop = LEFT) -> None:
        """Closes a session and its episode.

        Args:
            session: The session.
            why: End of an episode that goes on.
        """
        self._remove(session)
        await session.close(why)

    async def release(self, label: str, session: EnvSession) -> None:
        """Closes another session whose episode has this label, if it is not in use any more."""
        other = self.labels.get(label, session.env, session.caller)
        if other not in (None, session) and other.is_idle(REUSE_S):
            await self.close(other, LOST)

    def _resumed(self, id: str, env: Environment[Any], caller: Caller) -> EnvSession | None:
        """A session for the last of the episodes that the host knows, and this server does not, by its id."""
        if id in self._known:
            return None
        mine = [one for one in self._host.lives(caller) if one.id.startswith(f"{id}-") and one.env.name == env.name]
        mine = [one for one in mine if _NUMBER.fullmatch(one.id, len(id) + 1)]
        if not id or not mine:
            return None
        last = max(mine, key=lambda one: int(one.id.rpartition("-")[2]))
        session = EnvSession(self._host, env, last.owner, id=id)
        session.resume(last)
        self._host.room.add("sessions", session.caller.name, 1)
        self._add(session)
        self.labels.put(session)
        return session

    def _add(self, session: EnvSession) -> None:
        self._known[session.id] = session
        if not self._is_sweeping:
            self._sweep()

    def _remove(self, session: EnvSession) -> None:
        if self._known.pop(session.id, None) is not None:
            self.labels.drop(session)
            self._host.room.add("sessions", session.caller.name, -1)

    def _sweep(self) -> None:
        """Forgets idle sessions, at intervals while there are any."""
        for session in [one for one in self._known.values() if one.is_idle(self.idle_s)]:
            # Its episode expires with the host's, which looks at the same clock.
            self._remove(session)
        self._is_sweeping = bool(self._known)
        if self._is_sweeping:
            asyncio.get_running_loop().call_later(min(SWEEP_S, self.idle_s), self._sweep)
