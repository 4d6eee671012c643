"""Tests of undefined results: tools that report them, and tools that give a number instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import BROKE, audit
from quintain.audit.checks import silent_default
from quintain.audit.kernel.check import checks_of
from quintain.audit.kernel.loader import Subject

pytestmark = pytest.mark.slow

CHECKS = [one for one in checks_of(silent_default) if one.id == "x.no_result_is_no_number"]
ABACUS = """
import math


class ToolError(Exception):
    pass


NUMBER = {"type": "number"}


def tool(name, description="", **properties):
    return {"name": name, "description": description,
            "parameters": {"type": "object", "properties": properties, "required": list(properties)}}


class Abacus:
    lenient = ()

    def tasks(self):
        return ["count"]

    def tools(self):
        return [
            tool("compute", a=NUMBER, how={"type": "string", "enum": ["+", "/"]}, b=NUMBER),
            tool("share_of", "The share in percent.", part={"type": "integer"}, whole={"type": "integer"}),
            tool("mean", values={"type": "array", "items": NUMBER}),
            tool("root", how={"type": "string", "enum": ["sqrt", "log"]}, x=NUMBER),
            tool("calculate", "Evaluate a sum.", expression={"type": "string"}),
            tool("move", dx=NUMBER, dy=NUMBER),
        ]

    def reset(self, task, seed):
        return "Count."

    def call(self, name, arguments):
        try:
            return getattr(self, "_" + name)(**arguments)
        except (ArithmeticError, ValueError, SyntaxError, TypeError, NameError) as error:
            if name in self.lenient:
                return {"result": 0.0}
            raise ToolError(str(error)) from None

    def _compute(self, a, how, b):
        return {"result": a + b if how == "+" else a / b}

    def _share_of(self, part, whole):
        return {"result": 100 * part / whole}

    def _mean(self, values):
        return {"result": sum(values) / len(values)}

    def _root(self, how, x):
        return {"result": math.sqrt(x) if how == "sqrt" else math.log(x)}

    def _calculate(self, expression):
        return {"result": float(eval(expression))}

    def _move(self, dx, dy):
        return {"result": dx}

    def score(self):
        return 1.0


class Lenient(Abacus):
    lenient = ("compute", "share_of", "mean", "root", "calculate")
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("abacus") / "abacus.py"
    path.write_text(ABACUS, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "tools"), [("Abacus", []), ("Lenient", ["calculate", "compute", "mean", "root", "share_of"])]
)
def test_number_for_an_undefined_result_is_proven(file: Path, name: str, tools: list[str]) -> None:
    report = audit(Subject(f"{file}:{name}"), CHECKS)
    assert not [one for one in report.checks if one.reason.startswith(BROKE)]
    assert sorted(one.title.split()[0] for one in report.findings) == tools
    assert {(one.class_, one.confidence) for one in report.findings} <= {("silent_default", "proven")}
