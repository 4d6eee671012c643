"""A simulated user for the talk that the tests serve: `quintain serve ... --user tests/serve/operation/user.py:user`.

What he says depends on nothing but how often he has spoken. Whenever he is asked he appends a line to `log` in the
folder of the test, as the gates of the environments do, and he is silent as long as the file `silent` names that time.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from quintain.harness import Model, Request
from quintain.task import Task
from quintain.trace import Message, Reply, ToolCall

WORDS = ("Hello!", "", "It is 3.", "###STOP###")
"""What he says; the second time he looks at the clock."""


class User:
    """Simulated user of these tests."""

    name = "user"

    def model(self, task: Task[Any], seed: int) -> Model:
        """Returns a speaker, who leaves in the middle of the task train-4."""
        return Speaker(leaves=task.id == "train-4")


class Speaker:
    """Model of the user in one episode."""

    def __init__(self, *, leaves: bool) -> None:
        self.leaves = leaves

    async def __call__(self, request: Request) -> Reply:
        number = sum(message.role == "assistant" for message in request.messages)
        folder = Path(os.environ["QUINTAIN_TEST_FOLDER"])
        with (folder / "log").open("a") as log:
            log.write(f"user-{number}\n")
        silent = folder / "silent"
        while silent.exists() and silent.read_text() == str(number):  # noqa: ASYNC110  # another process ends it
            await asyncio.sleep(0.005)
        if self.leaves and number == 2:
            raise RuntimeError("he has left")
        calls = () if WORDS[number] else (ToolCall("c", "look", "{}"),)
        return Reply(Message("assistant", WORDS[number], calls=calls))


user = User()
