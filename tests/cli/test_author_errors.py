"""Reports of an author's mistakes: where code raised, what blocks, and which solution falls short."""

from __future__ import annotations

import asyncio
import io
import json
import signal
import time
from pathlib import Path

import pytest

import quintain as qn
from quintain.models import Scripted
from quintain.trace import Trace
from tests.cli.conftest import Call
from tests.cli.program import document, started, wait_for

LIBRARY = '''
import time

import quintain as qn


class Library(qn.State):
    lent: dict[str, str] = {}

    @qn.tool
    ASYNC def lend(self, book: str) -> str:
        """Lend a book.

        Args:
            book: Its title.
        """
        if book == "gone":
            raise qn.ToolError("no such book")
        LEND
        self.lent[book] = "Ann"
        return "lent"


def owner(lent):
    OWNER
    return lent.get("b")


def task(n):
    TASK
    return qn.Task(id=f"t-{n}", prompt="Lend b.", start=Library(), solution=SOLUTION)


@qn.reward
def lent_exactly(outcome):
    return float(owner(outcome.state.lent) == "Ann")


env = qn.Environment(
    "library",
    tasks=lambda split: qn.Tasks(4, task),
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(lent_exactly),
    state=Library,
    config=qn.Config(concurrency=1),
)
'''
SOUND = {"ASYNC ": "", "LEND": "pass", "OWNER": "pass", "TASK": "pass", "SOLUTION": '(("lend", {"book": "b"}),)'}
BROKEN = "json_of = int('x')"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def write(folder: Path, **changed: str) -> Path:
    """Writes the library with some of its places filled in otherwise."""
    text = LIBRARY
    for place, code in (SOUND | changed).items():
        text = text.replace(place, code)
    path = folder / "library.py"
    path.write_text(text)
    return path


def line_of(path: Path, code: str) -> int:
    return 1 + next(n for n, line in enumerate(path.read_text().splitlines()) if code in line)


@pytest.mark.parametrize(
    ("place", "component", "function"),
    [("LEND", "S", "lend"), ("OWNER", "V", "lent_exactly")],
)
def test_run_and_show_name_the_line_that_raised(
    folder: Path, call: Call, place: str, component: str, function: str
) -> None:
    path = write(folder, **{place: BROKEN})
    number = line_of(path, BROKEN)
    ended = call("run", "library.py", "--out", "here")
    assert ended.status == 3
    where = f"invalid literal for int() with base 10: 'x', in {function} (library.py, line {number})"
    assert where in ended.err
    assert where in ended.out
    assert f"  {component}  " in ended.err
    shown = call("show", "here")
    assert f"{path}, line {number}, in {'owner' if place == 'OWNER' else function}" in shown.out
    assert BROKEN in shown.out
    assert document(call("show", "here", "--json").out)["frames"][-1]["line"] == number
    examples = document(call("run", "library.py", "--out", "there", "--json").out)["failure_examples"]
    assert [example["component"] for example in examples] == [component]
    assert where in examples[0]["text"]


def test_the_trace_of_a_failure_holds_no_path(folder: Path, call: Call) -> None:
    write(folder, LEND=BROKEN)
    call("run", "library.py", "--out", "here")
    assert str(folder) not in (folder / "here" / "traces.jsonl").read_text()
    rows = [json.loads(line) for line in (folder / "here" / "failures.jsonl").read_text().splitlines()]
    assert [(row["task"], row["member"], row["attempt"]) for row in rows] == [
        ("t-0", 0, 0),
        ("t-1", 0, 0),
        ("t-2", 0, 0),
    ]


def test_a_task_function_that_raises_is_named_before_anything_is_played(folder: Path, call: Call) -> None:
    path = write(folder, TASK=BROKEN)
    ended = call("run", "library.py", "--out", "here")
    assert ended.status == 2
    assert f"in task (library.py, line {line_of(path, BROKEN)})" in ended.err
    assert not (folder / "here").exists()


def test_debug_opens_the_line_that_raised_in_pdb(folder: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, LEND=BROKEN)
    monkeypatch.setattr("sys.stdin", io.StringIO("p 'the book is ' + book\nq\n"))
    ended = call("run", "library.py", "--debug", "--out", "here")
    assert ended.status == 130
    assert "'the book is b'" in ended.out
    assert "ValueError: invalid literal" in ended.err


def test_a_solution_with_an_unknown_tool_is_refused_before_anything_is_played(folder: Path, call: Call) -> None:
    write(folder, SOLUTION='(("lend", {"book": "b"}), ("lendd", {}))')
    ended = call("run", "library.py", "--out", "here")
    assert ended.status == 2
    assert "task 't-0' calls 'lendd' (call 1)" in ended.err
    assert "the tools are lend" in ended.err
    assert not (folder / "here").exists()


