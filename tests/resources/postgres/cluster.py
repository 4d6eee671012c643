"""PostgreSQL server of the tests' own, in a temporary folder; it stops after its last user.

Each user holds a shared lock on a file. A guardian waits for the exclusive lock, gets it when the last user is gone,
however it went, stops the server and removes the folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

INSTALL = "apt-get install postgresql"
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "listen_addresses": "''",
    "max_connections": "200",
    "shared_buffers": "64MB",
}
GUARDIAN = """
import fcntl, os, shutil, signal, subprocess, sys
if os.fork():
    os._exit(0)
signal.signal(signal.SIGINT, signal.SIG_IGN)
folder, user, *stop = sys.argv[1:]
who = {"user": int(user.split(":")[0]), "group": int(user.split(":")[1]), "extra_groups": []} if user else {}
with open(f"{folder}/using", "r+") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    quiet = subprocess.DEVNULL
    subprocess.run(stop, check=False, stdin=quiet, stdout=quiet, stderr=quiet, cwd="/", **who)
    shutil.rmtree(folder, ignore_errors=True)
"""


ROOM = 2 * 2**30


def folder(name: str) -> Path:
    """In memory where there is room: to copy a database is to write 300 files."""
    memory = Path("/dev/shm")
    if memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > ROOM:
        return memory / name
    return Path(tempfile.gettempdir()) / name


class Cluster:
    """A server in a folder, whose name must be short: its socket is there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.url = f"postgresql://postgres@/postgres?host={folder}"
        self._binaries = binaries()
        self._user = unprivileged()

    def make(self) -> None:
        """Initialise and start it."""
        if self._user:
            os.chown(self.folder, self._user.pw_uid, self._user.pw_gid)
        self.run("initdb", "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C")
        lines = [f"{name} = {value}\n" for name, value in SETTINGS.items()]
        with (self.data / "postgresql.conf").open("a") as file:
            file.writelines([*lines, f"unix_socket_directories = '{self.folder}'\n"])
        self.start()
        user = f"{self._user.pw_uid}:{self._user.pw_gid}" if self._user else ""
        stop = self.command("pg_ctl", "-w", "-m", "immediate", "stop")
        subprocess.run(
            [sys.executable, "-c", GUARDIAN, str(self.folder), user, *stop],
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the tests
            cwd="/",
            check=True,
        )

    def start(self) -> None:
        self.run("pg_ctl", "-w", "-l", str(self.folder / "log"), "start")

    def stop(self) -> None:
        """As a crash would."""
        self.run("pg_ctl", "-w", "-m", "immediate", "stop")

    def command(self, program: str, *arguments: str) -> list[str]:
        return [str(self._binaries / program), "-D", str(self.data), *arguments]

    def run(self, program: str, *arguments: str) -> None:
        log = self.folder / f"{program}.log"
        with log.open("wb") as file:
            done = subprocess.run(
                self.command(program, *arguments),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                check=False,
                cwd=self.folder,
                start_new_session=True,
                **self._identity(),
            )
        if done.returncode:
            pytest.skip(f"no PostgreSQL server ({INSTALL}): {program} says {log.read_text().strip()}")

    def _identity(self) -> dict[str, Any]:
        if self._user is None:
            return {}
        return {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}


def unprivileged() -> pwd.struct_passwd | None:
    """Returns the user of the server, which refuses to run as root; None if this process is not root."""
    if os.geteuid():
        return None
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        pytest.skip(f"a PostgreSQL server refuses to run as root, and the user postgres does not exist: {INSTALL}")


def binaries() -> Path:
    """Returns the folder of the newest server's programs."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
    found = shutil.which("initdb")
    if found:
        folders.append(Path(found).resolve().parent)
    usable = [one for one in folders if (one / "initdb").exists() and (one / "postgres").exists()]
    if not usable:
        pytest.skip(f"a PostgreSQL server is missing here: {INSTALL}")
    return usable[-1]


@contextlib.contextmanager
def running(folder: Path) -> Generator[Cluster, None, None]:
    """The server in this folder; who comes first starts it."""
    cluster = Cluster(folder)
    with contextlib.ExitStack() as stack:
        while True:
            folder.mkdir(mode=0o755, exist_ok=True)
            using = stack.enter_context((folder / "using").open("a"))
            fcntl.flock(using, fcntl.LOCK_SH)
            with contextlib.suppress(FileNotFoundError):
                if (folder / "using").stat().st_ino == os.fstat(using.fileno()).st_ino:
                    break  # else a guardian has just removed it
        starting = stack.enter_context((folder / "starting").open("a"))
        fcntl.flock(starting, fcntl.LOCK_EX)
        if not (folder / "ready").exists():
            cluster.make()
            (folder / "ready").touch()
        fcntl.flock(starting, fcntl.LOCK_UN)
        yield cluster
