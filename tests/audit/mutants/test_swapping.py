"""Mutants in loaded functions, wherever these are stored; unfit code is reported."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from quintain.audit.auditor import audit
from quintain.audit.kernel.child import Child
from quintain.audit.kernel.loader import Subject
from quintain.audit.kernel.probe import Op, Probe, Record, ask, call, reset, score
from quintain.audit.kernel.replay import replay_finding
from quintain.audit.mutants import swapping
from quintain.audit.mutants.checks import mutant_tool
from quintain.audit.mutants.loading import Mutant

DESK = """
import functools
import importlib

def same(function):
    @functools.wraps(function)
    def inside(*args):
        return function(*args)
    return inside

def noting(name):
    def note(world):
        world[name] = 1
    return note

note = noting("seen")

class Desk:
    def tasks(self): return ["t"]
    def tools(self): return [{"name": "count"}, {"name": "later"}]
    def reset(self, task, seed):
        self.world, self.counted = {}, 0
        return "go"
    @same
    def call(self, name, arguments):
        if name == "later":
            return importlib.import_module("afterwards").two()
        self.counted = 1
        note(self.world)
        return [number for number in range(5) if number > 2]
    def state(self): return dict(self.world)
    def oracle(self, task): return [["count", {}]]
    def score(self):
        left = 3
        while left:
            left -= 1
        return 1.0 * self.counted
"""


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    (tmp_path / "afterwards.py").write_text("def two():\n    return 2\n")
    path = tmp_path / "desk.py"
    path.write_text(DESK)
    return path


@pytest.fixture
def child(desk: Path) -> Iterator[Child]:
    with Child(Subject(f"{desk}:Desk")) as one:
        yield one


def edit(path: Path, before: str, after: str) -> Mutant:
    return Mutant(str(path), path.read_text().index(before), before, after)


def put(mutant: Mutant) -> Op:
    return ask(swapping.SWAP, msgspec.to_builtins(mutant), mark="put")


def counted(child: Child, mutant: Mutant, name: str = "count") -> Record:
    return child.play(Probe((put(mutant), reset("t"), call(name, mark="it"), Op("state", mark="state"))), 30)


def test_a_function_behind_another_one_is_found(child: Child, desk: Path) -> None:
    record = counted(child, edit(desk, "number > 2", "number > 3"))
    assert (record.at("put").value, record.at("it").value) == ("", [4])
    assert child.play(Probe((reset("t"), call("count", mark="it"))), 30).at("it").value == [3, 4]


def test_a_function_that_was_made_by_another_one_is_found(child: Child, desk: Path) -> None:
    assert counted(child, edit(desk, "world[name] = 1", "world[name] = 2")).at("state").value == {"seen": 2}


def test_code_with_other_free_variables_does_not_fit(child: Child, desk: Path) -> None:
    record = counted(child, edit(desk, "world[name] = 1", "pass"))
    assert (record.at("put").value, record.at("state").value) == (swapping.UNFIT, {"seen": 1})


def test_a_file_that_is_imported_later_runs_the_mutant(child: Child, desk: Path) -> None:
    mutant = edit(desk.parent / "afterwards.py", "return 2", "return 7")
    assert counted(child, mutant, "later").at("it").value == 7


def test_a_file_that_has_changed_since_it_was_loaded_does_not_fit(child: Child, desk: Path) -> None:
    desk.write_text(DESK.replace("range(5)", "range(9)"))
    record = counted(child, edit(desk, "number > 2", "number > 3"))
    assert (record.at("put").value, record.at("it").value) == (swapping.UNFIT, [3, 4])


@pytest.mark.parametrize(
    ("before", "after", "is_same"),
    [
        ("number > 2", "(number) > (2)", True),
        ("number > 2", "number > 2.0", False),
        ("number > 2", "number >= 2", False),
        ("number > 2", "number >", False),
    ],
)
def test_a_mutant_with_equal_code_is_the_same(desk: Path, before: str, after: str, is_same: bool) -> None:
    assert swapping.is_same(edit(desk, before, after)) is is_same


def played(child: Child, mutant: Mutant, paid: tuple[float, ...], seconds: float = 20.0) -> Record:
    ops = tuple(op for _ in paid for op in (reset("t"), call("count"), score()))
    trial = swapping.MutantRun(mutant, ops, paid, seconds)
    return child.play(Probe((ask(swapping.PLAY, msgspec.to_builtins(trial)),)), 30)


def test_playing_stops_at_the_first_differing_score(child: Child, desk: Path) -> None:
    def seen(mutant: Mutant) -> list[Any]:
        return msgspec.convert(played(child, mutant, (1.0, 1.0)).at("ask").value, swapping.SwapResult).seen

    assert len(seen(edit(desk, "1.0 * self", "0.5 * self"))) == 3
    assert len(seen(edit(desk, "number > 2", "number > 3"))) == 6


def test_a_mutant_that_loops_for_ever_is_ended_by_its_own_processor_time(child: Child, desk: Path) -> None:
    record = played(child, edit(desk, "left -= 1", "left += 1"), (1.0,), seconds=0.2)
    assert "SIGPROF" in record.died


@pytest.mark.slow
def test_an_unfit_mutant_gets_a_process_of_its_own(desk: Path) -> None:
    report = audit(Subject(f"{desk}:Desk"), [mutant_tool])
    one = next(one for one in report.findings if "world[name] = 1` is skipped" in one.title)
    assert one.subject is not None
    assert one.subject.mutant is not None
    assert replay_finding(one).held == 2
