"""Order of checks, and what a budget leaves out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from quintain.audit import auditor
from quintain.audit.auditor import Report, audit
from quintain.audit.facts import failure_rate
from quintain.audit.kernel.check import Check, ordered
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.loader import Made, Subject, describe, load_subject, merged
from quintain.audit.kernel.probe import Probe, call, reset, score
from tests.cli.audited import DESK

pytestmark = pytest.mark.usefixtures("prepared_workers")
Audit = Callable[..., Report]


@pytest.fixture(autouse=True)
def few_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plays 9 episodes for the failure rate instead of 59."""
    for module in (auditor, failure_rate):
        monkeypatch.setattr(module, "ENOUGH", 9)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    path = tmp_path_factory.mktemp("desk") / "desks.py"
    path.write_text(DESK)
    return Subject(f"{path}:Desk")


def made(name: str, run: Callable[[AuditContext], Any], **more: Any) -> Check:
    return Check(id=name, class_="races", run=run, **more)


def looks(ctx: AuditContext) -> Iterator[Any]:
    ctx.count_comparisons()
    yield None


def computes(ctx: AuditContext) -> Iterator[Any]:
    """Finds something, and then computes for longer than any budget."""
    probe = Probe((reset("ann"), call("send", {"to": "ann"}), score()))
    yield ctx.finding("a letter is paid", probe, marks=("score",))
    until = time.monotonic() + 60
    while time.monotonic() < until:
        time.sleep(0.01)


def test_the_failure_rate_takes_no_more_episodes_than_it_needs_within_a_budget(tmp_path: Path) -> None:
    more = "class Many(Desk):\n    def tasks(self):\n        return [str(n) for n in range(12)]\n"
    (tmp_path / "desks.py").write_text(f"{DESK}\n\n{more}")
    many = Subject(f"{tmp_path / 'desks.py'}:Many")
    assert [audit(many, [], budget=one).failures.episodes for one in (60.0, None)] == [9, 12]


MANY = """
import quintain as qn


class Desk(qn.State):
    noted: int = 0

    @qn.tool
    def note(self) -> int:
        "Note something."
        self.noted += 1
        return self.noted


@qn.reward
async def noted(outcome: qn.EpisodeView[Desk]) -> float:
    return float(outcome.state.noted > 0)


def make(index: int) -> qn.Task[Desk]:
    with open(FILE, "a") as file:
        file.write(f"{index}\\n")
    return qn.Task(id=f"t{index:x}", prompt="Note it.", start=Desk, solution=[("note", {})])


env = qn.Environment(
    "many",
    tasks=lambda _: qn.Tasks(1_000_000, make),
    harness=qn.ToolLoop("Be brief."),
    verifier=qn.Verifier(noted),
    state=Desk,
)
"""


def test_an_audit_makes_only_the_tasks_that_it_uses(tmp_path: Path) -> None:
    made = tmp_path / "made"
    (tmp_path / "many.py").write_text(MANY.replace("FILE", repr(str(made))))
    some = {0, 333333, 666666, 999999}

    def named(ctx: AuditContext) -> Iterator[Any]:
        assert set(map(int, made.read_text().split())) <= some
        assert ctx.tasks == tuple(f"t{index:x}" for index in sorted(some))
        assert ctx.about.count == 1_000_000
        assert len(ctx.not_sampled(4)) == 999_996
        assert ctx.tasks_at([7, 333333, 8]) == ["t7", "t51615", "t8"]
        assert ctx.solution_score("t8") == 1.0
        ctx.count_comparisons()
        yield ctx.finding("a note is paid", Probe((reset("t7"), call("note"), score())), marks=("score",))

    check = Check(id="named", class_="races", run=named)
    report = audit(Subject(f"{tmp_path / 'many.py'}:env"), [check], tasks=4, budget=60.0)
    assert [(one.check, one.status, one.reason) for one in report.checks] == [("named", "checked", "")]
    assert [(one.confidence, one.tasks) for one in report.findings] == [("proven", ("t7",))]
    assert report.tasks == (4, 1_000_000)
    assert set(map(int, made.read_text().split())) == {*some, 7, 8}


SIZES = """
import quintain as qn
from quintain.resources.database import Database


class Desk(qn.State):
    db: Database

    @qn.tool
    def count(self) -> int:
        "Count notes."
        return self.db.execute("SELECT count(*) FROM notes")[0][0]


@qn.reward
async def read(outcome: qn.EpisodeView[Desk]) -> float:
    return 1.0


def make(index: int) -> qn.Task[Desk]:
    db = Database("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)")
    rows = 40_000 if index == 2 else 10
    db.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
               "INSERT INTO notes SELECT i, hex(zeroblob(1000)) FROM n", rows)
    return qn.Task(id=f"t{index}", prompt="Count.", start=lambda: Desk(db=db), solution=[("count", {})])


env = qn.Environment(
    "sizes",
    tasks=lambda _: qn.Tasks(9, make),
    harness=qn.ToolLoop("Be brief."),
    verifier=qn.Verifier(read),
    state=Desk,
)
"""


