"""Taskset of verifiers (v1) as a plain subject."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.subjects import SubjectFailure, verifiers
from quintain.errors import UsageError

TASKSET = r'''
from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import verifiers.v1 as vf


class SumData(vf.TaskData):
    answer: str


class Sum(vf.Task[SumData]):
    @vf.reward(weight=2.0)
    async def correct(self, trace: Any) -> float:
        found = re.search(r"\\boxed\{(.*?)\}", trace.last_reply)
        if found and found[1] == "crash":
            raise RuntimeError("the reward broke")
        return float(found is not None and found[1] == self.data.answer)

    @vf.reward(weight=0.5)
    async def short(self, trace: Any) -> float:
        return float(len(trace.last_reply) < 50)


class Boxed(Sum):
    """The same, with a reward that needs a box to run in."""

    @vf.reward(weight=1.0)
    async def ran(self, trace: Any, runtime: Any) -> float:
        return 1.0


class Sums(vf.Taskset[Sum]):
    def load(self) -> Iterable[Sum]:
        for n in range(3):
            yield Sum(SumData(prompt=f"What is {n} + 40?", answer=str(n + 40), system_prompt="Use \\boxed{}."))


def boxed() -> vf.Taskset[Boxed]:
    class Boxes(vf.Taskset[Boxed]):
        def load(self) -> Iterable[Boxed]:
            yield Boxed(SumData(id="b", prompt="1?", answer="1"))

    return Boxes(vf.TasksetConfig())
'''


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "sums.py"
    path.write_text(TASKSET)
    return str(path)


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    monkeypatch.setitem(__import__("sys").modules, "verifiers", None)
    with pytest.raises(UsageError, match="this needs verifiers: pip install"):
        verifiers.make(file)


def test_tasks_are_listed_and_scored(file: str) -> None:
    pytest.importorskip("verifiers", reason="pip install 'quintain[audit-verifiers]'")
    subject = verifiers.make(file)()
    assert subject.tasks() == ["0", "1", "2"]
    assert subject.absent == ()
    assert subject.reset("2", 0) == "Use \\boxed{}.\n\nWhat is 2 + 40?"
    assert subject.hidden("2") == {"answer": "42"}
    assert subject.oracle("2") == [{"answer": "\\boxed{42}"}]
    assert subject.score() == {"correct": 0.0, "short": 1.0, "score": 0.5}
    subject.answer("It is \\boxed{42}.")
    assert subject.score() == subject.score() == {"correct": 1.0, "short": 1.0, "score": 2.5}
    subject.answer("\\boxed{crash}")
    with pytest.raises(SubjectFailure, match="the reward broke") as caught:
        subject.score()
    assert caught.value.part == "V"
    with pytest.raises(UsageError, match="no task '9'"):
        subject.reset("9", 0)
    subject.close()


def test_a_reward_that_needs_more_makes_the_score_absent(file: str) -> None:
    pytest.importorskip("verifiers", reason="pip install 'quintain[audit-verifiers]'")
    subject = verifiers.make(f"{file}:boxed")()
    assert isinstance(subject, verifiers.VerifiersSubject)
    assert subject.tasks() == ["b"]
    assert (subject.absent, subject.lacking) == (("score", "oracle"), ["ran"])
    for text, words in (
        (f"{file}:nope", "no taskset 'nope'; the tasksets are Sums"),
        (f"{file}:Sum", "must be a Taskset|argument"),
        ("no_such_module_at_all", "no such module"),
        ("/no/such/file.py", "does not exist"),
    ):
        with pytest.raises((UsageError, TypeError), match=words):
            verifiers.make(text)
