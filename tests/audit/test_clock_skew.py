"""Wall clocks that are days ahead in a child process, beside an unchanged monotonic clock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from quintain.audit.kernel import clock_skew
from quintain.audit.kernel.child import Child
from quintain.audit.kernel.loader import Subject
from quintain.audit.kernel.probe import Probe, ProcessContext, call, reset
from quintain.errors import UsageError

CLOCKS = """
import datetime, json, time
now = datetime.datetime.now(datetime.UTC).timestamp()
print(json.dumps([time.time(), now, time.monotonic(), time.time_ns() / 1e9]))
"""

WATCH = """
import time

class Watch:
    def tasks(self): return ["t"]
    def tools(self): return ["now"]
    def reset(self, task, seed): return "go"
    def call(self, name, arguments): return time.time()
    def score(self): return 1.0
"""

needs_compiler = pytest.mark.skipif(clock_skew.shim() is None, reason="no C compiler here")


def clocks(days: int) -> list[float]:
    environment = dict(os.environ) | clock_skew.variables(days)
    printed = subprocess.run(
        [sys.executable, "-c", CLOCKS], env=environment, capture_output=True, text=True, check=True
    ).stdout
    found: list[float] = json.loads(printed)
    return found


@needs_compiler
@pytest.mark.parametrize("days", [-1, 1, 200])
def test_wall_clocks_are_shifted_and_the_monotonic_one_is_not(days: int) -> None:
    before, steady = time.time(), time.monotonic()
    wall, date, monotonic, nanoseconds = clocks(days)
    after, later = time.time(), time.monotonic()
    for one in (wall, date, nanoseconds):
        assert before <= one - days * 86400 <= after
    assert steady <= monotonic <= later


@needs_compiler
def test_a_probe_is_played_on_another_day(tmp_path: Path) -> None:
    path = tmp_path / "watch.py"
    path.write_text(WATCH)
    before = time.time()
    with Child(Subject(f"{path}:Watch"), ProcessContext(days=200)) as child:
        seen = child.play(Probe((reset("t"), call("now", mark="now"))), 20.0).at("now")
    assert before <= seen.value - 200 * 86400 <= time.time()


@needs_compiler
def test_the_library_is_compiled_into_the_cache_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUINTAIN_CACHE", str(tmp_path))
    first = clock_skew.shim()
    assert first is not None
    assert first.parent.parent == tmp_path
    made = first.stat().st_mtime_ns
    assert clock_skew.shim() == first
    assert first.stat().st_mtime_ns == made
    assert [one.name for one in first.parent.iterdir()] == [first.name]


def test_without_a_compiler_no_clock_is_shifted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUINTAIN_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert clock_skew.shim() is None
    assert clock_skew.variables(0) == {}
    with pytest.raises(UsageError, match="C compiler"):
        clock_skew.variables(1)
