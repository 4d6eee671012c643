"""Tests of a finished piece of work that lies readable in an invisible world."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.checks import leak
from tests.audit.checks._found import firm, found

pytestmark = pytest.mark.slow

REPOSITORY = '''
MENDED = {
    "median": "def median(xs):\\n    xs = sorted(xs)\\n    return xs[len(xs) // 2]\\n",
    "clamp": "def clamp(x, low, high):\\n    return max(low, min(high, x))\\n",
}

def tool(name, *given):
    parameters = {"type": "object", "properties": dict.fromkeys(given, {"type": "string"}), "required": list(given)}
    return {"name": name, "description": "", "parameters": parameters}

class Sound:
    PROMPT = "Mend {0}.py."

    def tasks(self):
        return list(MENDED)

    def tools(self):
        return [tool("list_files"), tool("read_file", "path"), tool("write_file", "path", "text")]

    def reset(self, task, seed):
        self.task, self.files = task, {"README.md": "Mend it.", f"{task}.py": "pass\\n", **self.left(task)}
        return self.PROMPT.format(task)

    def left(self, task):
        return {}

    def call(self, name, arguments):
        if name == "list_files":
            return sorted(self.files)
        path = arguments["path"]
        if name == "write_file":
            self.files[path] = arguments["text"]
        return self.files.get(path, {"error": f"{path}: no such file"})

    def score(self):
        return float(self.files[f"{self.task}.py"] == MENDED[self.task])

    def hidden(self, task):
        return {"solution": MENDED[task]}

    def oracle(self, task):
        return [["write_file", {"path": f"{task}.py", "text": MENDED[task]}]]

class Forgotten(Sound):
    def left(self, task):
        return {f".git/patch_{task}": MENDED[task]}

class Unsaid(Forgotten):
    """Subject without declared hidden data, with an oracle only."""

    hidden = None

class Mentioned(Forgotten):
    """The task is to put a file where another is, and says so."""

    PROMPT = "Put .git/patch_{0} in place of {0}.py."

class Named(Sound):
    """Subject whose prompt quotes the text to write down, like a name."""

    PROMPT = "Write 'def {0}(numbers): raise ValueError(numbers)' into {0}.py."

    def hidden(self, task):
        return {"solution": {"text": f"def {task}(numbers): raise ValueError(numbers)"}}

class Spilt(Named):
    PROMPT = "Mend {0}.py. The grader expects: def {0}(numbers): raise ValueError(numbers)"

class Quoted(Sound):
    """The work stands in a longer text, as facts do that are to be found."""

    def left(self, task):
        return {"chapter.txt": f"On medians and limits.\\n\\n{MENDED[task]}\\nAnd so on, for many pages."}
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "repository.py"
    path.write_text(REPOSITORY)
    return path


def test_a_patch_that_was_left_is_proven(file: Path) -> None:
    (finding,) = firm(found(file, "Forgotten", [leak.curious]))
    assert finding.stops
    assert finding.title == "read_file shows the hidden solution ready to be handed in"


@pytest.mark.parametrize(
    "name", ["Sound", pytest.param("Mentioned", marks=pytest.mark.slow), pytest.param("Quoted", marks=pytest.mark.slow)]
)
def test_no_leak_for_mentioned_or_requested_data(file: Path, name: str) -> None:
    assert firm(found(file, name, [leak.curious])) == []


@pytest.mark.slow
def test_names_given_by_the_task_are_not_leaks_but_spilt_data_is(file: Path) -> None:
    assert firm(found(file, "Named", [leak.readable])) == []
    assert any(finding.stops for finding in found(file, "Spilt", [leak.readable]))
