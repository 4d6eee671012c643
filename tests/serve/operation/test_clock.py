"""A clock that is set, or jumps, changes nothing: all that expires does so by a clock that only runs."""

from __future__ import annotations

import ast
from pathlib import Path

import quintain.serve

WALL = {"time.time", "time.time_ns", "datetime.now", "datetime.datetime.now", "datetime.utcnow", "time.localtime"}


def test_no_part_of_the_server_asks_what_time_it_is() -> None:
    files = sorted(Path(quintain.serve.__file__).parent.rglob("*.py"))
    assert len(files) > 30
    asked = {
        (file.name, ast.unparse(node.func))
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in WALL
    }
    assert not asked
