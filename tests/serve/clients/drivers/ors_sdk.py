"""Drives a server with the client of `ors-sdk`: `python ors_sdk.py URL`."""
# pyright: reportMissingImports=false
# mypy: disable-error-code="import-not-found, no-any-return"

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

from _facts import digest, error, modules, output, tell, words
from ors.client import ORS, AsyncORS


def discovery(env: Any) -> dict[str, Any]:
    """Returns what the server answers without a session."""
    tasks = env.list_tasks("train")
    return {
        "splits": env.list_splits(),
        "tools": [tool.name for tool in env.list_tools()],
        "schema": next(tool.input_schema for tool in env.list_tools() if tool.name == "add"),
        "openai": [tool["name"] for tool in env.list_tools(format="openai")],
        "num_tasks": env.num_tasks("train"),
        "tasks": len(tasks),
        "task_is_listed": env.get_task("train", 1).task_spec == tasks[1].task_spec,
        "range_is_listed": [t.task_spec for t in env.get_task_range("train", 1, -1)]
        == [t.task_spec for t in tasks[1:-1]],
        "bad_split": error(lambda: env.num_tasks("nowhere")),
        "bad_index": error(lambda: env.get_task("train", 99)),
    }


def episode(env: Any) -> dict[str, Any]:
    """One episode from its prompt to its end."""
    with env.session(split="train", index=2) as session:
        return {
            "prompt": words(session.get_prompt()),
            "task_tools": [tool.name for tool in session.list_tools()],
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


async def many(url: str, name: str) -> dict[str, Any]:
    """Sixteen sessions of the asynchronous client side by side."""
    client = AsyncORS(url)  # it closes its connections when it is collected
    env = client.environment(name)

    async def one(index: int) -> float | None:
        async with env.session(split="train", index=index % 5) as session:
            for _ in range(index % 5 + 1):
                await session.call_tool("add", {})
            reward: float | None = (await session.call_tool("submit", {"answer": index % 5 + 1})).reward
            return reward

    begin = time.monotonic()
    rewards = await asyncio.gather(*(one(index) for index in range(16)))
    await env.client.close()
    return {"rewards": rewards, "seconds": time.monotonic() - begin}


def main(url: str) -> None:
    with ORS(url) as client:
        env = client.environment("counter")
        facts = {
            "discovery": discovery(env),
            "upper_case": client.environment("Counter").list_splits(),
            "unknown_environment": error(lambda: client.environment("nowhere").list_splits()),
            "episode": episode(env),
            "wrong": wrong(env),
            "texts": texts(env),
        }
    facts["many"] = asyncio.run(many(url, "counter"))
    tell(facts)


if __name__ == "__main__":
    main(sys.argv[1])
