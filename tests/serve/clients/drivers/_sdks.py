"""A client of either SDK of the Open Reward Standard, for drivers that do the same with both."""
# pyright: reportMissingImports=false
# mypy: disable-error-code="import-not-found, no-any-return"

from __future__ import annotations

import os
from typing import Any


def client(sdk: str, url: str, **more: str) -> Any:
    """A client.

    Args:
        sdk: `ors` or `openreward`.
        url: Of the server.
        more: Its `api_key`.
    """
    os.environ |= {"OPENREWARD_SESSION_URL": url, "OPENREWARD_API_URL": url, "OPENREWARD_DISABLE_UPDATE_CHECK": "1"}
    if sdk == "ors":
        from ors.client import ORS

        return ORS(url, **more)
    from openreward import OpenReward

    return OpenReward(**more)
