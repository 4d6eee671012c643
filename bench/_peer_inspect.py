"""Inspect's viewer on a log like the bench's run, where `inspect` is installed: `PATH=VENV/bin:$PATH`."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

_LOGS = """
import random, sys
from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSample, EvalSpec, write_eval_log
from inspect_ai.model import ChatMessageAssistant, ChatMessageTool, ChatMessageUser
from inspect_ai.scorer import Score
from inspect_ai.tool import ToolCall

dice, words = random.Random(7), [f"word{n}" for n in range(2000)]

def sample(n, turns):
    said = [ChatMessageUser(content="go")]
    for turn in range(turns):
        call = ToolCall(id=f"c{turn}", function=f"tool_{turn % 28}", arguments={"words": dice.choices(words, k=6)})
        said.append(ChatMessageAssistant(content=" ".join(dice.choices(words, k=20)), tool_calls=[call]))
        text = " ".join(dice.choices(words, k=90))
        said.append(ChatMessageTool(content=text, tool_call_id=call.id, function=call.function))
    score = Score(value=float(dice.random() < 0.5))
    return EvalSample(id=f"task-{n}", epoch=1, input="go", target="", messages=said, scores={"score": score})

many = [sample(n, 2) for n in range(int(sys.argv[2]))]
for name, samples in (("many", many), ("long", [sample(0, int(sys.argv[3]))])):
    spec = EvalSpec(
        created="2026-01-01T00:00:00+00:00", task="desk", dataset=EvalDataset(name="desk", samples=len(samples)),
        model="policy", config=EvalConfig(),
    )
    write_eval_log(EvalLog(status="success", eval=spec, samples=samples), f"{sys.argv[1]}/{name}.eval")
"""
ROWS, TURNS = "document.querySelectorAll('a[role=row]').length", "document.querySelectorAll('[data-item-index]').length"
SCROLLER = "[...document.querySelectorAll('div')].find(one => one.scrollHeight > one.clientHeight + 1000)"


def program() -> str | None:
    """Returns the path of `inspect`, or None if no Inspect is installed."""
    found = shutil.which("inspect")
    return found if found and Path(found).with_name("python").exists() else None


@contextlib.contextmanager
def viewing(folder: Path, samples: int, turns: int) -> Generator[str]:
    """Writes `many.eval`, a log of so many samples, and `long.eval` of so many turns; yields the viewer's address."""
    found = program()
    assert found is not None
    folder.mkdir()
    sizes = [str(folder), str(samples), str(turns)]
    subprocess.run([Path(found).with_name("python"), "-c", _LOGS, *sizes], check=True, stdout=sys.stderr)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [found, "view", "start", "--log-dir", str(folder), "--port", str(port)]
    process = subprocess.Popen(command, stdout=sys.stderr)
    try:
        until = time.monotonic() + 120
        while not _listens(port):
            assert process.poll() is None, "inspect view has ended"
            assert time.monotonic() < until, f"inspect view does not listen on port {port}"
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as line:
        return line.connect_ex(("127.0.0.1", port)) == 0
