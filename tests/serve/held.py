"""An environment whose harness holds tools: notes, questions to the user, and those of an MCP server."""

from __future__ import annotations

import sys
from pathlib import Path

import quintain as qn
from quintain.harnesses import AskUser, agentic
from quintain.harnesses.mcp import Mcp

SERVER = Path(__file__).parents[1] / "audit" / "subjects" / "mcp_server.py"


class Box(qn.State):
    """Box that can be opened."""

    opened: int = 0

    @qn.tool
    def open(self) -> str:
        """Open the box."""
        self.opened += 1
        return "opened"


@qn.reward
def once(view: qn.EpisodeView[Box]) -> float:
    return float(view.state.opened == 1)


env = qn.Environment(
    "held",
    tasks=lambda split: [qn.Task(id="t", prompt="Open the box.", start=Box())],
    harness=agentic(tools=(Mcp(servers={"notes": f"stdio:{sys.executable} {SERVER}"}), AskUser())),
    verifier=qn.Verifier(once),
    state=Box,
)
