"""The type checkers protect an author: good.py is clean, and every marked line of bad.py is an error to both."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
GOOD, BAD = HERE / "good.py", HERE / "bad.py"
MARK = "# expect-error"

Found = dict[int, str]  # line to what a checker says of it


def mypy() -> dict[str, Found]:
    done = _run("mypy", "--no-error-summary", "--no-pretty", str(GOOD), str(BAD))
    assert done.returncode < 2, done.stdout + done.stderr
    found = re.findall(r"^\S*?(\w+\.py):(\d+): error: (.*)$", done.stdout, re.MULTILINE)
    return _by_file((name, int(line), words) for name, line, words in found)


def pyright() -> dict[str, Found]:
    done = _run("pyright", "--project", str(HERE), "--pythonpath", sys.executable, "--outputjson")
    assert done.returncode < 2, done.stdout + done.stderr
    found = (item for item in json.loads(done.stdout)["generalDiagnostics"] if item["severity"] == "error")
    return _by_file((Path(i["file"]).name, i["range"]["start"]["line"] + 1, i["message"]) for i in found)


def _run(tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", tool, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def _by_file(found: Iterable[tuple[str, int, str]]) -> dict[str, Found]:
    files: dict[str, Found] = {GOOD.name: {}, BAD.name: {}}
    for name, line, words in found:
        files.setdefault(name, {})[line] = words
    return files


def test_good_types_also_run() -> None:
    assert importlib.import_module("tests.typing.good").env.name == "shop"


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_checker_accepts_good_types_and_finds_every_mistake(checker: Callable[[], dict[str, Found]]) -> None:
    marked = {number for number, line in enumerate(BAD.read_text().splitlines(), 1) if line.endswith(MARK)}
    files = checker()
    assert files[GOOD.name] == {}
    found = files[BAD.name]
    missed, extra = marked - found.keys(), found.keys() - marked
    assert marked
    assert not missed, f"lines that {checker.__name__} lets pass: {sorted(missed)}"
    assert not extra, f"errors on unmarked lines: { {line: found[line] for line in sorted(extra)} }"
