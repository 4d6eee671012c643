"""Rows in the form of SWE-bench: repairs pass, and the ways of code to pass the tests without a repair do not."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import quintain as qn
from quintain.adapters.code import load
from quintain.errors import UsageError
from quintain.models import Scripted
from quintain.models.agents import noop, oracle

BASE = {
    ".gitattributes": "tests export-ignore\n",
    "shop/__init__.py": "",
    "shop/cart.py": "def total(items):\n    return sum(items[1:])\n\n\ndef count(items):\n    return len(items)\n",
    "shop/old.py": "",
    "tests/__init__.py": "",
    "tests/conftest.py": "import pytest\n\n\n@pytest.fixture\ndef items():\n    return [1, 2]\n",
    "tests/test_unit.py": (
        "import unittest\n\nfrom shop.cart import count\n\n\nclass TestCart(unittest.TestCase):\n"
        "    def test_count(self):\n        self.assertEqual(count([1, 2]), 2)\n"
    ),
    "tests/test_plain.py": (
        "import pytest\n\nfrom shop.cart import count\n\n\n"
        "@pytest.mark.parametrize('n', [1, 2])\ndef test_count(n):\n    assert count([0] * n) == n\n"
    ),
}
REPAIRED = BASE["shop/cart.py"].replace("items[1:]", "items")
GOLD: dict[str, str | None] = {"shop/cart.py": REPAIRED, "shop/new name.py": "NEW = 1\n", "shop/old.py": None}
TESTS: dict[str, str | None] = {
    "tests/test_unit.py": BASE["tests/test_unit.py"].replace("count\n\n", "count, total\n\n")
    + "\n    def test_total(self):\n        self.assertEqual(total([1, 2]), 3)\n"
    + "\n    def test_parts(self):\n        for n in (1, 2):\n            with self.subTest(n):\n"
    + "                self.assertEqual(total([n]), n)\n",
    "tests/test_plain.py": BASE["tests/test_plain.py"].replace("count\n\n", "count, total\n\n")
    + "\n\ndef test_total(items):\n    assert total(items) == 3\n",
}
UNITTEST = {
    "FAIL_TO_PASS": ["tests.test_unit.TestCart.test_total", "tests.test_unit.TestCart.test_parts"],
    "PASS_TO_PASS": ["tests.test_unit.TestCart.test_count"],
}
PYTEST = {
    "FAIL_TO_PASS": ["tests/test_plain.py::test_total"],
    "PASS_TO_PASS": ["tests/test_plain.py::test_count[1]", "tests/test_plain.py::test_count[2]"],
}


def git(folder: Path, *words: str) -> str:
    names = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com"]
    done = subprocess.run(["git", "-C", str(folder), *names, *words], capture_output=True, text=True, check=True)
    return done.stdout


def patch(folder: Path, files: dict[str, str | None]) -> str:
    """Returns the patch that makes these files, and leaves the repository as it was."""
    for name, text in files.items():
        (folder / name).write_text(text) if text is not None else (folder / name).unlink()
    git(folder, "add", "--all")
    made = git(folder, "diff", "--cached", "HEAD")
    git(folder, "reset", "--hard", "--quiet", "HEAD")
    return made


@pytest.fixture(scope="module")
def row(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A row of a repository that lies in `folder / "repos"`; `folder` is under the key "folder"."""
    folder = tmp_path_factory.mktemp("rows")
    place = folder / "repos" / "ann__shop"
    for name, text in BASE.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    git(place, "init", "--quiet")
    git(place, "add", "--all")
    git(place, "commit", "--quiet", "--message", "base")
    commit = git(place, "rev-parse", "HEAD").strip()
    return {
        "folder": folder,
        "instance_id": "ann__shop-1",
        "repo": "ann/shop",
        "base_commit": commit,
        "problem_statement": "total() forgets the first item.",
        "patch": patch(place, GOLD),
        "test_patch": patch(place, TESTS),
    }


