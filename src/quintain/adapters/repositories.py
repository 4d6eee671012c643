"""Rows in the form of SWE-bench: a repository at a commit, a problem statement, and hidden tests of its repair."""

from __future__ import annotations

import functools
import shlex
from pathlib import Path
from typing import Annotated

import msgspec

from quintain.config import Config
from quintain.environment import Environment
from quintain.errors import EpisodeError, UsageError
from quintain.harness import ToolLoop
from quintain.judges.code import verdict
from quintain.judges.repository import check_id, run_repository_tests, with_tests
from quintain.resources.repository import Repository
from quintain.resources.sandbox import Limits, Policy, Sandbox
from quintain.resources.workspace import Workspace
from quintain.task import Call, Task, Tasks
from quintain.trace import Level
from quintain.verifier import Criterion, EpisodeView, Score, Verifier

from . import git

SYSTEM = "Solve the issue in the repository. Its folder is /workspace. Hidden tests decide when you end your turn."


class RepositoryRow(msgspec.Struct, frozen=True):
    """A row of the file; lists may be JSON text."""

    instance_id: str
    repo: Annotated[str, msgspec.Meta(pattern=r"^\w[\w.-]*/\w[\w.-]*$")]
    base_commit: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{40}$")]
    problem_statement: str
    patch: str
    test_patch: str
    FAIL_TO_PASS: list[str] | str
    PASS_TO_PASS: list[str] | str


class RepositoryTruth(msgspec.Struct, frozen=True):
    """Hidden tests of a repository.

    Attributes:
        files: Files that the test patch changes, as they are after it; None for a deleted one.
        tests: Ids of the tests that must pass.
        broken: Reason for which the test patch does not apply; empty if it does.
    """

    files: dict[str, git.PatchedFile | None]
    tests: tuple[str, ...]
    broken: str = ""


def is_row(line: bytes) -> bool:
    """True if a line of a file is a row with a repository."""
    try:
        row = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return False
    return isinstance(row, dict) and "base_commit" in row


def load(path: Path, *, name: str, policy: Policy, repos: str, seconds: float) -> Environment[Repository]:
    """Returns the rows of a file as an environment with the split "test".

    Args:
        path: The file; one JSON object a line.
        name: Name of the environment.
        policy: Isolation of the agent's commands and of the tests.
        repos: Folder with the repositories; `repos` beside the file if it is empty.
        seconds: Longest time of one command of the agent, and of the tests in one file.

    Raises:
        UsageError: A row has another form, or its repository or commit is missing.
    """
    folder = Path(repos) if repos else path.parent / "repos"
    box = Sandbox(policy, limits=Limits(seconds=seconds, cpu_seconds=2 * seconds, memory_bytes=2**31, processes=256))
    rows: list[RepositoryRow] = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            rows += [_row(line, folder)] if line.strip() else []
        except (msgspec.DecodeError, UsageError) as error:
            raise UsageError(f"{path}:{number}: {error}") from error

    @functools.cache
    def make(index: int) -> Task[Repository]:
        return _task(rows[index], _place(folder, rows[index]), box)

    return Environment(
        name,
        tasks=lambda _: Tasks(len(rows), make),
        harness=ToolLoop(system=SYSTEM),
        verifier=Verifier(
            Criterion(name="passes_tests", level=Level.TRAJECTORY, fn=PassesRepositoryTests(policy, box.limits))
        ),
        state=Repository,
        config=Config(max_turns=100, tool_timeout_s=seconds + 60, verifier_timeout_s=3600),
        splits=("test",),
    )


