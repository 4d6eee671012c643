"""Isolation of the process that starts a program, and that has the real keys, from the program."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from quintain.record import read_traces
from tests.serve.model.test_command import program

BELL = Path(__file__).with_name("bell.py")
ROOT = os.geteuid() == 0
ORDINARY = ("setpriv", "--inh-caps=-all", "--bounding-set=-all") if ROOT else ()
"""Root may look into everybody. Without capabilities it is held by the rules that hold any user."""

LOOK = """
def seen(pid):
    found = []
    for name in ("environ", "mem", "fd/0"):
        try:
            open(f"/proc/{pid}/{name}", "rb").close()
        except PermissionError:
            continue
        found.append(name)
    return found

ours = f"/proc/{os.getppid()}/environ"
child = subprocess.run(["cat", ours], capture_output=True, text=True)
ask(json.dumps([seen(os.getppid()), child.stdout, seen(os.getpid())]))
"""


@pytest.mark.skipif(
    ROOT and not shutil.which("setpriv"), reason="root sees all, and no setpriv makes it less than root"
)
def test_a_program_cannot_read_real_keys_where_they_are(tmp_path: Path) -> None:
    run = ["run", f"{BELL}:env", "--agent", "noop", "--harness", f"command:{program(tmp_path, LOOK)}", "--out", "out"]
    done = subprocess.run(
        [*ORDINARY, sys.executable, "-m", "quintain", *run],
        cwd=tmp_path,
        env={**os.environ, "OPENAI_API_KEY": "the-real-one", "QUINTAIN_KEY": "another"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (trace,) = read_traces(tmp_path / "out")
    assert trace.failure is None, trace.failure
    of_us, by_a_child, of_itself = json.loads(trace.turns[0].added[-1].text)
    assert (of_us, by_a_child) == ([], "")
    assert of_itself == ["environ", "mem", "fd/0"], (
        "and so the connections of a program can still be told to be its own"
    )
