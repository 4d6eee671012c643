"""The episodes that a client has open at its server, and the keep-alive of worlds in which others may begin."""

from __future__ import annotations

import asyncio
import contextlib
import weakref

from quintain.errors import EpisodeError, UsageError
from quintain.state import State

from .transport import Transport


class OpenEpisodes:
    """Episodes to close, and ended ones whose world the next task of a chain may begin in.

    The slowest member of a group may need longer than the server keeps an idle episode. So an ended episode is
    requested now and then while its world is referenced here, and closed afterwards.

    Args:
        transport: Connection to the server.
        idle_s: Seconds without a request after which the server closes an episode.
    """

    def __init__(self, transport: Transport, idle_s: float) -> None:
        self.ids: set[str] = set()
        self._transport = transport
        self._pause_s = idle_s / 4
        self._worlds: dict[str, weakref.ref[State]] = {}
        self._task: asyncio.Task[None] | None = None

    def keep(self, id: str, world: State) -> None:
        """Keeps an ended episode at the server while `world`, which stands for its world here, is referenced."""
        self._worlds[id] = weakref.ref(world)
        if not self._is_running:
            self._task = asyncio.create_task(self._keep_alive())

    def remove(self, id: str) -> None:
        """Removes an episode that is closed, or about to be."""
        self.ids.discard(id)
        self._worlds.pop(id, None)

    async def close(self) -> None:
        """Closes all episodes; one failed connection is enough to give up."""
        if self._task is not None and self._is_running:
            self._task.cancel()
            await asyncio.wait({self._task})
        with contextlib.suppress(EpisodeError):
            while self.ids:
                path = f"/v1/episodes/{self.ids.pop()}"
                with contextlib.suppress(UsageError):  # The server has closed it already.
                    await self._transport.request("DELETE", path)
        self.ids.clear()
        self._worlds.clear()

    @property
    def _is_running(self) -> bool:
        """True if a task of the running event loop keeps the worlds alive."""
        task = self._task
        return task is not None and not task.done() and task.get_loop() is asyncio.get_running_loop()

    async def _keep_alive(self) -> None:
        while self._worlds:
            await asyncio.sleep(self._pause_s)
            with contextlib.suppress(EpisodeError):  # The server is away; the next round finds what it still has.
                for name, world in list(self._worlds.items()):
                    await self._refresh(name, is_wanted=world() is not None)

    async def _refresh(self, id: str, *, is_wanted: bool) -> None:
        with contextlib.suppress(UsageError):  # The server has closed it; beginning in its world will say so.
            await self._transport.request("GET" if is_wanted else "DELETE", f"/v1/episodes/{id}")
            if is_wanted:
                return
        self.remove(id)
