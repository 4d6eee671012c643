"""Benchmark of triage with few episodes: it runs, and no fault of the policy is excluded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

BENCH = Path(__file__).parents[3] / "bench" / "audit" / "triage.py"


def test_excluded_episodes_are_not_the_policys_fault() -> None:
    command = [sys.executable, str(BENCH), "--quick", "--json"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=300)
    figures = json.loads(done.stdout)
    assert figures["precision"]["rate"] >= figures["goal"]
    assert figures["recall_loud"]["rate"] == 1
    assert figures["recall"]["right"] >= 15
    assert figures["episodes"] == sum(sum(row.values()) for row in figures["confusion"].values())
