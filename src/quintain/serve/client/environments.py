"""A server and its environments, as a client sees them.

`rollout`, `rollouts` and `replay` take a RemoteEnvironment as any Environment. Its episodes are at the server, where
its own harness plays and the record is made; another harness (`replace`) plays here.
"""

from __future__ import annotations

import asyncio
import contextlib
import urllib.parse
import weakref
from collections.abc import Mapping
from typing import Any, Literal, Self

import msgspec

from quintain.config import Config
from quintain.context import Snapshot
from quintain.environment import Benchmark, Environment
from quintain.errors import EpisodeError, JudgeError, UsageError
from quintain.harness import Harness, Model, Session
from quintain.serve.control.answers import CriterionInfo, Detail, EnvironmentInfo, EnvironmentList, TaskPage
from quintain.serve.control.bodies import Create
from quintain.serve.episodes.actions import fingerprint
from quintain.serve.episodes.secrets import packed
from quintain.state import State
from quintain.task import Task, Tasks
from quintain.verifier import Criterion, Verifier

from .episode import RemoteEpisode, RemoteState, RemoteTool
from .transport import NONE, Transport

Mode = Literal["server", "client"]
"""Place of the harness: `server` for the environment's own, `client` for one in this process."""

PAGE = 250
"""Tasks per request."""


class Server:
    """Client of a server of `quintain serve`; `quintain.connect` makes it, and explains the arguments."""

    def __init__(self, base: str, key: str | None = None, *, patience_s: float = 60.0) -> None:
        self.url = base
        self._transport = Transport(base, key, patience_s=patience_s)
        self._opened: list[RemoteEnvironment] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()

    async def environments(self) -> list[RemoteEnvironment]:
        """Returns all environments of the server.

        Raises:
            UsageError: The server rejects the request.
            EpisodeError: The server cannot be reached.
        """
        found = await self._transport.ask("GET", "/v1/environments", EnvironmentList)
        return [self._open(info) for info in found.environments]

    async def environment(self, name: str = "", *, secrets: Mapping[str, str] = NONE) -> RemoteEnvironment:
        """Returns one environment.

        Args:
            name: Name in any case; empty for the server's first environment.
            secrets: Values that the tools and criteria of all episodes begun from here may read, such as
                `{"OPENAI_API_KEY": key}`; they are in no record.

        Raises:
            UsageError: The server has no environment of that name.
            EpisodeError: The server cannot be reached.
        """
        return self._open(await self._transport.ask("GET", _path(name), EnvironmentInfo), secrets)

    def open(self, name: str = "", *, secrets: Mapping[str, str] = NONE) -> RemoteEnvironment:
        """Returns one environment, as `environment` does, without an event loop.

        Raises:
            UsageError: The server has no environment of that name, or cannot be reached.
        """
        return self._open(self._transport.get_now(_path(name), EnvironmentInfo), secrets)

    async def aclose(self) -> None:
        """Closes the episodes of its environments, and the connections of the running event loop."""
        for env in self._opened:
            await env.forget()
        await self._transport.aclose()

    def _open(self, info: EnvironmentInfo, secrets: Mapping[str, str] = NONE) -> RemoteEnvironment:
        self._opened.append(RemoteEnvironment(info, self._transport, secrets=secrets))
        return self._opened[-1]


class OpenEpisodes:
    """Episodes to close, and ended ones whose world the next task of a chain may begin in.

    The slowest member of a group may need longer than `idle_s`, after which the server closes an idle episode. So an
    ended episode is requested now and then while its world is referenced here, and closed afterwards.
    """

    def __init__(self, transport: Transport, idle_s: float) -> None:
        self.ids: dict[str, weakref.ref[State] | None] = {}
        """World here that stands for the world of an ended episode; None for an episode that has not ended."""
        self._transport = transport
        self._pause_s = idle_s / 4
        self._task: asyncio.Task[None] | None = None

    def keep(self, id: str, world: State) -> None:
        """Keeps an ended episode at the server while `world`, which stands for its world here, is referenced."""
        self.ids[id] = weakref.ref(world)
        if not self._is_running:
            self._task = asyncio.create_task(self._keep_alive())

    async def close(self) -> None:
        """Closes all episodes; one failed connection is enough to give up."""
        if self._task is not None and self._is_running:
            self._task.cancel()
            await asyncio.wait({self._task})
        with contextlib.suppress(EpisodeError):
            while self.ids:
                path = f"/v1/episodes/{self.ids.popitem()[0]}"
                with contextlib.suppress(UsageError):  # The server has closed it already.
                    await self._transport.request("DELETE", path)
        self.ids.clear()

    @property
    def _is_running(self) -> bool:
        """True if a task of the running event loop keeps the worlds alive."""
        task = self._task
        return task is not None and not task.done() and task.get_loop() is asyncio.get_running_loop()

    async def _keep_alive(self) -> None:
        while any(self.ids.values()):
            await asyncio.sleep(self._pause_s)
            with contextlib.suppress(EpisodeError):  # The server is away; the next round finds what it still has.
                for name, world in [(name, world) for name, world in self.ids.items() if world is not None]:
                    method = "GET" if world() is not None else "DELETE"
                    with contextlib.suppress(UsageError):  # Closed by the server; beginning in its world will say so.
                        await self._transport.request(method, f"/v1/episodes/{name}")
                        if method == "GET":
                            continue
                    self.ids.pop(name, None)


