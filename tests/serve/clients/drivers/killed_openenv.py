"""Episodes of OpenEnv whose server is killed again and again: `python killed_openenv.py URL`. They count to five."""
# pyright: reportMissingImports=false
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import json
import sys
import time
import urllib.request
from collections.abc import Callable
from typing import Any

from _facts import error, tell
from openenv.core.env_server.mcp_types import CallToolAction
from openenv.core.generic_client import GenericEnvClient
from openenv.core.mcp_client import MCPToolClient

URL = sys.argv[1]


def called(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "call_tool", "tool_name": tool, "arguments": arguments}


def healthy() -> None:
    """Wait until the server is there: these clients give their session up when it is not."""
    while error(lambda: urllib.request.urlopen(f"{URL}/health", timeout=5).close()):
        time.sleep(0.05)


def stubborn(work: Callable[[], Any]) -> Any:
    """Do what may be done twice until it is done."""
    raised: Exception | None = None
    for _ in range(20):
        healthy()
        try:
            return work()
        except Exception as failed:  # noqa: BLE001  # a connection that broke looks like anything
            raised = failed
    raise RuntimeError("it never worked") from raised


def session() -> dict[str, Any]:
    """One episode, in a session that has a name: after a loss, the count of steps says whether a step was made."""
    with MCPToolClient(base_url=f"{URL}/openenv/counter", mode="production").sync() as client:

        def made() -> int:
            steps: int = stubborn(lambda: client.state().step_count)
            return steps

        def step(number: int, tool: str, **arguments: Any) -> None:
            for _ in range(20):
                healthy()
                error(lambda: client.step(CallToolAction(tool_name=tool, arguments=arguments)))
                if made() > number:
                    return
            raise RuntimeError(f"step {number} was never made")

        stubborn(lambda: client.reset(split="train", index=4))
        for number in range(5):
            step(number, "add", by=1)
        step(5, "submit", answer=5)
        with urllib.request.urlopen(
            f"{URL}/v1/episodes", timeout=30
        ) as listed:  # Its answer may have been the lost one.
            scores = [one["score"] for one in json.load(listed)["episodes"] if one["turns"] == 6]
        return {"steps": made(), "scores": scores}


def socket() -> dict[str, Any]:
    """Plays episodes of a socket until one ends; each loss of the socket is an error, after which the next begins."""
    refusals = []
    with GenericEnvClient(base_url=f"{URL}/openenv/counter").sync() as client:
        for _ in range(20):
            stubborn(lambda: client.reset(split="train", index=4))
            try:
                for _ in range(5):
                    client.step(called("add", by=1))
                last = client.step(called("submit", answer=5))
            except Exception as lost:  # noqa: BLE001  # a connection that broke looks like anything
                healthy()
                refusals.append(f"{type(lost).__name__}, {error(lambda: client.step(called('add', by=1)))}")
                continue
            return {"reward": last.reward, "refusals": refusals}
    raise RuntimeError("no episode came to its end")


if __name__ == "__main__":
    tell({"session": session()} if sys.argv[2] == "session" else {"socket": socket()})
