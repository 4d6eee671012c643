"""Remote environment: an Environment whose worlds are on a server.

`rollout`, `rollouts` and `replay` take it like any other. Its episodes run on the server, where the environment's own
harness plays, and the record is the server's. With another harness (`replace`) that harness plays here, and the server
makes its steps.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from quintain.config import Config
from quintain.context import Snapshot
from quintain.environment import Benchmark, Environment
from quintain.errors import JudgeError, UsageError
from quintain.harness import Harness, Model, Session
from quintain.serve.control.answers import CriterionInfo, Detail, EnvironmentInfo, TaskPage, ToolInfo
from quintain.serve.control.bodies import Create
from quintain.serve.episodes.actions import fingerprint
from quintain.serve.episodes.secrets import packed
from quintain.task import Task, Tasks
from quintain.tools import Tool
from quintain.verifier import Criterion, Verifier

from .episode import Far, RemoteEpisode
from .held import OpenEpisodes
from .transport import NONE, Transport

PAGE = 250


class Relay(msgspec.Struct, frozen=True):
    """The environment's own harness plays at the server; its questions are put to the model here."""

    async def play(self, session: Session, model: Model) -> None:
        """Answer what is asked, until the end."""
        while not session.ended:
            await session.step(await model(session.request()))


class FarTool(Tool, frozen=True, kw_only=True):
    """A tool of which only the schema is known."""

    def decode(self, arguments: str, *, strict: bool = True) -> dict[str, Any]:
        """Returns the arguments; the server checks whether they fit.

        Raises:
            msgspec.DecodeError: The text is not a JSON object.
        """
        return msgspec.json.decode(arguments.strip() or "{}", type=dict[str, Any])


