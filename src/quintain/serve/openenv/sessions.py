"""Sessions of a server, by their ids and by the labels of their episodes."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator
from typing import Any

from quintain.environment import Environment
from quintain.serve.episodes.actions import LEFT, LOST, Stop
from quintain.serve.episodes.host import Host
from quintain.serve.errors import Conflict, Unavailable, Unknown
from quintain.serve.http.keys import Caller

from .session import EnvSession, Label

_NUMBER = re.compile(r"[1-9][0-9]{0,17}")
"""Number of an episode in its session, at the end of its id. Ids of clients may look the same."""
REUSE_S = 10.0
"""Seconds without a request after which another session may take the label of an episode that goes on."""
SWEEP_S = 5.0
"""Seconds between two searches for idle sessions."""


class Sessions:
    """All sessions of a process, for the episodes of a host."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._known: dict[str, EnvSession] = {}
        self._labelled: dict[Label, EnvSession] = {}
        self._taking: dict[Label, list[EnvSession]] = {}
        self._is_sweeping = False

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of sessions for a refusal."""
        return {"active_sessions": self.host.room.open("sessions"), "max_sessions": self.host.limits.episodes}

    def open(self, env: Environment[Any], caller: Caller, *, attached: bool = False) -> EnvSession:
        """Returns a new session without an episode; raises Full or, in a shutdown, Unavailable."""
        if self.host.draining:
            raise Unavailable("the server is shutting down")
        self.host.room.enter("sessions", caller.name)
        session = EnvSession(self.host, env, caller, id=self.host.ids.new())
        session.attached = attached
        self._add(session)
        return session

    async def find(self, id: str, env: Environment[Any], caller: Caller) -> EnvSession:
        """Returns a session by its id, also one of an earlier run of this server whose episode is there again.

        Raises Unknown if the caller has none of this id in the environment.
        """
        session = self._known.get(id) or self._resumed(id, env, caller)
        if session is None or session.env is not env or not caller.may(session.caller):
            raise Unknown(f"Unknown session_id: {id}")
        session.touch(caller)
        await session.catch_up()
        return session

    async def labelled(self, label: str, env: Environment[Any], caller: Caller) -> EnvSession:
        """Returns the session whose episode the caller has given a label; raises Unknown."""
        session = self._player((caller.name, env.name, label))
        if session is None:
            session = self._resumed(label.rpartition("-")[0], env, caller)
            if session is None or session.label != label:
                raise Unknown(f"there is no episode {label!r}: POST /reset begins one")
        session.touch(caller)
        await session.catch_up()
        return session

    @contextlib.asynccontextmanager
    async def taken(self, label: str, session: EnvSession) -> AsyncGenerator[None]:
        """Reserves a label, if any, for a session that begins an episode, and closes an idle one that had it.

        Raises Conflict if another session begins or plays an episode of this label.
        """
        if not label:
            yield
            return
        name = (session.caller.name, session.env.name, label)
        player = self._player(name)
        if player not in (None, session) and player.is_idle(REUSE_S):
            await self.close(player, LOST)
            player = self._player(name)
        taking = self._taking.get(name, [])
        if any(one is not session for one in taking) or (player not in (None, session) and player.is_playing):
            raise Conflict(
                f"the episode {label!r} is being played: name another, send its X-Session-ID, or ask again when no "
                "request has used it for 10 s"
            )
        self._taking.setdefault(name, taking).append(session)
        try:
            yield
        finally:
            taking.remove(session)
            if not taking:
                del self._taking[name]

    def name(self, session: EnvSession) -> None:
        """Makes a session found by the label of its episode, instead of the one before, unless it was closed."""
        if session.id in self._known:
            self._drop_label(session)
            label = (session.caller.name, session.env.name, session.label)
            self._labelled[label], session.key = session, label

    async def close(self, session: EnvSession, why: Stop = LEFT) -> None:
        """Closes a session and its episode, which has this end if it goes on."""
        self._remove(session)
        await session.close(why)

    def _player(self, label: Label) -> EnvSession | None:
        session = self._labelled.get(label)
        return session if session is not None and session.label == label[2] else None

    def _resumed(self, id: str, env: Environment[Any], caller: Caller) -> EnvSession | None:
        """Returns a session of an earlier run, with the last of its episodes that the host knows; else None."""
        if not id or id in self._known:
            return None
        mine = [one for one in self.host.lives(caller) if one.id.startswith(f"{id}-") and one.env.name == env.name]
        mine = [one for one in mine if _NUMBER.fullmatch(one.id, len(id) + 1)]
        if not mine:
            return None
        last = max(mine, key=lambda one: int(one.id.rpartition("-")[2]))
        session = EnvSession(self.host, env, last.owner, id=id)
        session.resume(last)
        self.host.room.add("sessions", session.caller.name, 1)
        self._add(session)
        self.name(session)
        return session

    def _add(self, session: EnvSession) -> None:
        self._known[session.id] = session
        if not self._is_sweeping:
            self._sweep()

    def _remove(self, session: EnvSession) -> None:
        if self._known.pop(session.id, None) is not None:
            self._drop_label(session)
            self.host.room.add("sessions", session.caller.name, -1)

    def _drop_label(self, session: EnvSession) -> None:
        if self._labelled.get(session.key) is session:  # Another session may have the label by now.
            del self._labelled[session.key]

    def _sweep(self) -> None:
        """Forgets idle sessions, at intervals while there are any."""
        idle_s = self.host.limits.idle_s
        for session in [one for one in self._known.values() if one.is_idle(idle_s)]:
            self._remove(session)  # Its episode expires with the host's, which looks at the same clock.
        self._is_sweeping = bool(self._known)
        if self._is_sweeping:
            asyncio.get_running_loop().call_later(min(SWEEP_S, idle_s), self._sweep)
