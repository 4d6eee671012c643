"""Settings for audits in tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from quintain.audit import auditor
from quintain.audit.facts.failure_rate import Rate


@pytest.fixture(scope="module")
def no_failure_rate() -> Iterator[None]:
    """Skips the 59 episodes that measure the failure rate: no check uses the rate, and `tests/cli` tests it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(auditor, "measure", lambda ctx: Rate())
        yield
