"""Search by a regular expression, in a child process: an expression may take forever on a text.

`python -m quintain.studio.finder` is the child. It reads what to do from its input and writes a line for each place. A
signal ends it where one episode takes too long; the server goes on.
"""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import msgspec

from .index import Index
from .search import in_line

SECONDS = 2.0
"""Most seconds of CPU for one episode."""

_QUERY = "SELECT place, size FROM episode ORDER BY n"


class _Asked(msgspec.Struct):
    """Input of the child; `rows` has place and size of each episode."""

    traces: str
    rows: list[tuple[int, int]]
    expression: str
    fold: bool
    field: str
    seconds: float


class _Failed(msgspec.Struct):
    """Last line, where the search ended before the last episode."""

    detail: str


async def fitting(
    index: Index, expression: str, *, fold: bool = False, field: str = "", seconds: float = SECONDS
) -> AsyncGenerator[bytes]:
    """Yields places that an expression of Python fits, as lines of JSON: `Hit`, or a last line `{"detail": why}`.

    `^` and `$` fit at each line of a text, too. A place that the expression fits without any text is none.

    Args:
        index: Index of the run.
        expression: Regular expression.
        fold: Letters are the same in both cases.
        field: Label of the texts that are searched; empty for all.
        seconds: Most seconds of CPU for one episode.
    """
    with index.lock:
        rows = index.database.execute(_QUERY).fetchall()
    asked = _Asked(str(index.traces), rows, expression, fold, field, seconds)
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(sys.executable, "-m", __name__, stdin=pipe, stdout=pipe)
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        child.stdin.write(msgspec.json.encode(asked))
        child.stdin.close()
        async for line in child.stdout:
            yield line
        if await child.wait() == -signal.SIGVTALRM:
            why = f"the expression takes longer than {seconds:g} s on one episode; write a simpler one"
            yield _line(_Failed(why))
        elif child.returncode:
            yield _line(_Failed("the search crashed; load the page again"))
    finally:
        if child.returncode is None:  # The client has left, which cancels each wait that has no shield.
            child.kill()
            with anyio.CancelScope(shield=True):
                await child.communicate()


def main() -> None:
    """Searches what the input says."""
    asked = msgspec.json.decode(sys.stdin.buffer.read(), type=_Asked)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the studio, which ends this process.
    signal.setitimer(signal.ITIMER_VIRTUAL, asked.seconds)
    try:
        pattern = re.compile(asked.expression, re.MULTILINE | (re.IGNORECASE if asked.fold else 0))
    except (re.error, RecursionError, OverflowError) as error:
        sys.stdout.buffer.write(_line(_Failed(f"{asked.expression!r} is not a regular expression: {error}")))
        return
    with Path(asked.traces).open("rb") as file:
        for n, (place, size) in enumerate(asked.rows):
            signal.setitimer(signal.ITIMER_VIRTUAL, asked.seconds)
            file.seek(place)
            for hit in in_line(n, file.read(size), pattern=pattern, field=asked.field):
                sys.stdout.buffer.write(_line(hit))
            sys.stdout.buffer.flush()


def _line(value: msgspec.Struct) -> bytes:
    return msgspec.json.encode(value) + b"\n"


if __name__ == "__main__":
    main()
