"""Programs that work in a staged workspace: in the folder itself, or in an overlay mounted for them alone."""

from __future__ import annotations

import functools
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from quintain.resources.workspace import Workspace
from quintain.resources.workspace.staging import Stage, collect, stage

MODES = ("copy", "overlay", "userxattr")


def mode(name: str) -> str:
    """The way of staging, if this kernel has it."""
    if name != "copy" and (reason := unmountable(name)):
        pytest.skip(reason)
    return name


def laid_out(workspace: Workspace, folder: Path, mode: str) -> Stage:
    return stage(workspace, folder / "stage", overlay=mode != "copy", userxattr=mode == "userxattr")


def run(stage: Stage, script: str, *, strict: bool = True) -> None:
    """Let a shell work in the stage; without `strict` it may fail."""
    if stage.lower is None:
        done = subprocess.run(
            ["sh", "-ec", script], cwd=stage.upper, capture_output=True, text=True, check=False, timeout=60
        )
    else:
        place = stage.folder / "merged"
        place.mkdir(exist_ok=True)
        mount = f'mount -t overlay overlay -o {options(stage)} {place} && cd {place} && exec sh -ec "$0"'
        done = subprocess.run(
            [*enter(stage), "sh", "-c", mount, script], capture_output=True, text=True, check=False, timeout=60
        )
    assert not strict or not done.returncode, done.stderr


def python(stage: Stage, work: Callable[[], object]) -> None:
    """Let a child of this very process work in the copied stage, as somebody without privilege."""
    assert stage.lower is None
    child = os.fork()
    if not child:
        status = 1
        try:
            os.chdir(stage.upper)
            work()
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def options(stage: Stage) -> str:
    more = "userxattr" if stage.tree.prefix == "user" else "redirect_dir=off,metacopy=off"
    return f"lowerdir={stage.lower},upperdir={stage.upper},workdir={stage.work},{more}"


def enter(stage: Stage) -> list[str]:
    return ["unshare", "-Urm"] if stage.tree.prefix == "user" or os.geteuid() else ["unshare", "-m"]


@functools.cache
def unmountable(name: str) -> str:
    """Returns the reason why an overlay cannot be mounted here; empty if it can."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace({"a": "a"})
        staged = laid_out(workspace, Path(folder), name)
        try:
            run(staged, "echo b > b; rm a")
        except (AssertionError, FileNotFoundError) as error:
            return f"no overlay can be mounted here: {error}"
        collect(workspace, staged)
        return "" if workspace.list() == ["b"] else "overlays behave in another way here"
