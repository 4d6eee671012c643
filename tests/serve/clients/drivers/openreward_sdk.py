"""Drives a server with the client of `openreward`: `python openreward_sdk.py URL`."""
# pyright: reportMissingImports=false
# mypy: disable-error-code="import-not-found, no-any-return"

from __future__ import annotations

import asyncio
import os
import sys
import time
from typing import Any

URL = sys.argv[1]
os.environ |= {"OPENREWARD_SESSION_URL": URL, "OPENREWARD_API_URL": URL, "OPENREWARD_DISABLE_UPDATE_CHECK": "1"}

from _facts import digest, error, modules, output, tell, words  # noqa: E402  # the address must be known first
from openreward import AsyncOpenReward, OpenReward  # noqa: E402


def discovery(env: Any) -> dict[str, Any]:
    """Returns what the server answers without a session; paths are bare unless the environment has a variant."""
    tasks = env.list_tasks("train")
    return {
        "splits": env.list_splits(),
        "tools": [tool.name for tool in env.list_tools()],
        "openai": [tool["name"] for tool in env.list_tools(format="openai")],
        "anthropic": [tool["name"] for tool in env.list_tools(format="anthropic")],
        "num_tasks": env.num_tasks("train"),
        "tasks": len(tasks),
        "environment_name": tasks[0].environment_name,
        "task_is_listed": env.get_task("train", -1).task_spec == tasks[-1].task_spec,
        "range_is_listed": [t.task_spec for t in env.get_task_range("train", -3)] == [t.task_spec for t in tasks[-3:]],
        "supports_score_group": env.supports_score_group(),
        "bad_split": error(lambda: env.num_tasks("nowhere")),
        "bad_index": error(lambda: env.get_task("train", 99)),
    }


def episode(env: Any) -> dict[str, Any]:
    """One episode from its prompt to its end."""
    with env.session(split="train", index=2, secrets={"token": ("hush", ["example.org"])}) as session:
        return {
            "version": sorted(session.version()),
            "prompt": words(session.get_prompt()),
            "roles": [message.role for message in session.get_messages()],
            "asked": words(session.get_messages()[-1].blocks),
            "openai_messages": session.get_messages(format="openai")[-1],
            "task_tools": [tool.name for tool in session.list_tools()],
            "terminal": session.terminal_tool() and session.terminal_tool().name,
            "score_group": error(lambda: session.score_group([session.get_messages()])),
            "first": output(session.call_tool("add", {"by": 2})),
            "default": output(session.call_tool("add", {})),
            "bad_arguments": error(lambda: session.call_tool("add", {"by": "many"})),
            "unknown_tool": error(lambda: session.call_tool("subtract", {})),
            "last": output(session.call_tool("submit", {"answer": 3})),
            "late": error(lambda: session.call_tool("peek", {})),
        }


def wrong(env: Any) -> dict[str, Any]:
    """A session by a task from the list, and a wrong answer."""
    with env.session(task=env.list_tasks("test")[1]) as session:
        return {"prompt": words(session.get_prompt()), "last": output(session.call_tool("submit", {"answer": 7}))}


def refused(env: Any) -> dict[str, str]:
    """Sessions that cannot be."""

    def opened(**wanted: Any) -> str:
        def enter() -> None:
            with env.session(**wanted):
                pass

        return error(enter)

    return {
        "split": opened(split="nowhere", index=0),
        "index": opened(split="train", index=99),
        "toolset": opened(split="train", index=0, toolset="codex"),
    }


def texts(env: Any) -> dict[str, Any]:
    """Returns texts after their way over the wire."""
    with env.session(split="train", index=0) as session:

        def said(text: str, times: int = 1) -> str:
            return words(session.call_tool("repeat", {"text": text, "times": times}).blocks)

        odd = ["é漢🜁\u2028\u0085", "a\r\nb\n\n\tc\x00\x1f", '"\\u0020" \\', "data: x\n\nevent: end\n", "😀"]
        return {
            "spaces": len(said(" ", 20_000)),
            "newlines": len(said("\n", 20_000)),
            "odd": [said(text) == text for text in odd],
            "large": digest(said("0123456789abcdef ", 300_000)),
            "modules": {
                name: digest(words(session.call_tool("source", {"module": name}).blocks)) for name in modules()
            },
        }


async def many(name: str) -> dict[str, Any]:
    """Sixteen sessions of the asynchronous client side by side, and in each three calls at once."""
    client = AsyncOpenReward()
    env = client.environments.get("any", variant=name)

    async def one(index: int) -> float | None:
        async with env.session(split="train", index=index % 5) as session:
            await asyncio.gather(*(session.call_tool("add", {}) for _ in range(index % 5 + 1)))
            assert words((await session.call_tool("peek", {})).blocks) == str(index % 5 + 1)
            reward: float | None = (await session.call_tool("submit", {"answer": index % 5 + 1})).reward
            return reward

    begin = time.monotonic()
    rewards = await asyncio.gather(*(one(index) for index in range(16)))
    await client.environments.aclose()
    return {"rewards": rewards, "seconds": time.monotonic() - begin}


def answered(env: Any) -> dict[str, Any]:
    """An episode that ends by words: what its terminal tool is called is the server's affair."""
    with env.session(split="train", index=0) as session:
        facts = {"final": session.is_assistant_message_final(), "tools": [tool.name for tool in session.list_tools()]}
        word = words(session.call_tool("look", {}).blocks)
        return {**facts, "last": output(session.call_terminal_tool(word)), "late": error(session.call_terminal_tool)}


def main() -> None:
    with OpenReward() as client:
        env = client.environments.get("any")
        facts = {
            "discovery": discovery(env),
            "variant": client.environments.get("any", variant="Counter").list_splits(),
            "unknown_environment": error(client.environments.get("any", variant="nowhere").list_splits),
            "episode": episode(env),
            "wrong": wrong(env),
            "refused": refused(env),
            "texts": texts(env),
            "answered": answered(client.environments.get("any", variant="words")),
        }
    facts["many"] = asyncio.run(many("counter"))
    tell(facts)


if __name__ == "__main__":
    main()
