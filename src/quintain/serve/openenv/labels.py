"""Finding sessions by what their callers call the episode: a name of the caller's own, in whatever process it is."""

from __future__ import annotations

import contextlib
import urllib.parse
from collections import defaultdict
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from quintain.environment import Environment
from quintain.serve.episodes.views import PREFIX
from quintain.serve.errors import Conflict
from quintain.serve.keys import Caller
from quintain.serve.siblings import Elsewhere, Siblings

if TYPE_CHECKING:
    from .session import Session

_EPISODE = f"{PREFIX}episode"

Label = tuple[str, str, str]
"""Key, environment and name."""


class Labels:
    """The sessions of this process by the label of their episode; each has one at a time.

    Args:
        siblings: Who may have others.
    """

    def __init__(self, siblings: Siblings) -> None:
        self._siblings = siblings
        self._sessions: dict[Label, Session] = {}
        self._labels: dict[str, Label] = {}
        self._taking: defaultdict[Label, list[Session]] = defaultdict(list)

    @contextlib.asynccontextmanager
    async def taken(self, label: str, session: Session) -> AsyncGenerator[None]:
        """Have nobody but this session begin an episode of a name meanwhile: two callers that choose it must not meet.

        Raises:
            Conflict: Another one begins it now, or plays it. Of two in different processes that begin in the same
                moment, each may be told so.
        """
        name = (session.caller.name, session.env.name, label)
        self._taking[name].append(session)
        try:
            others = {one.id for one in self._taking[name]} | {await self._player(label, session.env, session.caller)}
            if others - {None, session.id}:
                raise Conflict(f"the episode {label!r} is being played: name another, or send its X-Session-ID")
            yield
        finally:
            self._taking[name].remove(session)
            if not self._taking[name]:
                del self._taking[name]

    def taker(self, label: str, env: Environment[Any], caller: Caller) -> dict[str, Any] | None:
        """What another process is told of a session here that begins an episode of a name; None where none does."""
        taking = self._taking.get((caller.name, env.name, label))
        return {"episode_id": label, "done": False, "metadata": {_EPISODE: f"{taking[0].id}-0"}} if taking else None

    def put(self, session: Session) -> None:
        """Have a session found by its label, and no more by the one before."""
        self.drop(session)
        label = (session.caller.name, session.env.name, session.label)
        self._sessions[label] = session
        self._labels[session.id] = label

    def drop(self, session: Session) -> None:
        """Have a session found no more."""
        label = self._labels.pop(session.id, None)
        if label is not None and self._sessions.get(label) is session:  # Another one may have had it since, and ended.
            del self._sessions[label]

    def get(self, label: str, env: Environment[Any], caller: Caller) -> Session | None:
        """The session whose episode is called so, here."""
        session = self._sessions.get((caller.name, env.name, label))
        return session if session is not None and session.label == label else None

    async def elsewhere(self, label: str, env: Environment[Any], caller: Caller) -> None:
        """Nothing, if no other process has an episode that is called so.

        Raises:
            Elsewhere: One has.
        """
        for number in await self._others(label, env, caller):
            raise Elsewhere(number)

    async def _player(self, label: str, env: Environment[Any], caller: Caller) -> str | None:
        """The id of the session that plays an episode of this name, in whatever process; None where none does."""
        session = self.get(label, env, caller)
        if session is not None and session.live is not None:
            return session.id if session.live.status in {"starting", "open"} else None
        others = await self._others(label, env, caller)
        playing = (state for state in others.values() if not state["done"])
        return next((state["metadata"][_EPISODE].rpartition("-")[0] for state in playing), None)

    async def _others(self, label: str, env: Environment[Any], caller: Caller) -> dict[int, dict[str, Any]]:
        path = f"/openenv/{urllib.parse.quote(env.name)}/state?episode_id={urllib.parse.quote(label, safe='')}"
        found = await self._siblings.all(path, dict[str, Any], caller)
        return {number: state for number, state in found.items() if state and state["episode_id"]}
