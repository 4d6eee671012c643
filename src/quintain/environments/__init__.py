"""Environments that come with the package."""

import importlib.util


def lacks_worlds() -> bool:
    """Whether something is missing of what `quintain[worlds]` installs."""
    return any(importlib.util.find_spec(name) is None for name in ("apsw", "tzdata", "xxhash"))
