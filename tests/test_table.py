"""Table against dict: several live forks at once, each beside its own model."""

# pyright: reportPrivateUsage=false
# How layers lie and merge is visible from inside only.

from __future__ import annotations

import copy
import itertools
import math
import os
import subprocess
import sys
import typing
from collections.abc import MutableMapping
from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from quintain import codec
from quintain.layered import LayeredMap
from quintain.table import Change, Table


class Order(msgspec.Struct):
    status: str
    items: list[str] = []
    total: float = 0.0


class Rush(Order):
    hours: int = 1


KEYS = st.sampled_from([f"k{n}" for n in range(8)]) | st.text(max_size=3)
ROWS = st.builds(Order, st.sampled_from(["open", "done"]), st.lists(st.text(max_size=2), max_size=2), st.floats())


def shown(rows: MutableMapping[str, Order]) -> list[tuple[str, bytes]]:
    """Content and order, comparable where a row holds NaN."""
    return [(key, codec.dumps(row)) for key, row in rows.items()]


class Forks(RuleBasedStateMachine):
    """Every table ever made must go on equalling its own dict, whatever happens to its relatives."""

    tables: Bundle[tuple[Table[Order], dict[str, Order]]] = Bundle("tables")

    def __init__(self) -> None:
        super().__init__()
        self.live: list[tuple[Table[Order], dict[str, Order]]] = []

    def adopt(self, table: Table[Order], model: dict[str, Order]) -> tuple[Table[Order], dict[str, Order]]:
        self.live.append((table, model))
        return self.live[-1]

    @initialize(target=tables, rows=st.dictionaries(KEYS, ROWS, max_size=12))
    def begin(self, rows: dict[str, Order]) -> tuple[Table[Order], dict[str, Order]]:
        return self.adopt(Table(Order, rows), dict(rows))

    @rule(pair=tables, key=KEYS, row=ROWS)
    def put(self, pair: tuple[Table[Order], dict[str, Order]], key: str, row: Order) -> None:
        for rows in pair:
            rows[key] = row

    @rule(pair=tables, key=KEYS)
    def remove(self, pair: tuple[Table[Order], dict[str, Order]], key: str) -> None:
        table, model = pair
        assert (key in table) == (key in model)
        if key in model:
            del table[key], model[key]
        else:
            with pytest.raises(KeyError) as caught:
                del table[key]
            assert caught.value.args == (key,)

    @rule(pair=tables)
    def pop_newest(self, pair: tuple[Table[Order], dict[str, Order]]) -> None:
        table, model = pair
        if model:
            (key, row), (wanted, expected) = table.popitem(), model.popitem()
            assert (key, codec.dumps(row)) == (wanted, codec.dumps(expected))

    @rule(pair=tables)
    def empty(self, pair: tuple[Table[Order], dict[str, Order]]) -> None:
        for rows in pair:
            rows.clear()

    @rule(target=tables, pair=tables)
    def fork(self, pair: tuple[Table[Order], dict[str, Order]]) -> tuple[Table[Order], dict[str, Order]]:
        table, model = pair
        twin = table.fork()
        assert twin == table
        assert twin.digest() == table.digest()
        assert table.diff(twin) == []
        return self.adopt(twin, dict(model))

    @rule(target=tables, pair=consumes(tables))
    def ship(self, pair: tuple[Table[Order], dict[str, Order]]) -> Any:
        table, model = pair
        shipped = Table[Order].load(table.dump(), Order)
        assert shipped.digest() == table.digest()
        assert shipped.dump() == table.dump()
        return multiple(pair, self.adopt(shipped, dict(model)))

    @rule(one=tables, two=tables)
    def compare(self, one: tuple[Table[Order], dict[str, Order]], two: tuple[Table[Order], dict[str, Order]]) -> None:
        same = shown(one[1]) == shown(two[1])
        assert (one[0] == two[0]) == (one[0].digest() == two[0].digest()) == (one[0].dump() == two[0].dump()) == same
        changes = one[0].diff(two[0])
        assert [change.key for change in changes] == sorted(
            key for key in one[1].keys() | two[1].keys() if _bytes(one[1], key) != _bytes(two[1], key)
        )
        for change in changes:
            assert codec.dumps([change.before, change.after]) == codec.dumps(
                [one[1].get(change.key), two[1].get(change.key)]
            )

    @invariant()
    def all_agree(self) -> None:
        for table, model in self.live:
            assert shown(table) == shown(model)
            assert len(table) == len(model)

    @invariant()
    def layers_stay_few(self) -> None:
        for table, _ in self.live:
            sizes = [len(layer) for layer in table._rows.layers]
            assert all(old > 2 * new for new, old in itertools.pairwise(sizes))


