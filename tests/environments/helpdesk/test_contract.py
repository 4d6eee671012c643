"""Contract of all environments, for the help desk."""

from __future__ import annotations

from typing import Any

import pytest

from quintain.environment import Environment
from quintain.environments.helpdesk import env, in_pages
from quintain.testing import EnvironmentContract


class TestHelpdesk(EnvironmentContract):
    first = 1

    examples = 8

    def environment(self) -> Environment[Any]:
        return env


@pytest.mark.slow
class TestHelpdeskInPages(EnvironmentContract):
    first = 2
    examples = 8

    def environment(self) -> Environment[Any]:
        return in_pages
