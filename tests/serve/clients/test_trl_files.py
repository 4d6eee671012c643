"""TRL trains on the files that `quintain export` writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.cli.program import DESK, quintain
from tests.cli.test_export import AGENTS
from tests.serve.clients.venvs import TRL, Venv

pytestmark = pytest.mark.slow


def test_trl_trains_on_exported_files(installed: Callable[[Sequence[Sequence[str]]], Venv], tmp_path: Path) -> None:
    (tmp_path / "desk.py").write_text(DESK)
    (tmp_path / "half.py").write_text(AGENTS)
    options = ("--tasks", 4, "--group", 4, "--concurrency", 1, "--set", "gate_rate=none", "--out", "run")
    assert quintain("run", "desk.py:env", "--agent", "half.py:agent", *options, cwd=tmp_path).returncode == 0
    files = {kind: tmp_path / f"{kind}.jsonl" for kind in ("sft", "dpo")}
    for kind, file in files.items():
        assert quintain("export", "run", "--format", kind, "--out", file, cwd=tmp_path).returncode == 0
    said = installed(TRL).facts("trl_files.py", *map(str, files.values()))
    for kind in files:
        assert (said[kind]["rows"], said[kind]["conversational"]) == (4, True)
        assert said[kind]["log"]["grad_norm"] > 0
    (example,) = said["sft"]["seen"].values()
    call = '<tool_call>\n{"name": "add", "arguments": {"name":"a","number":1}}\n</tool_call>'
    assert '"description": "Add a number to a sum."' in example
    assert call in example
    assert call in said["dpo"]["seen"]["chosen_ids"]
    assert '"number":0' in said["dpo"]["seen"]["rejected_ids"]
