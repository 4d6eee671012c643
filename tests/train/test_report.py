"""Training report: its figures agree with second computations, and its log survives crashes."""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quintain as qn
from quintain.errors import TraceError, UsageError
from quintain.record import PersistenceError
from quintain.report import Summary
from quintain.rollouts import Group
from quintain.trace import SOLVED
from quintain.train.curriculum import AdaptiveSampler, LevelSampler, Sampler, StageSampler
from quintain.train.report import Counts, TrainingLog, Update, read_updates, report, scalars
from quintain.train.report.counts import added
from quintain.train.report.curves import t_interval, t_quantile
from tests.train.groups import episode, group
from tests.train.test_curriculum import tasks

SCORES = st.lists(st.one_of(st.none(), st.sampled_from([0.0, 0.25, 1.0])), min_size=1, max_size=4)
GROUPS = st.lists(
    st.builds(
        lambda scores, turns, kept, level: group(scores, turns=turns, kept=kept, level=level),
        SCORES,
        st.integers(1, 4),
        st.booleans(),
        st.sampled_from(["", "easy", "hard"]),
    ),
    max_size=5,
)


def counted(groups: list[Group], *, version: int = 0, stale: bool = False) -> Counts:
    counts = Counts()
    for one in groups:
        counts.add(one, stale=stale, version=version, tag="level")
    return counts


def updates(*batches: list[Group], seed: int = 0, **fields: Any) -> list[Update]:
    facts: dict[str, Any] = {"seed": seed, "time": 0.0, "wall_s": 1.0, "scores": (0.0, 1.0), **fields}
    return [Update(step=n, version=n, counts=counted(groups), **facts) for n, groups in enumerate(batches)]


@given(GROUPS)
def test_figures_agree_with_the_summary_of_a_run(groups: list[Group]) -> None:
    summary = Summary()
    for one in groups:
        summary.add(one.rollouts, one.earlier, kept=one.kept)
    found = report({"a": updates(groups)})
    whole = found.counts.whole
    assert (whole.episodes, whole.scored, whole.turns) == (summary.all.episodes, summary.all.scored, summary.turns)
    assert found.mean == pytest.approx(summary.all.mean)
    assert found.bounds == pytest.approx(summary.interval)
    assert (found.invalid_short.rate, found.invalid_long.rate) == summary.failure_by_length
    assert found.counts.failures == {part: dict(kinds) for part, kinds in summary.failures.items()}
    assert found.counts.seconds == {name: value for name, value in summary.seconds.items() if groups}
    assert found.counts.parts.get("dropped", Counts().whole).groups == summary.dropped


@given(GROUPS)
def test_figures_agree_with_the_statistics_module(groups: list[Group]) -> None:
    scores = [one.trace.score for each in groups for one in each.rollouts if one.trace.score is not None]
    whole = counted(groups).whole
    assert whole.mean == pytest.approx(statistics.fmean(scores) if scores else None)
    assert whole.solved == sum(score >= SOLVED for score in scores)
    if len(scores) > 1:
        variance = (whole.squares - whole.total**2 / whole.scored) / (whole.scored - 1)
        assert variance == pytest.approx(statistics.variance(scores))


@given(st.lists(GROUPS, max_size=3))
def test_counts_of_parts_add_up_to_the_counts_of_the_whole(parts: list[list[Group]]) -> None:
    whole = counted([one for groups in parts for one in groups])
    assert added(Counts(), *map(counted, parts)) == whole
    assert msgspec.json.decode(msgspec.json.encode(whole), type=Counts) == whole


def test_sum_leaves_its_parts_unchanged() -> None:
    one = counted([group([1.0])])
    added(one, one)
    assert one == counted([group([1.0])])


def test_groups_are_counted_by_their_use() -> None:
    retried = group([1.0, 1.0], earlier=[episode(None, turns=3), episode(1.0, turns=3)] * 2)
    counts = counted([retried, group([None, 0.0], kept=False)])
    stale = counted([group([1.0, 1.0], turns=5), group([None, 1.0], kept=False)], stale=True)
    found = {name: (sums.groups, sums.episodes, sums.scored, sums.turns) for name, sums in counts.parts.items()}
    assert found == {"trained": (1, 2, 2, 2), "dropped": (3, 6, 3, 14)}
    assert {name: sums.turns for name, sums in stale.parts.items()} == {"stale": 10, "dropped": 2}
    assert stale.lags == {}