@pytest.fixture(scope="module")
def interpreter() -> Iterator[dict[str, str]]:
    """Options for an interpreter with pytest that every user of the machine can read."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", "--symlinks", folder], check=True)
        site = next((Path(folder) / "lib").glob("python*/site-packages"))
        for name in ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments"):
            source = Path(importlib.import_module(name).__file__ or "").parent
            shutil.copytree(source, site / source.name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(Path(pytest.__file__).parents[1] / "py.py", site)
        # Compiles once what each sandbox would compile anew, since it only reads the folder.
        subprocess.run([f"{folder}/bin/python", "-m", "pytest", "--version"], check=True, capture_output=True)
        yield {"python": f"{folder}/bin/python", "readable": folder}


def rows(row: dict[str, Any], *changes: dict[str, Any], **options: Any) -> qn.Environment[Any]:
    """Returns the environment of a file with a row for each dictionary of changes."""
    texts = [json.dumps({key: value for key, value in (row | one).items() if key != "folder"}) for one in changes]
    path = row["folder"] / f"rows{os.urandom(8).hex()}.jsonl"
    path.write_text("\n".join(texts) + "\n\n")
    return load(str(path), **options)


@pytest.fixture(params=["unittest", "pytest"])
def env(request: pytest.FixtureRequest, row: dict[str, Any], interpreter: dict[str, str]) -> qn.Environment[Any]:
    tests = UNITTEST if request.param == "unittest" else PYTEST
    return rows(row, tests, **interpreter, seconds=20)


ONE_RUNNER = pytest.mark.parametrize("env", ["unittest", pytest.param("pytest", marks=pytest.mark.slow)], indirect=True)
"""For tests of what is the same under both runners."""


def play(env: qn.Environment[Any], agent: Any) -> qn.Trace:

    return asyncio.run(qn.rollout(env, env.tasks("test")[0], agent)).trace


def after(env: qn.Environment[Any], files: dict[str, str], command: str = "") -> qn.Trace:
    """Returns the trace of an agent that writes files and then runs a command."""
    calls = [("write", {"path": path, "text": text}) for path, text in files.items()]
    trace = play(env, Scripted.calls([*calls, ("bash", {"command": command or "true"})], "done"))
    assert (trace.failure, trace.turns[-2].steps[0].observation[-8:]) == (None, "status 0")
    return trace


def test_oracle_scores_one_and_replays_to_the_byte(env: qn.Environment[Any]) -> None:
    trace = play(env, oracle())
    assert (trace.failure, trace.score) == (None, 1.0), trace.rewards
    again = asyncio.run(qn.replay(env, env.tasks("test")[0], trace))
    assert again.to_bytes() == trace.to_bytes()


@ONE_RUNNER
def test_noop_and_a_wrong_repair_score_zero(env: qn.Environment[Any]) -> None:
    named = len(UNITTEST["PASS_TO_PASS"])
    for trace in (play(env, noop()), after(env, {"shop/cart.py": REPAIRED.replace("len(items)", "0")})):
        assert (trace.failure, trace.score) == (None, 0.0)
        assert 0 < len(trace.rewards[0].details["failed"]) <= 2 * named, trace.rewards


@ONE_RUNNER
def test_world_has_the_whole_commit_without_history(env: qn.Environment[Any]) -> None:
    task = env.tasks("test")[0]
    files = task.world().files
    assert {one.path for one in files.walk() if one.kind == "file"} == set(BASE)
    assert task.prompt == "total() forgets the first item."


FORGE = """
import unittest
def run(self, result=None):
    result.startTest(self), result.addSuccess(self), result.stopTest(self)
unittest.TestCase.run = run
try:
    import _pytest.python
    _pytest.python.Function.runtest = lambda self: None
except ImportError:
    found = False
"""
"""Source that makes every test pass, where a runner trusts its process."""
OUTCOMES = """
import pytest
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport():
    (yield).get_result().outcome = "passed"
"""
COMPILE = """
mkdir -p tests/__pycache__
python3 -c "import py_compile, sys; mode = py_compile.PycInvalidationMode.UNCHECKED_HASH; py_compile.compile(
    'forged.py', 'tests/__pycache__/test_unit.' + sys.implementation.cache_tag + '.pyc', invalidation_mode=mode)"