class PassesRepositoryTests:
    """Scoring function: 1 if all named tests pass on the agent's files, with the verifier's tests, else 0."""

    def __init__(self, policy: Policy, limits: Limits) -> None:
        self.policy, self.limits = policy, limits

    async def __call__(self, view: EpisodeView[Repository]) -> Score:
        """Runs the tests.

        Raises:
            EpisodeError: Component V: the test patch does not apply, or a test file or pytest is missing.
        """
        truth: RepositoryTruth = view.task.truth
        if truth.broken:
            raise EpisodeError(f"the test patch: {truth.broken}", component="V", kind="verifier_error")
        reference = view.task.world().files
        _put(reference, truth.files)
        files = with_tests(view.state.files, reference, tests=truth.tests, patched=truth.files)
        return verdict(await run_repository_tests(Sandbox(self.policy, limits=self.limits), files, truth.tests))


def _row(line: bytes, folder: Path) -> RepositoryRow:
    row = msgspec.json.decode(line, type=RepositoryRow)
    texts = {name: getattr(row, name) for name in ("FAIL_TO_PASS", "PASS_TO_PASS")}
    lists = {name: msgspec.convert(_decoded(value), list[str]) for name, value in texts.items()}
    row = msgspec.structs.replace(row, **lists)
    if not row.FAIL_TO_PASS:
        raise UsageError("FAIL_TO_PASS is empty; a row needs a test that the repair makes pass")
    for name in (*row.FAIL_TO_PASS, *row.PASS_TO_PASS):
        check_id(name)
    git.check(_place(folder, row), row.base_commit)
    return row


def _decoded(value: list[str] | str) -> object:
    return msgspec.json.decode(value) if isinstance(value, str) else value


def _place(folder: Path, row: RepositoryRow) -> Path:
    return folder / row.repo.replace("/", "__")


def _task(row: RepositoryRow, place: Path, box: Sandbox) -> Task[Repository]:
    """Returns a task; a patch that does not apply is kept as a reason, since other rows can be played."""
    gold, wrong = _patched(place, row, row.patch)
    files, broken = _patched(place, row, row.test_patch)
    solution: tuple[Call, ...] = ()
    try:
        solution = tuple(call for path, file in gold.items() for call in _calls(path, file))
    except UnicodeDecodeError as error:
        wrong = f"a changed file is not text: {error}"

    def start() -> Repository:
        if wrong:
            raise UsageError(f"the gold patch of {row.instance_id}: {wrong}")
        return Repository(files=_files(place, row.base_commit).fork(), box=box.fork())

    tests = tuple(dict.fromkeys((*row.FAIL_TO_PASS, *row.PASS_TO_PASS)))
    truth = RepositoryTruth(files, tests, broken)
    return Task(id=row.instance_id, prompt=row.problem_statement, start=start, truth=truth, solution=solution)


def _patched(place: Path, row: RepositoryRow, patch: str) -> tuple[dict[str, git.PatchedFile | None], str]:
    """Returns the files that a patch changes, and the reason for which it does not apply."""
    try:
        return git.patched(place, row.base_commit, patch), ""
    except UsageError as error:
        return {}, str(error)


@functools.lru_cache(maxsize=8)
def _files(place: Path, commit: str) -> Workspace:
    return Workspace.from_tar(git.archive(place, commit))


def _calls(path: str, file: git.PatchedFile | None) -> list[Call]:
    """Returns the tool calls that make a file as it is after the gold patch."""
    quoted = shlex.quote(f"./{path}")
    if file is None:
        return [("bash", {"command": f"rm {quoted}"})]
    if file.kind == "symlink":
        return [("bash", {"command": f"ln -sfn {shlex.quote(file.data.decode())} {quoted}"})]
    mode: Call = ("bash", {"command": f"chmod +x {quoted}"})
    return [("write", {"path": path, "text": file.data.decode()}), *([mode] if file.kind == "executable" else [])]


def _put(files: Workspace, changes: dict[str, git.PatchedFile | None]) -> None:
    for path, file in sorted(changes.items(), key=lambda one: one[1] is not None):  # Deletions come first.
        if file is None or (file.kind == "symlink" and files.exists(path)):
            files.delete(path)
        if file is not None and file.kind == "symlink":
            files.link(path, file.data)
        elif file is not None:
            files.write(path, file.data)
            files.chmod(path, 0o755 if file.kind == "executable" else 0o644)
