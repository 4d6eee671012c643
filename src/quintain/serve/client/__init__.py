"""The client of a served environment: `async with quintain.connect(url) as server: ...`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quintain.errors import UsageError

if TYPE_CHECKING:
    from .remote import Server
    from .world import RemoteEnvironment

KEY = "QUINTAIN_KEY"
"""Environment variable of the API key, where none is given."""


def connect(url: str, key: str | None = None, *, patience_s: float = 60.0) -> Server:
    """A server of `quintain serve`, to be used in `async with`; nothing is asked of it yet.

    Args:
        url: Of the server, such as "http://localhost:8080", without a path.
        key: API key; else the environment variable QUINTAIN_KEY, else none is sent.
        patience_s: Seconds for which a server that is busy, or away, is asked again, from the first failure of a
            request on; nothing is ever done twice. A world that is being built is waited for longer.

    Raises:
        UsageError: The extra `http` is not installed, or there can be no such URL.
    """
    from .remote import Server

    base, path = _address(url)
    if path:
        raise UsageError(f"connect() takes a server, such as {base}; {path!r} is for its environment(name)")
    return Server(base, key, patience_s=patience_s)


def environment(address: str, *, key: str | None = None) -> RemoteEnvironment:
    """An environment of a server, for command lines: what `http:` and `https:` stand for as adapters.

    Args:
        address: "//HOST:PORT/ENV" or the whole URL; without ENV the server's first one.
        key: As for `connect`.

    Raises:
        UsageError: The server cannot be reached, or has no such environment.
    """
    base, name = _address(address if "://" in address else f"http:{address}")
    return connect(base, key).open(name)


def secure(address: str, **options: Any) -> RemoteEnvironment:
    """As `environment`, for `https:`."""
    return environment(f"https:{address}", **options)


def _address(url: str) -> tuple[str, str]:
    """The server's own URL, and the path behind it without its slashes."""
    import urllib.parse

    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise UsageError(f"a server is named like http://localhost:8080, not {url!r}")
    return f"{parts.scheme}://{parts.netloc}", parts.path.strip("/")
