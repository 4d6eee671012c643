"""Contract of all environments, for the incident desk."""

from __future__ import annotations

from typing import Any

import pytest

from quintain.environment import Environment
from quintain.environments.ops import RoutedOracle, make
from quintain.harness import Model
from quintain.task import Task
from quintain.testing import EnvironmentContract


class TestOps(EnvironmentContract):
    first = 1
    examples = 5

    def environment(self) -> Environment[Any]:
        return make()


class TestRoutedOps(EnvironmentContract):
    first = 1
    examples = 4
    # The harness holds the six tools outside of the world, so it plays from the beginning only.
    test_copies_go_on_as_the_episode_does = None  # type: ignore[assignment]

    @pytest.mark.slow
    def test_other_processes_play_the_same(self) -> None:
        super().test_other_processes_play_the_same()

    def environment(self) -> Environment[Any]:
        return make(harness="hierarchical")

    def solver(self, task: Task[Any]) -> Model:
        return RoutedOracle().model(task, 0)


@pytest.mark.slow
class TestDatabaseOps(EnvironmentContract):
    first = 1
    examples = 4

    def environment(self) -> Environment[Any]:
        return make(service="database")
