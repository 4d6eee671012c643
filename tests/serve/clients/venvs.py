"""Virtual environments for clients of the field, each in its own, for some of them cannot stand beside another.

`QUINTAIN_VENVS` names a folder that keeps them from one run to the next.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import venv
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import IO, Any

import pytest

DRIVERS = Path(__file__).parent / "drivers"
INSTALL_S = 1_800
RUN_S = 600

TOOLS = ("httpx==0.28.1", "pytest==9.2.0", "pytest-asyncio==1.5.0")
"""What the test suites of two SDKs need."""

ORS = (("ors-sdk==0.1.0", *TOOLS),)
OPENREWARD = (("openreward==0.1.167", *TOOLS),)
INSPECT = (("inspect-openreward==0.3.0", "inspect-ai==0.3.285", "openreward==0.1.167"),)
OPENENV = (("openenv==0.10.0",),)
OPENENV_CORE = (("openenv-core==0.3.0",),)
TRL = (
    ("torch==2.13.0+cpu",),
    ("trl==1.16.0", "transformers==5.23.0", "openreward==0.1.167", "openenv==0.10.0", "msgspec==0.22.0"),
)
"""Steps of an installation; torch by itself, so that it can come from an index of its own."""

PYPI = "https://pypi.org/simple/"
TORCH = "https://download.pytorch.org/whl/cpu"


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
        if not step[0].startswith("torch"):
            install(pip, pypi())
        elif _run(pip).returncode:
            install([*pip, "--index-url", TORCH], TORCH)

    def facts(self, driver: str, *arguments: str, folder: Path | None = None) -> dict[str, Any]:
        """Returns the facts that a driver prints.

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
        facts_read: dict[str, Any] = json.loads(lines[-1].removeprefix("FACTS "))
        return facts_read

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


def install(command: Sequence[str], registry: str, folder: Path | None = None) -> None:
    """Install or download something.

    Where that fails, the test fails, unless nobody could be asked, which we find out by asking: then it is skipped.

    Args:
        command: What does it.
        registry: Where that looks.
        folder: Where it runs; None for here.
    """
    done = _run(command, folder)
    if not done.returncode:
        return
    if silence := _silence(registry):
        pytest.skip(f"{registry} does not answer: {silence}")
    pytest.fail(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")


def _silence(registry: str) -> str:
    """Returns the reason why a registry does not answer; empty if it answers, even with an error."""
    try:
        urllib.request.urlopen(registry, timeout=20).close()
    except urllib.error.HTTPError:
        return ""
    except urllib.error.URLError as error:
        return "" if isinstance(error.reason, ssl.SSLError) else str(error.reason)
    except OSError as error:
        return str(error)
    return ""


def pypi() -> str:
    """Returns the package index of pip's configuration."""
    listed = _run([sys.executable, "-m", "pip", "config", "list"]).stdout
    found = re.search(r"^\S*\.index-url='(.+)'$", listed, re.MULTILINE)  # What the environment says comes first.
    return found[1] if found else PYPI


def _run(command: Sequence[str], folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S, check=False, cwd=folder)


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
