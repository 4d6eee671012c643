"""Tests of what a refused call may leave behind in the state."""

from __future__ import annotations

import pytest

from quintain.audit.claims import written


@pytest.mark.parametrize(
    ("path", "counts"),
    [("shared/counters/Q", False), ("shared/draws", False), ("log/7", False), ("quotes/Q1", True)],
)
def test_refused_call_may_use_up_an_identifier_and_write_nothing_else(path: str, counts: bool) -> None:
    assert written({}, {path: [None, 1]}, []) == ([path] if counts else [])
