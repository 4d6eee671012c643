"""`quintain serve`, in a process of its own, for the tests that speak to it over a wire."""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import time
from collections.abc import Callable, Generator
from pathlib import Path

from tests.serve.environments import Gates
from tests.serve.forks import FOLDER, Fork

ENVIRONMENTS = Path(__file__).with_name("environments.py")
SECONDS = 60.0
"""How long a server may take to become ready, or to end."""

READY = re.compile(r"listening on (http://127\.0\.0\.1:(\d+))")


class Served:
    """A running server: where it listens, what it wrote, and the gates of its environments."""

    def __init__(self, process: Fork, url: str, folder: Path) -> None:
        self.process = process
        self.url = url
        self.port = int(url.rpartition(":")[2])
        self.folder = folder
        self.gates = Gates(folder)
        self.ended = False
        """Set by a test that ends it."""

    @property
    def memory(self) -> int:
        """Bytes of it that are in memory."""
        return int((self._proc / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    @property
    def descriptors(self) -> int:
        return len(list((self._proc / "fd").iterdir()))

    @property
    def threads(self) -> int:
        return len(list((self._proc / "task").iterdir()))

    @property
    def _proc(self) -> Path:
        return Path(f"/proc/{self.process.pid}")

    @property
    def said(self) -> str:
        """Text that the server has written to its error stream."""
        return (self.folder / "stderr").read_text()


def until(holds: Callable[[], object]) -> None:
    """Wait until something has happened in another thread or process.

    Raises:
        AssertionError: It does not happen in time.
    """
    limit = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < limit, "it does not happen"
        time.sleep(0.01)


@contextlib.contextmanager
def serve(
    *names: str, folder: Path, options: tuple[str, ...] = (), file: Path = ENVIRONMENTS, before: str = ""
) -> Generator[Served]:
    """Serve environments of a file on a free port; when the test is over the server must end well, and quietly.

    Args:
        names: Attributes of the file.
        folder: Where its gates and its error stream are.
        options: More arguments of `quintain serve`.
        file: The file.
        before: Python that the server runs first, such as a shorter time limit.
    """
    targets = [f"{file}:{name}" for name in names]
    arguments = ["serve", *targets, "--port", "0", *options]
    with (folder / "stderr").open("w") as errors:
        process = Fork(arguments, stderr=errors, env=environment(folder), cwd=folder, before=before)
    try:
        served = Served(process, ready(process, folder), folder)
        yield served
        if not served.ended:
            assert process.poll() is None, f"the server ended by itself:\n{served.said}"
            process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0, served.said
        assert "Traceback" not in served.said, served.said
    finally:
        process.kill()
        process.communicate()


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, FOLDER: str(folder), "PYTHONUNBUFFERED": "1"}


def ready(process: Fork, folder: Path) -> str:
    """The address that a server says when it is ready."""
    limit = time.monotonic() + SECONDS
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while selector.select(max(0.0, limit - time.monotonic())):
            line = process.stdout.readline()
            if found := READY.search(line):
                return found[1]
            assert line, f"the server ended with {process.wait()}:\n{(folder / 'stderr').read_text()}"
    raise AssertionError(f"no server after {SECONDS} s:\n{(folder / 'stderr').read_text()}")
