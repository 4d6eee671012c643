"""File and line of the code that a finding is about, found in the subject's sources by the tool's name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.loader import About, Source


def located(finding: Finding, about: About) -> str:
    """Returns "file:line" of the scoring function, or of the last tool that the finding calls; "" if none is found.

    A tool is a function of its name, else a branch that compares a name with it, else the function of all calls.
    """
    calls = [op.name for probe in finding.probes[:1] for op in probe.ops if op.do == "call"]
    tool = "score" if finding.part == "V" else calls[-1] if calls else ""
    if finding.part != "V" and tool in about.places:
        return about.places[tool]
    sources = about.sources
    own = [one for one in sources if one.part == finding.part]
    for source in own + [one for one in sources if one not in own]:
        for line in _lines(source, tool, is_own=source in own and finding.part == "V"):
            return f"{source.path}:{line}"
    return ""


def _lines(source: Source, tool: str, *, is_own: bool) -> Iterator[int]:
    """Yields the lines of functions named `tool`, then of comparisons with it, and so on."""
    try:
        top = ast.parse(Path(source.path).read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return
    named = [node for node in top if getattr(node, "name", "") in source.names] if source.names else top
    nodes = [inner for node in named for inner in ast.walk(node)]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    yield from (node.lineno for node in functions if node.name == tool)
    compared = [node for node in nodes if isinstance(node, ast.Compare | ast.MatchValue)]
    values = [inner for node in compared for inner in ast.walk(node) if isinstance(inner, ast.Constant)]
    yield from (value.lineno for value in values if tool and value.value == tool)
    yield from (node.lineno for node in functions if tool and node.name in ("call", "step"))
    if is_own and source.names:
        yield from (node.lineno for node in named)
