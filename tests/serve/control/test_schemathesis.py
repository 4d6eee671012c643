"""Requests that fit the OpenAPI document, and requests that do not, by the thousand: schemathesis finds nothing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.serve.clients.venvs import Venv
from tests.serve.control.conftest import TALK
from tests.serve.serving import serve

SCHEMATHESIS = (("schemathesis==4.32.5",),)
CONFIG = Path(__file__).with_name("schemathesis.toml")
SECONDS = 600


@pytest.mark.slow
def test_schemathesis_finds_nothing(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """With a key, so that what needs one is refused without, and everything else is reached with it."""
    kept = os.environ.get("QUINTAIN_VENVS")
    tool = Venv(Path(kept) if kept else tmp_path_factory.mktemp("venvs"), SCHEMATHESIS)
    keys = tmp_path / "keys"
    key = added(keys)
    with serve("counter", folder=tmp_path, options=(f"{TALK}:talk", "--keys", str(keys))) as served:
        command = [
            *(str(tool.folder / "bin" / "schemathesis"), "--config-file", str(CONFIG), "run"),
            *(f"{served.url}/v1/openapi.json", "--header", f"Authorization: Bearer {key}"),
            *("--max-examples", "40", "--seed", "1", "--no-color"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS, cwd=tmp_path)
        assert done.returncode == 0, done.stdout[-20_000:]


def added(keys: Path) -> str:
    from quintain.serve.http.keys import add

    return add(keys, "fuzz", "admin")
