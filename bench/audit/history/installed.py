"""Packages of a registry in old and new versions, side by side in one process.

Each pinned release is installed once, without its dependencies, into a folder of its own under
`$QUINTAIN_CACHE/history` (default `~/.cache/quintain/history`). `load` imports a module of it as if nothing else were
there and takes it out of `sys.modules` again, so that two releases of one package never meet. What releases share
(NumPy, SymPy) is pinned too, and stays importable.

Some packages import, at their top, what only their other parts need. A release may name such packages as `shells`:
they are entered without running their `__init__.py`, and the modules below them run as they are.

To fetch everything before anything is measured: `python -m bench.audit.history.prepare`, 350 MB.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

NUMPY = "numpy==2.2.6"
SYMPY = ("sympy==1.13.3", "mpmath==1.3.0")


class Impossible(RuntimeError):
    """A release cannot be installed here: no network, no pip, or no wheel for this Python."""


class Release(NamedTuple):
    """One version of a package, and what it needs."""

    requirement: str
    """Such as "gymnasium==1.0.0"."""
    tops: tuple[str, ...]
    """The top-level names that belong to this release alone."""
    own: tuple[str, ...] = ()
    """Requirements that belong to it as well: their tops are in `tops`."""
    shared: tuple[str, ...] = ()
    """Requirements that any release may share."""
    shells: tuple[str, ...] = ()
    """Packages whose `__init__.py` is not run."""


def gymnasium(version: str) -> Release:
    shared = (NUMPY, "cloudpickle==3.1.1", "farama-notifications==0.0.4", "typing-extensions==4.14.1")
    return Release(f"gymnasium=={version}", ("gymnasium",), shared=shared)


def reasoning_gym(version: str) -> Release:
    """A release of reasoning-gym, of which only single datasets are imported."""
    tops = ("reasoning_gym",)
    shells = (*tops, *(f"reasoning_gym.{part}" for part in ("algorithmic", "arithmetic", "code", "games")))
    shared = (NUMPY, *SYMPY, "bfi==1.0.4", "pyyaml==6.0.2")
    return Release(f"reasoning-gym=={version}", tops, shared=shared, shells=shells)


def math_verify(version: str, parser: str) -> Release:
    """A release of Math-Verify, with the version of its parser that it pins."""
    tops = ("math_verify", "latex2sympy2_extended")
    shared = (*SYMPY, "antlr4-python3-runtime==4.13.2")
    return Release(f"math-verify=={version}", tops, own=(f"latex2sympy2_extended=={parser}",), shared=shared)


RELEASES = (
    gymnasium("0.29.1"),
    gymnasium("1.0.0"),
    *(reasoning_gym(f"0.1.{n}") for n in (11, 12, 18, 19, 22, 23, 24, 25)),
    math_verify("0.7.0", "1.10.1"),
    math_verify("0.8.0", "1.10.2"),
)

_LOCK = threading.RLock()
_LOADED: dict[str, dict[str, ModuleType]] = {}


def load(release: Release, name: str) -> ModuleType:
    """A module of a release, the same one each time.

    Raises:
        Impossible: The release cannot be installed here.
    """
    with _LOCK:
        loaded = _LOADED.setdefault(release.requirement, {})
        if name not in loaded:
            _import(release, name)
        return loaded[name]


def install_all() -> None:
    """Every release, and what it needs.

    Raises:
        Impossible: One cannot be.
    """
    for release in RELEASES:
        for requirement in (release.requirement, *release.own, *release.shared):
            install(requirement)


def install(requirement: str) -> Path:
    """The folder that holds a requirement alone; it is installed if it is not there yet.

    Raises:
        Impossible: It cannot be.
    """
    cache = _cache()
    folder = cache / f"{requirement.replace('==', '-')}-{sys.implementation.cache_tag}"
    if not folder.is_dir():
        half = Path(tempfile.mkdtemp(dir=cache))
        try:
            _pip(requirement, half)
            half.rename(folder)
        except OSError:
            # Another process was faster: a folder that is not empty is not renamed over.
            if not folder.is_dir():
                raise
        finally:
            shutil.rmtree(half, ignore_errors=True)
    return folder


def kept(name: str, make: Callable[[], Any]) -> Any:
    """Returns plain data that takes long to make, cached on this machine at the first request."""
    file = _cache() / f"{name}.json"
    if not file.is_file():
        text = json.dumps(make())
        handle, half = tempfile.mkstemp(dir=file.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        Path(half).rename(file)
    return json.loads(file.read_text(encoding="utf-8"))


def _cache() -> Path:
    cache = Path(os.environ.get("QUINTAIN_CACHE") or Path.home() / ".cache" / "quintain") / "history"
    cache.mkdir(parents=True, exist_ok=True)
    return cache


def _pip(requirement: str, folder: Path) -> None:
    options = [
        "--quiet",
        "--no-deps",
        "--no-compile",
        "--only-binary",
        ":all:",
        "--disable-pip-version-check",
        "--target",
        str(folder),
    ]
    command = [sys.executable, "-m", "pip", "install", *options, requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip() or "pip said nothing").splitlines()[-1]
        raise Impossible(f"{requirement} cannot be installed: {last}")


def _import(release: Release, name: str) -> None:
    for requirement in release.shared:
        folder = str(install(requirement))
        if folder not in sys.path:
            sys.path.append(folder)  # at the end: what this environment has itself goes first
    folders = [str(install(requirement)) for requirement in (release.requirement, *release.own)]
    importlib.invalidate_caches()
    loaded = _LOADED[release.requirement]
    aside = _taken(release)
    sys.modules.update(loaded)
    sys.path[:0] = folders
    try:
        for shell in release.shells:
            sys.modules.setdefault(shell, _shell(shell, folders[0]))
        importlib.import_module(name)
    finally:
        for folder in folders:
            sys.path.remove(folder)
        loaded.update(_taken(release))
        sys.modules.update(aside)


def _shell(name: str, folder: str) -> ModuleType:
    shell = ModuleType(name)
    shell.__path__ = [str(Path(folder, *name.split(".")))]
    return shell


def _taken(release: Release) -> dict[str, ModuleType]:
    """Removes the modules of a release from `sys.modules` and returns them."""
    names = [name for name in sys.modules if name.partition(".")[0] in release.tops]
    return {name: sys.modules.pop(name) for name in names}
