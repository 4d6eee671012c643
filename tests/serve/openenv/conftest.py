"""One server for all of these tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.serve.serving import Served, serve


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve("counter", "words", "gated", "rough", folder=tmp_path_factory.mktemp("openenv")) as running:
        yield running
