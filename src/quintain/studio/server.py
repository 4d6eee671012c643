"""The process of the studio: its socket, its address and uvicorn."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import uvicorn

from quintain.errors import UsageError

from . import access
from .app import build
from .folders import Runs
from .page import built
from .places import folder, indexes
from .replays import Replays
from .tokens import Tokenizer

ADDRESS = "127.0.0.1"


def serve(
    places: Sequence[Path], *, port: int, ready: Callable[[str], None], host: str = ADDRESS, names: Sequence[str] = (),
    owner_of: access.OwnerOf | None = None, env: str | None = None, labels: Sequence[Path] = (),
    reviewer: str | None = None, tokenizer: Path | None = None,
) -> None:  # fmt: skip
    """Shows runs until Ctrl-C.

    Args:
        places: Run folders, and folders of run folders.
        port: TCP port; 0 for any free one.
        host: Address to listen on; pages are answered under this name.
        names: Further values of the header `Host`, such as the name of a proxy.
        owner_of: Check of keys; None for an address of this machine, where a token gives access.
        env: Environment to replay episodes with, in place of those that runs name.
        labels: Files with labels of the run, if it is only one.
        reviewer: Name of the person whose reviews are written; None for a studio that writes nothing.
        tokenizer: A `tokenizer.json`, or the folder that holds it, to show the texts of tokens; None for none.
        ready: Receives the address, token included, once requests are answered.

    Raises:
        UsageError: The folders hold no run, the page is not built, the address cannot be listened on, or the tokenizer
            cannot be used.
    """
    built("studio.js")
    decoder = None if tokenizer is None else Tokenizer(tokenizer)
    runs = Runs(places, indexes(), labels)
    line = _listening(host, port)
    port = line.getsockname()[1]
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    shown = names[0] if names and host in {"0.0.0.0", "::"} else place  # noqa: S104  # Nothing listens here.
    secret = access.token(folder("XDG_STATE_HOME", ".local/state"))

    address = f"http://{shown}/" if owner_of else f"http://{shown}/?token={secret}"
    replays = Replays(env)
    app = build(
        runs, secret, port, hosts=[place, *names], owner_of=owner_of, reviewer=reviewer, replays=replays,
        tokenizer=decoder,
    )  # fmt: skip
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, lifespan="off", server_header=False, timeout_graceful_shutdown=1
    )
    with line:
        try:
            _ReadyServer(config, lambda: ready(address)).run(sockets=[line])
        finally:
            replays.close()
            runs.close()


class _ReadyServer(uvicorn.Server):
    """Server that calls a function once requests are answered."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()


def _listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise UsageError(
            f"cannot listen on {host}, port {port}: {error.strerror}; choose another with --host or --port"
        ) from error
