"""Random numbers come from a stream that can be cut anywhere, the same for everybody."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintain.state import Rng

KEYS = st.binary(max_size=16)


def test_draws_are_golden() -> None:
    rng = Rng(key=b"quintain")
    assert [rng.bits() for _ in range(3)] == [16220979130739996428, 8143522066328564497, 805081852524445730]
    assert rng.random() == 0.4222220315034567
    assert [rng.below(6) for _ in range(10)] == [1, 3, 0, 4, 4, 2, 1, 2, 1, 5]
    assert rng.sample("abcdefgh", 4) == ["g", "c", "h", "a"]
    assert rng.choice("abcdefgh") == "h"
    assert rng.counter == 22


@given(KEYS, st.integers(0, 100), st.integers(0, 20))
def test_a_stream_can_be_cut_anywhere(key: bytes, start: int, length: int) -> None:
    whole = Rng(key)
    drawn = [whole.bits() for _ in range(start + length)]
    rest = Rng(key, start)
    assert [rest.bits() for _ in range(length)] == drawn[start:]


@given(KEYS)
def test_floats_are_in_the_unit_interval(key: bytes) -> None:
    rng = Rng(key)
    assert all(0 <= rng.random() < 1 for _ in range(50))


def test_floats_reach_both_ends_and_have_53_bits() -> None:
    class Fixed(Rng):
        value: int = 0

        def bits(self) -> int:
            return self.value

    assert Fixed(value=0).random() == 0.0
    assert Fixed(value=2**64 - 1).random() == 1 - 2**-53 < 1
    assert Fixed(value=2**63).random() == 0.5


@given(KEYS, st.integers(1, 2**64))
def test_below_stays_below(key: bytes, n: int) -> None:
    rng = Rng(key)
    assert all(0 <= rng.below(n) < n for _ in range(5))


@pytest.mark.parametrize("n", [0, -1, 2**64 + 1])
def test_below_refuses(n: int) -> None:
    with pytest.raises(ValueError, match=rf"n must be in 1\.\.2\*\*64, got {n}"):
        Rng().below(n)


@pytest.mark.parametrize("n", [2, 3, 7])
def test_below_is_even(n: int) -> None:
    rng = Rng(b"even")
    counts = Counter(rng.below(n) for _ in range(n * 1000))
    assert all(abs(count - 1000) < 150 for count in counts.values())


def test_below_draws_again_rather_than_favour_small_numbers() -> None:
    class Scripted(Rng):
        script: list[int] = []

        def bits(self) -> int:
            return self.script.pop(0)

    n = 2**63 + 1  # only one whole copy of [0, n) fits into 64 bits, so nearly half of all draws are turned down
    assert Scripted(script=[2**64 - 1, n, n - 1]).below(n) == n - 1
    assert Scripted(script=[2**64 - 1]).below(2**64) == 2**64 - 1


@given(KEYS, st.lists(st.integers(), max_size=8))
def test_shuffle_is_a_permutation(key: bytes, items: list[int]) -> None:
    shuffled = items[:]
    Rng(key).shuffle(shuffled)
    assert sorted(shuffled) == sorted(items)


def test_every_permutation_comes_up() -> None:
    rng, counts = Rng(b"permutations"), Counter[str]()
    for _ in range(2400):
        items = list("abcd")
        rng.shuffle(items)
        counts["".join(items)] += 1
    assert len(counts) == 24
    assert all(50 < count < 160 for count in counts.values())


@given(KEYS, st.lists(st.integers(), unique=True, max_size=8), st.data())
def test_a_sample_is_of_different_positions(key: bytes, items: list[int], data: st.DataObject) -> None:
    k = data.draw(st.integers(0, len(items)))
    sample = Rng(key).sample(items, k)
    assert len(set(sample)) == k
    assert set(sample) <= set(items)


@pytest.mark.parametrize("k", [3, -1])
def test_a_sample_has_no_other_size(k: int) -> None:
    rng = Rng()
    with pytest.raises(ValueError, match=f"cannot draw {k} of 2 items"):
        rng.sample("ab", k)
    assert rng.counter == 0
