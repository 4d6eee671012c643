"""One tool at work, in the interpreter that has it: a line of JSON in for each subject, a line out with what it said.

    python bench/audit/_peer_worker.py gymnasium|pettingzoo|falsepass|openenv|verifiers

The tool is imported once; each subject is looked at in a forked child, which is killed with all that it started when
its time is over.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from bench.audit._peer_view import CannotLook, Look  # noqa: E402
from quintain.audit.kernel.loader import Subject, load_subject  # noqa: E402

MODULES = {
    "gymnasium": "_peer_farama:check_env",
    "pettingzoo": "_peer_farama:seed_test",
    "falsepass": "_peer_falsepass:audit",
    "openenv": "_peer_openenv:validate",
    "verifiers": "_peer_verifiers:validate",
}


def look(tool: str) -> Look:
    """The function that shows a subject to a tool."""
    module, _, name = MODULES[tool].partition(":")
    found: Look = getattr(importlib.import_module(f"bench.audit.{module}"), name)
    return found


def seen(function: Look, subject: Subject) -> dict[str, Any]:
    """Returns the tool's findings in one subject, in this process."""
    try:
        findings = function(load_subject(subject))
    except CannotLook as error:
        return {"cannot": str(error), "found": []}
    except Exception as error:  # noqa: BLE001 (the tool's own report is caught where it is asked: this is our failure)
        return {"broke": f"{type(error).__name__}: {error}"[:500], "found": []}
    return {"found": [{"key": key, "text": text[:500]} for key, text in findings]}


def forked(function: Look, subject: Subject, seconds: float) -> dict[str, Any]:
    """The same in a child of its own."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            _child(function, subject, folder=folder, write=write)
        os.close(write)
        text, late = _read(read, started + seconds)
        os.killpg(child, signal.SIGKILL) if _leads(child) else os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    result = json.loads(text) if text and not late else {"found": []}
    if late:
        result["late"] = True
    elif not text:
        result["broke"] = "the process went away"
    return result | {"seconds": round(time.perf_counter() - started, 2)}


def _child(function: Look, subject: Subject, *, folder: str, write: int) -> None:
    os.setsid()
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    os.chdir(folder)
    tempfile.tempdir = folder
    text = json.dumps(seen(function, subject))
    with os.fdopen(write, "w") as stream:
        stream.write(text)
    os._exit(0)


def _leads(child: int) -> bool:
    try:
        return os.getpgid(child) == child
    except ProcessLookupError:
        return False


def _read(read: int, until: float) -> tuple[str, bool]:
    """All that comes before the child is done, and whether it was too late for that."""
    parts: list[bytes] = []
    with os.fdopen(read, "rb", buffering=0) as stream:
        while (left := until - time.perf_counter()) > 0 and select.select([stream], [], [], left)[0]:
            part = stream.read(65536)
            if not part:
                return b"".join(parts).decode(), False
            parts.append(part)
    return "", True


def main() -> None:
    os.nice(10)
    tool = sys.argv[1]
    function = look(tool)
    print(json.dumps({"ready": tool}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        subject = Subject(asked["spec"], asked["options"], asked["cases"])
        print(json.dumps(forked(function, subject, asked["limit"])), flush=True)


if __name__ == "__main__":
    main()
