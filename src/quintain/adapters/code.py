"""Data sets of programs: files like those of HumanEval, MBPP and SWE-bench, and QuixBugs folders, with hidden tests."""

from __future__ import annotations

import ast
import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from quintain.environment import Environment
from quintain.errors import UsageError
from quintain.harness import ToolLoop
from quintain.judges.code import HiddenTest, HiddenTests, answer_code, parsed, run_tests, verdict
from quintain.resources.sandbox import Policy, Sandbox
from quintain.resources.workspace import Workspace
from quintain.state import State
from quintain.task import Task, Tasks
from quintain.trace import Level
from quintain.verifier import Criterion, EpisodeView, Score, Verifier

from . import options as option
from . import repositories

SYSTEM = "Write Python. Reply with the code in one block between three backticks; it is tested as it stands."

SLOW = {("knapsack", 10), ("levenshtein", 4)}
"""Cases of QuixBugs that its correct programs do not solve in seconds; its own runner skips them."""


class Exercise(State):
    """World of an exercise: empty and without tools."""


class HumanEvalRow(msgspec.Struct, frozen=True):
    """A function to complete; the text of `test` defines `check(candidate)`."""

    task_id: str
    prompt: str
    entry_point: str
    canonical_solution: str
    test: str


class MbppRow(msgspec.Struct, frozen=True):
    """A function to write from a description; `code` is a solution, which names the functions that tests call."""

    task_id: int | str
    code: str
    test_list: list[str]
    text: str = ""
    prompt: str = ""
    test_setup_code: str = ""
    challenge_test_list: list[str] = []


class ExerciseTruth(msgspec.Struct, frozen=True):
    """Hidden tests, and the source that stands before the agent's own."""

    tests: HiddenTests
    before: str = ""


def load(
    path: str,
    *,
    python: str = "/usr/bin/python3",
    readable: str = "",
    pool: int | str = 0,
    seconds: int | str | None = None,
    repos: str = "",
) -> Environment[Any]:
    """Returns exercises of programming as an environment with the split "test".

    The agent's answer is the last fenced block of its last words; for rows with a repository it is the files that the
    agent leaves. It scores 1 if all tests pass, else 0; a test that is broken by itself makes the episode invalid.

    Args:
        path: File of HumanEval's or MBPP's form (`.jsonl` or `.jsonl.gz`) or of SWE-bench's (`.jsonl`), or a folder of
            QuixBugs' form, with `python_programs`, `correct_python_programs` and `json_testcases`.
        python: Interpreter of the sandbox.
        readable: Folders that the sandbox may read besides `/usr`, such as that of `python`, separated by colons.
        pool: Number of sandboxes that are kept ready.
        seconds: Longest time of one answer of the code under test, 10 by default; with a repository, of one command or
            one test file, 300 by default.
        repos: Folder with the repositories, each named `<owner>__<name>`; by default `repos` beside the file.

    Raises:
        UsageError: The path does not exist, or has another form.
    """
    place = Path(path)
    folders = tuple(folder for folder in readable.split(":") if folder)
    policy = Policy(pool=option.whole("pool", pool, least=0), python=python, readable=folders)
    if not place.exists():
        raise UsageError(
            f"no file or folder {path}; give a file in the form of HumanEval or MBPP, or a QuixBugs folder"
        )
    name = re.sub(r"\W", "_", place.name.partition(".")[0] or "code")
    has_repositories = place.is_file() and repositories.is_row(_first_line(place))
    limit = float(option.whole("seconds", seconds or (300 if has_repositories else 10), least=1))
    if has_repositories:
        return repositories.load(place, name=name, policy=policy, repos=repos, seconds=limit)
    made = list(_quixbugs(place, limit) if place.is_dir() else _rows(place, limit))
    if not made:
        raise UsageError(f"{path} holds no exercise")
    return Environment(
        name,
        tasks=lambda _: Tasks(len(made), made.__getitem__),
        harness=ToolLoop(system=SYSTEM),
        verifier=Verifier(Criterion(name="passes_tests", level=Level.TRAJECTORY, fn=PassesTests(Sandbox(policy)))),
        state=Exercise,
        splits=("test",),
    )


