"""An environment with a tool that blocks its thread where nothing can interrupt it, until a test lets it go."""

from __future__ import annotations

import os
from pathlib import Path

import quintain as qn

PIPE = "pipe"


class Stuck(qn.State):
    """Pipe into which nothing is written."""

    @qn.tool
    def read(self) -> str:
        """Read what comes out of it."""
        return (Path(os.environ["QUINTAIN_TEST_FOLDER"]) / PIPE).read_text()


@qn.reward
def read(_: qn.EpisodeView[Stuck]) -> float:
    return 1.0


env = qn.Environment(
    "stuck",
    tasks=lambda _split: [qn.Task(id="pipe", prompt="Read.", start=Stuck())],
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(read),
    state=Stuck,
    config=qn.Config(tool_timeout_s=0.1),
)
