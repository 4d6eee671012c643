"""Code verifier: honest code passes, and no way of code to fake a verdict does."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import quintain as qn
from quintain.errors import EpisodeError, UsageError
from quintain.judges import HiddenTest, HiddenTests, answer_code, passes_tests
from quintain.judges.code import DRIVER, run_tests
from quintain.models import Scripted
from quintain.resources.sandbox import Limits, Policy, Sandbox
from quintain.resources.workspace import Workspace

ADD = HiddenTests(
    tests=(
        HiddenTest("small", "assert add(1, 2) == 3"),
        HiddenTest("large", "assert run('add(10**30, 1)') == 10**30 + 1"),
    ),
    names={"add": "add"},
    seconds=1.0,
)
ONE = HiddenTests(tests=ADD.tests[:1], names=ADD.names, seconds=0.7)
RIGHT = "def add(a, b):\n    return a + b\n"


def outcomes(code: str, tests: HiddenTests = ADD, *, files: dict[Any, str | bytes] | None = None) -> list[str]:
    box = Sandbox(Policy(), limits=Limits(seconds=1.5))
    found = asyncio.run(run_tests(box, Workspace(files), tests, code=code))
    assert [one.name for one in found] == [test.name for test in tests.tests]
    return [one.failure for one in found]


def test_right_code_passes() -> None:
    assert outcomes(RIGHT) == ["", ""]


def test_tests_read_the_code_of_the_workspace() -> None:
    tests = HiddenTests(tests=(HiddenTest("total", "assert run('from shop.cart import total; total([2, 3])') == 5"),))
    files: dict[Any, str | bytes] = {
        "shop/__init__.py": "",
        "shop/cart.py": "total = sum\n",
        "json.py": "raise SystemExit(0)\n",
    }
    assert outcomes("", tests, files=files) == [""]


FIND = "import os\ndriver = int(open(f'/proc/{os.getppid()}/stat').read().split()[3])\n"
"""Source that finds the process that holds the tests: the parent of the one that starts the code."""

FORGERIES = {
    "wrong": "def add(a, b): return a - b",
    "equals everything": """
class Any:
    def __eq__(self, other): return True
def add(a, b): return Any()
""",
    "a number that equals everything": """
class One(int):
    __eq__ = lambda self, other: True
    __hash__ = None
add = lambda a, b: One(7)
""",
    "a text that equals everything": """
class One(str):
    __eq__ = lambda self, other: True
add = lambda a, b: One("")
""",
    "early exit": "import os; os._exit(0)",
    "early exit by exception": "raise SystemExit(0)",
    "no code": "",
    "syntax error": "def add(",
    "forged answers": """
import os
for fd in range(20):
    try: os.write(fd, b'{"value": 1}\\n{"value": ["i"]}\\n{}\\n')
    except OSError: pass
os._exit(0)
""",
    "forged report": """print('{"outcomes": [["small", ""], ["large", ""]]}')""",
    "flood": "import os\nwhile True: os.write(2, b'x' * 4096)",
    "flooded answer": "add = lambda a, b: 'x' * 17_000_000",
    "deep answer": """
held = []
for _ in range(5000): held = [held]
add = lambda a, b: held
""",
    "killed nursery": "import os; os.kill(os.getppid(), 9)",
    "stopped nursery": "import os; os.kill(os.getppid(), 19)",
    "killed driver": f"{FIND}os.kill(driver, 9)",
    "stopped driver": f"{FIND}os.kill(driver, 19)",
    "fork": """
import os
while True:
    try: os.fork()
    except OSError: pass
""",
    "patched runner": """
import builtins, json, sys
builtins.AssertionError = type("No", (BaseException,), {})
json.dumps = lambda *a: "{}"
sys.modules["__main__"].pack = lambda *a: True
add = lambda a, b: True
""",
    "memory of the driver": f"{FIND}open(f'/proc/{{driver}}/mem', 'rb')\n{RIGHT}",
    "output of the driver": f"{FIND}os.listdir(f'/proc/{{driver}}/fd')\n{RIGHT}",
}


@pytest.mark.parametrize("code", FORGERIES.values(), ids=FORGERIES.keys())
def test_forgery_fails_every_test(code: str) -> None:
    assert all(outcomes(code, ONE))


def test_sleeping_code_meets_the_limit_of_an_answer() -> None:
    assert outcomes("while True: pass", ONE) == ["TargetGoneError: the code gave no answer within 0.7 s"]


def test_printing_code_passes() -> None:
    assert outcomes(f"print('hello')\n{RIGHT}import sys; print(sys.stdin.read(), flush=True)") == ["", ""]


def test_tests_start_with_fresh_processes() -> None:
    counting = "calls = 0\ndef add(a, b):\n    global calls\n    calls += 1\n    return a + b if calls == 1 else 0\n"
    assert outcomes(counting) == ["", ""]


def test_exceptions_come_back_as_their_built_in_class() -> None:
    expected = "try: add(1, 2)\nexcept KeyError as error: assert 'Missing: nothing' in str(error)\nelse: assert False"
    tests = HiddenTests(tests=(HiddenTest("raises", expected),), names=ADD.names)
    assert outcomes("class Missing(KeyError): pass\ndef add(a, b): raise Missing('nothing')", tests) != [""]
    assert outcomes(
        "class Missing(KeyError):\n  __str__ = lambda s: 'nothing'\ndef add(a, b): raise Missing()", tests
    ) == [""]


def test_objects_of_the_code_can_be_passed_back() -> None:
    tests = HiddenTests(
        tests=(HiddenTest("pair", "assert first(Pair(4, 5)) == 4 and Pair(1, 2) != Pair(1, 2)"),),
        names={"first": "first", "Pair": "Pair"},
    )
    code = """
