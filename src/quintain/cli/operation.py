"""The options of `quintain serve` for access, limits and storage."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import msgspec

from quintain.environment import Environment
from quintain.errors import UsageError
from quintain.harness import Agent

from .folders import Manifest, opened

if TYPE_CHECKING:
    from quintain.serve.episodes.archive import Archive
    from quintain.serve.episodes.host import Host
    from quintain.serve.http.auth import Auth
    from quintain.serve.http.limits import Limits
    from quintain.serve.journal.database import Past


class ServedEnvironments(NamedTuple):
    """Environments to serve.

    Attributes:
        envs: The environments.
        manifests: Manifest of each environment's run folder.
        user: Model of the simulated user; None if there is none.
    """

    envs: Sequence[Environment[Any]]
    manifests: Sequence[Manifest]
    user: Agent | None


class ServeOptions(msgspec.Struct, kw_only=True):
    """Values of the options for access, limits and storage."""

    keys: Path | None
    names: tuple[str, ...]
    origins: tuple[str, ...]
    idle: float
    episodes: int
    episodes_per_key: int | None
    rate: float | None
    body: int
    memory: int
    out: Path | None
    journal: Path | None
    sync: bool
    shard: str
    drain: float

    @classmethod
    def taken(cls, given: dict[str, Any]) -> ServeOptions:
        """Removes these options from a command's arguments and returns them."""
        return cls(**{name: given.pop(name) for name in cls.__struct_fields__})

    def limits(self) -> Limits:
        """Returns the limits on what callers may use."""
        from quintain.serve.http.limits import Limits

        return Limits(
            episodes=self.episodes,
            episodes_per_key=self.episodes_per_key or self.episodes,
            idle_s=self.idle,
            body_bytes=self.body,
            episode_bytes=self.memory,
            requests_per_s=self.rate,
        )

    @contextlib.contextmanager
    def host(self, offer: ServedEnvironments) -> Generator[tuple[Host, Sequence[Past]]]:
        """Opens the host of the environments, and the episodes left open by the process before.

        Raises:
            UsageError: The journal cannot be used, or the folder of records.
        """
        from quintain.serve.episodes.host import Host
        from quintain.serve.journal.database import Journal
        from quintain.serve.journal.entries import Log

        with contextlib.ExitStack() as held:
            archive = held.enter_context(self.archive(offer)) if self.out is not None else None
            more: dict[str, Any] = {
                "limits": self.limits(),
                "user": offer.user,
                "shard": self.shard,
                "archive": archive,
            }
            if self.journal is None:
                yield Host(offer.envs, log=Log(), **more), ()
                return
            journal = held.enter_context(contextlib.closing(Journal(self.journal, sync=self.sync)))
            pasts = journal.pasts()
            if archive is not None:
                archive.recover(pasts)
            yield Host(offer.envs, log=journal, **more), pasts

    @contextlib.contextmanager
    def archive(self, offer: ServedEnvironments) -> Generator[Archive]:
        """Opens the run folders of ended episodes.

        Raises:
            UsageError: A folder holds another run, or cannot be written.
            TraceError: A record in one is damaged.
        """
        from quintain.serve.episodes.archive import Archive
        from quintain.studio.recorder import Recorder

        assert self.out is not None
        with contextlib.ExitStack() as held:
            folders = {
                manifest.name: held.enter_context(opened(self.out / manifest.name, manifest, resume=True))
                for manifest in offer.manifests
            }
            recorders = {name: held.enter_context(Recorder(folder)) for name, folder in folders.items()}
            yield Archive(folders, recorders)

    def door(self, address: str) -> Auth:
        """Returns the access control of a server that listens at this address.

        Raises:
            UsageError: There are no keys for one that can be reached from outside, or they cannot be read.
        """
        from quintain.serve.http.auth import KeyAuth, NoAuth, is_loopback
        from quintain.serve.http.keys import Keys

        if self.keys is not None:
            return KeyAuth(Keys(self.keys))
        if not is_loopback(address):
            raise UsageError(f"--host {address} can be reached from outside: name the accepted keys with --keys FILE")
        return NoAuth()


