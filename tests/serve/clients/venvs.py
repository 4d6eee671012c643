"""Virtual environments for clients of the field, each in its own, for some of them cannot stand beside another.

`QUINTAIN_VENVS` names a folder that keeps them from one run to the next.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import IO, Any

import pytest

DRIVERS = Path(__file__).parent / "drivers"
INSTALL_S = 1_800
RUN_S = 600

ORS = (("ors-sdk==0.1.0", "httpx", "pytest", "pytest-asyncio"),)
OPENREWARD = (("openreward==0.1.167", "httpx", "pytest", "pytest-asyncio"),)
INSPECT = (("inspect-openreward==0.3.0", "inspect-ai==0.3.285", "openreward==0.1.167"),)
OPENENV = (("openenv==0.10.0",),)
OPENENV_CORE = (("openenv-core==0.3.0",),)
TRL = (
    ("torch==2.13.0+cpu",),
    ("trl==1.16.0", "transformers>=5.2", "openreward==0.1.167", "openenv==0.10.0"),
)
"""Steps of an installation; torch by itself, so that it can come from an index of its own."""

TORCH = ("--index-url", "https://download.pytorch.org/whl/cpu")


class Venv:
    """An interpreter that has a client.

    Args:
        folder: Where environments are kept.
        steps: What is installed, step by step.
    """

    def __init__(self, folder: Path, steps: Sequence[Sequence[str]]) -> None:
        name = hashlib.sha256(json.dumps([sys.version, steps]).encode()).hexdigest()[:16]
        self.folder = folder / name
        self.python = self.folder / "bin" / "python"
        whole = self.folder / "whole"
        if not whole.exists():
            venv.create(self.folder, with_pip=True, clear=True)
            for step in steps:
                self._install(step)
            whole.touch()

    def _install(self, step: Sequence[str]) -> None:
        pip = [str(self.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *step]
        done = _run(pip)
        if done.returncode and step[0].startswith("torch"):
            done = _run([*pip, *TORCH])
        if done.returncode:
            pytest.skip(f"cannot install {' '.join(step)}: {done.stderr.strip().splitlines()[-1:]}")

    def facts(self, driver: str, *arguments: str, folder: Path | None = None) -> dict[str, Any]:
        """What a driver says that it saw.

        Args:
            driver: Its file.
            arguments: Its arguments.
            folder: Where it runs; None for here.
        """
        command = [str(self.python), str(DRIVERS / driver), *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=RUN_S, check=False, env=clean(), cwd=folder
        )
        lines = [line for line in done.stdout.splitlines() if line.startswith("FACTS ")]
        assert lines, f"{driver} ended with {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
        told: dict[str, Any] = json.loads(lines[-1].removeprefix("FACTS "))
        return told

    @contextlib.contextmanager
    def reference(self, sdk: str) -> Generator[str]:
        """The server of an SDK itself; yields its address."""
        driver = "reference_openenv.py" if sdk == "openenv" else "reference.py"
        command = [str(self.python), str(DRIVERS / driver), sdk, "0"]
        with tempfile.TemporaryFile("w+") as said:  # It logs there too, and would stand still in a full pipe.
            process = subprocess.Popen(command, stdout=said, stderr=subprocess.DEVNULL, env=clean())
            try:
                yield listening(process, said)
            finally:
                process.kill()
                process.wait()


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S, check=False)


def clean() -> dict[str, str]:
    """The environment of this process without what would lead the client's interpreter to our packages."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV_", "OPENREWARD"))}
    return kept | {"OPENREWARD_DISABLE_UPDATE_CHECK": "1", "NO_PROXY": "127.0.0.1"}


def listening(process: subprocess.Popen[bytes], said: IO[str]) -> str:
    """The address that a server prints."""
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        assert process.poll() is None, f"the server ended with {process.returncode}"
        if found := re.search(r"listening on (\S+)\n", os.pread(said.fileno(), 1 << 20, 0).decode()):
            return found[1]
        time.sleep(0.05)
    raise AssertionError("the reference server never listened")
