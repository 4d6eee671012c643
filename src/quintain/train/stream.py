"""Streams of rows between processes: JSON lines for people, MessagePack in frames for speed.

A frame is the length of a row in four bytes, the highest first, and the row. A reader needs no hint which of the two it
reads.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import BinaryIO

import msgspec

from quintain import Trajectory, codec
from quintain.errors import TraceError

MAX_FRAME_BYTES = 2**30
"""Longest row; a longer length can only be damage, and its first byte could be that of a JSON line."""


def write_rows(file: BinaryIO, rows: Iterable[Trajectory], *, packed: bool = False) -> int:
    """Writes rows and returns their number.

    Args:
        file: Open for writing bytes: a file, a pipe, or `socket.makefile("wb")`.
        rows: Rows of `quintain.trajectories`.
        packed: True for MessagePack; the default is JSON lines, as `quintain export --format rows` writes them.
    """
    count = 0
    for row in rows:
        data = codec.dumps(row) if packed else codec.json(row) + b"\n"
        file.write(len(data).to_bytes(4) + data if packed else data)
        count += 1
    return count


def read_rows(file: BinaryIO) -> Iterator[Trajectory]:
    """Yields the rows of a stream, each as soon as it is complete.

    Raises:
        TraceError: A row is truncated, damaged or not a row; the message has its number.
    """
    for number in itertools.count(1):
        head = file.read(4)
        if not head:
            return
        try:
            if head[:1] == b"{":
                yield msgspec.json.decode(head + file.readline(), type=Trajectory)
                continue
            if (length := int.from_bytes(head)) > MAX_FRAME_BYTES or len(head) < 4:
                raise TraceError(f"row {number} begins with {head!r}, which is neither JSON nor the length of a row")
            yield codec.loads(file.read(length), Trajectory)
        except msgspec.DecodeError as error:
            raise TraceError(f"row {number} is truncated, damaged or not a row: {error}") from error