def test_lag_is_counted_by_token_of_trained_valid_episodes() -> None:
    mixed = episode(1.0, versions=[(0, 3), (4, 5)])
    old = episode(0.0, versions=[(0, 1)], turns=2)
    failed = episode(None, versions=[(0, 2)])
    unknown = episode(1.0)
    one = Group(index=0, task="t", rollouts=(mixed, old, failed, unknown), kept=True)
    counts = counted([one], version=5)
    assert counts.lags == {2: 4, 0: 6, 4: 20}
    assert counts.unversioned == 10
    (update,) = updates([])
    numbers = scalars(msgspec.structs.replace(update, counts=counts))
    assert (numbers["lag/min"], numbers["lag/max"]) == (0, 4)
    assert numbers["lag/mean"] == pytest.approx(statistics.fmean([2] * 4 + [0] * 6 + [4] * 20))


def test_lag_agrees_with_the_rows_of_the_trainer() -> None:
    one = group([1.0, 0.0, 1.0], turns=3, versions=[(0, 2), (7, 4)])
    expected = Counter[int]()
    for row in qn.trajectories(one.traces):
        version = dict(row.versions)
        now = None
        for token, drawn in enumerate(row.mask):
            now = version.get(token, now)
            if drawn:
                assert now is not None
                expected[6 - now] += 1
    assert counted([one], version=6).lags == expected


def test_token_newer_than_the_update_is_refused(tmp_path: Path) -> None:
    with TrainingLog(tmp_path) as log, pytest.raises(UsageError, match=r"version 3, but the update starts from .* 2"):
        log.update([group([1.0], versions=[(0, 3)])], step=2)
    assert read_updates(tmp_path) == []


def test_breaks_are_the_rows_beyond_the_first() -> None:
    one = Group(
        index=0,
        task="t",
        rollouts=(episode(1.0, turns=3, branches=[0, 1, 1]), episode(0.0, turns=2)),
        kept=True,
    )
    assert counted([one]).whole.breaks == len(qn.trajectories(one.traces)) - 2 == 1
    (update,) = updates([one])
    numbers = scalars(update)
    assert (numbers["episode/breaks"], numbers["episode/turns"], numbers["episode/tokens"]) == (0.5, 2.5, 25)


def test_groups_with_a_gradient_and_their_success_are_counted() -> None:
    counts = counted([group([1.0, 0.0]), group([1.0, 1.0]), group([0.5, 0.5]), group([1.0, None, 0.0, 0.0])])
    assert counts.mixed == 2
    assert counts.success == {5: 1, 10: 1, 0: 1, 3: 1}


def test_rewards_are_by_level_and_name_of_valid_episodes() -> None:
    counts = counted([group([1.0, None], turns=2), group([0.0], reward="a/b")])
    assert {name: (sums.count, sums.total) for name, sums in counts.rewards["turn"].items()} == {
        "polite": (2, 0.5),
        "a/b": (1, 0.25),
    }


def test_log_is_read_as_it_was_written(tmp_path: Path) -> None:
    with TrainingLog(tmp_path / "new", seed=3) as log:
        written = [
            log.update([group([1.0, None])], step=0, metrics={"loss": 0.5}),
            log.update([], step=1),
        ]
    assert read_updates(tmp_path / "new") == written
    assert written[0].seed == 3
    assert "score/mean" not in scalars(written[1])
    assert scalars(written[0])["metrics/loss"] == 0.5


def test_run_without_invalid_episodes_has_a_closed_interval(tmp_path: Path) -> None:
    with TrainingLog(tmp_path) as log:
        log.update([group([1.0, 0.0])], step=0)
    found = report({"a": read_updates(tmp_path)})
    assert found.bounds == (0.5, 0.5)
    assert (found.invalid.failed, found.counts.failures, found.warnings) == (0, {}, [])


def test_scores_outside_the_range_widen_it(tmp_path: Path) -> None:
    with TrainingLog(tmp_path, scores=(-1.0, 1.0)) as log:
        log.update([group([3.0, None])], step=0)
        assert log.update([group([0.0, None])], step=1).scores == (-1.0, 3.0)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_metric_that_is_not_finite_names_its_step(tmp_path: Path, value: float) -> None:
    with TrainingLog(tmp_path) as log:
        log.update([], step=6, metrics={"loss": 1.0})
        with pytest.raises(UsageError, match=f"step 7: metric 'loss' is {value}"):
            log.update([], step=7, metrics={"loss": value})
    assert [update.step for update in read_updates(tmp_path)] == [6]


def test_torn_last_line_is_cut_and_the_log_goes_on(tmp_path: Path) -> None:
    with TrainingLog(tmp_path) as log:
        log.update([], step=0)
    path = tmp_path / "training.jsonl"
    path.write_bytes(path.read_bytes() + b'{"step":1,"ver')
    assert [update.step for update in read_updates(tmp_path)] == [0]
    with TrainingLog(tmp_path) as log:
        log.update([], step=1)
    assert [update.step for update in read_updates(tmp_path)] == [0, 1]
    assert path.read_bytes().count(b"\n") == 2


