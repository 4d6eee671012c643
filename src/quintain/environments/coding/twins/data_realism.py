"""data_realism: the older issues were written from one template.

Each has the same subject and the same sentence, one reporter's form, one label, an assignee and no typing error. Only
the issues of the job are as people write them, so an agent finds the job without reading it.
"""

from __future__ import annotations

from typing import Any

import quintain as qn
from quintain.environments.coding.environment import env as sound
from quintain.environments.coding.state import Coding
from quintain.environments.twins import poisoned


def tidy(task: qn.Task[Any], world: Coding) -> None:
    """Clean up what the task does not name."""
    for number, issue in [(key, row) for key, row in world.issues.items() if key not in task.truth.issues]:
        issue.title, issue.body = "Question about the package", "Hello, I have a question about the package."
        issue.author, issue.assignee, issue.labels = f"user{number}", "maintainer", ["question"]
        issue.comments = ["Thank you for the report. We have answered the question."]
        issue.created_at = f"{issue.created_at[:10]} 09:00"
        world.issues[number] = issue


env = poisoned(sound, "data_realism", spoil=tidy)