def _no_workers(_context: click.Context, _option: click.Parameter, given: str | None) -> None:
    """Refuses an option of earlier versions.

    Raises:
        UsageError: The option was given.
    """
    if given is not None:
        raise UsageError(
            f"--workers {given} is not supported: start a server per port with --shard NAME, behind a proxy, as in "
            "docs/how-to/serve-behind-a-proxy.md"
        )


def operated(command: Any) -> Any:
    """Adds these options to a command."""
    for option in (
        click.option("--drain", type=click.FloatRange(min=1), default=20.0, show_default=True, metavar="SECONDS",
                     help="Time that running calls get at shutdown."),
        click.option("--workers", hidden=True, expose_value=False, callback=_no_workers),
        click.option("--shard", default="", metavar="NAME",
                     help="Name of this server among several behind one proxy: ids begin with it."),
        click.option("--sync", is_flag=True, help="With --journal: a call waits for the disk, so that nothing is lost "
                     "with the power."),
        click.option("--out", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
                     help="Store the records of ended episodes in one run folder per environment."),
        click.option("--journal", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
                     help="Journal all requests, so that a restarted server continues its episodes."),
        click.option("--body", type=click.IntRange(min=1024), default=4 << 20, show_default=True, metavar="BYTES",
                     help="Maximum size of a request body or frame."),
        click.option("--memory", type=click.IntRange(min=1024), default=256 << 20, show_default=True, metavar="BYTES",
                     help="Maximum memory of an episode's record and world; an episode beyond it fails."),
        click.option("--rate", type=click.FloatRange(min=0, min_open=True), metavar="N",
                     help="Maximum requests per second per key.  [default: unlimited]"),
        click.option("--episodes-per-key", type=click.IntRange(min=1), metavar="N",
                     help="Maximum open episodes per key.  [default: as --episodes]"),
        click.option("--episodes", type=click.IntRange(min=1), default=10_000, show_default=True, metavar="N",
                     help="Maximum open episodes."),
        click.option("--idle", type=click.FloatRange(min=1), default=900.0, show_default=True, metavar="SECONDS",
                     help="Idle time after which an episode is closed."),
        click.option("--origin", "origins", metavar="URL", multiple=True,
                     help="Origin of web pages that may call the server; repeatable."),
        click.option("--name", "names", metavar="HOST", multiple=True,
                     help="Additional host name of the server, such as that of a proxy; repeatable."),
        click.option("--keys", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
                     help="File of keys that callers must present; see `quintain keys`."),
    ):  # fmt: skip
        command = option(command)
    return command


def serve(offer: ServedEnvironments, wish: ServeOptions, *, address: str, port: int) -> int:
    """Serve environments until a signal ends the process; returns the exit status.

    Args:
        offer: Environments to serve.
        wish: Access, limits and storage.
        address: Interface to listen on.
        port: TCP port; 0 for any free one.

    Raises:
        UsageError: The address is not available, or an option is invalid.
    """
    from quintain.serve.http.auth import HostCheck
    from quintain.serve.http.server import listen, run
    from quintain.serve.names import Ids, named, reachable

    door, places = wish.door(address), HostCheck(address, names=wish.names, origins=wish.origins)
    reachable(named(offer.envs))
    Ids(wish.shard)
    if wish.sync and wish.journal is None:
        raise UsageError("--sync says how the journal is written: name one with --journal DIR")
    try:
        line, url = listen(address, port)
    except OSError as error:
        why = error.strerror or str(error)
        if error.errno == errno.EADDRINUSE:
            why = "something listens there already; choose another --port, or 0 for any free one"
        raise UsageError(f"cannot listen on {address}:{port}: {why}") from error
    with line, wish.host(offer) as (host, pasts):
        run(
            host,
            door,
            places,
            line=line,
            ready=lambda: click.echo(f"listening on {url}"),
            pasts=pasts,
            drain_s=wish.drain,
        )
    return 0
