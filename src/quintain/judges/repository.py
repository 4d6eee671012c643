"""Tests of a repository, which import the code under test: weaker than `code`, because both share a process.

Each test file runs in a sandbox of its own. Two tests that must fail are added to it, and no test of a file counts as
passed unless both are reported as failed.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from quintain.errors import EpisodeError, UsageError

from .code import Runner, TestOutcome, reported

REPORTER = (Path(__file__).parent / "reporter.py").read_text("utf-8")

PYTEST_ID = re.compile(r"[^:\s][^:]*\.py(::[^:]+)+", re.DOTALL)
UNITTEST_ID = re.compile(r"\w+(\.\w+){2,}")

STEERING = frozenset({
    "conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "pyproject.toml", "tox.ini", "setup.cfg",
    "sitecustomize.py", "usercustomize.py", "__pycache__",
})  # fmt: skip
"""Files and folders that change how tests run, wherever they are."""
FOLDERS = frozenset({"test", "tests"})

CANARIES = {
    "pytest": "\n\ndef test_{word}():\n    assert False\n",
    "unittest": (
        "\n\nclass Test_{word}(__import__('unittest').TestCase):\n    def test_it(self):\n"
        "        self.assertEqual(1, 2)\n"
    ),
}


def check_id(name: str) -> None:
    """Checks the form of the id of a test.

    Raises:
        UsageError: It is neither an id of pytest nor a name of unittest.
    """
    if not (PYTEST_ID.fullmatch(name) or UNITTEST_ID.fullmatch(name)):
        forms = "tests/test_x.py::test_y (pytest) or tests.test_x.TestY.test_z (unittest)"
        raise UsageError(f"the test id {name!r} has an unknown form; expected {forms}")


def file_of(files: Any, name: str) -> str:
    """Returns the path of the file that holds a test.

    Raises:
        EpisodeError: Component V, `verifier_error`: the workspace does not have it.
    """
    module = name.rpartition(".")[0].rpartition(".")[0].replace(".", "/")
    paths = [name.partition("::")[0]] if "::" in name else [f"{module}.py", f"{module}/__init__.py"]
    for path in paths:
        if files.exists(path) and files.stat(path).kind == "file":
            return path
    raise EpisodeError(
        f"no file of the repository holds the hidden test {name!r}", component="V", kind="verifier_error"
    )


def with_tests(files: Any, reference: Any, *, tests: Iterable[str], patched: Iterable[str]) -> Any:
    """Returns a copy of the agent's workspace with the tests, and all that steers them, of the reference.

    Restored are files of the test patch, the outermost `test` or `tests` folder of each test file (or the file itself),
    and files that configure pytest or that Python imports by itself. What the reference lacks there is deleted.
    """
    twin = files.fork()
    roots = {_root(file_of(reference, name)) for name in tests} | {tuple(path.split("/")) for path in patched}
    ours: dict[bytes, Any] = {}
    for path in twin.image.changed(reference.image):
        parts = tuple(path.decode("utf-8", "surrogateescape").split("/"))
        if STEERING & set(parts) or any(parts[: len(root)] == root for root in roots):
            ours[path] = reference.image.get(path)
            above = [b"/".join(path.split(b"/")[:count]) for count in range(1, len(parts))] if ours[path] else []
            ours |= {folder: reference.image.get(folder) for folder in above}
    twin.commit(twin.image, ours)
    return twin


def _root(path: str) -> tuple[str, ...]:
    parts = path.split("/")
    ends = [number for number, part in enumerate(parts[:-1], 1) if part in FOLDERS]
    return tuple(parts[: ends[0]] if ends else parts)


async def run_repository_tests(sandbox: Runner, files: Any, names: Sequence[str]) -> list[TestOutcome]:
    """Runs tests of a workspace by their ids, and returns why each failed.

    A test passes if its setup, call and teardown are reported as passed. A skipped test, an expected failure and a test
    that did not run have not passed.

    Args:
        sandbox: Where the tests run; its limits hold for each test file.
        files: Workspace with the code and the tests. It stays as it is.
        names: Ids of pytest or names of unittest.

    Raises:
        EpisodeError: Component V, `verifier_error`: a test file or pytest is missing.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for name in dict.fromkeys(names):
        kind = "pytest" if "::" in name else "unittest"
        groups.setdefault((file_of(files, name), kind), []).append(name)
    failures: dict[str, str] = {}
    for (path, kind), group in groups.items():
        failures |= await _failures(sandbox, files.fork(), path, kind=kind, names=group)
    return [TestOutcome(name, failures[name]) for name in dict.fromkeys(names)]


async def _failures(sandbox: Runner, files: Any, path: str, *, kind: str, names: list[str]) -> dict[str, str]:
    """Returns why each test of one file failed, after its canaries were added to it."""
    word, words = secrets.token_hex(16), [secrets.token_hex(8) for _ in range(2)]
    files.append(path, "".join(CANARIES[kind].format(word=one) for one in words))
    module = ".".join(path.removesuffix(".py").removesuffix("/__init__").split("/"))
    canaries = [f"{path}::test_{one}" if kind == "pytest" else f"{module}.Test_{one}.test_it" for one in words]
    job = {"word": word, "kind": kind, "names": [canaries[0], *names, canaries[1]]}
    command = [sandbox.policy.python, "-I", "-c", REPORTER]
    result = await sandbox.run(files, command, stdin=json.dumps(job).encode())
    found = reported(result.out, word)
    if "broken" in found:
        text = f"{found['broken']}, which the hidden tests of {path} need: {sandbox.policy.python}"
        raise EpisodeError(text, component="V", kind="verifier_error")
    limit = f", stopped by the limit of {result.reason}" if result.reason else ""
    events: dict[str, list[str]] = {name: [] for name in job["names"]}
    for name, event in found.get("events", []):
        events.setdefault(name, []).append(event)
    whole = ""
    if not found:
        whole = f"the tests did not report: the run ended with status {result.status}{limit}"
    elif found["replaced"]:
        whole = f"a function of the test framework was replaced: {', '.join(found['replaced'])}"
    elif result.status != 1 or any("call failed" not in events[one] for one in canaries):
        whole = "a test that must fail was not reported as failed"
    elif set(events) != set(job["names"]):  # Such as the error of setUpClass. Its text may differ in a replay.
        whole = "something else than a named test was reported"
    return {name: whole or _failure(events[name]) for name in names}


def _failure(events: list[str]) -> str:
    if events[:1] + events[-1:] == ["setup passed", "teardown passed"] and set(events[1:-1]) == {"call passed"}:
        return ""
    return next((event for event in events if not event.endswith(" passed")), "the test did not run to its end")
