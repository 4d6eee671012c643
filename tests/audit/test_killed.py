"""Processes of a killed auditor, which cannot end them: they end by themselves."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

SLOW = '''
"""A call that tells who plays it, and does not come back."""

import os
import time


class Slow:
    def tasks(self):
        return ["wait"]

    def tools(self):
        return [{"name": "wait", "description": "Wait.", "parameters": {"type": "object", "properties": {}}}]

    def reset(self, task, seed):
        return "Wait."

    def call(self, name, arguments):
        with open(__file__.replace("slow.py", "log"), "w") as log:
            print(os.getpid(), os.getppid(), file=log)
        time.sleep(600)

    def score(self):
        return 1.0
'''
AUDITOR = """
import sys

from quintain.audit.kernel.child import Child
from quintain.audit.kernel.loader import Subject
from quintain.audit.kernel.probe import Probe, call, reset

with Child(Subject(sys.argv[1])) as child:
    child.play(Probe((reset("wait"), call("wait", {}))), limit=300)
"""
PATIENCE_MS = 60_000


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process cannot wait for two things")
def test_a_hanging_probe_ends_when_its_auditor_is_killed(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    log = tmp_path / "log"
    os.mkfifo(log)
    pipe = os.open(log, os.O_RDWR | os.O_NONBLOCK)
    auditor = subprocess.Popen([sys.executable, "-c", AUDITOR, f"{tmp_path}/slow.py:Slow"])
    assert _ready(pipe), "the call was made"
    started = [os.pidfd_open(int(pid)) for pid in os.read(pipe, 100).split()]
    assert len(started) == 2, "a worker and its fork"
    auditor.kill()
    auditor.wait()
    assert all(map(_ready, started)), "both have ended"
    for fd in (pipe, *started):
        os.close(fd)


def _ready(fd: int) -> bool:
    """True if there is data to read, or a process ended, in time."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(PATIENCE_MS))
