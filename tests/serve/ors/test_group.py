"""Group scoring, which only environments that say so have."""

from __future__ import annotations

import pytest

from tests.serve.ors.wire import Ors

CANDIDATE = {"messages": [{"role": "assistant", "blocks": [{"type": "text", "text": "4"}]}]}


@pytest.mark.parametrize("env", ["counter", "words"])
def test_group_scoring_is_404_before_any_event(ors: Ors, env: str) -> None:
    answer = ors.post(f"/{env}/score_group", {"candidates": [CANDIDATE]}, ors.open(env))
    assert answer.status_code == 404
    assert answer.json()["detail"]
