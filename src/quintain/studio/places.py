"""Folders of this program in the user's home, by the XDG rules."""

from __future__ import annotations

import os
from pathlib import Path


def folder(variable: str, default: str) -> Path:
    """Returns the folder of this program that an XDG variable names, such as XDG_CACHE_HOME."""
    given = os.environ.get(variable, "")
    return (Path(given) if given.startswith("/") else Path.home() / default) / "quintain"


def indexes() -> Path:
    """Returns the folder of the indexes."""
    return folder("XDG_CACHE_HOME", ".cache") / "studio"
