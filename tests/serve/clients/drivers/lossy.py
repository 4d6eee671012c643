"""An episode over a connection that breaks: `python lossy.py ors|openreward URL`."""
# pyright: reportMissingImports=false
# mypy: disable-error-code="import-not-found, no-any-return"

from __future__ import annotations

import os
import sys
from typing import Any

SDK, URL = sys.argv[1:]
os.environ |= {"OPENREWARD_SESSION_URL": URL, "OPENREWARD_API_URL": URL, "OPENREWARD_DISABLE_UPDATE_CHECK": "1"}

from _facts import digest, output, tell, words  # noqa: E402  # the address must be known first


def client() -> Any:
    """A client of the SDK that is asked for."""
    if SDK == "ors":
        from ors.client import ORS

        return ORS(URL)
    from openreward import OpenReward

    return OpenReward()


if __name__ == "__main__":
    with client() as opened, opened.environments.get("counter").session(split="train", index=2) as session:
        added = output(session.call_tool("add", {"by": 3}))
        large = digest(words(session.call_tool("repeat", {"text": "0123456789 ", "times": 50_000}).blocks))
        last = output(session.call_tool("submit", {"answer": 3}))
    tell({"added": added, "large": large, "last": last})
