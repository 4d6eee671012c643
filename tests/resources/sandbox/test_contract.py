"""The promises of a sandbox, for each way of laying out files and each way of bounding processes."""

from __future__ import annotations

import pytest

from quintain.resources.sandbox import Policy
from tests.resources.sandbox.contract import SandboxContract


class TestOverlay(SandboxContract):
    policy = Policy()


@pytest.mark.slow  # `test_staging.py` shows that every way of laying out leaves the same.
class TestCopy(SandboxContract):
    policy = Policy(overlay=False)


class TestPool(SandboxContract):
    policy = Policy(pool=1)


class TestWithoutGroups(SandboxContract):
    policy = Policy(groups="none")


@pytest.mark.slow
class TestGroupsOfVersion2(SandboxContract):
    policy = Policy(groups="v2", overlay=False)
