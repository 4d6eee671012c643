"""Views of a subject for other checkers: each checker gets its own form of one subject."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from quintain.audit.kernel.loader import LoadedSubject, Subject, load_subject
from quintain.audit.kernel.probe import call

# Benches have no types, so they are loaded without a static import.
PLACES, PEERS, VIEW, CASES = (
    importlib.import_module(f"bench.audit.{name}") for name in ("_peer_install", "peers", "_peer_view", "detectors")
)
INSTALLED = {tool: PLACES.place(tool) for tool in PLACES.NEEDS}  # before any test moves the cache
SOUND = '''
class Door:
    """A door that is to be opened."""

    def tasks(self):
        return [f"open-{n}" for n in range(20)]

    def tools(self):
        code = {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}
        return [{"name": "push", "parameters": code}]

    def oracle(self, task):
        return [["push", {"code": task}]]

    def reset(self, task, seed):
        self.open, self.task = False, task
        return f"A door; its code is {task}."

    def call(self, name, arguments):
        if name != "push":
            raise LookupError(f"no tool {name}")
        if arguments["code"] != self.task:
            return {"error": "a wrong code"}
        self.open = True
        return {"open": True}

    def score(self):
        return float(self.open)
'''
BUGS = {
    "nondeterministic": ('{"open": True}', '{"open": __import__("os").urandom(8).hex()}'),
    "opens by itself": ("self.task = False, task", "self.task = True, task"),
    "any code opens it": ('arguments["code"] != self.task', "False"),
    "cannot be solved": ("return float(self.open)", "return 0.0"),
    "worth five": ("return float(self.open)", "return 5.0 * self.open"),
}
SEEN_BY = {
    "gymnasium": ("nondeterministic",),
    "pettingzoo": ("nondeterministic",),
    "verifiers": ("opens by itself", "cannot be solved"),
    "openenv": ("worth five",),
    "falsepass": ("opens by itself", "any code opens it"),
}


@pytest.fixture
def door(tmp_path: Path) -> LoadedSubject:
    return opened(tmp_path, SOUND)


def opened(folder: Path, text: str) -> LoadedSubject:
    return load_subject(written(folder, text))


def written(folder: Path, text: str) -> Subject:
    file = folder / "door.py"
    file.write_text(text)
    return Subject(f"{file}:Door")


def test_tasks_are_spread_over_the_list(door: LoadedSubject) -> None:
    shown = VIEW.view(door).tasks
    assert len(shown) == VIEW.TASKS
    assert shown[0] == "open-0"
    assert shown[-1] == f"open-{20 * (VIEW.TASKS - 1) // VIEW.TASKS}"


def test_deeds_begin_with_the_oracle(door: LoadedSubject) -> None:
    session = VIEW.view(door)
    steps = VIEW.solution(session, "open-0")
    assert VIEW.deeds(session, "open-0")[: len(steps)] == steps
    session.reset("open-0", 0)
    assert session.number() == 0.0
    assert session.act(steps[0]) == '{"open": true}'
    assert session.number() == 1.0


def test_a_refused_call_is_read_and_a_crash_goes_through(tmp_path: Path) -> None:
    session = VIEW.View(opened(tmp_path, SOUND))
    session.reset("open-0", 0)
    push = VIEW.solution(session, "open-0")[0]
    assert session.act(call("pull")) == "error: no tool pull"
    (tmp_path / "broken").mkdir()
    broken = VIEW.View(opened(tmp_path / "broken", SOUND.replace("self.open = True", "1 / 0")))
    broken.reset("open-0", 0)
    with pytest.raises(ZeroDivisionError):
        broken.act(push)


def test_a_subject_without_actions_is_not_a_miss(tmp_path: Path) -> None:
    text = SOUND.replace("def tools", "def no_tools").replace("def oracle", "def no_oracle")
    session = VIEW.view(opened(tmp_path, text))
    with pytest.raises(VIEW.CannotLook, match="nothing to do"):
        VIEW.deeds(session, "open-0")


def interpreter(tool: str) -> Path:
    """Returns an interpreter that has the tool; no test installs one."""
    if importlib.util.find_spec(tool) is not None:
        return Path(sys.executable)
    found: Path = INSTALLED[tool]
    if not (found / "installed").is_file():
        pytest.skip(f"{tool} is not installed here")
    return found / "bin" / "python"


def look(worker: Any, folder: Path, text: str) -> dict[str, Any]:
    folder.mkdir()
    result: dict[str, Any] = worker.look(CASES.Case("seeded", folder.name, written(folder, text)))
    return result


@pytest.mark.parametrize(
    "tool", [pytest.param(tool, marks=[] if tool == "gymnasium" else pytest.mark.slow) for tool in SEEN_BY]
)
def test_a_tool_is_silent_on_a_sound_subject_and_sees_what_it_is_made_for(tool: str, tmp_path: Path) -> None:
    worker = PEERS.Worker(tool, interpreter(tool))
    try:
        sound = look(worker, tmp_path / "sound", SOUND)
        assert sound["found"] == []
        assert not sound.keys() & {"cannot", "broke", "late"}
        for name in SEEN_BY[tool]:
            assert SOUND.count(BUGS[name][0]) == 1
            result = look(worker, tmp_path / name, SOUND.replace(*BUGS[name]))
            assert result["found"], name
    finally:
        worker.close()


def test_a_hanging_subject_is_reported_as_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PEERS, "LIMIT_S", 2)
    worker = PEERS.Worker("gymnasium", interpreter("gymnasium"))
    try:
        result = look(
            worker,
            tmp_path / "hangs",
            SOUND.replace("self.open, self.task = False, task", "import time; time.sleep(600)"),
        )
    finally:
        worker.close()
    assert result["late"]
    assert result["found"] == []


CASE = CASES.Case("seeded", "bug", Subject("x.py:bug"), ("leak",), "sound")


@pytest.mark.parametrize(
    ("result", "sound", "looked", "found"),
    [
        ({"found": [{"key": "a"}]}, {"found": []}, True, True),
        ({"found": [{"key": "a"}]}, {"found": [{"key": "a"}]}, True, False),
        ({"found": []}, {"found": [{"key": "a"}]}, True, False),
        ({"found": [], "cannot": "no score"}, {"found": []}, False, False),
        ({"found": [], "broke": "our adapter"}, {"found": []}, False, False),
        ({"found": [], "late": True}, {"found": []}, True, True),
        ({"found": [], "late": True}, {"found": [], "late": True}, True, False),
        ({"found": [{"key": "a"}]}, {"found": [], "late": True}, True, False),
    ],
)
def test_a_bug_is_found_if_its_sound_counterpart_has_no_finding(
    result: dict[str, object], sound: dict[str, object], looked: bool, found: bool
) -> None:
    assert PEERS.judged(CASE, result, sound)[1:] == (looked, found)