"""
CART = BASE["shop/cart.py"]


def cart(before: str = "", instead: str = "return sum") -> dict[str, str]:
    """Returns the module without a repair, with other code before it or in the place of `return sum`."""
    return {"shop/cart.py": before + CART.replace("return sum", instead)}


HONEST, GONE, REPLACED, CANARY = (
    "call failed",
    "the tests did not report",
    "was replaced",
    "a test that must fail was not reported as failed",
)
FORGERIES: dict[str, tuple[dict[str, str], str, str]] = {
    "conftest": ({"conftest.py": FORGE + OUTCOMES, "tests/conftest.py": FORGE + BASE["tests/conftest.py"]}, "", HONEST),
    "files that configure pytest": (
        {
            "forger.py": FORGE,
            "pytest.ini": "[pytest]\naddopts = -p forger\npython_files = nothing.py\n",
            "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-p forger'\n",
            "tests/pytest.ini": "[pytest]\naddopts = -p forger\n",
        },
        "",
        HONEST,
    ),
    "files that Python imports": (
        {"sitecustomize.py": FORGE, "src/usercustomize.py": FORGE, "tests/__init__.py": FORGE},
        "",
        HONEST,
    ),
    "modules of the runner": (
        {"unittest.py": "", "pytest.py": "", "_pytest/__init__.py": "", "json.py": ""},
        "",
        HONEST,
    ),
    "deleted tests": ({}, "rm -r tests", HONEST),
    "emptied tests": ({"tests/test_unit.py": "", "tests/test_plain.py": ""}, "", HONEST),
    "tests behind a link": ({"mine/test_unit.py": "", "mine/__init__.py": ""}, "rm -r tests; ln -s mine tests", HONEST),
    "compiled tests": (
        {"forged.py": "def test_total(): return\n"},
        COMPILE,
        HONEST,
    ),
    "exit with status 0": (cart("import os; os._exit(0)\n"), "", GONE),
    "exit with the expected status": (cart("import os; os._exit(1)\n"), "", GONE),
    "exit while a test runs": (cart(instead="__import__('os')._exit(1); return sum"), "", GONE),
    "exit handler": (cart("import atexit, os\natexit.register(os._exit, 0)\n"), "", HONEST),
    "exit by exception": (cart(instead="raise SystemExit(0); return sum"), "", HONEST),
    "patched runner": (cart(FORGE), "", REPLACED),
    "patched assertions": (
        cart("import builtins, unittest\nbuiltins.AssertionError = unittest.SkipTest\n"),
        "",
        REPLACED,
    ),
    "replaced code of an assertion": (
        cart("import unittest\nunittest.TestCase.assertEqual.__code__ = (lambda self, *a: None).__code__\n"),
        "",
        REPLACED,
    ),
    "hidden test methods": (
        cart(
            "import unittest\nget = object.__getattribute__\nunittest.TestCase.__getattribute__ = lambda self, name: "
            "(lambda s: None).__get__(self) if name.startswith('test') else get(self, name)\n"
        ),
        "",
        f"{CANARY}|{HONEST}",  # Functions of pytest stay.
    ),
    "plugin that sets outcomes": (
        cart(
            OUTCOMES + "import gc, sys\nfor one in gc.get_objects():\n"
            "    if type(one).__name__ == 'PytestPluginManager':\n        one.register(sys.modules[__name__])\n"
        ),
        "",
        f"{CANARY}|{HONEST}",  # Without pytest the plugin is not registered.
    ),
    "patched report": (
        cart(
            "import json, os\ndumps = json.dumps\nos.write = lambda *a: 1\njson.dumps = lambda found: dumps(found | "
            "{'events': [[name, event.replace('failed', 'passed')] for name, event in found['events']]})\n"
        ),
        "",
        REPLACED,
    ),
    "printed report": (
        cart(
            'import os\nfor fd in range(3, 30):\n    try:\n        os.write(fd, b\'{"word": "", "events": []}\\n\')\n'
            "    except OSError:\n        continue\nprint('OK')\nos._exit(1)\n"
        ),
        "",
        GONE,
    ),
    "skip of everything": (cart("import unittest\nraise unittest.SkipTest('later')\n"), "", f"{GONE}|{CANARY}"),
    "skip of a test": (cart(instead="raise __import__('unittest').SkipTest; return sum"), "", "call skipped"),
}


@pytest.mark.parametrize(
    ("forgery", "env"),
    [
        pytest.param(
            one, runner, id=f"{runner}-{name}", marks=[pytest.mark.slow] * ((n + 4 * (runner == "pytest")) % 8 > 0)
        )
        for n, (name, one) in enumerate(FORGERIES.items())
        for runner in ("unittest", "pytest")
    ],
    indirect=["env"],
)
def test_forgery_scores_zero_for_its_reason(forgery: tuple[dict[str, str], str, str], env: qn.Environment[Any]) -> None:
    files, command, reason = forgery
    trace = after(env, files, command)
    assert (trace.failure, trace.score) == (None, 0.0), trace.rewards
    assert re.search(reason, trace.rewards[0].reason), trace.rewards[0].reason


def test_endless_code_meets_the_limit(row: dict[str, Any]) -> None:
    trace = after(rows(row, UNITTEST, seconds=1), cart("while True: x = 1\n"))
    assert trace.rewards[0].reason.endswith("the run ended with status 137, stopped by the limit of time")


@ONE_RUNNER
def test_object_with_its_own_equality_passes_as_the_page_warns(env: qn.Environment[Any]) -> None:
    sly = "class Sly(int):\n    __eq__ = lambda self, other: True\n    __hash__ = None\n"
    assert after(env, cart(sly, "return Sly() or sum")).score == 0  # Sly() is false here.
    assert after(env, cart(sly, "return Sly(7) or sum")).score == 1


@ONE_RUNNER
def test_repair_passes_whatever_the_agent_did_to_the_tests(env: qn.Environment[Any]) -> None:
    broken = {"tests/conftest.py": "raise SystemExit(1)", "pytest.ini": "[pytest]\naddopts = --nothing\n"}
    trace = after(env, {"shop/cart.py": REPAIRED} | broken, "rm tests/*.py; mkdir tests/test_unit.py")
    assert (trace.failure, trace.score) == (None, 1.0), trace.rewards


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"repo": "ann/missing"}, "the repository .*ann__missing does not exist; clone it, or name its folder"),
        ({"repo": "../shop"}, r"Expected `str` matching regex .* at `\$.repo`"),
        ({"base_commit": "0" * 40}, "lacks the commit 0{40}; fetch it"),
        ({"base_commit": "main"}, r"Expected `str` matching regex .* at `\$.base_commit`"),
        ({"patch": None}, r"Expected `str`, got `null` - at `\$.patch`"),
        ({"FAIL_TO_PASS": "["}, "Input data was truncated"),
        ({"FAIL_TO_PASS": []}, "FAIL_TO_PASS is empty"),
        ({"PASS_TO_PASS": ["test it"]}, "the test id 'test it' has an unknown form; expected tests/test_x.py::test_y"),
    ],
)
def test_bad_row_is_refused_with_its_line(row: dict[str, Any], change: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=rf"rows\w+\.jsonl:2: .*{message}"):
        rows(row, UNITTEST, UNITTEST | change)


def test_row_without_a_field_is_refused_with_its_line(row: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"rows\w+\.jsonl:1: Object missing required field `test_patch`"):
        rows({key: value for key, value in row.items() if key != "test_patch"}, UNITTEST)


def test_folder_without_git_is_no_repository(row: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "ann__shop").mkdir()
    git(tmp_path, "init", "--quiet")  # Of the folder above, which must not be taken for it.
    with pytest.raises(UsageError, match="not a git repository"):
        rows(row, UNITTEST, repos=str(tmp_path))


def test_lists_may_be_text_and_the_repository_bare(row: dict[str, Any], tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--bare", str(row["folder"] / "repos" / "ann__shop"), str(tmp_path / "ann__shop"))
    texts = {key: json.dumps(value) for key, value in UNITTEST.items()}
    assert play(rows(row, texts, repos=str(tmp_path)), oracle()).score == 1


@pytest.mark.parametrize(
    ("change", "component", "message"),
    [
        ({"patch": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"}, "T", "the gold patch of ann__shop-1: git: error: x:"),
        ({"test_patch": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"}, "V", "the test patch: git: error: x:"),
        (
            {"FAIL_TO_PASS": ["tests.test_none.TestNone.test_it"]},
            "V",
            "no file of the repository holds the hidden test",
        ),
        (
            PYTEST,
            "V",
            "the interpreter cannot import pytest (No module named 'pytest'), which the hidden tests",
        ),
    ],
)
def test_broken_row_is_a_failure_of_its_component(
    row: dict[str, Any], change: dict[str, Any], component: str, message: str
) -> None:
    has_pytest = subprocess.run(["/usr/bin/python3", "-c", "import pytest"], capture_output=True, check=False)
    if change is PYTEST and has_pytest.returncode == 0:
        pytest.skip("the system's interpreter has pytest")
    failure = play(rows(row, UNITTEST | change), oracle()).failure
    assert failure is not None
    assert failure.component == component
    assert message in failure.message


def test_tools_read_lines_and_edit_text_that_occurs_once(row: dict[str, Any]) -> None:
    env = rows(row, UNITTEST)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("read", {"path": "shop/cart.py", "first": 2, "last": 2}),
        ("edit", {"path": "shop/cart.py", "old": "return", "new": "yield"}),
        ("edit", {"path": "shop/cart.py", "old": "items[1:]", "new": "items"}),
        ("bash", {"command": "git log; head -c 20000 /dev/zero | tr '\\0' x"}),
    ]
    trace = play(env, Scripted.calls(calls, "done"))
    seen = [turn.steps[0].observation for turn in trace.turns[:-1]]
    assert seen[:3] == [
        "2\t    return sum(items[1:])",
        "the old text occurs 2 times in shop/cart.py; give a text that occurs once",
        "edited shop/cart.py",
    ]
    assert "characters left out" in seen[3]
    assert trace.score == 1