def _bytes(rows: dict[str, Order], key: str) -> bytes | None:
    return codec.dumps(rows[key]) if key in rows else None


Forks.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestForks = Forks.TestCase


@pytest.fixture
def orders() -> Table[Order]:
    return Table(Order, {f"#W{n}": Order("open", [str(n)]) for n in range(4)})


def test_a_row_is_a_private_copy_until_it_is_assigned(orders: Table[Order]) -> None:
    order = orders["#W1"]
    order.items.append("more")
    assert orders["#W1"].items == ["1"]
    orders["#W1"] = order
    order.items.clear()
    assert orders["#W1"].items == ["1", "more"]


def test_order_is_that_of_dict(orders: Table[Order]) -> None:
    orders["#W0"] = Order("done")
    row = orders.pop("#W1")
    orders["#W1"] = row
    assert list(orders) == ["#W0", "#W2", "#W3", "#W1"]
    assert [row.status for row in orders.values()] == ["done", "open", "open", "open"]


def test_rows_of_pairs_and_of_plain_types() -> None:
    assert dict(Table(int, [("a", 1), ("b", 2), ("a", 3)])) == {"a": 3, "b": 2}
    assert Table(dict[str, float], {"a": {"x": math.inf}})["a"] == {"x": math.inf}
    assert math.isnan(Table(float, {"a": math.nan})["a"])
    assert Table(list[Any], {"a": [None, {"b": b"c"}]})["a"] == [None, {"b": b"c"}]


def test_order_counts_in_equality() -> None:
    one, two = Table(int, {"a": 1, "b": 2}), Table(int, {"b": 2, "a": 1})
    assert one != two
    assert one.digest() != two.digest()
    assert one.diff(two) == []
    assert one != {"a": 1, "b": 2}


def test_the_past_does_not_count(orders: Table[Order]) -> None:
    digest = orders.digest()
    orders["new"] = Order("open")
    orders["#W0"] = Order("done")
    assert orders.digest() != digest
    del orders["new"]
    orders["#W0"] = Order("open", ["0"])
    assert orders.digest() == digest


def test_diff_names_what_was_added_removed_and_changed(orders: Table[Order]) -> None:
    twin = orders.fork()
    del twin["#W0"]
    twin["#W2"] = Order("done")
    twin["#X"] = Order("open")
    assert orders.diff(twin) == [
        Change("#W0", Order("open", ["0"]), None),
        Change("#W2", Order("open", ["2"]), Order("done")),
        Change("#X", None, Order("open")),
    ]


def test_missing_keys_are_dicts_errors(orders: Table[Order]) -> None:
    with pytest.raises(KeyError) as caught:
        orders["#W9"]
    assert str(caught.value) == "'#W9'"
    with pytest.raises(KeyError, match="#W9"):
        del orders["#W9"]
    assert orders.get("#W9") is None
    assert typing.cast("str", 5) not in orders
    with pytest.raises(KeyError, match="empty"):
        Table(int).popitem()


def test_wrong_rows_are_refused_where_they_are_written(orders: Table[Order]) -> None:
    digest = orders.digest()
    broken = Order("open")
    broken.total = "much"  # type: ignore[assignment]
    for wrong, message in (
        (Rush("open"), "row 'x': expected Order, got Rush"),
        ({"status": "open"}, "row 'x': expected Order, got dict"),
        (broken, r"row 'x': expected Order, got Order: Expected `float`, got `str` - at `\$.total`"),
    ):
        with pytest.raises(TypeError, match=message):
            orders["x"] = typing.cast("Order", wrong)
    with pytest.raises(TypeError, match="row 'a': expected int, got str"):
        Table(int, typing.cast("dict[str, int]", {"a": "1"}))
    with pytest.raises(TypeError, match="key must be str, got int"):
        orders[typing.cast("str", 5)] = Order("open")
    assert orders.digest() == digest


def test_torn_dumps_and_rows_of_another_type_are_told(orders: Table[Order]) -> None:
    with pytest.raises(msgspec.DecodeError):
        Table[Order].load(orders.dump()[:-3], Order)
    other = Table[int].load(orders.dump(), int)
    with pytest.raises(msgspec.ValidationError, match="Expected `int`"):
        other["#W0"]
    assert Table[Any].load(orders.dump())["#W0"] == {"status": "open", "items": ["0"], "total": 0.0}