def test_a_solution_that_calls_a_method_without_decorator_is_told(folder: Path, call: Call) -> None:
    path = write(folder)
    path.write_text(path.read_text().replace("@qn.tool", ""))
    ended = call("run", "library.py", "--out", "here")
    assert ended.status == 2
    assert (
        "calls 'lend' (call 0), which is not a tool of the agent; lend is a method of Library without @qn." in ended.err
    )
    assert ended.err.endswith("the tools are none\n")


def test_a_solution_below_full_marks_is_explained_and_fails_the_run(folder: Path, call: Call) -> None:
    write(folder, SOLUTION='(("lend", {"book": "gone"}),)')
    ended = call("run", "library.py")
    assert ended.status == 1
    assert 't-0: score 0; refused lend({"book":"gone"}): no such book; lent_exactly is below its maximum' in ended.err
    assert "--allow-partial" in ended.err
    assert call("run", "library.py", "--allow-partial").status == 0
    unsolved = document(call("run", "library.py", "--json").out)["unsolved"]
    assert [one["task"] for one in unsolved] == ["t-0", "t-1", "t-2", "t-3"]
    assert call("run", "library.py", "--agent", "noop").status == 0


def test_criteria_at_their_maximum_are_not_called_below_it(folder: Path, call: Call) -> None:
    path = write(folder)
    path.write_text(
        path.read_text().replace("@qn.reward\n", "@qn.reward(high=0.9)\n").replace("return float(", "return 0.9 * (")
    )
    ended = call("run", "library.py")
    assert "t-0: score 0.9; each criterion is at its maximum, so no episode has more; the agent answered" in ended.err
    assert ended.status == 1


def test_a_script_plays_its_file_in_each_episode(folder: Path, call: Call) -> None:
    write(folder, SOLUTION="None")
    (folder / "script.json").write_text('{"t-1": {"calls": []}, "*": {"calls": [["lend", {"book": "b"}]]}}')
    ended = document(call("run", "library.py", "--agent", "script:script.json", "--json").out)
    assert (ended["episodes"], ended["mean_reward"]) == (4, 0.75)
    (folder / "script.json").write_text('{"t-1": {"calls": []}}')
    ended = call("run", "library.py", "--agent", "script:script.json", "--tasks", "1")
    assert "has scripts for t-1; task 't-0' has none" in ended.err
    (folder / "script.json").write_text('["lend"]')
    ended = call("run", "library.py", "--agent", "script:script.json")
    assert ended.status == 2
    assert "cannot read the script 'script.json'" in ended.err


