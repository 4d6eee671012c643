"""One server for all of these tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.serve.serving import Served, serve

if TYPE_CHECKING:
    import httpx


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve("counter", "words", "gated", "rough", folder=tmp_path_factory.mktemp("openenv")) as running:
        yield running


def client_of(served: Served, env: str) -> httpx.Client:
    """An HTTP client whose base is one environment."""
    import httpx

    return httpx.Client(base_url=f"{served.url}/openenv/{env}", timeout=30, verify=False, trust_env=False)