def test_damaged_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "training.jsonl").write_bytes(b"{}\n")
    with pytest.raises(TraceError, match=r"training.jsonl, line 1 is not an update"):
        read_updates(tmp_path)
    with pytest.raises(TraceError):
        TrainingLog(tmp_path)


def test_folder_without_a_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected the folder of a TrainingLog"):
        read_updates(tmp_path)


def test_step_that_is_logged_again_replaces_later_ones(tmp_path: Path) -> None:
    for steps in ([0, 1, 2, 3], [2, 3, 4]):
        with TrainingLog(tmp_path) as log:
            for step in steps:
                log.update([], step=step, metrics={"start": steps[0]})
    found = [(update.step, update.metrics["start"]) for update in read_updates(tmp_path)]
    assert found == [(0, 0.0), (1, 0.0), (2, 2.0), (3, 2.0), (4, 2.0)]


def test_second_writer_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    with TrainingLog(tmp_path):
        with pytest.raises(UsageError, match="another process is writing"):
            TrainingLog(tmp_path)
        program = f"from quintain.train.report import TrainingLog; TrainingLog({str(tmp_path)!r})"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert "another process is writing" in done.stderr
    TrainingLog(tmp_path).close()


def test_log_of_another_seed_is_refused_and_unlocked(tmp_path: Path) -> None:
    with TrainingLog(tmp_path, seed=1) as log:
        log.update([], step=0)
    with pytest.raises(UsageError, match="is of seed 1, got 2"):
        TrainingLog(tmp_path, seed=2)
    TrainingLog(tmp_path, seed=1).close()


def test_negative_step_is_refused(tmp_path: Path) -> None:
    with TrainingLog(tmp_path) as log, pytest.raises(UsageError, match="step must be >= 0, got -1"):
        log.update([], step=-1)


def test_full_disk_is_reported_and_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write

    def partly(file: int, data: bytes) -> int:
        if len(data) < 50:
            raise OSError(28, "No space left on device")
        return real(file, data[:40])

    with TrainingLog(tmp_path) as log:
        log.update([], step=0)
        before = log.path.read_bytes()
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", partly)
            with pytest.raises(PersistenceError, match="No space left on device"):
                log.update([], step=1)
        assert log.path.read_bytes() == before
        log.update([], step=1)
    assert [update.step for update in read_updates(tmp_path)] == [0, 1]


def test_weights_of_an_adaptive_sampler_are_in_the_log(tmp_path: Path) -> None:
    sampler = AdaptiveSampler(tasks(2_500), group=4)
    for _ in range(50):
        sampler.observe(msgspec.structs.replace(group([0.0] * 4), task="t0"))
    with TrainingLog(tmp_path) as log:
        picture = log.update([], step=0, sampler=sampler).sampler
        assert picture is not None
        assert sum(picture.weights) == math.ceil(2_500 / 3)
        assert picture.weights[0] == 1
        assert (picture.unsolved, picture.stage) == (1, None)
        stages = StageSampler([Sampler(tasks(2)), sampler], until=0.5, window=1)
        levels = LevelSampler(tasks(3), {"0": 1.0}, level=lambda task: task.tags["level"])
        found = [log.update([], step=n, sampler=one).sampler for n, one in enumerate((stages, levels), 1)]
    assert [one and (one.weights, one.unsolved, one.stage) for one in found] == [((), None, 0), ((), None, None)]
    assert report({"a": read_updates(tmp_path)[:1]}).weights == list(picture.weights)


def test_state_of_the_sampler_is_kept_beside_the_log(tmp_path: Path) -> None:
    sampler = AdaptiveSampler(tasks(20), group=4)
    with TrainingLog(tmp_path) as log:
        for step in range(3):
            sampler.observe(msgspec.structs.replace(group([1.0, 0.0]), task=sampler.draw().task.id))
            log.update([], step=step, sampler=sampler)
            again = AdaptiveSampler(tasks(20), group=4).load((tmp_path / "sampler.json").read_bytes())
            assert again.save() == sampler.save()
        (tmp_path / "sampler.new").mkdir()
        with pytest.raises(PersistenceError, match=r"sampler\.json"):
            log.update([], step=3, sampler=sampler)


@pytest.mark.parametrize(
    ("degrees", "value"),
    # Published tables of Student's t, two-sided 5 %.
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (9, 2.262), (10, 2.228), (30, 2.042), (120, 1.980)],
)
def test_t_quantile_agrees_with_published_tables(degrees: int, value: float) -> None:
    assert t_quantile(degrees) == pytest.approx(value, abs=6e-4)


def test_t_interval_holds_the_true_mean_in_19_of_20_samples() -> None:
    normal = statistics.NormalDist(0.3, 0.1)
    held = 0
    for seed in range(2_000):
        low, high = t_interval(normal.samples(3, seed=seed)) or (0.0, 0.0)
        held += low <= 0.3 <= high
    assert held / 2_000 == pytest.approx(0.95, abs=0.015)