class PassesTests:
    """Scoring function: 1 if the answer passes all hidden tests of its task, else 0."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.policy = sandbox.policy
        self._sandbox = sandbox

    async def __call__(self, view: EpisodeView[Exercise]) -> Score:
        """Runs the tests.

        Raises:
            EpisodeError: Component V: the tests themselves are broken.
        """
        truth: ExerciseTruth = view.task.truth
        code = truth.before + answer_code(view)
        return verdict(await run_tests(self._sandbox, Workspace(), truth.tests, code=code))


def _first_line(path: Path) -> bytes:
    with path.open("rb") as lines:
        return next((line for line in lines if line.strip()), b"")


def _rows(path: Path, seconds: float) -> Iterator[Task[Exercise]]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                if line.strip():
                    yield _row(line, seconds)
            except (msgspec.DecodeError, UsageError, SyntaxError) as error:
                raise UsageError(f"{path}:{number}: {error}") from error


def _row(line: bytes, seconds: float) -> Task[Exercise]:
    row = msgspec.json.decode(line, type=dict[str, Any])
    if "entry_point" in row:
        return _humaneval(msgspec.convert(row, HumanEvalRow), seconds)
    if "test_list" in row:
        return _mbpp(msgspec.convert(row, MbppRow), seconds)
    raise UsageError(f"a row needs entry_point (HumanEval) or test_list (MBPP), got {sorted(row)}")


def _humaneval(row: HumanEvalRow, seconds: float) -> Task[Exercise]:
    tests = HiddenTests(
        tests=(HiddenTest("check", f"{row.test}\ncheck(candidate)\n"),),
        names={"candidate": row.entry_point, row.entry_point: row.entry_point},
        setup=row.prompt,  # Some tests call other functions of the prompt.
        seconds=seconds,
    )
    prompt = f"Complete the last function, and reply with the whole of it:\n\n{row.prompt}"
    return _task(
        row.task_id, prompt, truth=ExerciseTruth(tests, row.prompt), solution=row.prompt + row.canonical_solution
    )


def _mbpp(row: MbppRow, seconds: float) -> Task[Exercise]:
    """Returns a task; the first test is in its prompt, because nothing else names the function."""
    body = parsed(row.code).body
    names = [node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    imports = [ast.unparse(node) for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
    every = [*row.test_list, *row.challenge_test_list]
    tests = HiddenTests(
        tests=tuple(HiddenTest(f"test {n}", code) for n, code in enumerate(every, 1)),
        names={name: name for name in names},
        setup="\n".join([*imports, row.test_setup_code]),
        seconds=seconds,
    )
    prompt = f"{row.text or row.prompt}\n\nThe code must pass tests such as this one:\n{every[0]}"
    return _task(str(row.task_id), prompt, truth=ExerciseTruth(tests), solution=row.code)


def _quixbugs(folder: Path, seconds: float) -> Iterator[Task[Exercise]]:
    """Yields a task per program with test cases; programs that need others of the folder have none."""
    for cases in sorted((folder / "json_testcases").glob("*.json")):
        name = cases.stem
        program = (folder / "python_programs" / f"{name}.py").read_text("utf-8")
        solution = (folder / "correct_python_programs" / f"{name}.py").read_text("utf-8")
        lines = enumerate(cases.read_text("utf-8").splitlines(), 1)
        tests = [_case(name, n, line) for n, line in lines if line.strip() and (name, n) not in SLOW]
        prompt = (
            f"This program has a defect in one line. Reply with the corrected program:\n\n```python\n{program}\n```"
        )
        truth = ExerciseTruth(HiddenTests(tests=tuple(tests), seconds=seconds))
        yield _task(name, prompt, truth=truth, solution=solution)


def _case(name: str, number: int, line: str) -> HiddenTest:
    given, expected = msgspec.json.decode(line)
    call = f"_value = {name}(*{given!r})\nlist(_value) if hasattr(_value, '__next__') else _value"
    listed = "def listed(v): return [listed(one) for one in v] if isinstance(v, list | tuple) else v"
    found = f"listed(run({call!r}))"
    test = f"abs({found} - {expected!r}) <= {given[-1]!r}" if name == "sqrt" else f"{found} == {expected!r}"
    return HiddenTest(f"case {number}", f"{listed}\nassert {test}")


def _task(name: str, prompt: str, *, truth: ExerciseTruth, solution: str) -> Task[Exercise]:
    code = solution.replace("\r\n", "\n")
    return Task(id=name, prompt=prompt, start=Exercise(), truth=truth, solution=(), answer=f"```python\n{code}\n```")
