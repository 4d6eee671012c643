"""Native environments as plain subjects: every method, on worlds that behave and on worlds that break."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest

import quintain as qn
from quintain.audit.subjects import SubjectFailure, native
from quintain.environments import enterprise, helpdesk, sales
from quintain.errors import UsageError
from quintain.harnesses import Dialogue
from quintain.resources.database import Database, Key
from quintain.resources.workspace import Workspace
from tests.audit.subjects.threads import no_thread_stays


class Note(msgspec.Struct):
    id: Annotated[int, Key]
    words: str


class Desk(qn.State):
    """Small world with every kind of resource, and tools that break."""

    db: Database = msgspec.field(default_factory=lambda: Database(Note))
    files: Workspace = msgspec.field(default_factory=lambda: Workspace({"a/b.txt": "hello", "raw": b"\xff"}))
    labels: qn.Table[Note] = msgspec.field(default_factory=lambda: qn.Table(Note))
    several: list[qn.Table[Note]] = []
    pair: tuple[int, int] = (1, 2)
    broken: str = ""

    @qn.tool
    def note(self, words: str) -> dict[str, Any]:
        """Write a note.

        Args:
            words: What.
        """
        if self.broken:
            raise qn.ToolError(f"the backend answered {self.broken}")
        number = self.db.insert(Note(id=len(self.db.execute("SELECT 1 FROM notes")) + 1, words=words))
        return {"id": number}

    @qn.tool
    async def slowly(self) -> str:
        """Wait for the loop."""
        await asyncio.sleep(0)
        return asyncio.get_running_loop().__class__.__name__ and "done"

    @qn.tool
    def refuse(self) -> str:
        """Refuse the call."""
        raise qn.ToolError("not today")

    @qn.tool
    def crash(self) -> str:
        """Crash the tool."""
        raise RuntimeError("a bug")

    @qn.tool
    def ring_later(self) -> str:
        """Set a timer that breaks."""
        self.clock.after(10, self.rings)
        return "set"

    def rings(self) -> None:
        raise RuntimeError("the bell fell down")

    @qn.tool(roles=("user",))
    def secret(self) -> str:
        """Not for the agent."""
        return "secret"

    def inject(self, fault: str) -> None:
        if fault not in ("500", "timeout"):
            raise ValueError(f"cannot do {fault}")
        self.broken = fault


@qn.reward
def noted(outcome: qn.EpisodeView[Desk]) -> qn.Score:
    """Scores 1 if a note was written."""
    return qn.Score(float(bool(outcome.state.db.execute("SELECT 1 FROM notes"))), "looked into the table")


@qn.reward
def said(outcome: qn.EpisodeView[Desk]) -> float:
    """Scores 1 if the agent answered "noted"."""
    if outcome.answer == "break":
        raise RuntimeError("the judge broke")
    return float(outcome.answer == "noted")


def tasks(split: str) -> list[qn.Task[Desk]]:
    solved = (("note", {"words": "x"}),)
    known = qn.Task[Desk](
        id=f"{split}-0", prompt="Note x.", start=Desk, truth={"word": "x"}, solution=solved, answer="noted"
    )
    unknown = qn.Task[Desk](id=f"{split}-1", prompt="Note y.", start=Desk, roles={"user": "I want y."})
    impossible = qn.Task[Desk](id=f"{split}-2", prompt="No.", start=lambda: Desk(broken=str(1 / 0)))
    return [known, unknown, impossible]


def desk(**changes: Any) -> qn.Environment[Desk]:
    fields: dict[str, Any] = {"config": qn.Config(max_turns=4), "harness": qn.ToolLoop("Be brief.")} | changes
    return qn.Environment("desk", tasks=tasks, verifier=qn.Verifier(noted, said), state=Desk, **fields)


def begun(task: str = "test-0", **changes: Any) -> native.NativeSubject:
    subject = native.of(desk(**changes))()
    subject.reset(task, 0)
    return subject


LONGER = [pytest.param(env, marks=pytest.mark.slow) for env in (helpdesk.env, enterprise.env)]


@pytest.mark.parametrize("env", [sales.env, *LONGER], ids=lambda env: env.name)
def test_the_oracle_of_our_own_environments_scores_one_and_nothing_scores_less(env: qn.Environment[Any]) -> None:
    subject = native.of(env)()
    for name in subject.shelf.names(range(3)):
        prompt = subject.reset(name, 0)
        assert prompt == subject.prompt(name)
        assert (subject.score() or {})["score"] == 0.0
        before = subject.state()
        for step in subject.oracle(name) or []:
            if isinstance(step, dict):
                subject.answer(step["answer"])
            else:
                assert not isinstance(subject.call(*step), dict), step
        assert (subject.score() or {})["score"] == 1.0
        after = subject.state()
        assert before != after
        fresh = native.of(env)()
        fresh.restore(subject.snapshot())
        assert fresh.state() == after
        json.dumps([before, after, subject.hidden(name), subject.explain(), subject.tools()])
    subject.close()


def test_a_task_is_found_without_making_those_behind_it() -> None:
    made: list[int] = []

    def make(index: int) -> qn.Task[Desk]:
        made.append(index)
        return msgspec.structs.replace(tasks("test")[0], id=f"t{index}")

    env = desk()
    env = qn.Environment(
        "lazy", tasks=lambda _: qn.Tasks(1000, make), harness=env.harness, verifier=env.verifier, state=Desk
    )
    factory = native.of(env)
    factory().reset("t7", 0)
    factory().reset("t3", 0)
    assert [*dict.fromkeys(made)] == list(range(8))
    made.clear()
    assert list(factory().shelf.names([500, 1])) == ["t500", "t1"]
    known = native.of(env, index={"t999": 999, "t5": 6})()
    known.reset("t999", 0)
    assert made == [500, 1, 999]
    known.reset("t5", 0)  # Its index was another one before.
    assert known.prompt("t5")
    with pytest.raises(UsageError, match="has no task 'tx'"):
        factory().reset("tx", 0)
    with pytest.raises(UsageError, match="no split 'nope'"):
        native.of(env, "nope")


def test_two_tasks_of_one_id_are_refused() -> None:
    env = desk()
    twins = tasks("test")[:1] * 2
    env = qn.Environment("twins", tasks=lambda _: twins, harness=env.harness, verifier=env.verifier, state=Desk)
    with pytest.raises(UsageError, match="two tasks with the id 'test-0'"):
        native.of(env)().tasks()


def test_the_agent_has_its_prompt_and_its_own_tools() -> None:
    subject = begun()
    assert subject.prompt("test-0") == "Be brief.\n\nNote x."
    names = [tool["name"] for tool in subject.tools()]
    assert "note" in names
    assert "secret" not in names
    assert subject.call("secret", {}) == {"error": "error: there is no tool 'secret'"}
    assert subject.call("note", {"words": "x"}) == '{"id":1}'
    assert subject.call("slowly", {}) == "done"
    assert subject.call("refuse", {}) == {"error": "not today"}
    assert subject.budget == 4
    assert subject.call("note", {"words": "y"}) == {"error": "the episode has ended (max_turns)"}
    assert begun(config=qn.Config(max_calls=2)).budget == 2


@pytest.mark.parametrize("name", ["no\ud800", "\0", ""])
@pytest.mark.parametrize("arguments", [{"words": "\ud800"}, {"words": float("nan")}, {"words": 10**400}, {"\0": [[]]}])
def test_a_strange_call_is_the_agents_mistake_and_the_episode_goes_on(name: str, arguments: dict[str, Any]) -> None:
    subject = begun()
    assert set(subject.call(name, arguments)) == {"error"}
    assert set(subject.call("note", arguments)) == {"error"}
    assert subject.call("note", {"words": "x"}) == '{"id":1}'


def test_scores_are_reached_on_a_copy() -> None:
    subject = begun()
    assert subject.score() == {"noted": 0.0, "said": 0.0, "score": 0.0}
    subject.call("note", {"words": "x"})
    assert subject.score() == subject.score() == {"noted": 1.0, "said": 0.0, "score": 1.0}
    subject.answer("noted")
    assert subject.score() == {"noted": 1.0, "said": 1.0, "score": 2.0}
    assert subject.call("note", {"words": "z"}) == {"error": "the episode has ended (the agent answered)"}
    assert subject.answer("more") == {"error": "the episode has ended (the agent answered)"}
    assert [one["reason"] for one in subject.explain() if one["name"] == "noted"] == ["looked into the table"]


def test_an_answer_may_hold_any_text() -> None:
    subject = begun()
    subject.answer("x\ud800\0")
    assert subject.score() == {"noted": 0.0, "said": 0.0, "score": 0.0}


def test_a_broken_world_is_a_failure_with_a_name() -> None:
    subject = begun()
    with pytest.raises(SubjectFailure, match="RuntimeError: a bug") as caught:
        subject.call("crash", {})
    assert (caught.value.part, caught.value.kind, caught.value.is_failure) == ("S", "quintain:tool_bug", True)
    assert subject.score() is None
    assert subject.explain()[-1]["kind"] == "quintain:tool_bug"
    assert "ended" in subject.call("note", {"words": "x"})["error"]
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.part, again.kind) == (str(caught.value), "S", "quintain:tool_bug")


def test_a_broken_judge_gives_no_score() -> None:
    subject = begun()
    subject.answer("break")
    assert subject.score() is None
    assert subject.explain()[-1]["part"] == "V"


def test_a_task_that_cannot_begin_is_a_failure_of_t() -> None:
    with pytest.raises(SubjectFailure, match="ZeroDivisionError") as caught:
        begun("test-2")
    assert (caught.value.part, caught.value.kind) == ("T", "quintain:reset_failed")


def test_methods_before_a_reset_are_refused() -> None:
    with pytest.raises(UsageError, match="call reset"):
        native.of(desk())().score()


def test_the_state_is_plain_data() -> None:
    subject = begun()
    subject.call("note", {"words": "x"})
    state = subject.state()
    assert state["db.notes"] == [{"id": 1, "words": "x"}]
    assert state["files"]["a/b.txt"]["text"] == "hello"
    assert state["files"]["raw"]["data"] == "/w=="
    assert state["files"]["a"]["kind"] == "folder"
    assert (state["labels"], state["several"], state["pair"], state["broken"]) == ({}, [], [1, 2], "")
    assert state["shared"]["now"] == 0.0


def test_snapshots_are_restored_in_any_order() -> None:
    subject = begun()
    subject.call("note", {"words": "x"})
    moment, digest = subject.snapshot(), subject.digest()
    other = native.of(desk())()
    for one in (subject, other, subject):
        one.restore(moment)
        assert one.digest() == digest
        assert one.call("note", {"words": "y"}) == '{"id":2}'
        assert one.digest() != digest
        one.answer("noted")


@pytest.mark.slow
def test_equal_replies_give_equal_worlds_in_another_process() -> None:
    code = (
        "from tests.audit.subjects.test_native import begun\n"
        "s = begun(); s.call('note', {'words': 'x'}); print(s.state(), s.digest(), s.explain())"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed, "TZ": zone},
            capture_output=True,
            check=True,
        ).stdout
        for seed, zone in (("1", "UTC"), ("2", "Asia/Tokyo"))
    ]
    assert runs[0] == runs[1] != b""


@pytest.mark.slow
def test_faults_are_the_worlds_own() -> None:
    subject = begun()
    subject.inject("500")
    assert subject.call("note", {"words": "x"}) == {"error": "the backend answered 500"}
    subject.reset("test-0", 0)
    assert subject.call("note", {"words": "x"}) == '{"id":1}'
    with pytest.raises(ValueError, match="cannot do 429"):
        subject.inject("429")
    other = native.of(enterprise.env)()
    other.reset(next(other.shelf.names([0])), 0)
    with pytest.raises(ValueError, match="has no method inject"):
        other.inject("500")


def test_time_passes_and_what_is_due_may_break() -> None:
    subject = begun()
    subject.advance(5)
    assert subject.state()["shared"]["now"] == 5.0
    subject.call("ring_later", {})
    with pytest.raises(ValueError, match="0 or more"):
        subject.advance(-1)
    with pytest.raises(SubjectFailure, match="the bell fell down"):
        subject.advance(100)


def test_a_task_has_a_truth_and_a_solution() -> None:
    subject = begun()
    assert subject.oracle("test-0") == [["note", {"words": "x"}], {"answer": "noted"}]
    assert subject.hidden("test-0") == {
        "truth": {"word": "x"},
        "solution": [["note", {"words": "x"}]],
        "answer": "noted",
    }
    assert subject.oracle("test-1") is None
    assert subject.hidden("test-1") == {"truth": None, "solution": None, "answer": None}


def test_a_simulated_user_follows_its_script() -> None:
    subject = native.of(desk(harness=Dialogue(system="Be kind.", opening="Hello?")))()
    assert subject.reset("test-1", 0).splitlines()[-1] == "I want y."


def test_a_simulated_user_never_says_a_stop_word_of_its_script() -> None:
    subject = native.of(desk(harness=Dialogue(stop=("I want", "BYE"))))()
    assert subject.reset("test-1", 0).splitlines()[-1] == " y."
    assert "error" not in subject.call("note", {"words": "y"})


def test_a_harness_that_breaks_or_never_requests_is_a_failure() -> None:
    class Odd(msgspec.Struct, frozen=True):
        breaks: bool

        async def play(self, session: Any, model: Any) -> None:
            if self.breaks:
                raise RuntimeError("lost the thread")

    with pytest.raises(SubjectFailure, match="lost the thread") as caught:
        begun(harness=Odd(breaks=True))
    assert caught.value.part == "H"
    subject = begun(harness=Odd(breaks=False))
    assert subject.call("note", {"words": "x"}) == {"error": "the episode has ended (the harness returned)"}


def test_declared_attributes_are_passed_on() -> None:
    env = desk()
    assert not hasattr(native.of(env)(), "refusal_ok")
    env.refusal_ok, env.volatile = True, ("now",)  # type: ignore[attr-defined]  # an author's own attribute
    subject = native.of(env)()
    assert (subject.refusal_ok, subject.volatile) == (True, ("now",))  # type: ignore[attr-defined]  # as above


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_close_leaves_no_file_and_no_thread() -> None:
    begun().close()
    before = _open_files()
    with no_thread_stays():
        one, two = begun(), begun()
        one.close()
        assert two.call("slowly", {}) == "done"
        two.close()
    assert _open_files() <= before  # Of other tests some may be collected meanwhile.


def test_sessions_in_threads_do_not_meet() -> None:
    make, failed = native.of(desk()), list[str]()
    before = _open_files()

    def work(words: str) -> None:
        subject = make()
        subject.reset("test-0", 0)
        subject.call("note", {"words": words})
        if subject.state()["db.notes"] != [{"id": 1, "words": words}] or subject.call("slowly", {}) != "done":
            failed.append(words)

    workers = [threading.Thread(target=work, args=(f"w{n}",)) for n in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failed == []
    assert _open_files() <= before + 1


def test_a_loop_cannot_run_inside_another() -> None:
    async def inside() -> None:
        await asyncio.sleep(0)
        begun()

    with pytest.raises(RuntimeError, match="outside of an event loop"):
        asyncio.run(inside())
