"""A small image made of this machine, for a container engine that reaches no registry."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from quintain.resources.sandbox.engine import environment

_PROGRAMS = (
    *("sh", "bash", "python3", "cat", "ls", "ln", "touch", "env", "date", "sleep", "seq", "head", "yes", "grep"),
    *("setsid", "mkdir", "rm"),
)
_LEFT_OUT = {"__pycache__", "test", "idlelib", "lib2to3", "ensurepip", "dist-packages", "tkinter"}


def archive(target: Path) -> None:
    """Write a root file system as a tar file: a few programs, an interpreter, and what they load."""
    where = subprocess.run(
        ["/usr/bin/python3", "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))"],
        capture_output=True,
        text=True,
        check=True,
    )
    library = where.stdout.strip()
    programs = {
        name: Path(found).resolve() for name in _PROGRAMS if (found := shutil.which(name, path="/usr/bin:/bin"))
    }
    loading = subprocess.run(
        ["ldd", *map(str, programs.values()), *map(str, Path(library).glob("lib-dynload/*.so"))],
        capture_output=True,
        text=True,
        check=True,
    )
    with tarfile.open(target, "w") as tar:
        for name, path in programs.items():
            tar.add(path, f"usr/bin/{name}")
        for name in ("sh", "bash"):
            tar.add(programs[name], f"bin/{name}")
        for path in sorted(set(re.findall(r"(/\S+\.so\S*) \(0x", loading.stdout))):
            tar.add(os.path.realpath(path), path.removeprefix("/"))
        tar.add(library, library.removeprefix("/"), filter=_wanted)
        if Path("/usr/lib/locale/C.utf8").exists():
            tar.add("/usr/lib/locale/C.utf8", "usr/lib/locale/C.utf8")


def _wanted(one: tarfile.TarInfo) -> tarfile.TarInfo | None:
    parts = set(one.name.split("/"))
    return None if parts & _LEFT_OUT or any(part.startswith("config-") for part in parts) else one


def podman(*words: str) -> subprocess.CompletedProcess[str]:
    """One command of podman."""
    return subprocess.run(["podman", *words], capture_output=True, text=True, check=False, env=environment())


@contextmanager
def imported(folder: Path) -> Generator[str]:
    """The name of an image that podman has; skips where podman cannot run it, and says why.

    A podman whose own runtime does not work here is set to use runc.
    """
    if shutil.which("podman") is None:
        pytest.skip("podman is not installed")
    name = f"localhost/quintain-test:{os.getpid()}"
    archive(folder / "root.tar")
    made = podman("import", "--quiet", str(folder / "root.tar"), name)
    if made.returncode:
        pytest.skip(f"podman has no storage here: {made.stderr.strip()}")
    try:
        with pytest.MonkeyPatch.context() as patch:
            if (tried := _tried(name)) and shutil.which("runc", path="/usr/sbin:/usr/bin:/usr/local/sbin"):
                (folder / "containers.conf").write_text('[engine]\nruntime = "runc"\n')
                patch.setenv("CONTAINERS_CONF", str(folder / "containers.conf"))
                tried = _tried(name)
            if tried:
                pytest.skip(f"podman runs no container here: {tried}")
            yield name
    finally:
        podman("rmi", "--force", name)


def _tried(name: str) -> str:
    done = podman("run", "--rm", "--network=none", "--ulimit=nproc=4096:4096", "--ulimit=nofile=256:256", name, "env")
    return done.stderr.strip() if done.returncode else ""


@contextmanager
def unpacked() -> Generator[str]:
    """A folder that is a root file system."""
    with tempfile.TemporaryDirectory() as name:
        archive(Path(name) / "root.tar")
        with tarfile.open(Path(name) / "root.tar") as tar:
            tar.extractall(Path(name) / "root", filter="fully_trusted")
        yield f"{name}/root"
