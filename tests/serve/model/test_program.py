"""A program as a process: what its command says, and what it leaves behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from pathlib import Path

import pytest

import quintain as qn
from quintain.serve.model import CommandHarness
from tests.serve.model.bell import Model, env, says
from tests.serve.model.test_command import play, program


@pytest.mark.parametrize("apart", [False, True])
def test_program_status_does_not_wait_for_its_children(tmp_path: Path, *, apart: bool) -> None:
    """A child holds the output open, in the program's session or in one of its own."""
    pid = tmp_path / "pid"
    code = f"""
ask("?")
child = subprocess.Popen(["sleep", "60"], start_new_session={apart})
open({str(pid)!r}, "w").write(str(child.pid))
print("the last words")
sys.exit(3)
"""
    try:
        trace = play(program(tmp_path, code), says("Hello."), idle_s=5.0)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid.read_text()), signal.SIGKILL)
    assert trace.failure is not None
    assert trace.failure.message == "the program ended with status 3: …the last words"


def test_placeholders_in_a_text_are_not_filled(tmp_path: Path) -> None:
    talk = env.replace(harness=qn.ToolLoop(system="Say {prompt} and {given}."))
    command = program(tmp_path, "ask(sys.argv[1])") + " {system}.{prompt}"
    chosen = talk.replace(harness=CommandHarness(command, own=talk.harness, mcp=False))
    trace = asyncio.run(qn.rollout(chosen, env.tasks("test")[0], Model(says("Hello.")))).trace
    assert trace.turns[0].added[-1].text == "Say {prompt} and {given}..Ring the bell once."