def test_a_budget_leaves_out_tasks_with_large_databases(tmp_path: Path) -> None:
    (tmp_path / "sizes.py").write_text(SIZES)
    subject, light = Subject(f"{tmp_path / 'sizes.py'}:env"), [f"t{i}" for i in range(9) if i != 2]
    for budget, wanted, rest in (
        (600.0, light, [1, 3, 4, 5, 6, 7]),
        (None, [f"t{i}" for i in range(9)], list(range(1, 8))),
    ):

        def looks(ctx: AuditContext, wanted: list[str] = wanted, rest: list[int] = rest) -> Iterator[None]:
            assert list(ctx.tasks) == wanted
            assert ctx.not_sampled(2) == rest
            ctx.count_comparisons()
            yield None

        report = audit(subject, [Check(id="looks", class_="races", run=looks)], budget=budget)
        assert [(one.status, one.reason) for one in report.checks] == [("checked", "")]
        assert (report.tasks, report.heavy) == ((len(wanted), 9), 9 - len(wanted))


def test_tasks_are_made_from_coarse_to_fine_until_time_is_up(tmp_path: Path) -> None:
    made = tmp_path / "made"
    (tmp_path / "many.py").write_text(MANY.replace("FILE", repr(str(made))))
    opened = load_subject(Subject(f"{tmp_path / 'many.py'}:env"))
    about = describe(opened, Made(33, seconds=0.0))
    assert about.indices == tuple(round(place * 999_999 / 32) for place in (0, 4, 8, 12, 16, 20, 24, 32))
    assert about.tasks == tuple(f"t{index:x}" for index in about.indices)
    assert set(map(int, made.read_text().split())) == set(about.indices)
    assert describe(opened, Made(about.indices)) == about
    halves = [describe(opened, Made(33, 0.0, (number, 2))) for number in range(2)]
    assert [len(half.tasks) for half in halves] == [4, 4]
    assert merged(halves) == about
    assert describe(opened, Made((5, 1_000_000))).tasks == ("t5",)


def test_checks_begin_by_descending_value(desk: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auditor, "_RUNNING", 1)
    seen: list[str] = []
    checks = [made(name, looks, value=value) for name, value in (("a", 1), ("b", 3), ("c", 2))]
    report = audit(desk, ordered(checks), watch=lambda check, place, count: seen.append(check.id))
    assert seen == [one.check for one in report.checks] == ["b", "c", "a"]
    assert {one.status for one in report.checks} == {"checked"}


def test_a_check_that_computes_beyond_the_budget_is_left(desk: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auditor, "_RUNNING", 1)
    checks = [made("slow", computes), made("later", looks)]
    started = time.monotonic()
    report = audit(desk, checks, budget=5.0)
    assert time.monotonic() - started < 30
    assert [(one.status, one.reason, one.unfinished) for one in report.checks] == [
        ("partly", "the budget was spent on the way", True),
        ("not_checked", "the budget was spent before it", True),
    ]
    assert [one.title for one in report.findings] == ["a letter is paid"]
    assert report.failures.episodes == 9


def test_equal_audits_have_equal_counts_whichever_check_is_first(desk: Subject) -> None:
    def shared(ctx: AuditContext) -> int:
        return len(ctx.play_all([Probe((reset("ann"),))] * 3))

    def after(seconds: float) -> Callable[[AuditContext], Iterator[Any]]:
        def run(ctx: AuditContext) -> Iterator[Any]:
            time.sleep(seconds)
            ctx.count_comparisons(ctx.once(("three",), shared))
            ctx.play(reset("bob"))
            yield None

        return run

    reports = [audit(desk, [made("a", after(one)), made("b", after(0.6 - one))]) for one in (0.0, 0.6)]
    for report in reports:
        assert [(one.probes, one.looked) for one in report.checks] == [(1, 3), (1, 3)]
    assert reports[0].shared_probes == reports[1].shared_probes == 5


def test_a_check_that_the_budget_ends_without_a_finding_is_not_checked(desk: Subject) -> None:
    def plays(ctx: AuditContext) -> Iterator[Any]:
        while True:
            ctx.count_comparisons()
            ctx.play(reset("ann"))
            yield None

    report = audit(desk, [made("plays", plays)], budget=3.0)
    assert [(one.status, one.reason) for one in report.checks] == [("not_checked", "the budget was spent on the way")]
    assert report.checks[0].looked > 0
