"""An episode over a connection that breaks: `python lossy.py ors|openreward URL`."""
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import sys

from _facts import digest, output, tell, words
from _sdks import client

if __name__ == "__main__":
    with client(*sys.argv[1:]) as opened, opened.environments.get("counter").session(split="train", index=2) as session:
        added = output(session.call_tool("add", {"by": 3}))
        large = digest(words(session.call_tool("repeat", {"text": "0123456789 ", "times": 50_000}).blocks))
        last = output(session.call_tool("submit", {"answer": 3}))
    tell({"added": added, "large": large, "last": last})
