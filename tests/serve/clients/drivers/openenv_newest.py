"""Drives a server with what OpenEnv 0.10 has beyond its clients: `python openenv_newest.py URL FOLDER`.

Its graders, sessions side by side, a client that times out, and the class that TRL's documentation has
written around a client. FOLDER is where the gates of the server's environments are opened.
"""
# pyright: reportMissingImports=false
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from _facts import error, tell
from openenv.core import GenericEnvClient
from openenv.core.env_server.mcp_types import CallToolAction
from openenv.core.mcp_client import MCPToolClient
from openenv.validation.graders.runtime import (
    ObservationSchemaGrader,
    RewardWellFormedGrader,
    StateContractGrader,
)
from openenv.validation.runtime.collector import collect_runtime_evidence
from openenv.validation.runtime.contracts import RuntimePlan
from openenv_sdk import URL, called

FOLDER = Path(sys.argv[2])


def graded() -> list[dict[str, Any]]:
    """The graders of the second level, on what their own collector saw."""
    actions: list[list[dict[str, Any]]] = [
        [called("add", by=2), {"type": "list_tools"}, called("fly"), called("submit", answer=2)],
        [called("add", by=2)] * 5,
        [{"type": "answer", "text": "I give up."}],
    ]
    found: list[dict[str, Any]] = []
    for number, one in enumerate(actions):
        plan = RuntimePlan.model_validate(
            {
                "plan_schema_version": "1",
                "reset": {
                    "episode_id": f"graded-{number}",
                    "seed": number,
                    "options": {"split": "train", "index": 1},
                },
                "actions": one,
            }
        )
        evidence = collect_runtime_evidence(f"{URL}/openenv/counter", plan, episode_timeout_s=60.0)
        manifest = SimpleNamespace(reward=SimpleNamespace(range=(0.0, 1.0)))
        subject = SimpleNamespace(runtime_evidence=evidence, manifest=manifest)
        graders = (RewardWellFormedGrader(), ObservationSchemaGrader(), StateContractGrader())
        results = [grader.run(subject) for grader in graders]
        found.append({one.check_id: [one.status.value, *one.evidence] for one in results})
    return found


async def beside() -> list[str]:
    """Twenty sessions at once, each with a count of its own."""

    async def one(number: int) -> str:
        async with GenericEnvClient(base_url=f"{URL}/openenv/counter") as client:
            await client.reset(split="train", index=0)
            for _ in range(2):
                await client.step(called("add", by=number))
            last = await client.step(called("add", by=number))
            return str(last.observation["result"])

    return await asyncio.gather(*(one(number) for number in range(20)))


async def child() -> list[str]:
    """A second session of the same client."""
    async with GenericEnvClient(base_url=f"{URL}/openenv/counter") as parent:
        await parent.reset(split="train", index=0)
        await parent.step(called("add", by=5))
        other = await parent.new_session()
        await other.reset(split="train", index=0)
        seen = [await one.step(called("peek")) for one in (parent, other)]
        return [str(one.observation["result"]) for one in seen]


def timed_out() -> dict[str, Any]:
    """A client that gives up waiting, and goes on as if nothing had happened."""
    client = GenericEnvClient(base_url=f"{URL}/openenv/gated", message_timeout_s=0.5).sync()
    with client:
        client.reset(split="train", index=0)
        given_up = error(lambda: client.step(called("hold", gate="newest")))
        next_step = error(lambda: client.step(called("mark", label="after_newest")))
        (FOLDER / "newest.open").touch()
        again = client.reset(split="train", index=0)
        return {
            "given_up": given_up,
            "next_step": next_step,
            "again": again.done,
            "works": client.step(called("mark", label="newest_works")).observation["result"],
        }


def attached() -> dict[str, Any]:
    """Steps over the socket and calls over HTTP in one session."""
    with MCPToolClient(base_url=f"{URL}/openenv/counter").sync() as client:
        client.reset(split="train", index=1)
        stepped = client.step(CallToolAction(tool_name="add", arguments={"by": 1}))
        called_ = client.call_tool("add", by=1)
        last = client.step(CallToolAction(tool_name="submit", arguments={"answer": 2}))
        return {
            "stepped": stepped.observation.result,
            "called": called_["result"],
            "reward": last.reward,
            "done": last.done,
            "late": error(lambda: client.call_tool("peek")),
        }


class Count:
    """An environment as TRL takes it: tools are methods, and a reward of None leaves an episode out."""

    def __init__(self) -> None:
        self.client = GenericEnvClient(base_url=f"{URL}/openenv/counter").sync()
        self.client.connect()
        self.reward: float | None = None
        self.over = False

    def reset(self, split: str = "train", index: int = 0, **_: Any) -> str:
        self.reward, self.over = None, False
        return str(self.client.reset(split=split, index=index).observation["result"])

    def add(self, by: int) -> str:
        """Count on.

        Args:
            by: How many.

        Returns:
            The count.
        """
        return self._step("add", by=by)

    def submit(self, answer: int) -> str:
        """Hand in the count.

        Args:
            answer: The count.

        Returns:
            A receipt.
        """
        return self._step("submit", answer=answer)

    def get_reward(self) -> float | None:
        return self.reward

    def _step(self, tool: str, **arguments: Any) -> str:
        if self.over:
            raise RuntimeError("the episode is over")
        try:
            result = self.client.step(called(tool, **arguments))
        except Exception:
            self.reward, self.over = None, True
            raise
        self.reward, self.over = result.reward if result.done else None, result.done
        return str(result.observation["result"])


def wrapped() -> list[dict[str, Any]]:
    """Two instances that are used again and again, as a trainer does."""
    pool = [Count(), Count()]
    found: list[dict[str, Any]] = []
    for index in (1, 2):
        for answer, env in zip((index + 1, 99), pool, strict=True):
            prompt = env.reset(split="train", index=index, prompt="ignored")
            env.add(index + 1)
            unfinished = env.get_reward()
            env.submit(answer)
            late = error(lambda env=env: env.submit(1))
            found.append({"prompt": prompt, "unfinished": unfinished, "reward": env.get_reward(), "late": late})
    for env in pool:
        env.client.close()
    return found


if __name__ == "__main__":
    tell(
        {
            "graded": graded(),
            "beside": asyncio.run(beside()),
            "child": asyncio.run(child()),
            "timed_out": timed_out(),
            "attached": attached(),
            "wrapped": wrapped(),
        }
    )
