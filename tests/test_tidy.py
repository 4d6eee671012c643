"""The laws of structure, language and maps hold here, and each law catches an offender."""

from __future__ import annotations

import gc
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import quintain
from tests import language, maps, tidy

ROOT = Path(__file__).parents[1]

PUBLIC = """
    Config DefinitionError Environment Episode EpisodeView Failure Group Harness Reward Score Session State StepView
    Table Task Tasks ToolError ToolLoop Trace Trajectory TurnView Verifier connect phase replay reward rollout rollouts
    tool trajectories
"""


@pytest.fixture
def collector_off() -> Iterator[None]:
    """Garbage collector turned off: it would visit the million nodes of the trees many times, and find nothing."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("collector_off")
def test_laws_hold() -> None:
    """Runs all laws in one test, so that each file is parsed once."""
    tree = tidy.sources(ROOT)
    found = [message for law in tidy.LAWS for message in law(tree)]
    found += language.excess([violation for law in language.LAWS for violation in law(tree)])
    found += maps.excess(maps.faults(tree, maps.pages(ROOT)))
    assert not found, "\n" + "\n".join(found)


def test_public_names_are_listed() -> None:
    path = "src/quintain/__init__.py"
    names = tidy.public_names(tidy.Source(path, (ROOT / path).read_text()))
    assert sorted(names) == sorted(PUBLIC.split()), "change PUBLIC and CHANGELOG.md, too"


def test_docstring_of_the_package_lists_the_public_names() -> None:
    doc = inspect.getdoc(quintain) or ""
    listed = [name for line in re.findall(r"^\* .*: (.*)\.$", doc, re.MULTILINE) for name in line.split(", ")]
    assert sorted(listed) == sorted(PUBLIC.split())


def test_import_of_the_package_loads_no_extra() -> None:
    needed, loaded = _modules("import sys, msgspec"), _modules("import sys, quintain")
    assert loaded - needed - sys.stdlib_module_names == {"quintain"}


def _modules(statement: str) -> set[str]:
    code = f"{statement}, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in json.loads(done.stdout)}


CORE, EXTENDS, TOP = "src/quintain/task.py", "src/quintain/models/openai.py", "src/quintain/__init__.py"
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
        (tidy.downward, EXTENDS, "from ..judges import exact", "models must not import judges"),
        (
            tidy.downward,
            EXTENDS,
            "from quintain.environments.sales import env",
            "models must not import environments",
        ),
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
            EXTENDS,
            "class A:\n" + LONG.replace("\n", "\n ").replace("def", " def", 1),
            "A.f: 61 lines",
        ),
        (tidy.line_length, "bench/core.py", "#" * 121, "121 columns"),
        (tidy.positional, CORE, "def f(a, b, c, d): ...", "f takes 4 positional"),
        (tidy.positional, CORE, "class A:\n    @staticmethod\n    def f(a, b, c, d): ...", "A.f takes 4 positional"),
        (tidy.positional, CORE, "def g():\n    def f(a, /, b, c, d): ...", "g.f takes 4 positional"),
        (tidy.core_size, CORE, "x = 1\n" * 3001, "together: 3001 lines"),
        (tidy.publicity, TOP, "".join(f"from .a import x{n} as x{n}\n" for n in range(31)), "31 public names"),
        (tidy.publicity, "src/quintain/models/__init__.py", "".join(f"X{n} = {n}\n" for n in range(31)), "31 public"),
        (tidy.namespace, TOP, "from .task import Task", "write `Task as Task`"),
        (tidy.namespace, TOP, "print('hello')", "nothing but public names"),
        (tidy.namespace, TOP, "if not TYPE_CHECKING:\n    print('hello')", "nothing but public names"),
        (tidy.words, "tests/test_x.py", "x = 1  # TODO: y", "TODO in a comment"),
        (tidy.handlers, CORE, "try:\n    f()\nexcept:\n    g()", "bare except"),
        (tidy.handlers, CORE, "try:\n    f()\nexcept ValueError:\n    pass", "swallowed"),
        (tidy.handlers, CORE, "try:\n    f()\nexcept ValueError:\n    ...", "swallowed"),
    ],
)
def test_law_catches(law: tidy.Law, path: str, text: str, says: str, tmp_path: Path) -> None:
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
            EXTENDS,
            "import httpx, asyncio, random\nimport quintain as qn\nfrom . import retry\nfrom quintain.task import Task",
        ),
        (TOP, '"""Words."""\n\nfrom .task import Task as Task\n\n__version__ = "1"'),
        ("src/quintain/cli/run.py", "from quintain.environments import sales\nfrom quintain import models"),
        ("src/quintain/rollouts.py", "import asyncio"),
        ("tests/test_x.py", "import random\ndef f(a, b, c, d): ..."),
    ],
)
def test_laws_let_pass(path: str, text: str, tmp_path: Path) -> None:
    tree = _tree(tmp_path, path, text)
    assert not [violation for law in tidy.LAWS for violation in law(tree)]


def test_ratchet_only_turns_one_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def verdict(lines: int) -> str:
        return " ".join(tidy.file_size(_tree(tmp_path, CORE, "\n" * lines)))

    monkeypatch.setitem(tidy.RATCHET, CORE, 700)
    assert not verdict(700)
    assert "grew beyond its 700" in verdict(701)
    assert "lower RATCHET to 650" in verdict(650)
    assert "take it out" in verdict(600)


@pytest.mark.parametrize(
    ("law", "path", "text", "name"),
    [
        (language.subject, CORE, 'def f():\n    """Of what it returns."""', "subject"),
        (language.fragment, CORE, 'class A:\n    """They."""', "fragment"),
        (language.sentence, CORE, f'"""The {"very " * 20}long one."""', "sentence"),
        (language.vocabulary, CORE, "# A caller is told.", "told"),
        (language.vocabulary, CORE, "# This is no error.", "is no"),
        (language.vocabulary, "bench/step.py", "# Nobody waits.", "nobody"),
        (language.name_of_test, "tests/test_x.py", "def test_what_is_lost(): ...", "test_name"),
        (language.name_of_test, "tests/test_x.py", "def test_it(): ...", "test_name"),
    ],
)
def test_language_law_catches(law: language.Law, path: str, text: str, name: str) -> None:
    (violation,) = law([tidy.Source(path, text)])
    assert violation.law == name
    assert violation.path == path


def test_class_name_law_catches_one_name_with_two_meanings() -> None:
    here, there = tidy.Source(CORE, "class Row: ..."), tidy.Source("src/quintain/table.py", "class _Row: ...")
    (violation,) = language.class_name([here, there])
    assert "_Row is also in src/quintain/task.py" in violation.words
    far = tidy.Source("src/quintain/models/openai.py", "class Row: ...")
    assert not list(language.class_name([here, far]))
    near = tidy.Source(far.path, "from quintain import task\nclass Row: ...")
    assert list(language.class_name([here, near]))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (CORE, 'def f():\n    """Returns what the caller gave."""'),
        (CORE, '"""Tasks and their worlds."""\nclass A:\n    """Client of a server: it sends requests."""'),
        (CORE, f'"""Short enough. {"very " * 30}long is the rest."""'),
        (CORE, "x = 'untold'  # The axis norm is not 1."),
        ("tests/test_x.py", "def test_secrets_are_lost_on_restart(): ...\ndef test_a_tool_fails(): ..."),
        ("tests/test_x.py", "def tests(): ...\nclass Row: ..."),
    ],
)
def test_language_laws_let_pass(path: str, text: str) -> None:
    assert not [violation for law in language.LAWS for violation in law([tidy.Source(path, text)])]


def test_language_ratchet_only_turns_one_way() -> None:
    found = [language.Violation("told", "src/a.py", 1, "x"), language.Violation("told", "src/b.py", 2, "y")]
    assert not list(language.excess(found, {"told": {"src": 2, "tests": 0}}))
    (message,) = language.excess(found, {"told": {"src": 1, "tests": 9}})
    assert message.startswith("src: 2 violations of `told`, at most 1 are allowed")
    assert "src/b.py:2: told: y" in message


MODULES = [tidy.Source(f"src/quintain/models/{name}.py", "") for name in ("__init__", "noop", "openai", "_wire")]


def _map_faults(*pages: tuple[str, str], docstring: str = "") -> list[str]:
    package = tidy.Source(MODULES[0].path, f'"""{docstring}"""' if docstring else "")
    return [message for _, message in maps.faults([package, *MODULES[1:]], pages)]


@pytest.mark.parametrize(
    "page",
    [
        "| module of `models` | what |\n|---|---|\n| {} | agents |\n",
        "## Modules of `models` (an extension)\n\n| module | what |\n|---|---|\n| {} | agents |\n",
    ],
)
def test_map_names_each_module_that_exists(page: str) -> None:
    assert not _map_faults(("design/README.md", page.format("`noop` `openai`")))
    (message,) = _map_faults(("design/README.md", page.format("`noop`")))
    assert "src/quintain/models/openai is missing from the map" in message
    (message,) = _map_faults(("design/README.md", page.format("`noop`, `openai` and `client/`")))
    assert "has no module `client`" in message


def test_docstring_of_a_package_is_a_map() -> None:
    assert not _map_faults(docstring="Models.\n\nnoop, openai   agents\n_wire          bytes\n")
    (message,) = _map_faults(docstring="Models.\n\nnoop   an agent\n")
    assert "models/openai is missing" in message
    (message,) = _map_faults(docstring="Models.\n\nnoop, openai, gone   agents\n")
    assert "has no module `gone`" in message


def test_page_names_files_that_exist() -> None:
    assert not _map_faults(("CONTRIBUTING.md", "See `models/noop.py`, `noop.py` and `tests`."))
    (message,) = _map_faults(("CONTRIBUTING.md", "See `models/gone.py`."))
    assert message == "CONTRIBUTING.md: the repository has no file `models/gone.py`; correct the name"


def test_map_ratchet_only_turns_one_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(maps.RATCHET, "a.md", 1)
    assert not list(maps.excess([("a.md", "x")]))
    assert list(maps.excess([("a.md", "x"), ("a.md", "y")])) == ["a.md: 2 violations, 1 are allowed\nx\ny"]


def test_private_module_with_one_importer_is_reported() -> None:
    wire = MODULES[-1]
    first = tidy.Source(MODULES[1].path, "from . import _wire")
    second = tidy.Source(MODULES[2].path, "from ._wire import x")
    assert list(maps.single_importers([first, wire])) == [f"{wire.path}: only {first.path} imports it"]
    assert not list(maps.single_importers([first, second, wire]))


def _tree(root: Path, path: str, text: str) -> list[tidy.Source]:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)
    return tidy.sources(root)
