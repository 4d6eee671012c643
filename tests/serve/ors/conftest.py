"""One server for all tests of the wire: sessions are strangers to each other, and so are tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.serve.ors.wire import Ors
from tests.serve.serving import Served, serve


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve("counter", "words", "gated", "rough", folder=tmp_path_factory.mktemp("served")) as server:
        yield server


@pytest.fixture(scope="session")
def ors(served: Served) -> Iterator[Ors]:
    client = Ors(served.url)
    with client.http:
        yield client