def test_a_scripted_model_fails_a_second_episode(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    namespace: dict[str, object] = {}
    exec(write(folder).read_text(), namespace)  # the environment of this test
    env = namespace["env"]
    assert isinstance(env, qn.Environment)

    async def play() -> list[Trace]:
        model = Scripted.calls(env.tasks("train")[0].solution or ())
        return [(await qn.rollout(env, task, model)).trace for task in env.tasks("train")[:2]]

    first, second = asyncio.run(play())
    assert first.score == 1
    assert second.failure is not None
    assert "make one for each episode" in second.failure.message


def test_resume_accepts_settings_that_do_not_change_what_is_played(folder: Path, call: Call) -> None:
    write(folder)
    call("run", "library.py", "--tasks", "2", "--out", "here")
    further = ("--concurrency", "3", "--set", "retries=9", "--set", "tool_timeout_s=7", "--set", "gate_rate=none")
    ended = call("run", "library.py", "--tasks", "2", "--out", "here", "--resume", *further)
    assert ended.status == 0, ended.err
    refused = call("run", "library.py", "--tasks", "2", "--out", "here", "--resume", "--set", "temperature=0.5")
    assert refused.status == 2
    assert "config.temperature" in refused.err
    assert "concurrency" not in refused.err


def test_the_first_ctrl_c_ends_a_tool_that_blocks_the_event_loop(folder: Path) -> None:
    write(folder, **{"ASYNC ": "async ", "LEND": "open('began', 'w').close(); time.sleep(300)"})
    process = started("run", "library.py", "--set", "tool_timeout_s=none", "--out", "here", cwd=folder)
    wait_for(0, process, folder / "here")
    while not (folder / "began").exists():
        assert process.poll() is None, process.communicate()
    time.sleep(0.2)  # A signal in the microseconds before the kernel lets it sleep would wait for 300 s.
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "continue with" in err


def test_a_tool_that_blocks_the_event_loop_is_stopped_and_named(folder: Path, call: Call) -> None:
    path = write(folder, **{"ASYNC ": "async ", "LEND": "time.sleep(300)"})
    ended = call("run", "library.py", "--set", "tool_timeout_s=0.1", "--tasks", "1")
    assert ended.status == 3
    where = f"took longer than 0.1 s, in lend (library.py, line {line_of(path, 'time.sleep')})"
    assert f"S  quintain:tool_timeout: 1, in t-0 (1); e.g. DeadlineExceeded: {where}" in ended.err


@pytest.mark.parametrize(
    ("place", "given", "words"),
    [
        (
            "qn.Config(concurrency=1)",
            "qn.Config(max_turn=5)",
            "Config has no parameter 'max_turn'; did you mean max_tu",
        ),
        ("@qn.reward\n", "@qn.reward(max=2)\n", "reward has no parameter 'max'; it takes: fn, "),
        ("prompt=", "promt=", "Task has no parameter 'promt'; did you mean prompt? it takes: id, prompt, start, "),
        ("harness=", "harnes=", "Environment has no parameter 'harnes'; did you mean harness? it takes: name, tasks, "),
    ],
)
def test_an_unknown_parameter_is_answered_by_the_known_ones(
    folder: Path, call: Call, place: str, given: str, words: str
) -> None:
    path = write(folder)
    path.write_text(path.read_text().replace(place, given, 1))
    ended = call("run", "library.py", "--out", "here")
    assert ended.status == 2
    assert f"Hint: {words}" in ended.err


def test_a_data_error_in_a_tool_is_answered_by_a_hint(folder: Path, call: Call) -> None:
    write(folder, LEND="self.lent['none']")
    hint = "Hint: raise quintain.ToolError for what the model should read and may correct"
    assert hint in call("run", "library.py", "--out", "here").out
    assert hint in call("show", "here").out
    assert "ToolError" not in (folder / "here" / "traces.jsonl").read_text()
    assert call("replay", "here", "--here").status == 0


def test_an_undeclared_field_is_answered_by_its_declaration(folder: Path, call: Call) -> None:
    write(folder, LEND="self.loans = 1")
    ended = call("run", "library.py", "--out", "here")
    assert "Hint: declare the field in class Library, as `loans: TYPE = DEFAULT`" in ended.out


def test_an_undeclared_field_outside_of_episodes_is_answered_too(folder: Path, call: Call) -> None:
    write(folder, TASK="start = Library(); start.loans = 1")
    ended = call("run", "library.py", "--out", "here")
    assert "Hint: declare the field in class Library, as `loans: TYPE = DEFAULT`" in ended.err


def test_an_attribute_that_is_only_read_has_no_hint(folder: Path, call: Call) -> None:
    write(folder, LEND="self.loans == 1")
    assert "Hint: declare" not in call("run", "library.py", "--out", "here").out


def test_an_async_tool_that_awaits_too_long_is_named_without_a_hint(folder: Path, call: Call) -> None:
    path = write(folder, **{"ASYNC ": "async ", "LEND": "await asyncio.sleep(5)"})
    path.write_text("import asyncio\n" + path.read_text())
    ended = call("run", "library.py", "--tasks", "1", "--set", "tool_timeout_s=0.2", "--out", "here")
    assert f"in lend (library.py, line {line_of(path, 'asyncio.sleep')})" in ended.out
    assert "Hint:" not in ended.out


def test_an_async_tool_that_blocks_is_answered_by_a_thread(folder: Path, call: Call) -> None:
    write(folder, **{"ASYNC ": "async ", "LEND": "time.sleep(5)"})
    ended = call("run", "library.py", "--tasks", "1", "--set", "tool_timeout_s=0.2", "--out", "here")
    hint = "Hint: async tool lend blocks the event loop: use `await asyncio.to_thread(...)`, or make it a sync tool"
    assert hint in ended.out
    assert hint in call("show", "here").out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ('{"bok": "b"}', "with {'bok': 'b'}: Object contains unknown field `bok`; its parameters: book"),
        ('{"book": 1}', "with {'book': 1}: Expected `str`, got `int` - at `$.book`; its parameters: book"),
    ],
)
def test_a_solution_with_wrong_arguments_is_refused_before_anything_is_played(
    folder: Path, call: Call, arguments: str, words: str
) -> None:
    write(folder, SOLUTION=f'(("lend", {arguments}),)')
    ended = call("run", "library.py", "--out", "here")
    assert ended.status == 2
    assert f"task 't-0' calls 'lend' (call 0) {words}" in ended.err
    assert not (folder / "here").exists()
