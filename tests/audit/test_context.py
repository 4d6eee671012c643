"""Child processes, the audit context, discovery and details, on one small shop."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from quintain.audit.kernel import child
from quintain.audit.kernel.check import Check, NotChecked
from quintain.audit.kernel.child import Child, SubjectBroken, WorkerPool
from quintain.audit.kernel.context import AuditContext, OutOfTime, paid, solves, tasks_of
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.loader import Subject
from quintain.audit.kernel.probe import Op, Probe, ProcessContext, call, reset, score, state
from quintain.audit.kernel.replay import replay_finding
from quintain.audit.report.details import detailed, details
from quintain.errors import UsageError
from tests.audit.subject import SHOP

Make = Callable[..., AuditContext]
STALE = Probe((reset("buy 1"), call("stock"), call("buy", {"count": 2}), call("stock", mark="look"), score()))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("shop") / "shop.py"
    made.write_text(SHOP)
    return made


@pytest.fixture(scope="module")
def pools(path: Path, prepared_workers: None) -> Iterator[dict[str, WorkerPool]]:
    made = {name: WorkerPool(Subject(f"{path}:{name}")) for name in ("Shop", "Cached", "Sometimes", "Wordless")}
    yield made
    for pool in made.values():
        pool.close()


@pytest.fixture(scope="module")
def abouts(pools: dict[str, WorkerPool]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, pool in pools.items():
        with Child(pool.subject) as one:
            found[name] = one.about
    return found


@pytest.fixture
def make(pools: dict[str, WorkerPool], abouts: dict[str, Any]) -> Make:
    def ctx(name: str = "Shop", *, until: float | None = None) -> AuditContext:
        made = AuditContext(pools[name], abouts[name], abouts[name].tasks, seed=0, until=until, limit=5.0)
        made.check = Check(id="x.test", class_="stale_cache", run=lambda ctx: ())
        made.rng = random.Random(0)
        return made

    return ctx


# --- a child ---


def test_a_child_describes_its_subject(abouts: dict[str, Any], path: Path) -> None:
    about = abouts["Shop"]
    assert about.kind == "plain"
    assert about.tasks == tuple(f"buy {n}" for n in range(5))
    assert [tool.name for tool in about.tools] == ["buy", "stock", "boom"]
    assert {"oracle", "state", "explain"} <= about.offers
    assert about.attributes["volatile"] == ["at"]
    assert [(source.path, source.part) for source in about.sources] == [(str(path), "S")]


def test_probes_do_not_affect_each_other(make: Make) -> None:
    ctx = make()
    crashed = ctx.play(reset("buy 0"), call("boom", mark="bang"), call("stock", mark="after"))
    assert (crashed.at("bang").how, crashed.at("bang").raised) == ("crashed", "KeyError: 'fuse'")
    assert crashed.at("after").value == 10
    refused = ctx.play(reset("buy 0"), call("buy", {"count": 99}, mark="no"))
    assert (refused.at("no").how, refused.at("no").is_error) == ("refused", True)
    gone = ctx.play(reset("buy 0"), call("exit", mark="exit"), score())
    assert gone.died == "it ended the process with 3"
    assert (gone.at("exit").how, gone.at("score").how) == ("hung", "hung")
    hung = ctx.play(reset("buy 0"), call("sleep", mark="sleep"), limit=0.5)
    assert hung.died == "it had not come back after 0.5 s"
    assert ctx.play(Op("judge", mark="judge")).at("judge").how == "absent"
    assert ctx.play(reset("unlisted", mark="who")).at("who").raised.startswith("UsageError: no task 'unlisted'")


def test_a_probe_context_sets_the_process_environment(make: Make) -> None:
    record = make().play(call("where", mark="where"), context=ProcessContext(hash_seed=5, zone="Asia/Tokyo"))
    zone, seed, folder = record.at("where").value
    assert (zone, seed) == ("Asia/Tokyo", "5")
    assert Path(folder).is_dir()


def test_a_closed_child_leaves_no_process_and_no_folder(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "subprocess", subprocess)  # A fork stays in the list of processes for a moment.
    with Child(Subject(f"{path}:Shop")) as one:
        process = Path(f"/proc/{one._process.pid}")
        folder = Path(one.play(Probe((call("where", mark="where"),)), 5.0).at("where").value[2])
        assert folder.is_dir()
        assert process.exists()
    assert not process.exists()
    assert not folder.exists()


def test_a_missing_subject_is_a_usage_error_and_a_broken_one_is_not(path: Path) -> None:
    with pytest.raises(UsageError, match="Missing"):
        Child(Subject(f"{path}:Missing"))
    broken = path.with_name("broken.py")
    broken.write_text("print('words before')\nraise ZeroDivisionError('mine')\n\ndef f(): ...\n")
    with pytest.raises((UsageError, SubjectBroken), match="ZeroDivisionError"):
        Child(Subject(f"{broken}:f"))
    broken.write_text("import os\nprint('words before', flush=True)\nos._exit(1)\n")
    with pytest.raises(SubjectBroken, match="ended the process that loaded it; it printed: words before"):
        Child(Subject(f"{broken}:f"))


# --- the context ---


def test_the_context_has_solutions_and_samples_tasks_evenly(make: Make) -> None:
    ctx = make()
    assert ctx.oracle("buy 2") == (call("stock"), call("buy", {"count": 2}))
    assert ctx.solution_score("buy 2") == 1.0
    assert [ctx.sample_tasks(count) for count in (1, 2, 9)] == [("buy 0",), ("buy 0", "buy 4"), ctx.tasks]
    assert paid(ctx.play_probe(solves("buy 2", [call("buy", {"count": 2})]))) == 1.0
    assert tasks_of([STALE, STALE]) == ("buy 1",)
    assert ctx.volatile == ("at",)
    assert isinstance(ctx.not_checked("why"), NotChecked)


def test_a_budget_that_is_spent_stops_every_probe(make: Make) -> None:
    ctx = make(until=time.monotonic() - 1)
    assert ctx.seconds_left() == 0
    with pytest.raises(OutOfTime):
        ctx.play(reset("buy 0"))
    with pytest.raises(OutOfTime):
        ctx.play_all([STALE])


def test_a_probe_that_the_budget_ends_is_not_a_hang(make: Make) -> None:
    with pytest.raises(OutOfTime):
        make(until=time.monotonic() + 0.2).play(reset("buy 0"), call("sleep"))


def test_a_budget_ends_many_slow_probes_soon(make: Make) -> None:
    started = time.monotonic()
    with pytest.raises(OutOfTime):
        make(until=started + 1).play_all([Probe((reset("buy 0"), call("sleep")))] * 32)
    assert time.monotonic() - started < 8


def test_a_claim_that_holds_is_minimised_and_proven(make: Make) -> None:
    ops = (reset("buy 1"), call("buy", {"count": 1}), call("stock"), call("buy", {"count": 2}), call("boom"))
    probe = Probe((*ops, call("stock", mark="look"), state()))
    fields: dict[str, Any] = {"relation": "tests.audit.subject:stale", "marks": ("look", "state")}
    found = make("Cached").finding("it is stale", probe, expected=8, observed=10, **fields)
    assert found is not None
    assert (found.confidence, found.severity, found.part, found.check) == ("proven", "error", "S", "x.test")
    assert [line.get("name", line["do"]) for line in found.trajectory] == ["buy 1", "stock", "buy", "stock", "state"]
    again = replay_finding(found, plays=1)
    assert (again.held, again.plays) == (1, 1)
    assert again.trajectories[0][3]["observed"] == 10
    assert make("Shop").finding("it is stale", probe, **fields) is None


def test_a_proven_title_is_not_proven_again(make: Make) -> None:
    ctx = make()
    found = [ctx.finding("so", Probe((reset(task), score())), marks=("score",)) for task in ("buy 1", "buy 2")]
    assert found[0] is not None
    assert found[1] is None
    assert list(ctx.seen_in["x.test", "so"]) == ["buy 1", "buy 2"]


def test_bytes_are_equal_in_a_replay(make: Make) -> None:
    found = make().finding("it gives bytes", Probe((reset("buy 1"), call("bytes", mark="look"))), marks=("look",))
    assert found is not None
    assert found.confidence == "proven"
    assert found.trajectory[1]["observed"]["3"] != found.trajectory[1]["observed"]["3"]


def test_a_claim_that_no_replay_shows_gives_no_finding(make: Make) -> None:
    assert make().finding("no", STALE, relation="pays", marks=("score",), data=1.0) is None


def test_a_claim_that_holds_once_is_at_most_likely(make: Make, path: Path) -> None:
    ctx = make("Sometimes")
    probe = Probe((reset("buy 1", mark="first"),))
    for earlier in path.parent.glob("count-*"):
        earlier.unlink()
    evidence = {"first": {"value": "plays so far: 1"}}
    found = ctx.finding("now and then", probe, marks=("first",), data=evidence, minimise=0)
    assert found is not None
    assert found.confidence == "likely"


def test_a_static_finding_is_at_most_likely_and_cannot_be_replayed(make: Make) -> None:
    found = make().finding("a bare except", where="f.py:3", severity="warning", at_most="hint")
    assert found is not None
    assert (found.confidence, found.severity, found.probes) == ("hint", "warning", ())
    with pytest.raises(UsageError, match="this finding was read, not played"):
        replay_finding(found)


# --- discovery ---


def test_discovery_separates_readers_from_writers(make: Make) -> None:
    discovery = make().discovery
    assert discovery.writers == ("buy",)
    assert discovery.readers == ("stock",)
    assert discovery.refused == ("boom",)
    buy = discovery.of("buy")[0]
    assert set(buy.changed or ()) == {"stock/left", "cash"}
    assert [op.name for op in buy.before] == ["stock"]
    assert discovery.states["buy 0"] == {"stock": {"left": 10}, "cash": 100}
    assert "count" in discovery.values.names()


def test_writers_are_unknown_without_a_state(make: Make) -> None:
    discovery = make("Wordless").discovery
    assert discovery.writers == ()
    assert {one.changed for one in discovery.calls} == {None}


# --- details ---


def test_details_say_what_each_op_changed_and_why_it_was_paid(make: Make) -> None:
    found = details(STALE, make())
    assert found == {
        "changes": [None, {}, {"cash": [100, 94], "stock/left": [10, 8]}, {}, None],
        "reasons": [{"name": "left", "value": 8}],
    }


def test_details_are_changes_of_each_op_and_not_since_the_start(make: Make) -> None:
    buy = call("buy", {"count": 2})
    found = details(Probe((reset("buy 1"), buy, buy, reset("buy 1"), buy)), make())
    assert [change and change["stock/left"] for change in found["changes"]] == [None, [10, 8], [8, 6], None, [10, 8]]


def test_details_name_the_session_of_each_change(make: Make) -> None:
    buy = call("buy", {"count": 1})
    ops = (reset("buy 1"), reset("buy 1", on="b"), buy.moved("b"), Op("together", lanes=((buy,), (buy.moved("b"),))))
    found = details(Probe(ops), make())["changes"]
    assert found[2] == {"cash": [100, 97], "stock/left": [10, 9]}
    assert found[3]["a: stock/left"] == [10, 9]
    assert found[3]["b: stock/left"] == [9, 8]


def test_details_are_empty_without_state_and_reasons(make: Make) -> None:
    ctx = make("Wordless")
    proven = ctx.finding("it is paid", Probe((reset("buy 0"), score())), marks=("score",))
    assert proven is not None
    assert detailed([proven], ctx) == [proven]
    broken = Probe((reset("buy 0"), call("exit"), call("stock")))
    assert details(broken, make()) == {"changes": [None, None, None], "reasons": None}
    assert details(STALE, make(until=time.monotonic() - 1)) == {}


def test_details_are_given_to_proven_findings_only(make: Make) -> None:
    ctx = make()
    probe = Probe((reset("buy 1"), call("buy", {"count": 3}), state()))
    one = ctx.finding("it is so", probe, marks=("state",))
    assert isinstance(one, Finding)
    likely = ctx.finding("it may be so", probe, marks=("state",), at_most="likely")
    assert likely is not None
    found = detailed([one, likely], ctx)
    assert found[0].details["changes"][1] == {"cash": [100, 91], "stock/left": [10, 7]}
    assert found[1].details == {}


@pytest.mark.slow
def test_probe_limits_shrink_when_most_probes_hang_except_in_fresh_processes(path: Path) -> None:
    pool = WorkerPool(Subject(f"{path}:Shop"))
    hangs = Probe((reset("buy 0"), call("sleep")))
    try:
        died = [pool.play(hangs, 0.9).died for _ in range(4)]
        fine = [pool.play(Probe((reset("buy 0"), call("stock"))), 9.0).died for _ in range(5)]
        died += [pool.play(hangs, 0.9).died, pool.fresh([hangs], 0.9)[0].died]
    finally:
        pool.close()
    assert fine == [""] * 5
    assert [words.rpartition(" after ")[2] for words in died] == ["0.9 s", "0.9 s", "0.5 s", "0.5 s", "0.9 s", "0.9 s"]
