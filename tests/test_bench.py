"""Every bench runs, with tiny sizes, and prints rows as the outside reads them. What they measure is not tested."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).parents[1] / "bench"
SCRIPTS = sorted(path.name for path in BENCH.glob("*.py") if not path.name.startswith("_"))
FIELDS = ["name", "value", "unit", "goal", "ok", "peer", "peer_value"]


def run(script: str, *arguments: str, **variables: str) -> str:
    """Runs a bench and returns its standard output."""
    environment = {name: value for name, value in os.environ.items() if name != "QUINTAIN_BENCH_PEERS"} | variables
    command = [sys.executable, str(BENCH / script), "--quick", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment, timeout=300).stdout


def rows(script: str, **variables: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run(script, "--json", **variables))
    return found


SLOW = {
    "audit_speed.py",
    "harness.py",
    "imports.py",
    "judges.py",
    "serve.py",
    "state.py",
    "state_files.py",
    "state_sandbox.py",
    "state_worlds.py",
    "step.py",
    "studio.py",
    "train.py",
    "worlds.py",
}

"""Benches that take more than a second; `make test-all` runs them."""


PROMISED = {
    "step.py": 1,
    "fork.py": 2,
    "imports.py": 1,
    "memory.py": 1,
    "judges.py": 1,
    "studio.py": 5,
    "audit_speed.py": 4,
}
"""How many numbers of a bench have a goal, at least."""


def test_benches_with_goals_exist() -> None:
    assert set(SCRIPTS) >= PROMISED.keys()


@pytest.mark.parametrize(
    "script", [pytest.param(script, marks=pytest.mark.slow if script in SLOW else ()) for script in SCRIPTS]
)
def test_a_bench_prints_rows(script: str) -> None:
    found = rows(script)
    assert found
    names = [row["name"] for row in found]
    assert len(set(names)) == len(names)
    assert sum(row["goal"] is not None for row in found) >= PROMISED.get(script, 0)
    for row in found:
        assert list(row) == FIELDS
        assert isinstance(row["name"], str)
        assert isinstance(row["unit"], str)
        for field in ("value", "goal", "peer_value"):
            assert row[field] is None or isinstance(row[field], int | float)
        value, goal = row["value"], row["goal"]
        assert row["ok"] == (None if value is None or goal is None else value <= goal)
        assert row["peer"] is None or isinstance(row["peer"], str)
        assert row["peer"] is not None or row["peer_value"] is None


def test_a_table_is_printed_for_people() -> None:
    assert "measured" in run("table.py")


def test_without_its_data_a_bench_says_so_and_measures_nothing(tmp_path: Path) -> None:
    found = rows("tau2.py", QUINTAIN_DATA=str(tmp_path))
    assert [row["value"] for row in found] == [None, None]
    assert [row["ok"] for row in found] == [None, None]
