"""Client of a served environment: `async with quintain.connect(url) as server: ...`."""

from __future__ import annotations

import urllib.parse
from importlib.util import find_spec
from typing import TYPE_CHECKING

from quintain.errors import UsageError

if TYPE_CHECKING:
    from .environments import RemoteEnvironment, Server

KEY = "QUINTAIN_KEY"
"""Environment variable that holds the API key if none is given."""


def connect(url: str, key: str | None = None, *, patience_s: float = 60.0) -> Server:
    """Returns the client of a server of `quintain serve`, for `async with`; sends no request yet.

    Args:
        url: URL of the server without a path, such as "http://localhost:8080".
        key: API key; None takes the environment variable QUINTAIN_KEY. No key is sent if both are missing.
        patience_s: Seconds for which a request is retried while the server is busy or away, counted from its first
            failure. The server does nothing twice. A world that is being built is waited for longer.

    Raises:
        UsageError: The extra `http` is not installed, or the URL is not one of a server.
    """
    base, path = _split_url(url)
    if path:
        raise UsageError(f"connect() takes a server, such as {base}; {path!r} is for its environment(name)")
    if find_spec("httpx") is None:
        raise UsageError("a server is reached by an extra: pip install 'quintain[http]'")
    from .environments import Server

    return Server(base, key, patience_s=patience_s)


def environment(address: str, *, key: str | None = None) -> RemoteEnvironment:
    """Returns an environment of a server; the adapter `http:` of command lines.

    Args:
        address: "//HOST:PORT/ENV" or the whole URL; without ENV the server's first environment.
        key: As for `connect`.

    Raises:
        UsageError: The server cannot be reached, or has no such environment.
    """
    base, name = _split_url(address if "://" in address else f"http:{address}")
    return connect(base, key).open(name)


def secure(address: str, *, key: str | None = None) -> RemoteEnvironment:
    """Returns an environment of a server, as `environment` does; the adapter `https:`."""
    return environment(f"https:{address}", key=key)


def _split_url(url: str) -> tuple[str, str]:
    """Returns the server's own URL, and the path behind it without its slashes."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise UsageError(f"a server is named like http://localhost:8080, not {url!r}")
    return f"{parts.scheme}://{parts.netloc}", parts.path.strip("/")
