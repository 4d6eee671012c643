"""The options of `quintain serve` that say to whom it listens, and how much it does for them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from quintain.errors import UsageError

if TYPE_CHECKING:
    from quintain.serve.door import Door
    from quintain.serve.journal import Journal
    from quintain.serve.limits import Limits


class Operation(msgspec.Struct, kw_only=True):
    """The values of these options."""

    keys: Path | None
    names: tuple[str, ...]
    origins: tuple[str, ...]
    idle: float
    episodes: int
    episodes_per_key: int | None
    rate: float | None
    body: int
    journal: Path | None
    sync: bool

    @classmethod
    def taken(cls, given: dict[str, Any]) -> Operation:
        """Take them out of what a command was given."""
        return cls(**{name: given.pop(name) for name in cls.__struct_fields__})

    def limits(self) -> Limits:
        """How much callers may use."""
        from quintain.serve.limits import Limits

        return Limits(
            episodes=self.episodes,
            episodes_per_key=self.episodes_per_key or self.episodes,
            idle_s=self.idle,
            body_bytes=self.body,
            requests_per_s=self.rate,
        )

    def log(self) -> Journal | None:
        """Where what is asked is written down; None where it is not.

        Raises:
            UsageError: It cannot be, or there is no such place and it is to be in sync.
        """
        from quintain.serve.journal import Journal

        if self.journal is None and self.sync:
            raise UsageError("--sync says how the journal is written: name one with --journal DIR")
        return None if self.journal is None else Journal(self.journal, sync=self.sync)

    def door(self, address: str) -> Door:
        """Who is let in to a server that listens at this address.

        Raises:
            UsageError: There are no keys for one that can be reached from outside, or they cannot be read.
        """
        from quintain.serve.door import Keyed, Open, is_loopback
        from quintain.serve.keys import Keys

        if self.keys is not None:
            return Keyed(Keys(self.keys))
        if not is_loopback(address):
            raise UsageError(f"--host {address} can be reached from outside: say who may ask, with --keys FILE")
        return Open()


def operated(command: Any) -> Any:
    """Add them to a command."""
    for option in (
        click.option("--sync", is_flag=True, help="With --journal: a call waits for the disk, so that nothing is lost "
                     "with the power."),
        click.option("--journal", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
                     help="Write down what is asked, so that a server that is started again goes on."),
        click.option("--body", type=click.IntRange(min=1024), default=4 << 20, show_default=True, metavar="BYTES",
                     help="Longest body or frame of a request."),
        click.option("--rate", type=click.FloatRange(min=0, min_open=True), metavar="N",
                     help="Requests per second of one key."),
        click.option("--episodes-per-key", type=click.IntRange(min=1), metavar="N", help="Open at once of one key."),
        click.option("--episodes", type=click.IntRange(min=1), default=10_000, show_default=True, metavar="N",
                     help="Open at once."),
        click.option("--idle", type=click.FloatRange(min=1), default=900.0, show_default=True, metavar="SECONDS",
                     help="Without a request or a ping, before an episode is closed."),
        click.option("--origin", "origins", metavar="URL", multiple=True,
                     help="Whose web pages may ask the server; its own may anyhow."),
        click.option("--name", "names", metavar="HOST", multiple=True,
                     help="Another name by which the server is called, such as a proxy's."),
        click.option("--keys", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
                     help="Let in who has a key, such as `quintain keys` makes."),
    ):  # fmt: skip
        command = option(command)
    return command