class Pair:
    def __init__(self, a, b): self.a = a
    def __eq__(self, other): return True
first = lambda pair: pair.a
"""
    assert outcomes(code, tests) == [""]


def test_workspace_stays_as_it_is() -> None:
    files = Workspace({"a.txt": "a"})
    asyncio.run(run_tests(Sandbox(), files, ADD, code=f"open('a.txt', 'w').write('b')\n{RIGHT}"))
    assert files.text("a.txt") == "a"


def test_broken_setup_is_a_failure_of_the_verifier() -> None:
    with pytest.raises(EpisodeError, match=r"setup of the hidden tests: NameError") as caught:
        outcomes(RIGHT, HiddenTests(tests=ADD.tests, setup="Node(1)"))
    assert (caught.value.component, caught.value.kind) == ("V", "verifier_error")


def test_hidden_tests_are_checked_when_they_are_made() -> None:
    with pytest.raises(UsageError, match="'small' is not Python"):
        HiddenTests(tests=(HiddenTest("small", "assert ("),))
    with pytest.raises(UsageError, match="distinct names"):
        HiddenTests(tests=())


@pytest.mark.parametrize(("partial", "score"), [(False, 0.0), (True, 0.5)])
def test_partial_scores_count_tests(partial: bool, score: float) -> None:
    tests = HiddenTests(tests=(*ADD.tests[:1], HiddenTest("text", "assert add('a', 'b') == 'ba'")), names=ADD.names)
    task = qn.Task(
        id="add", prompt="Write add.", start=qn.State(), truth=tests, solution=(), answer=f"```python\n{RIGHT}```"
    )
    verifier = qn.Verifier(passes_tests(Sandbox(), Workspace(), partial=partial, code=answer_code))
    env = qn.Environment("adding", tasks=lambda _: [task], harness=qn.ToolLoop(), verifier=verifier, state=qn.State)
    trace = asyncio.run(qn.rollout(env, task, Scripted.calls((), str(task.answer)))).trace
    assert (trace.score, trace.validity) == (score, "valid")
    assert trace.rewards[0].reason == "1 of 2 hidden tests passed; text: line 1: AssertionError: "
    assert trace.rewards[0].details == {"passed": 1, "tests": 2, "failed": {"text": "line 1: AssertionError: "}}


def driver() -> Any:
    """The driver as a module of this process."""
    path = Path(sys.modules[run_tests.__module__].__file__ or "").parent / "driver.py"
    assert path.read_text("utf-8") == DRIVER
    spec = importlib.util.spec_from_file_location("driver_of_tests", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.complex_numbers(allow_nan=False)
)
HASHABLE = st.recursive(SCALARS, lambda one: st.tuples(one, one) | st.frozensets(one, max_size=3), max_leaves=5)
PLAIN = st.recursive(
    HASHABLE | st.sets(HASHABLE, max_size=3),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(HASHABLE, one, max_size=3) | st.tuples(one),
    max_leaves=8,
)


@given(PLAIN)
def test_plain_data_travels_exactly(value: object) -> None:
    assert typed(DRIVER_MODULE.unpack(DRIVER_MODULE.pack(value))) == typed(value)


def typed(value: Any) -> Any:
    """Value with the type of each part; -0.0 differs from 0.0."""
    if isinstance(value, dict):
        return [(typed(key), typed(one)) for key, one in value.items()]
    if isinstance(value, list | tuple):
        return type(value), [typed(one) for one in value]
    if isinstance(value, set | frozenset):
        return type(value), {typed(one) if not isinstance(one, tuple | frozenset) else one for one in value}
    return type(value), repr(value)


DRIVER_MODULE = driver()
