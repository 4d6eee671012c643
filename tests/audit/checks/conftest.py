"""Settings for the audits of checks, whose workers are forks of templates."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="module")
def quick_audits(no_failure_rate: None, prepared_workers: None) -> None:
    """Makes audits quick."""
