"""A folder with an environment in it, and the program inside this process, which is faster than a new one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from quintain.audit.facts import failure_rate
from quintain.cli import main
from tests.audit.templates import PreparedWorkers
from tests.cli.program import DESK


class Ended(NamedTuple):
    """Exit status and output of a finished command."""

    status: int
    out: str
    err: str


Call = Callable[..., Ended]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the environment desk.py in it."""
    (tmp_path / "desk.py").write_text(DESK)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Run a command in this process."""

    def run(*arguments: object) -> Ended:
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Ended(left.value.code if isinstance(left.value.code, int) else 0, out, err)

    return run


@pytest.fixture
def forked_workers(templates: PreparedWorkers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Starts the workers of an audit in this process as forks of a template."""
    monkeypatch.setattr("quintain.audit.kernel.child.subprocess", templates)


@pytest.fixture
def few_episodes(monkeypatch: pytest.MonkeyPatch) -> int:
    """Plays 9 episodes for the failure rate instead of 59: the first 8, which may all fail, and another one."""
    monkeypatch.setattr(failure_rate, "ENOUGH", 9)
    return 9
