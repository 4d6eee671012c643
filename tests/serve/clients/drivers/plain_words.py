"""Ends episodes in plain words with either SDK: `python plain_words.py ors|openreward URL`.

The server's first environment is `words`, whose tools end nothing.
"""
# mypy: disable-error-code="import-not-found, no-any-return"

from __future__ import annotations

import json
import sys
import urllib.request
from typing import Any

from _facts import error, output, tell, words
from _sdks import client


def answered(env: Any) -> dict[str, Any]:
    """Returns the result of the tool `answer`, which delivers the policy's last words."""
    with env.session(split="train", index=0) as session:
        word = words(session.call_tool("look", {}).blocks)
        return output(session.call_tool("answer", {"text": word}))


def closed(env: Any, url: str) -> dict[str, Any]:
    """Returns the server's response when a session without an answer is closed, and the error of a call after it."""
    with env.session(split="train", index=0) as session:
        session.call_tool("look", {})
        request = urllib.request.Request(f"{url}/delete", b"", {"X-Session-ID": session.sid}, method="POST")
        with urllib.request.urlopen(request) as response:
            return {"response": json.load(response), "late": error(lambda: session.call_tool("look", {}))}


def main(sdk: str, url: str) -> None:
    with client(sdk, url) as one:
        env = one.environment("words") if sdk == "ors" else one.environments.get("any", variant="words")
        described = next(tool.description for tool in env.list_tools() if tool.name == "answer")
        tell({"described": described, "answered": answered(env), "closed": closed(env, url)})


if __name__ == "__main__":
    main(*sys.argv[1:])