class RemoteEnvironment(Environment[Far]):
    """Environment of a server; a task's start, truth and solution stay there.

    Args:
        info: The server's description of the environment.
        transport: Connection to the server.
        secrets: Secrets of its episodes.
    """

    def __init__(self, info: EnvironmentInfo, transport: Transport, *, secrets: Mapping[str, str] = NONE) -> None:
        self._info = info
        self._secrets = dict(secrets)
        self.transport = transport
        self._held = OpenEpisodes(transport, info.idle_s)
        self._pages: dict[tuple[str, int], TaskPage] = {}
        self._path = f"/v1/environments/{urllib.parse.quote(info.name)}"
        super().__init__(
            info.name,
            tasks=self._listed,
            harness=Relay(),
            verifier=Verifier(*map(_criterion, info.criteria), combine=info.combine),
            state=Far,
            config=info.config,
            splits=info.splits,
        )
        self.tools = {tool.name: _tool(tool) for tool in info.tools}
        self.tools_digest = info.tools_digest
        self.remote_begin = self._remote_begin

    def replace(
        self,
        *,
        config: Config | None = None,
        harness: Harness | None = None,
        verifier: Verifier[Far] | None = None,
    ) -> RemoteEnvironment:
        """The same environment with another configuration, or with a harness that plays here.

        Raises:
            UsageError: Another verifier is given; the server judges.
        """
        if verifier is not None:
            raise UsageError(f"the server judges {self.name}; its verifier cannot be replaced from here")
        twin = super().replace(config=config, harness=harness)
        assert isinstance(twin, RemoteEnvironment)
        twin.remote_begin = twin._remote_begin
        return twin

    async def begin(
        self,
        split: str,
        task: Task[Any] | str | int,
        *,
        harness: Literal["server", "client"] = "client",
        everyone: bool = True,
        **names: Any,
    ) -> RemoteEpisode:
        """An episode at the server.

        Args:
            split: Whose task.
            task: It, its id, or its place in the split.
            harness: "client": `session` takes any harness; "server": the environment's own plays, and `session` asks
                what that asks.
            everyone: With "server": ask for the replies of all roles, not of the agent alone.
            names: Fields of the Trace: seed, member, attempt, agent, and of your harness led_by.

        Raises:
            UsageError: The server says no.
            EpisodeError: It cannot be reached.
        """
        config = None if self.config == self._info.config else self.config
        place: dict[str, Any] = {"index": task} if isinstance(task, int) else {"task": getattr(task, "id", task)}
        asked = Create(
            environment=self.name,
            split=split,
            harness=harness,
            everyone=everyone,
            config=config,
            secrets=self._secrets,
            **place,
            **names,
        )
        # A proxy before several servers finds the one that has the world by this header.
        headers = {"X-Session-ID": asked.after} if asked.after else NONE
        info = await self.transport.post("/v1/episodes", Detail, asked, headers=headers)
        return RemoteEpisode.of(self, await self.begun(info))

    async def restore(self, snapshot: Snapshot, *, harness: Literal["server", "client"] = "client") -> RemoteEpisode:
        """Go on from a snapshot, of this server or another one that has the same environment.

        Secrets are not in it: the episode has those that are confided here, and cannot go on where it reads another one
        that the snapshot's episode had.

        Args:
            snapshot: Of an episode that was played by a harness of the same kind.
            harness: As for `begin`.

        Raises:
            UsageError: It is of another environment or version, or torn.
            EpisodeError: The server cannot be reached.
        """
        path = f"/v1/episodes/restore?harness={harness}&everyone=true"
        headers = {"X-Secrets": packed(self._secrets)} if self._secrets else NONE
        info = await self.transport.post(path, Detail, snapshot.to_bytes(), headers=headers)
        return RemoteEpisode.of(self, await self.begun(info), snapshot)

    async def begun(self, info: Detail) -> Detail:
        """Waits until the world of a new episode is built.

        Raises:
            UsageError: The episode is gone.
            EpisodeError: The server cannot be reached.
        """
        while info.status == "starting":
            info = await self.transport.get(f"/v1/episodes/{info.id}?wait=20", Detail)
        return info

    async def freeze(self, split: str) -> Benchmark:
        """Only where the tasks are can their content be named.

        Raises:
            UsageError: Always.
        """
        raise UsageError(f"{self.name} is served: freeze it where its code and its tasks are")

    async def close(self, episode: RemoteEpisode) -> None:
        """Have the server forget an episode whose record is here; one of a day is kept for the one after it."""
        if episode.task.day:
            self._held.keep(episode.id, episode.state)
        else:
            self._held.drop(episode.id)
            await episode.aclose()

    async def forget(self) -> None:
        """Closes the episodes that a rollout began and did not close, and those kept for later ones of a chain."""
        await self._held.forget()

    async def aclose(self) -> None:
        """`forget`, and close the connections of the running event loop."""
        await self.forget()
        await self.transport.aclose()

    async def _remote_begin(self, task: Task[Far], start: Far | None, **names: Any) -> RemoteEpisode:
        """An episode for `Episode.begin`; it is closed when its record is there."""
        names.pop("continues", None)  # The server says after which one it began, and it knows that one.
        if start is not None:
            names["after"] = start.episode
        mode: Literal["server", "client"] = "server" if isinstance(self.harness, Relay) else "client"
        split, label, led_by = task.world().split, names.pop("split", ""), names.pop("external_harness", msgspec.UNSET)
        if mode == "client":
            names["led_by"] = fingerprint(self.harness) if led_by is msgspec.UNSET else led_by
        episode = await self.begin(split, task, harness=mode, label=label, **names)
        episode.is_passing = True
        episode.trace.tags = dict(task.tags)  # For where the server's own record is never had.
        self._held.add(episode.id)
        return episode

    def _fingerprint(self) -> str:
        return self._info.fingerprint  # Of the code that acts and judges, which is the server's.

    async def fetch(self, split: str) -> Tasks[Far]:
        """Returns all tasks of a split. `tasks` loads them when they are used, and blocks the event loop meanwhile.

        Raises:
            UsageError: There is no such split.
            EpisodeError: The server cannot be reached.
        """
        count, number = 1, 0
        while number * PAGE < count:
            if (split, number) not in self._pages:
                self._pages[split, number] = await self.transport.get(self._page(split, number), TaskPage)
            count = self._pages[split, number].count
            number += 1
        return self._listed(split)

    def _page(self, split: str, number: int) -> str:
        query = urllib.parse.urlencode({"split": split, "offset": number * PAGE, "limit": PAGE})
        return f"{self._path}/tasks?{query}"

    def _listed(self, split: str) -> Tasks[Far]:
        """The tasks of a split, asked for by the page."""

        def page(number: int) -> TaskPage:
            if (split, number) not in self._pages:
                self._pages[split, number] = self.transport.now(self._page(split, number), TaskPage)
            return self._pages[split, number]

        def make(index: int) -> Task[Far]:
            info = page(index // PAGE).tasks[index % PAGE]
            return Task(id=info.id, prompt="", start=Far(split=split), day=info.day, tags=info.tags)

        return Tasks(page(0).count, make)


def _tool(info: ToolInfo) -> FarTool:
    fields = {name: getattr(info, name) for name in info.__struct_fields__}
    return FarTool(arguments=msgspec.defstruct(info.name, ()), path=(info.name,), **fields)


def _criterion(info: CriterionInfo) -> Criterion[Far]:
    def judge(_view: object) -> float:
        raise JudgeError(f"criterion {info.name!r} judges at the server", kind="quintain:judge_missing")

    return Criterion(fn=judge, **{name: getattr(info, name) for name in info.__struct_fields__})
