"""One server for all tests, and the worlds that most of them begin with."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

from quintain.resources.database import Database
from quintain.state import Shared
from tests.resources.postgres.cluster import folder, running
from tests.resources.postgres.shop import shop


@pytest.fixture(scope="session")
def url() -> Generator[str, None, None]:
    """Returns the url of the server that all workers share."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))[:12]
    with running(folder(f"quintain-{run}")) as cluster:
        yield cluster.url


@pytest.fixture
def db(url: str) -> Database:
    one = shop(url)
    one.bind(Shared())
    return one


@pytest.fixture(params=["sqlite", "postgres"])
def either(request: pytest.FixtureRequest) -> Database:
    """A shop on each backend."""
    one = shop(request.getfixturevalue("url") if request.param == "postgres" else None)
    one.bind(Shared())
    return one
