"""Output of a program, read as it comes, up to a limit that also bounds memory; and the channel for requests."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Sequence

_CHUNK = 2**16


class Output:
    """Two pipes that a program writes into.

    Attributes:
        ends: Their other ends, for the program: standard output and standard error.
        is_cut: Whether there was more than the limit.
    """

    def __init__(self, limit: int, *, full: Callable[[], None], pipes: Sequence[tuple[int, int]] | None = None) -> None:
        """`full` is called when the limit is passed; nothing is read from then on. `pipes` become its own."""
        self._full, self._limit = full, limit
        pipes = pipes or [os.pipe(), os.pipe()]
        self.ends = [pipes[0][1], pipes[1][1]]
        self._reads = [pipes[0][0], pipes[1][0]]
        self._is_open = [True, True]
        self._parts: list[list[bytes]] = [[], []]
        self._left = limit
        self.is_cut = False
        self._is_once = False
        self._arrived = asyncio.Event()
        for fd in self._reads:
            os.set_blocking(fd, False)

    def started(self) -> None:
        """Closes the ends that the program has now."""
        for fd in self.ends:
            os.close(fd)
        self.ends = []

    def listen(self, *, once: bool = False) -> None:
        """Reads output in the running loop; with `once` one chunk, and then nothing more."""
        self._is_once = once
        loop = asyncio.get_running_loop()
        for number, fd in enumerate(self._reads):
            if self._is_open[number]:
                loop.add_reader(fd, self._read, number)

    def mute(self) -> None:
        """Stops reading for now: a writer has to wait once the pipe is full."""
        loop = asyncio.get_running_loop()
        for fd in self._reads:
            loop.remove_reader(fd)

    def _read(self, number: int) -> bool:
        """Reads one chunk; False if the pipe was empty."""
        try:
            data = os.read(self._reads[number], _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            asyncio.get_running_loop().remove_reader(self._reads[number])
            self._is_open[number] = False
        kept = data[: self._left]
        self._left -= len(kept)
        self._parts[number].append(kept)
        if len(kept) < len(data) and not self.is_cut:
            self.is_cut = True
            self.mute()
            self._full()
        self._arrived.set()
        if self._is_once:
            self.mute()
        return bool(data)

    async def arrived(self) -> None:
        """Until there is something new, or an end."""
        await self._arrived.wait()
        self._arrived.clear()

    def drain(self) -> None:
        """Reads the rest of the pipes, once all writers have ended."""
        for number in (0, 1):
            while self._is_open[number] and not self.is_cut and self._read(number):
                pass

    def take(self) -> tuple[bytes, bytes]:
        """Returns the standard output and the standard error since the last call."""
        out, err = (b"".join(parts) for parts in self._parts)
        self._parts = [[], []]
        return out, err

    def put_back(self, out: bytes, err: bytes) -> None:
        """Puts output back, so that it is taken next."""
        self._parts = [[out, *self._parts[0]], [err, *self._parts[1]]]

    def renew(self) -> None:
        """Counts from 0 again."""
        self._left, self.is_cut = self._limit, False

    def close(self) -> None:
        """Closes the descriptors."""
        with contextlib.suppress(RuntimeError):  # The loop has ended.
            self.mute()
        for fd in (*self._reads, *self.ends):
            os.close(fd)
        self._reads, self.ends = [], []


async def readable(*fds: int, seconds: float | None = None) -> bool:
    """Until one of them can be read, or is at its end; False when the seconds are over before."""
    loop, found = asyncio.get_running_loop(), asyncio.Event()
    for fd in fds:
        loop.add_reader(fd, found.set)
    try:
        async with asyncio.timeout(seconds):
            await found.wait()
    except TimeoutError:
        return False
    finally:
        for fd in fds:
            loop.remove_reader(fd)
    return True


class Channel:
    """Two descriptors, to ask a program and to hear it; both may be one socket. They are closed with it."""

    def __init__(self, hear: int, say: int) -> None:
        self._hear, self._say = hear, say
        for fd in (hear, say):
            os.set_blocking(fd, False)

    async def send(self, data: bytes) -> None:
        """Writes all of it.

        Raises:
            OSError: The reader is gone.
        """
        loop = asyncio.get_running_loop()
        while data:
            try:
                data = data[os.write(self._say, data) :]
            except BlockingIOError:
                free = asyncio.Event()
                loop.add_writer(self._say, free.set)
                try:
                    await free.wait()
                finally:
                    loop.remove_writer(self._say)

    async def receive(self, most: int) -> bytes:
        """Some of what it says; nothing when it says no more.

        Raises:
            OSError: It is gone.
        """
        while True:
            with contextlib.suppress(BlockingIOError):
                return os.read(self._hear, most)
            await readable(self._hear)

    def close(self) -> None:
        """Closes the descriptors."""
        for fd in {self._hear, self._say} - {-1}:
            os.close(fd)
        self._hear = self._say = -1
