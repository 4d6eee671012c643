"""An episode whose server is killed again and again: `python killed.py ors|openreward URL`. It only counts to five."""
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import sys

from _facts import output, tell, words
from _sdks import client

if __name__ == "__main__":
    with client(*sys.argv[1:]) as opened, opened.environments.get("counter").session(split="train", index=4) as session:
        prompt = words(session.get_prompt())
        added = [words(session.call_tool("add", {"by": 1}).blocks) for _ in range(5)]
        last = output(session.call_tool("submit", {"answer": 5}))
    tell({"prompt": prompt, "added": added, "last": last})
