"""A server and its environments, from afar."""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from quintain.serve.control.answers import EnvironmentInfo, EnvironmentList

from .transport import NONE, Transport
from .world import RemoteEnvironment


class Server:
    """A server of `quintain serve`; see `quintain.connect`.

    Args:
        base: Its URL.
        key: API key; None takes the environment variable QUINTAIN_KEY.
        patience_s: For how long a server that is busy, or away, is asked again, from a request's first failure on.

    Raises:
        UsageError: The extra `http` is not installed.
    """

    def __init__(self, base: str, key: str | None = None, *, patience_s: float = 60.0) -> None:
        self.url = base
        self._transport = Transport(base, key, patience_s=patience_s)
        self._opened: list[RemoteEnvironment] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def environments(self) -> list[RemoteEnvironment]:
        """Everything that is served.

        Raises:
            UsageError: The server says no.
            EpisodeError: It cannot be reached.
        """
        info = await self._transport.get("/v1/environments", EnvironmentList)
        return [self._made(one) for one in info.environments]

    async def environment(self, name: str = "", *, secrets: Mapping[str, str] = NONE) -> RemoteEnvironment:
        """Returns one environment.

        Args:
            name: In any case; the server's first one if empty.
            secrets: Secrets for the tools and scoring functions of all its episodes that begin from here, such as
                `{"OPENAI_API_KEY": key}`. No record holds them.

        Raises:
            UsageError: The server has no environment of that name.
            EpisodeError: The server cannot be reached.
        """
        return self._made(await self._transport.get(_path(name), EnvironmentInfo), secrets)

    def open(self, name: str = "", *, secrets: Mapping[str, str] = NONE) -> RemoteEnvironment:
        """As `environment`, where no event loop runs.

        Raises:
            UsageError: There is none of that name, or the server cannot be reached.
        """
        return self._made(self._transport.now(_path(name), EnvironmentInfo), secrets)

    async def aclose(self) -> None:
        """Close the episodes that were kept for those after them, and the connections of the running event loop."""
        for env in self._opened:
            await env.forget()
        await self._transport.aclose()

    def _made(self, info: EnvironmentInfo, secrets: Mapping[str, str] = NONE) -> RemoteEnvironment:
        env = RemoteEnvironment(info, self._transport, secrets=secrets)
        self._opened.append(env)
        return env


def _path(name: str) -> str:
    return f"/v1/environments/{urllib.parse.quote(name or '-', safe='')}"
