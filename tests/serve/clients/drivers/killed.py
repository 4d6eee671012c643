"""An episode whose server is killed again and again: `python killed.py ors|openreward URL`. It only counts to five."""
# pyright: reportMissingImports=false
# mypy: disable-error-code="import-not-found, no-any-return"

from __future__ import annotations

import os
import sys
from typing import Any

SDK, URL = sys.argv[1:]
os.environ |= {"OPENREWARD_SESSION_URL": URL, "OPENREWARD_API_URL": URL, "OPENREWARD_DISABLE_UPDATE_CHECK": "1"}

from _facts import output, tell, words  # noqa: E402  # the address must be known first


def client() -> Any:
    """A client of the SDK that is asked for."""
    if SDK == "ors":
        from ors.client import ORS

        return ORS(URL)
    from openreward import OpenReward

    return OpenReward()


if __name__ == "__main__":
    with client() as opened, opened.environments.get("counter").session(split="train", index=4) as session:
        prompt = words(session.get_prompt())
        added = [words(session.call_tool("add", {"by": 1}).blocks) for _ in range(5)]
        last = output(session.call_tool("submit", {"answer": 5}))
    tell({"prompt": prompt, "added": added, "last": last})
