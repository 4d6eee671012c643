"""Runs the blocks of the page that need the client: `python page.py SERVER URL EPISODE CLASS`, the last two code."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from typing import Any

_server, url, episode, class_ = sys.argv[1:]


def main() -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(episode, {"url": url})
    names: dict[str, Any] = {"url": url}
    exec(class_, names)
    env = names["Balance"]()
    trained: list[list[Any]] = []
    for index in range(3):
        env.reset(split="train", index=index, prompt="left out")
        seen = env.look()
        unfinished = env.get_reward()
        assert unfinished is None
        env.balance(1)
        trained.append([seen, env.get_reward()])
    env.client.close()
    facts = {"printed": printed.getvalue().splitlines(), "trained": trained}
    sys.stdout.write(f"\nFACTS {json.dumps(facts)}\n")


main()
