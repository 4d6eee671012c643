"""Missing extras: an environment, or serving it, names them at once, by one command."""

from __future__ import annotations

import subprocess
import sys

import pytest

WITHOUT = """
import importlib.util, sys
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == {missing!r} else found(name, package)
import quintain.environments.{name}
"""


@pytest.mark.parametrize("missing", ["apsw", "tzdata", "xxhash"])
@pytest.mark.parametrize("name", ["enterprise"])
def test_one_command_brings_all_that_a_world_needs(name: str, missing: str) -> None:
    program = WITHOUT.format(name=name, missing=missing)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == (
        f"ImportError: {name} needs a database and time zones: pip install 'quintain[worlds]'"
    )


@pytest.mark.parametrize("missing", ["uvicorn", "mcp"])
def test_one_command_brings_all_that_serving_needs(missing: str) -> None:
    program = f"""
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == {missing!r} else found(name, package)
from quintain.cli import main
main(["serve", "sales", "--port", "0"])
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (2, f"Error: serving needs {missing}: pip install 'quintain[serve]'\n")
