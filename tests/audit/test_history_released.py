"""Historical pairs of two published versions, which live in one process."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.audit.history import installed
from bench.audit.history.play import Factory, cases, factory, named, play, solved


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, installed.Release]:
    """Makes two releases of a package whose top module cannot be imported, as if they were installed."""
    monkeypatch.setenv("QUINTAIN_CACHE", str(tmp_path))
    for version in ("1", "2"):
        package = tmp_path / "history" / f"quintain_toy-{version}-{sys.implementation.cache_tag}" / "quintain_toy"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("import a_package_that_nobody_has\n")
        (package / "base.py").write_text(f"VERSION = {version}\n")
        (package / "game.py").write_text("from .base import VERSION\n")
    tops = ("quintain_toy",)
    return {version: installed.Release(f"quintain_toy=={version}", tops, shells=tops) for version in ("1", "2")}


def test_two_releases_live_side_by_side(toys: dict[str, installed.Release]) -> None:
    before = list(sys.path)
    loaded = [installed.load(toys[version], "quintain_toy.game").VERSION for version in ("1", "2", "1")]
    assert loaded == [1, 2, 1]
    assert installed.load(toys["1"], "quintain_toy.base").VERSION == 1
    assert not [name for name in sys.modules if name.startswith("quintain_toy")]
    assert sys.path == before


def test_a_package_that_cannot_be_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUINTAIN_CACHE", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(installed.Impossible, match=r"quintain_toy==9 cannot be installed: .*quintain_toy==9"):
        installed.install("quintain_toy==9")
    assert list((tmp_path / "history").iterdir()) == []


def test_slow_values_are_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUINTAIN_CACHE", str(tmp_path))
    made = iter([{"number": 1}])
    assert [installed.kept("numbers", lambda: next(made)) for _ in range(2)] == [{"number": 1}] * 2


Released = Callable[[str], tuple[Factory, Factory]]


@pytest.fixture
def released() -> Released:
    def make(start: str) -> tuple[Factory, Factory]:
        pair = named(start)
        return factory(pair.before), factory(pair.after)

    try:
        installed.install_all()
    except installed.Impossible as reason:
        pytest.skip(str(reason))
    return make


def submit(make: Factory, task: str, answer: str) -> float:
    return play(make(), task, ["submit", {"answer": answer}])


@pytest.mark.slow
def test_cartpole_counts_on(released: Released) -> None:
    def ends(make: Factory) -> list[int]:
        subject = make()
        lengths = []
        for _ in range(2):
            subject.reset("balance", 3)
            answers = [subject.call("push", {"direction": step % 2}) for step in range(12)]
            lengths.append(sum("error" not in answer for answer in answers))
        return lengths

    before, after = released("gymnasium-cartpole")
    assert ends(before) == [12, 8]
    assert ends(after) == [12, 12]


@pytest.mark.slow
def test_a_long_answer_around_the_word_is_paid_fivefold(released: Released) -> None:
    before, after = released("reasoning-gym-bf")
    word = before().oracle("0")[0][1]["answer"]
    assert submit(before, "0", word + " perhaps" * 20) > 5
    assert submit(after, "0", word + " perhaps" * 20) < 0.1


@pytest.mark.slow
def test_the_target_itself_is_paid(released: Released) -> None:
    before, after = released("reasoning-gym-countdown")
    target = str(before().entries[0]["metadata"]["target"])
    assert submit(before, "0", target) == 1.0
    assert target == str(after().entries[0]["metadata"]["target"])
    assert submit(after, "0", target) < 0.1


@pytest.mark.slow
def test_a_matrix_is_solvable_only_after_the_fix(released: Released) -> None:
    before, after = released("reasoning-gym-pool")
    assert {solved(before(), task) for task in before().tasks()} == {0.0}
    assert {solved(after(), task) for task in after().tasks()} == {1.0}


@pytest.mark.slow
def test_an_answer_that_is_not_json_breaks_the_old_scorer(released: Released) -> None:
    before, after = released("reasoning-gym-graph")
    with pytest.raises(json.JSONDecodeError):
        submit(before, "0", "green")
    assert submit(after, "0", "green") == 0.0


@pytest.mark.slow
def test_zeros_at_the_end_matter(released: Released) -> None:
    before, after = released("reasoning-gym-power")
    task = next(task for task in before().tasks() if before().oracle(task)[0][1]["answer"] == "1.0")
    assert [submit(before, task, spelled) for spelled in ("1.0", "1", "1.00")] == [1.0, 0.01, 0.01]
    assert [submit(after, task, spelled) for spelled in ("1.0", "1", "1.00")] == [1.0, 1.0, 1.0]


@pytest.mark.slow
def test_half_of_the_puzzles_are_impossible(released: Released) -> None:
    def impossible(make: Factory) -> int:
        subject = make()
        return sum(subject.state()["impossible"] for task in subject.tasks() if subject.reset(task, 1))

    before, after = released("reasoning-gym-knight")
    assert [impossible(before), impossible(after)] == [23, 7]  # of 40; 20 % are declared


@pytest.mark.slow
def test_only_the_stored_solution_is_paid(released: Released) -> None:
    before, after = released("reasoning-gym-cryptarithm")
    rows = cases(named("reasoning-gym-cryptarithm"))
    others = [row for row in rows if row["expected"] == 1.0 and row["answer"] != row["gold"]["answer"]]
    assert len(others) >= 5
    assert all(before(row["answer"], row["gold"]) < 0.6 for row in others)
    assert all(after(row["answer"], row["gold"]) == row["expected"] for row in rows)


@pytest.mark.slow
def test_another_thread_finds_everything_wrong(released: Released) -> None:
    rows = cases(named("math-verify"))

    def scores(score: Factory) -> list[float]:
        return [score(row["answer"], row["gold"]) for row in rows]

    def elsewhere(score: Factory) -> list[float]:
        found: list[float] = []
        thread = threading.Thread(target=lambda: found.extend(scores(score)))
        thread.start()
        thread.join()
        return found

    before, after = released("math-verify")
    expected = [row["expected"] for row in rows]
    assert elsewhere(before) == [0.0] * len(rows)
    assert elsewhere(after) == expected
    if threading.current_thread() is threading.main_thread():
        assert scores(before) == expected
