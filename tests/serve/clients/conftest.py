"""The clients, and the server that they all drive."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.serve.clients.venvs import Venv
from tests.serve.serving import Served, serve


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve("counter", "words", "gated", folder=tmp_path_factory.mktemp("served")) as server:
        yield server


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Sequence[Sequence[str]]], Venv]:
    """Makes the virtual environment of a client, once."""
    kept = os.environ.get("QUINTAIN_VENVS")
    folder = Path(kept) if kept else tmp_path_factory.mktemp("venvs")
    made: dict[str, Venv] = {}

    def install(steps: Sequence[Sequence[str]]) -> Venv:
        if str(steps) not in made:
            made[str(steps)] = Venv(folder, steps)
        return made[str(steps)]

    return install
