"""One episode with a key, and attempts without: `python keyed.py ors|openreward URL KEY`."""
# mypy: disable-error-code="import-not-found, no-any-return"

from __future__ import annotations

import sys
from typing import Any

from _facts import error, output, tell
from _sdks import client

SDK, URL, KEY = sys.argv[1:]


def episode(key: str) -> dict[str, Any]:
    opened = client(SDK, URL, api_key=key)
    with opened, opened.environments.get("counter").session(split="train", index=0) as session:
        session.call_tool("add", {})
        return output(session.call_tool("submit", {"answer": 1}))


if __name__ == "__main__":
    tell(
        {
            "right": episode(KEY),
            "wrong": error(lambda: episode(KEY[:-1] + ("0" if KEY[-1] != "0" else "1"))),
            "none": error(lambda: episode("")),
        }
    )
