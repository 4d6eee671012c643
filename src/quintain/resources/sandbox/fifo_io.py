"""Input and output of a container: named pipes in a folder that is bound there, read-only.

So the engine does not stand between a program and the limit on its output, and a program whose output is not read has
to wait. Process 1 is a shell that reports the start and the exit status of the program, and then waits until the
container is removed: so there is a moment in which every process of the program is gone and its control group can still
be read.
"""

from __future__ import annotations

import os
from pathlib import Path

from .output import Channel
from .running import ProgramRequest

INSIDE = "/run/quintain"
"""Path of the folder in a container."""
WORD = 16
"""Bytes of what process 1 says, or an answer; more is nonsense."""
_FIRST = """
exec 9>{fifos}/state 8<>{fifos}/hold {channel}
until : & wait; [ "$!" -ge {before} ]; do :; done
printf + >&9
env -- "$@" <{fifos}/in >{fifos}/out 2>{fifos}/err 8<&- 9>&-
status=$?
kill -9 -1 2>/dev/null
printf '%d\\n' "$status" >&9
read -r never <&8
"""
"""Process 1. How many process numbers a runtime has used differs, so it uses up the others below the program's."""
NUMBER = 64
"""The process number of a program."""


class Fifos:
    """The named pipes of one container; all ends that are not the program's are ours.

    Attributes:
        folder: Where they are.
        state: Where process 1 is heard.
        pipes: Two ends of standard output, two of standard error.
        channel: To ask a session.
    """

    def __init__(self, folder: Path, request: ProgramRequest, *, has_channel: bool) -> None:
        folder.mkdir()
        (folder / "in").write_bytes(request.stdin)
        for name in ("out", "err", "state", "hold", *(("ask", "answer") if has_channel else ())):
            os.mkfifo(folder / name)
            (folder / name).chmod(0o666)
        self.folder = folder
        self.state, self._begins = self._opened("state")
        self.pipes = [self._opened("out"), self._opened("err")]
        self.channel: Channel | None = None
        self._spare = [self._begins]
        if has_channel:
            (theirs, say), (hear, theirs_too) = self._opened("ask"), self._opened("answer")
            self.channel = Channel(hear, say)
            self._spare += [theirs, theirs_too]

    def _opened(self, name: str) -> tuple[int, int]:
        read = os.open(self.folder / name, os.O_RDONLY | os.O_NONBLOCK)
        return read, os.open(self.folder / name, os.O_WRONLY)

    def first(self) -> str:
        """Returns the script of process 1, whose arguments are those of the program."""
        channel = f"3<{INSIDE}/ask 4>{INSIDE}/answer" if self.channel else ""
        return _FIRST.format(fifos=INSIDE, before=NUMBER - 1, channel=channel)

    def begun(self) -> None:
        """Closes the ends that the container has now."""
        for fd in self._spare:
            os.close(fd)
        self._spare = []

    def wake(self) -> None:
        """Sends nonsense to every reader of an answer, since the container that lives on sends none."""
        if self.channel:
            with (self.folder / "answer").open("wb", buffering=0) as answer:
                answer.write(b"?" * WORD)

    def close(self) -> None:
        """Closes this process's ends, except the pipes of the output."""
        self.begun()
        os.close(self.state)
        if self.channel:
            self.channel.close()

    def close_pipes(self) -> None:
        """Closes the pipes of an output that never started."""
        for fd in (fd for pair in self.pipes for fd in pair):
            os.close(fd)
