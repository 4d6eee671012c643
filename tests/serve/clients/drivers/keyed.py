"""One episode with a key, and attempts without: `python keyed.py ors|openreward URL KEY`."""
# pyright: reportMissingImports=false
# mypy: disable-error-code="import-not-found, no-any-return"

from __future__ import annotations

import os
import sys
from typing import Any

SDK, URL, KEY = sys.argv[1:]
os.environ |= {"OPENREWARD_SESSION_URL": URL, "OPENREWARD_API_URL": URL, "OPENREWARD_DISABLE_UPDATE_CHECK": "1"}

from _facts import error, output, tell  # noqa: E402  # the address must be known first


def client(key: str) -> Any:
    """A client of the SDK that is asked for."""
    if SDK == "ors":
        from ors.client import ORS

        return ORS(URL, api_key=key)
    from openreward import OpenReward

    return OpenReward(api_key=key)


def episode(key: str) -> dict[str, Any]:
    with client(key) as opened, opened.environments.get("counter").session(split="train", index=0) as session:
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
