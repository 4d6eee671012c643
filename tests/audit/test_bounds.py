from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintain.audit.facts.bounds import at_most, bounds

COUNTS = st.integers(0, 120).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def exact(k: int, n: int, rate: float) -> float:
    return math.fsum(math.comb(n, i) * rate**i * (1 - rate) ** (n - i) for i in range(k + 1))


def test_59_sound_episodes_certify_less_than_five_percent_and_58_do_not() -> None:
    assert bounds(0, 59, one_sided=True)[1] < 0.05 < bounds(0, 58, one_sided=True)[1]


def test_ten_of_two_hundred_decide_nothing() -> None:
    low, high = bounds(10, 200)
    assert (low, high) == pytest.approx((0.0242, 0.0900), abs=5e-5)


@pytest.mark.parametrize(
    ("failures", "n", "confidence", "low", "high"),
    [
        # Closed forms: for none the high bound is 1 - alpha^(1/n), for all the low one alpha^(1/n).
        (0, 10, 0.95, 0.0, 1 - 0.025**0.1),
        (10, 10, 0.95, 0.025**0.1, 1.0),
        (0, 1, 0.9, 0.0, 0.95),
        # Clopper and Pearson's own charts, and the beta quantiles that statistical tables give.
        (5, 10, 0.95, 0.1871, 0.8129),
        (1, 20, 0.95, 0.0013, 0.2487),
    ],
)
def test_bounds_match_published_values(failures: int, n: int, confidence: float, low: float, high: float) -> None:
    assert bounds(failures, n, confidence) == pytest.approx((low, high), abs=1e-4)


def test_large_counts_stay_finite_and_narrow() -> None:
    low, high = bounds(5_000, 100_000)
    assert 0.0486 < low < 0.05 < high < 0.0514


def test_bounds_are_zero_and_one_without_trials() -> None:
    assert bounds(0, 0) == (0.0, 1.0)


@given(COUNTS, st.floats(0.001, 0.999))
def test_the_tail_is_the_sum_of_its_terms(counts: tuple[int, int], rate: float) -> None:
    assert at_most(*counts, rate) == pytest.approx(exact(*counts, rate), rel=1e-9, abs=1e-12)


@given(COUNTS, st.sampled_from([0.5, 0.8, 0.95, 0.999]))
def test_a_bound_is_where_the_tail_has_the_error_that_is_allowed(counts: tuple[int, int], confidence: float) -> None:
    k, n = counts
    low, high = bounds(k, n, confidence)
    assert 0 <= low <= (k / n if n else 1) + 1e-12
    assert (k / n if n else 0) - 1e-12 <= high <= 1
    error = (1 - confidence) / 2
    if k < n:
        assert exact(k, n, high) == pytest.approx(error, rel=1e-6)
    if k:
        assert 1 - exact(k - 1, n, low) == pytest.approx(error, rel=1e-6)


@given(COUNTS)
def test_one_sided_bounds_are_those_of_a_wider_confidence(counts: tuple[int, int]) -> None:
    assert bounds(*counts, 0.95, one_sided=True) == pytest.approx(bounds(*counts, 0.9))


@given(COUNTS)
def test_failures_and_successes_mirror_each_other(counts: tuple[int, int]) -> None:
    k, n = counts
    low, high = bounds(k, n)
    assert bounds(n - k, n) == pytest.approx((1 - high, 1 - low), abs=1e-12)


@pytest.mark.parametrize(("failures", "n"), [(-1, 3), (4, 3), (0, -1)])
def test_impossible_counts_are_refused(failures: int, n: int) -> None:
    with pytest.raises(ValueError, match="failures must be from 0 to n"):
        bounds(failures, n)


@pytest.mark.parametrize("confidence", [0, 1, -1, 1.5, math.nan])
def test_a_confidence_is_between_0_and_1(confidence: float) -> None:
    with pytest.raises(ValueError, match="confidence"):
        bounds(0, 3, confidence)
