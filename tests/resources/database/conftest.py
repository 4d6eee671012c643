"""The database that most of these tests begin with."""

from __future__ import annotations

import pytest

from quintain.resources.database import Database
from quintain.state import Shared
from tests.resources.database.shop import shop


@pytest.fixture
def db() -> Database:
    one = shop()
    one.bind(Shared())
    return one
