"""Runs the blocks of the page that need the client: `python openenv_page.py URL EPISODE CLASS`."""
# pyright: reportMissingImports=false
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import contextlib
import io
import sys
from typing import Any

from _facts import tell

url = sys.argv[1]
episode, class_ = (code.replace("http://127.0.0.1:8080/openenv/scale", url) for code in sys.argv[2:])


def main() -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(episode, {})
    names: dict[str, Any] = {}
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
    tell({"printed": printed.getvalue().splitlines(), "trained": trained})


main()
