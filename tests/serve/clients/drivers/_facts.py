"""Functions of the drivers, which use a server through its client and print the results as one JSON object.

A driver runs in the virtual environment of its client, where Quintain is not installed. Only drivers that use TRL
import it, from the checkout.
"""

from __future__ import annotations

import hashlib
import json
import sys
import sysconfig
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any


def tell(facts: dict[str, Any]) -> None:
    """Print the facts, on a line of their own, for the test to read."""
    sys.stdout.write(f"\nFACTS {json.dumps(facts)}\n")
    sys.stdout.flush()


def modules() -> list[str]:
    """The modules of the standard library that need more than one frame of 4,096 characters twice over."""
    folder = Path(sysconfig.get_path("stdlib"))
    return sorted(path.name for path in folder.glob("*.py") if path.stat().st_size > 8_192)


def digest(text: str) -> str:
    """Names a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def error(call: Callable[[], Any]) -> str:
    """The class of what a call raises, and its words; empty when it raises nothing."""
    try:
        call()
    except Exception as raised:  # noqa: BLE001  # whatever the client says is the fact
        return f"{type(raised).__name__}: {raised}"
    return ""


def words(blocks: Iterable[Any]) -> str:
    """The text of blocks."""
    return "".join(block.text for block in blocks if block.type == "text")


def output(said: Any) -> dict[str, Any]:
    """A tool's output as plain data."""
    return {"text": words(said.blocks), "reward": said.reward, "finished": said.finished, "metadata": said.metadata}
