"""The company keeps the promises of every environment."""

from __future__ import annotations

from typing import Any

import pytest

import quintain as qn
from quintain.environments.enterprise import env
from quintain.testing import EnvironmentContract


class TestEnterprise(EnvironmentContract):
    first = 2
    examples = 6

    def environment(self) -> qn.Environment[Any]:
        return env

    @pytest.mark.slow  # The test of its tasks shows it.
    def test_other_processes_play_the_same(self) -> None:
        super().test_other_processes_play_the_same()
