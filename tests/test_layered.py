"""Layered maps against dicts: many live maps at once, each beside its own model."""

from __future__ import annotations

import itertools
import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from quintain.layered import LayeredMap, stack

KEYS = st.integers(0, 40)
Pair = tuple[LayeredMap[int, str], dict[int, str]]


class Forks(RuleBasedStateMachine):
    """Each map that was ever made goes on equalling its own dict, whatever is made from it."""

    maps: Bundle[Pair] = Bundle("maps")

    def __init__(self) -> None:
        super().__init__()
        self.base: dict[int, str] = {}
        self.live: list[Pair] = []

    @initialize(target=maps, base=st.dictionaries(KEYS, st.text(max_size=2), max_size=40))
    def begin(self, base: dict[int, str]) -> Pair:
        self.base = base
        self.live.append((LayeredMap(base), dict(base)))
        return self.live[-1]

    @rule(target=maps, pair=maps, changes=st.dictionaries(KEYS, st.none() | st.text(max_size=2), max_size=6))
    def write(self, pair: Pair, changes: dict[int, str | None]) -> Pair:
        map_, model = pair
        merged = {**model, **changes}
        self.live.append((map_.write(dict(changes)), {key: text for key, text in merged.items() if text is not None}))
        return self.live[-1]

    @rule(target=maps, pair=maps)
    def write_the_base(self, pair: Pair) -> Pair:
        written = pair[0].write({key: self.base.get(key) for key in range(41)})
        assert written.layers == ()
        self.live.append((written, dict(self.base)))
        return self.live[-1]

    @rule(one=maps, two=maps)
    def compare(self, one: Pair, two: Pair) -> None:
        differing = {key for key in range(41) if one[1].get(key) != two[1].get(key)}
        assert differing <= one[0].candidates(two[0]) == two[0].candidates(one[0])
        assert one[0].candidates(one[0]) == set()

    @invariant()
    def the_latest_map_equals_its_dict(self) -> None:
        self.check(*self.live[-1])

    def teardown(self) -> None:
        # Once at the end, because a check of every map after every step is quadratic.
        for map_, model in self.live:
            self.check(map_, model)

    def check(self, map_: LayeredMap[int, str], model: dict[int, str]) -> None:
        assert {key: map_.get(key) for key in range(41)} == {key: model.get(key) for key in range(41)}
        everything = {**self.base, **map_.changes()}
        assert {key: text for key, text in everything.items() if text is not None} == model
        sizes = [len(layer) for layer in map_.layers]
        assert all(older > 2 * newer > 0 for newer, older in itertools.pairwise(sizes))


Forks.TestCase.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
TestForks = Forks.TestCase


class Counted(dict[int, str]):
    """A base that counts how often it is read."""

    reads = 0

    def get(self, key: int, default: Any = None) -> Any:
        self.reads += 1
        return super().get(key, default)

    def keys(self) -> Any:
        raise AssertionError("the base was copied")


def test_changes_are_those_of_all_layers_the_latest_first() -> None:
    map_ = LayeredMap(dict.fromkeys(range(9), "a")).write(dict.fromkeys(range(5), "b")).write({0: "c", 1: None})
    assert len(map_.layers) == 2
    assert map_.changes() == {0: "c", 1: None, 2: "b", 3: "b", 4: "b"}
    assert map_.write({}) is map_


def test_write_costs_the_same_whatever_the_size_of_the_base() -> None:
    base = Counted(dict.fromkeys(range(100000), ""))
    map_ = LayeredMap[int, str](base).write({1: "a"})
    twin = map_.write({2: "b"})
    assert base.reads <= 3
    assert map_.candidates(twin) == {1, 2}


def test_key_is_merged_log_n_times() -> None:
    map_, work, count = LayeredMap[int, str](), 0, 4_096
    for key in range(count):
        old = {id(layer) for layer in map_.layers}
        map_ = map_.write({key: "a"})
        work += sum(len(layer) for layer in map_.layers if id(layer) not in old)
        assert len(map_.layers) <= 1 + math.log2(count)
    assert work <= count * 2 * math.log2(count)


def test_deleted_keys_leave_nothing_in_an_empty_map() -> None:
    map_ = LayeredMap[int, str]()
    for key in range(1_000):
        map_ = map_.write({key: "a"}).write({key: None})
    assert map_.layers == ()


@given(st.lists(st.lists(st.integers(), min_size=1), max_size=12))
def test_stack_merges_any_layers_by_their_size(runs: list[list[int]]) -> None:
    layers: tuple[list[int], ...] = ()
    for run in runs:
        layers = stack(sorted(run), layers, merge=lambda older, newer: sorted(older + newer))
    assert sorted(itertools.chain(*layers)) == sorted(itertools.chain(*runs))
    assert all(len(older) > 2 * len(newer) for newer, older in itertools.pairwise(layers))
    assert all(layer == sorted(layer) for layer in layers)
