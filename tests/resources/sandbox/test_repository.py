"""Tools of programming agents on files and a sandbox."""

from __future__ import annotations

import functools

import pytest

from quintain.errors import ToolError
from quintain.resources.repository import PythonTools, RepositoryTools
from quintain.resources.sandbox import Sandbox
from quintain.resources.workspace import Workspace
from tests.resources.sandbox.house import need, run


class Bench(RepositoryTools, PythonTools):
    files: Workspace
    box: Sandbox


@pytest.fixture
def bench() -> Bench:
    need()
    return Bench(files=Workspace({"a.txt": "one\n"}), box=Sandbox())


def test_python_keeps_its_variables_and_works_on_the_files(bench: Bench) -> None:
    async def play() -> list[str]:
        codes = ("words = open('a.txt').read().split()", "print(words)", "open('b.txt', 'w').write('x'); words[5]")
        return [await bench.python(code) for code in codes]

    first, second, third = run(play)
    assert (first, second) == ("status 0", "['one']\nstatus 0")
    assert "IndexError: list index out of range" in third
    assert bench.read("b.txt") == "1\tx"


def test_commands_with_a_nul_character_are_refused(bench: Bench) -> None:
    for refused in (bench.python, bench.bash):
        with pytest.raises(ToolError, match="a command must not have a NUL character"):
            run(functools.partial(refused, "a\0"))
