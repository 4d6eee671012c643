"""Other checkers of environments, each in a virtual environment of its own under `$QUINTAIN_CACHE/peers`.

They pin many dependencies and agree on few, so they are isolated from each other and from this project's environment.
An environment is made at its first use, with pip, and kept; besides the tool it holds the requirements of our subjects.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

OURS = ("msgspec>=0.19", "apsw>=3.46", "xxhash>=3.5", "tzdata>=2024.1")
FARAMA = ("pettingzoo==1.27.0", "gymnasium==1.4.0")
NEEDS: dict[str, tuple[str, ...]] = {
    "gymnasium": FARAMA,
    "pettingzoo": FARAMA,
    "falsepass": ("falsepass==0.11.0",),
    "openenv": ("openenv==0.10.0",),
    "verifiers": ("verifiers==0.4.0",),
}
"""Requirements of each tool; the first names its environment."""
SERVERS: dict[str, tuple[str, ...]] = {"ors": ("ors-sdk==0.1.0",), "openenv": NEEDS["openenv"]}
"""Packages of the environment servers measured against ours."""
REASONING = "reasoning-gym==0.1.25"
PUBLIC: dict[str, tuple[str, ...]] = {
    "minigrid": ("minigrid==3.2.0", "gymnasium==1.4.0"),
    "reasoning-gym": (REASONING,),
    "marble": ("marble-v1==0.1.0", "verifiers==0.4.0"),
    # Without a bound of websockets, pip tries many versions.
    "verifiers-legacy": ("verifiers==0.3.1", REASONING, "openenv==0.10.0", "websockets<17"),
    "openenv-numpy": ("numpy==2.2.6", "openenv==0.10.0"),
}
"""Packages of the public environments of `sound.py`."""


class Impossible(RuntimeError):
    """A tool cannot be installed here: no network, no pip, or no wheel for this Python."""


def needs(tool: str) -> tuple[str, ...]:
    """Returns the packages of a tool, a server or a public environment."""
    return (SERVERS | PUBLIC | NEEDS)[tool]


def place(tool: str) -> Path:
    """Returns the path of a tool's environment; a file `installed` marks it as complete, and lists its packages."""
    cache = Path(os.environ.get("QUINTAIN_CACHE") or Path.home() / ".cache" / "quintain") / "peers"
    return cache / f"{needs(tool)[0].replace('==', '-')}-{sys.implementation.cache_tag}"


def python(tool: str) -> Path:
    """The interpreter that can import a tool; installs it if it is not there yet.

    Raises:
        Impossible: It cannot be.
    """
    folder = place(tool)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process may be at it
        installed, packages = folder / "installed", "\n".join(needs(tool))
        if not installed.is_file() or installed.read_text() != packages:
            shutil.rmtree(folder, ignore_errors=True)
            _install(tool, folder)
            installed.write_text(packages)
    return folder / "bin" / "python"


def _install(tool: str, folder: Path) -> None:
    venv.create(folder)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "--disable-pip-version-check"]
    command = [*pip, "install", "--quiet", *needs(tool), *OURS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        shutil.rmtree(folder)
        last = (done.stderr.strip() or "pip said nothing").splitlines()[-1]
        raise Impossible(f"{tool} cannot be installed: {last}")
