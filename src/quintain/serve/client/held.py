"""Open episodes of a client, and those whose worlds later episodes may begin in."""

from __future__ import annotations

import asyncio
import contextlib
import weakref

from quintain.errors import EpisodeError, UsageError
from quintain.state import State

from .transport import Transport


class OpenEpisodes:
    """Episodes at a server.

    One of a day is over when the next one begins in its last world, and that may be long after: all of a group wait for
    the slowest. So it is asked for now and then, as long as there is anybody who could go on in that world, and then
    let go.

    Args:
        transport: How the server is reached.
        idle_s: Seconds without a request after which it closes an episode.
    """

    def __init__(self, transport: Transport, idle_s: float) -> None:
        self._transport = transport
        self._pause_s = idle_s / 4
        self._ids: set[str] = set()
        self._worlds: dict[str, weakref.ref[State]] = {}
        self._keeping: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, id: str) -> None:
        """An episode has begun."""
        self._ids.add(id)

    def keep(self, id: str, world: State) -> None:
        """Keeps an episode that is over while its world is referenced here: others may begin in it."""
        self._worlds[id] = weakref.ref(world)
        if self._is_unwatched:
            self._keeping = asyncio.create_task(self._keep())

    def drop(self, id: str) -> None:
        """An episode is closed."""
        self._ids.discard(id)
        self._worlds.pop(id, None)

    async def forget(self) -> None:
        """Close those that a rollout began and did not come to close, and those kept for the ones after them."""
        if self._keeping is not None and not self._is_unwatched:
            self._keeping.cancel()
            await asyncio.wait({self._keeping})
        while self._ids:
            one = next(iter(self._ids))
            self.drop(one)
            try:
                await self._transport.ask("DELETE", _path(one))
            except UsageError:
                continue  # Gone already.
            except EpisodeError:
                self._ids.clear()  # The server is away; to wait for it once is enough.
                self._worlds.clear()

    @property
    def _is_unwatched(self) -> bool:
        """True if no task of the running event loop watches the worlds."""
        task = self._keeping
        return task is None or task.done() or task.get_loop() is not asyncio.get_running_loop()

    async def _keep(self) -> None:
        while self._worlds:
            await asyncio.sleep(self._pause_s)
            with contextlib.suppress(EpisodeError):  # The server is away; the next round finds out what it still has.
                for one, world in list(self._worlds.items()):
                    await self._look(one, is_wanted=world() is not None)

    async def _look(self, id: str, *, is_wanted: bool) -> None:
        with contextlib.suppress(UsageError):  # It is gone already, and a later task of its chain fails.
            await self._transport.ask("GET" if is_wanted else "DELETE", _path(id))
            if is_wanted:
                return
        self.drop(id)


def _path(id: str) -> str:
    return f"/v1/episodes/{id}"