def test_changing_size_while_iterating_is_told(orders: Table[Order]) -> None:
    def add_on_the_way() -> None:
        for key in orders:
            orders[key + "x"] = Order("open")

    def remove_on_the_way() -> None:
        for key in orders:
            del orders[key]

    for act in (add_on_the_way, remove_on_the_way):
        with pytest.raises(RuntimeError, match="changed size"):
            act()
    for key in orders:
        orders[key] = Order("done")
    assert {row.status for row in orders.values()} == {"done"}


def test_copies_are_forks(orders: Table[Order]) -> None:
    for twin in (copy.copy(orders), copy.deepcopy(orders)):
        del twin["#W0"]
    assert "#W0" in orders
    assert repr(orders) == "Table(Order, 4 rows)"


class Counting(dict[str, Any]):
    """A layer that counts what it is asked for."""

    asked = 0

    def get(self, key: str, default: Any = None) -> Any:
        Counting.asked += 1
        return super().get(key, default)

    def keys(self) -> Any:
        raise AssertionError("the base was copied")


@pytest.mark.parametrize("size", [10, 10_000])
def test_a_fork_costs_the_same_whatever_the_size(size: int) -> None:
    table = Table(int, {str(n): n for n in range(size)})
    table["0"] = 7
    base = Counting(table._rows.layers[-1])
    table._rows = LayeredMap(layers=(base,))
    Counting.asked = 0
    twin = table.fork()
    assert Counting.asked == 0
    assert twin._rows.layers[-1] is base
    assert [len(layer) for layer in twin._rows.layers] == [1, size]
    assert table.fork()._rows.layers is twin._rows.layers
    twin["1"] = 8
    Counting.asked = 0
    assert [change.key for change in table.diff(twin)] == ["1"]
    assert Counting.asked <= 4


def test_forking_at_every_change_merges_each_row_log_n_times(monkeypatch: pytest.MonkeyPatch) -> None:
    changes, work = 2_048, 0
    freeze = Table[int]._freeze

    def counted(table: Table[int]) -> None:
        nonlocal work
        old = {id(layer) for layer in table._rows.layers}
        freeze(table)
        work += sum(len(layer) for layer in table._rows.layers if id(layer) not in old)

    monkeypatch.setattr(Table, "_freeze", counted)
    table = Table(int, {str(n): n for n in range(25_000)})
    work = 0
    for n in range(changes):
        table[f"{n * 11}"] = -1
        table = table.fork()
        assert len(table._rows.layers) <= 2 + math.log2(changes)
    assert work <= changes * 2 * math.log2(changes)
    assert sum(1 for row in table.values() if row == -1) == changes


def test_making_and_deleting_for_ever_does_not_grow() -> None:
    table = Table(int, {"a": 1})
    for n in range(1_000):
        table[f"new{n}"] = n
        del table[f"new{n}"]
    assert len(table._top) <= 2


PROGRAM = """
from quintain.table import Table
table = Table(dict[str, float], {name: {"x": 1.5, "y": float("nan")} for name in ("b", "a", "c")})
twin = table.fork()
del twin["b"]
twin["b"] = {"y": 2.0, "x": 0.0}
print(table.digest(), twin.digest(), table.dump().hex(), twin.dump().hex())
"""


def test_digest_and_dump_are_the_same_in_every_process() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4711")
    }
    assert len(outputs) == 1
    digests = outputs.pop().split()[:2]
    assert digests[0] != digests[1]


class World(msgspec.Struct):
    orders: Table[Order]


def test_a_field_of_a_record_is_decoded_with_its_row_type(orders: Table[Order]) -> None:
    def encode(value: Any) -> bytes:
        return typing.cast("bytes", value.dump())

    def decode(wanted: Any, data: Any) -> Any:
        return typing.get_origin(wanted).load(data, *typing.get_args(wanted))

    world = codec.loads(codec.dumps(World(orders), encode), World, decode)
    assert world.orders == orders
    assert world.orders["#W0"] == Order("open", ["0"])


class Price(msgspec.Struct):
    euros: float


def test_a_row_put_back_unchanged_changes_nothing() -> None:
    table = Table(Price, {"lamp": Price(5)})
    before = table.digest()
    table["lamp"] = table["lamp"]
    assert table.digest() == before == Table(Price, {"lamp": Price(5.0)}).digest()
