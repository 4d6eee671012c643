"""design/serving.md says what there is, and what it says of imports holds."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SERVE = ROOT / "src" / "quintain" / "serve"
PROTOCOLS = ("ors", "openenv", "mcp", "control", "model")


def test_every_module_stands_in_the_table() -> None:
    page = (ROOT / "design" / "serving.md").read_text()
    rows = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    modules = {path.stem for path in SERVE.glob("*.py")} - {"__init__"}
    packages = {f"{path.parent.name}/" for path in SERVE.glob("*/__init__.py")}
    assert sorted(named) == sorted(modules | packages), "each has one row in the table of design/serving.md"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_protocol_imports_no_other(protocol: str) -> None:
    others = tuple(f"quintain.serve.{name}" for name in PROTOCOLS if name != protocol)
    for path in (SERVE / protocol).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [f"{names[0]}.{one.name}" for one in node.names] if isinstance(node, ast.ImportFrom) else []
            names += [one.name for one in node.names] if isinstance(node, ast.Import) else []
            assert not [name for name in names if f"{name}.".startswith(tuple(f"{one}." for one in others))], path