def test_curves_have_intervals_over_the_runs() -> None:
    runs = {name: updates([group([score])], [group([1.0])]) for name, score in (("a", 0.25), ("b", 0.0), ("c", 0.5))}
    curve = report(runs | {"d": updates([group([0.25])], seed=1)[:1]}).curves["score/mean"]
    assert curve.steps == [0, 1]
    assert curve.runs == [[0.25, 1.0], [0.0, 1.0], [0.5, 1.0], [0.25, None]]
    assert curve.mean == [0.25, 1.0]
    half = 3.182 * statistics.stdev([0.25, 0.0, 0.5, 0.25]) / 2
    assert curve.low[0] == pytest.approx(0.25 - half, abs=1e-3)
    assert curve.high[0] == pytest.approx(0.25 + half, abs=1e-3)


def test_component_without_failures_at_a_step_has_the_share_0() -> None:
    curves = report({"a": updates([group([1.0, None])], [group([1.0])], [])}).curves
    assert (curves["invalid/S"].steps, curves["invalid/S"].mean) == ([0, 1], [0.5, 0.0])
    assert curves["groups/dropped"].mean == [0.0, 0.0]


def test_one_run_has_no_interval() -> None:
    curve = report({"a": updates([group([1.0])])}).curves["score/mean"]
    assert (curve.low, curve.high) == ([None], [None])


@given(st.integers(1, 50), st.integers(1, 20))
def test_thinned_curves_keep_the_last_step_and_the_mean(steps: int, most: int) -> None:
    run = [msgspec.structs.replace(one, metrics={"n": one.step}) for one in updates(*([[]] * steps))]
    curve = report({"a": run}, most=most).curves["metrics/n"]
    assert len(curve.steps) <= most
    assert curve.steps[-1] == steps - 1
    bounds = zip([-1, *curve.steps], curve.steps, curve.mean, strict=False)
    assert all(mean == pytest.approx(statistics.fmean(range(low + 1, high + 1))) for low, high, mean in bounds)


def test_improvement_is_the_last_tenth_less_the_first() -> None:
    last = [[group([1.0, 0.0])], [group([0.0])]]
    runs = {
        "a": updates([group([0.25, None])], [group([0.75])], *[[group([0.0])]] * 16, *last),
        "b": updates([group([0.0])], [group([1.0, 1.0])], seed=1),
    }
    found = report(runs).improvement
    assert found is not None
    assert (found.first, found.last) == pytest.approx((0.25, 2 / 3))
    assert found.difference == pytest.approx(found.last - found.first)
    assert found.hidden == 1 / 4  # of the first tenth: one of four episodes is invalid
    assert found.interval == pytest.approx(t_interval([1 / 3 - 0.5, 1.0]))


def test_improvement_is_missing_until_every_run_has_two_updates() -> None:
    runs = {"a": updates([group([0.0])], [group([1.0])]), "b": updates([group([0.0])])}
    assert report(runs).improvement is None
    assert report({}).improvement is None


def test_warning_when_failures_hide_more_than_the_improvement() -> None:
    runs = {"a": updates([group([0.25, None, 0.25])], [group([0.5, None, 0.5])])}
    found = report(runs)
    assert found.improvement is not None
    assert found.improvement.hidden == pytest.approx(1 / 3)
    (words,) = found.warnings
    assert words.startswith("the score changed by +0.250, less than what invalid episodes leave open (0.333): repair")


def test_warning_when_the_improvement_may_be_zero() -> None:
    pairs = (("a", 0.25), ("b", 0.0))
    runs = {name: updates([group([0.0])], [group([s])], seed=n) for n, (name, s) in enumerate(pairs)}
    assert [words.partition(":")[0] for words in report(runs).warnings] == ["the change of the score may be 0"]


def test_no_warning_when_the_score_surely_changes() -> None:
    for scores in ((0.0, 1.0), (1.0, 0.0)):
        runs = {str(seed): updates(*([group([score])] for score in scores), seed=seed) for seed in range(2)}
        assert report(runs).warnings == []


def test_warning_when_long_episodes_fail_more_often() -> None:
    batch = [group([1.0] * 30), group([None] * 20 + [1.0] * 10, turns=5)]
    assert "long episodes fail more often: 66.7% of the longer half" in report({"a": updates(batch)}).warnings[0]
    reverse = [group([1.0] * 30, turns=5), group([None] * 20 + [1.0] * 10)]
    assert report({"a": updates(reverse)}).warnings[0].startswith("short episodes fail more often")


def test_warning_when_runs_share_a_seed() -> None:
    runs = {"a": updates([]), "b": updates([]), "c": updates([], seed=1)}
    assert report(runs).warnings == ["2 runs have seed 0, so intervals over runs treat repetitions as independent"]