class ServerHarness(msgspec.Struct, frozen=True):
    """Harness that passes the questions of the server's harness to the model here."""

    async def play(self, session: Session, model: Model) -> None:
        while not session.ended:
            await session.step(await model(session.request()))


class RemoteEnvironment(Environment[RemoteState]):
    """Environment of a server, which `Server` opens; its tasks have neither prompt nor solution here."""

    def __init__(self, info: EnvironmentInfo, transport: Transport, *, secrets: Mapping[str, str] = NONE) -> None:
        self.transport = transport
        self._info = info
        self._secrets = dict(secrets)
        self._open_episodes = OpenEpisodes(transport, info.idle_s)
        self._pages: dict[str, TaskPage] = {}
        super().__init__(
            info.name,
            tasks=self._tasks_of,
            harness=ServerHarness(),
            verifier=Verifier(*map(_criterion, info.criteria), combine=info.combine),
            state=RemoteState,
            config=info.config,
            splits=info.splits,
        )
        self.tools = {one.name: RemoteTool(**msgspec.structs.asdict(one)) for one in info.tools}
        self.tools_digest = info.tools_digest

    def replace(
        self, *, config: Config | None = None, harness: Harness | None = None, verifier: Verifier[Any] | None = None
    ) -> Self:
        """Returns the environment with another configuration, or with a harness that plays here.

        Raises:
            UsageError: Another verifier is given; the server judges.
        """
        if verifier is not None:
            raise UsageError(f"the server judges {self.name}; its verifier cannot be replaced from here")
        return super().replace(config=config, harness=harness)

    async def begin(
        self,
        split: str,
        task: Task[Any] | str | int,
        *,
        harness: Mode = "client",
        everyone: bool = True,
        seed: int = 0,
        member: int | None = None,
        attempt: int = 0,
        agent: str = "",
        label: str | None = None,
        led_by: str = "",
        after: str | None = None,
    ) -> RemoteEpisode:
        """Begins an episode at the server.

        Args:
            split: Split of the task.
            task: The task, its id, or its index in the split.
            harness: "client": `session` takes any harness; "server": the environment's own harness plays, and
                `session` has its questions.
            everyone: With "server": ask for the replies of all roles, not of the agent alone.
            seed: Seed of the world's random stream, the same for all members of a group.
            member: Place in the group, from 0; None takes the next one of the task.
            attempt: Number of the group's retry, from 0.
            agent: Name of the model, for the record.
            label: Name of the split in the record, if it is another one.
            led_by: Fingerprint of the client's harness, for the record; empty if unknown.
            after: Id of the episode whose final world is the start of this one, in a task chain.

        Raises:
            UsageError: The server rejects the request.
            EpisodeError: The server cannot be reached.
        """
        place: dict[str, Any] = {"index": task} if isinstance(task, int) else {"task": getattr(task, "id", task)}
        config = None if self.config == self._info.config else self.config
        names: dict[str, Any] = {"seed": seed, "member": member, "attempt": attempt, "agent": agent, "label": label}
        fields: dict[str, Any] = {"harness": harness, "everyone": everyone, "config": config, "secrets": self._secrets}
        body = Create(environment=self.name, split=split, led_by=led_by, after=after, **fields, **place, **names)
        # A proxy in front of several servers finds the one that has the world by this header.
        headers = {"X-Session-ID": body.after} if body.after else NONE
        detail = await self.transport.ask("POST", "/v1/episodes", Detail, body=body, headers=headers)
        return RemoteEpisode.open(self, await self.wait_until_built(detail))

    async def restore(self, snapshot: Snapshot, *, harness: Mode = "client") -> RemoteEpisode:
        """Continues from a snapshot of this server, or of another one that has the same environment.

        Secrets are not in a snapshot: the episode has those of this environment, and cannot continue where it reads
        another one that the snapshot's episode had.

        Args:
            snapshot: Snapshot of an episode that was played by a harness of the same kind.
            harness: As for `begin`.

        Raises:
            UsageError: The snapshot is damaged, or of another environment or version.
            EpisodeError: The server cannot be reached.
        """
        path = f"/v1/episodes/restore?harness={harness}&everyone=true"
        headers = {"X-Secrets": packed(self._secrets)} if self._secrets else NONE
        detail = await self.transport.ask("POST", path, Detail, body=snapshot.to_bytes(), headers=headers)
        return RemoteEpisode.open(self, await self.wait_until_built(detail), snapshot)

    async def wait_until_built(self, detail: Detail) -> Detail:
        """Returns the description of a new episode once its world is built, however long that takes."""
        while detail.status == "starting":
            detail = await self.transport.ask("GET", f"/v1/episodes/{detail.id}?wait=20", Detail)
        return detail

    async def freeze(self, split: str) -> Benchmark:
        """Raises UsageError: tasks can be named by their content only where they are."""
        raise UsageError(f"{self.name} is served: freeze it where its code and its tasks are")

    async def close(self, episode: RemoteEpisode) -> None:
        """Closes an episode whose record is here; one of a task chain is kept for the next task."""
        if episode.task.day:
            self._open_episodes.keep(episode.id, episode.state)
        else:
            self._open_episodes.ids.pop(episode.id, None)
            await episode.aclose()

    async def forget(self) -> None:
        """Closes the episodes that rollouts left open, and those kept for the next task of a chain."""
        await self._open_episodes.close()

    async def aclose(self) -> None:
        """Closes the episodes, as `forget` does, and the connections of the running event loop."""
        await self.forget()
        await self.transport.aclose()

    async def remote_begin(self, task: Task[RemoteState], start: RemoteState | None, **names: Any) -> RemoteEpisode:
        """Begins an episode for `Episode.begin`; `verify` closes it."""
        names.pop("continues", None)  # The server fills it from `after`.
        names.pop("forked", None)
        if start is not None:
            names["after"] = start.episode
        mode: Mode = "server" if isinstance(self.harness, ServerHarness) else "client"
        split, label = task.world().split, names.pop("split", "")
        led_by = names.pop("external_harness", msgspec.UNSET)
        if mode == "client":
            names["led_by"] = fingerprint(self.harness) if led_by is msgspec.UNSET else led_by
        episode = await self.begin(split, task, harness=mode, label=label, **names)
        episode.closes_after_verify = True
        episode.trace.tags = dict(task.tags)  # In case the server's own record cannot be read.
        self._open_episodes.ids[episode.id] = None
        return episode

    async def fetch(self, split: str) -> Tasks[RemoteState]:
        """Returns the tasks of a split, all loaded; `tasks` loads them when used, which blocks the event loop.

        Raises:
            UsageError: The environment has no such split.
            EpisodeError: The server cannot be reached.
        """
        count, number = 1, 0
        while number * PAGE < count:
            path = self._page_path(split, number)
            if path not in self._pages:
                self._pages[path] = await self.transport.ask("GET", path, TaskPage)
            count, number = self._pages[path].count, number + 1
        return self._tasks_of(split)

    def _fingerprint(self) -> str:
        return self._info.fingerprint  # The code that acts and judges is the server's.

    def _page_path(self, split: str, number: int) -> str:
        query = urllib.parse.urlencode({"split": split, "offset": number * PAGE, "limit": PAGE})
        return f"{_path(self._info.name)}/tasks?{query}"

    def _tasks_of(self, split: str) -> Tasks[RemoteState]:
        """Returns the tasks of a split, which are loaded by the page."""

        def page(number: int) -> TaskPage:
            path = self._page_path(split, number)
            if path not in self._pages:
                self._pages[path] = self.transport.get_now(path, TaskPage)
            return self._pages[path]

        def make(index: int) -> Task[RemoteState]:
            info = page(index // PAGE).tasks[index % PAGE]
            return Task(id=info.id, prompt="", start=RemoteState(split=split), day=info.day, tags=info.tags)

        return Tasks(page(0).count, make)


def _path(name: str) -> str:
    return f"/v1/environments/{urllib.parse.quote(name or '-', safe='')}"


def _criterion(info: CriterionInfo) -> Criterion[RemoteState]:
    def fn(_view: object) -> float:
        raise JudgeError(f"criterion {info.name!r} judges at the server", kind="quintain:judge_missing")

    return Criterion(fn=fn, **msgspec.structs.asdict(info))
