"""Samples of long lists of cases: `make test` plays the sample, `make test-all` plays all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest


def sampled(cases: Sequence[Any], *, every: int, first: int = 0) -> list[Any]:
    """Returns all cases as parameters, those outside of `cases[first::every]` marked slow."""
    return [
        pytest.param(case, marks=() if number % every == first else pytest.mark.slow)
        for number, case in enumerate(cases)
    ]
