"""The laws of tests/tidy.py hold here, and each one catches an offender."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import tidy

ROOT = Path(__file__).parents[1]
HERE = tidy.sources(ROOT)

PUBLIC = """
    Config DefinitionError Effect Environment Episode Failure Group Harness Outcome Reward Score Session State Table
    Task Tasks ToolError ToolLoop Trace Trajectory Transition Verifier connect phase replay reward rollout rollouts tool
    trajectories
"""


@pytest.mark.parametrize("law", tidy.LAWS, ids=lambda law: law.__name__)
def test_the_law_holds(law: tidy.Law) -> None:
    assert not (violations := list(law(HERE))), "\n" + "\n".join(violations)


def test_the_public_names_are_these() -> None:
    names = [name for source in HERE if source.unit == tidy.ROOT for name in tidy.public_names(source)]
    assert sorted(names) == sorted(PUBLIC.split()), "a public name came or went: say so in PUBLIC, and in CHANGELOG.md"


def test_importing_the_package_pulls_in_no_extra() -> None:
    needed, loaded = _modules("import sys, msgspec"), _modules("import sys, quintain")
    assert loaded - needed - sys.stdlib_module_names == {"quintain"}


def _modules(statement: str) -> set[str]:
    code = f"{statement}, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in json.loads(done.stdout)}


CORE, TRADE, TOP = "src/quintain/task.py", "src/quintain/models/openai.py", "src/quintain/__init__.py"
LONG = "def f() -> None:\n" + "    f()\n" * 60


@pytest.mark.parametrize(
    ("law", "path", "text", "says"),
    [
        (tidy.listed, "src/quintain/stray.py", "", "tests/tidy.py"),
        (tidy.listed, "src/quintain/strays/__init__.py", "", "tests/tidy.py"),
        (tidy.downward, CORE, "from . import verifier", "task must not import verifier"),
        (tidy.downward, CORE, "from .task import Task", "task must not import task"),
        (tidy.downward, CORE, "import quintain", "task must not import __init__"),
        (tidy.downward, CORE, "def f():\n    from quintain.models import openai", "task must not import models"),
        (tidy.downward, "src/quintain/harness.py", "from .episode import Episode", "harness must not import episode"),
        (tidy.downward, TOP, "from .models import OpenAI as OpenAI", "__init__ must not import models"),
        (tidy.downward, TRADE, "from ..judges import exact", "models must not import judges"),
        (tidy.downward, TRADE, "from quintain.environments.sales import env", "models must not import environments"),
        (tidy.downward, "src/quintain/environments/sales.py", "import quintain.cli", "must not import cli"),
        (tidy.third_party, CORE, "import httpx", "imports httpx"),
        (tidy.third_party, CORE, "from rich.table import Table", "imports rich.table.Table"),
        (tidy.event_loop, CORE, "import asyncio as a", "uses asyncio"),
        (tidy.event_loop, CORE, "from asyncio import run", "uses asyncio.run"),
        (tidy.banned, CORE, "import random", "uses random"),
        (tidy.banned, CORE, "from random import choice", "take the world's rng"),
        (tidy.banned, CORE, "import time as t\nt.time()", "task.py:2: uses time.time"),
        (tidy.banned, CORE, "from uuid import uuid4", "uses uuid.uuid4"),
        (tidy.banned, CORE, "import copy\nx = copy.deepcopy({})", "uses copy.deepcopy"),
        (tidy.file_size, CORE, "\n" * 601, "601 lines"),
        (
            tidy.function_size,
            TRADE,
            "class A:\n" + LONG.replace("\n", "\n ").replace("def", " def", 1),
            "A.f: 61 lines",
        ),
        (tidy.line_length, "bench/core.py", "#" * 121, "121 columns"),
        (tidy.positional, CORE, "def f(a, b, c, d): ...", "f takes 4 positional"),
        (tidy.positional, CORE, "class A:\n    @staticmethod\n    def f(a, b, c, d): ...", "A.f takes 4 positional"),
        (tidy.positional, CORE, "def g():\n    def f(a, /, b, c, d): ...", "g.f takes 4 positional"),
        (tidy.core_size, CORE, "x = 1\n" * 3001, "together: 3001 lines"),
        (tidy.namespace, TOP, "".join(f"from .a import x{n} as x{n}\n" for n in range(31)), "31 public names"),
        (tidy.namespace, TOP, "from .task import Task", "write `Task as Task`"),
        (tidy.namespace, TOP, "print('hello')", "nothing but public names"),
        (tidy.words, "tests/test_x.py", "x = 1  # TODO: y", "TODO in a comment"),
        (tidy.handlers, CORE, "try:\n    f()\nexcept:\n    g()", "bare except"),
        (tidy.handlers, CORE, "try:\n    f()\nexcept ValueError:\n    pass", "swallowed"),
        (tidy.handlers, CORE, "try:\n    f()\nexcept ValueError:\n    ...", "swallowed"),
    ],
)
def test_the_law_catches(law: tidy.Law, path: str, text: str, says: str, tmp_path: Path) -> None:
    (violation,) = law(_tree(tmp_path, path, text))
    assert violation.startswith((path.removesuffix(".py"), path.rpartition("/")[0], "layers 0-4"))
    assert says in violation


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (CORE, "import msgspec, math\nfrom .errors import Failure\nfrom . import codec, tools"),
        (CORE, "class A:\n    def f(self, a, b, c, *, d, e): ..."),
        (CORE, "class A:\n    @qn.tool(role='user')\n    def f(self, a, b, c, d): ..."),
        (CORE, "import time\nx = time.perf_counter()\nrandom = 1\nword = 'TODO'"),
        (
            TRADE,
            "import httpx, asyncio, random\nimport quintain as qn\nfrom . import retry\nfrom quintain.task import Task",
        ),
        (TOP, '"""Words."""\n\nfrom .task import Task as Task\n\n__version__ = "1"'),
        ("src/quintain/cli/run.py", "from quintain.environments import sales\nfrom quintain import models"),
        ("src/quintain/rollouts.py", "import asyncio"),
        ("tests/test_x.py", "import random\ndef f(a, b, c, d): ..."),
    ],
)
def test_the_laws_let_pass(path: str, text: str, tmp_path: Path) -> None:
    tree = _tree(tmp_path, path, text)
    assert not [violation for law in tidy.LAWS for violation in law(tree)]


def test_the_ratchet_only_turns_one_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def verdict(lines: int) -> str:
        return " ".join(tidy.file_size(_tree(tmp_path, CORE, "\n" * lines)))

    monkeypatch.setitem(tidy.RATCHET, CORE, 700)
    assert not verdict(700)
    assert "grew beyond its 700" in verdict(701)
    assert "lower RATCHET to 650" in verdict(650)
    assert "take it out" in verdict(600)


def _tree(root: Path, path: str, text: str) -> list[tidy.Source]:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)
    return tidy.sources(root)
