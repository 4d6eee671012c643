"""One server for all tests of the control plane, and the same environments in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from quintain import plugins
from quintain.environment import Environment
from tests.serve.serving import ENVIRONMENTS, Served, serve

TALK = Path(__file__).with_name("talk.py")


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    others = (f"{TALK}:talk", f"{TALK}:shift", f"{TALK}:offering", "sales")
    with serve("counter", "rough", "gated", folder=folder, options=others) as server:
        yield server


@pytest.fixture
def api(served: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served.url) as client:
        yield client


def here(name: str) -> Environment[Any]:
    """An environment of the server's, in this process."""
    file = ENVIRONMENTS if name in {"counter", "rough", "gated"} else TALK
    return plugins.environment(name if name == "sales" else f"{file}:{name}")
