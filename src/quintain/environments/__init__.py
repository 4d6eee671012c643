"""Environments that come with the package."""

import importlib.util


def lacks_worlds() -> bool:
    """True if a package that `quintain[worlds]` installs is missing."""
    return any(importlib.util.find_spec(name) is None for name in ("apsw", "tzdata", "xxhash"))
