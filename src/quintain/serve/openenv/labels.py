"""Finding sessions by what their callers call the episode: a name of the caller's own, in whatever process it is."""

from __future__ import annotations

import urllib.parse
from typing import TYPE_CHECKING, Any

from quintain.environment import Environment
from quintain.serve.keys import Caller
from quintain.serve.siblings import Elsewhere, Siblings
from quintain.serve.told import PREFIX

if TYPE_CHECKING:
    from .sessions import Session

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

    def put(self, session: Session) -> None:
        """Have a session found by its label, and no more by the one before."""
        self.drop(session)
        label = (session.caller.name, session.env.name, session.label)
        self._sessions[label] = session
        self._labels[session.id] = label

    def drop(self, session: Session) -> None:
        """Have a session found no more."""
        label = self._labels.pop(session.id, None)
        if label is not None and self._sessions[label] is session:
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

    async def player(self, label: str, env: Environment[Any], caller: Caller) -> str | None:
        """The id of the session in another process that plays an episode of this name; None where none does."""
        others = await self._others(label, env, caller)
        playing = (state for state in others.values() if not state["done"])
        return next((state["metadata"][f"{PREFIX}episode"].rpartition("-")[0] for state in playing), None)

    async def _others(self, label: str, env: Environment[Any], caller: Caller) -> dict[int, dict[str, Any]]:
        path = f"/openenv/{urllib.parse.quote(env.name)}/state?episode_id={urllib.parse.quote(label, safe='')}"
        found = await self._siblings.all(path, dict[str, Any], caller)
        return {number: state for number, state in found.items() if state and state["episode_id"]}
