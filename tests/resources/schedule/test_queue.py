"""A queue keeps the laws of a resource, and its first row is that of a sorted list."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from quintain.resources.schedule import Queue
from quintain.testing import ResourceContract


class Row(msgspec.Struct, frozen=True):
    due: float
    number: int


Rows = Queue[Row]
Operation = Callable[[Rows], object]


def put(number: int, due: float) -> Operation:
    return lambda queue: queue.__setitem__(str(number), Row(due, number))


def pop(queue: Rows) -> object:
    first = queue.first()
    if first is not None:
        del queue[first.key]
    return first


class TestQueue(ResourceContract):
    declared = Queue[Row]

    def make(self) -> Rows:
        return Queue(Row)

    def operations(self) -> Sequence[Operation]:
        puts = [put(number, due) for number in range(4) for due in (1.0, 2.0, math.inf)]
        removals: list[Operation] = [lambda queue: queue.__delitem__("1"), lambda queue: queue["2"]]
        looks: list[Operation] = [pop, Queue.first, Queue.rows, len, list]
        return [*puts, *removals, *looks]

    @pytest.mark.slow  # The test of a whole schedule in pieces shows it.
    def test_other_processes_give_the_same_digests(self) -> None:
        super().test_other_processes_give_the_same_digests()


class Model(RuleBasedStateMachine):
    """Queues that are forks of one another, each beside a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.pairs: list[tuple[Rows, dict[str, Row]]] = [(Queue(Row), {})]

    def pair(self, which: int) -> tuple[Rows, dict[str, Row]]:
        return self.pairs[which % len(self.pairs)]

    @rule(which=st.integers(0, 5), number=st.integers(0, 12), due=st.sampled_from([1.0, 2.0, 3.5, math.inf]))
    def put(self, which: int, number: int, due: float) -> None:
        queue, model = self.pair(which)
        queue[str(number)] = model[str(number)] = Row(due, number)

    @rule(which=st.integers(0, 5), number=st.integers(0, 12))
    def remove(self, which: int, number: int) -> None:
        queue, model = self.pair(which)
        assert (str(number) in queue) == (str(number) in model)
        if str(number) in model:
            del queue[str(number)], model[str(number)]

    @rule(which=st.integers(0, 5), many=st.integers(1, 200))
    def churn(self, which: int, many: int) -> None:
        """Setting and cancelling for ever does not grow."""
        queue, _ = self.pair(which)
        for number in range(many):
            queue["churn"] = Row(9.0, 1000 + number)
            del queue["churn"]
        assert queue._entries <= 2 * len(queue) + 64

    @rule(which=st.integers(0, 5))
    def fork(self, which: int) -> None:
        queue, model = self.pair(which)
        if len(self.pairs) < 6:
            self.pairs.append((queue.fork(), dict(model)))

    @rule(which=st.integers(0, 5))
    def ship(self, which: int) -> None:
        queue, model = self.pair(which)
        self.pairs[which % len(self.pairs)] = (Queue.load(queue.dump(), Row), model)

    @rule(which=st.integers(0, 5))
    def pop(self, which: int) -> None:
        queue, model = self.pair(which)
        first = queue.first()
        if first is not None:
            del queue[first.key], model[first.key]

    @invariant()
    def equal(self) -> None:
        for queue, model in self.pairs:
            waiting = sorted(model.values(), key=lambda row: (row.due, row.number))
            assert queue.rows() == waiting
            first = queue.first()
            assert (first and first.row) == next((row for row in waiting if row.due < math.inf), None)


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)


def test_row_put_again_with_a_later_number_waits_for_those_before_it() -> None:
    queue: Rows = Queue(Row)
    queue["a"], queue["b"] = Row(1.0, 1), Row(1.0, 2)
    queue["a"] = Row(1.0, 3)
    assert [pop(queue), pop(queue)] == [("b", Row(1.0, 2)), ("a", Row(1.0, 3))]


@given(st.lists(st.integers(0, 50)), st.lists(st.integers(0, 50)))
def test_runs_of_forks_are_merged(one: list[int], two: list[int]) -> None:
    queue: Rows = Queue(Row)
    for number, due in enumerate([*one, *two]):
        queue[str(number)] = Row(float(due), number)
        if number % 3 == 0:
            queue.fork()
    assert len(queue._runs) <= math.log2(len(one) + len(two) + 2) + 1
    order: list[Row] = []
    while (first := queue.first()) is not None:
        order.append(first.row)
        del queue[first.key]
    assert order == sorted(order, key=lambda row: (row.due, row.number))


def test_a_row_that_moved_leaves_no_trace_at_its_old_time() -> None:
    queue: Rows = Queue(Row)
    for number, due in ((1, 1.0), (2, 2.0), (3, 3.0), (2, 4.0)):
        put(number, due)(queue)
    order: list[int] = []
    while (first := queue.first()) is not None:
        order.append(first.row.number)
        del queue[first.key]
    assert order == [1, 3, 2]


def test_a_queue_is_compared_by_its_rows() -> None:
    one, two = Queue(Row), Queue(Row)
    put(1, 5.0)(one)
    assert one != two
    put(1, 9.0)(two)
    put(1, 5.0)(two)
    assert one == two
    assert one != "a queue"
    assert repr(one) == "Queue(1 rows)"
    with pytest.raises(KeyError):
        del one["2"]


def test_load_refuses_bytes_that_are_not_a_queue() -> None:
    queue: Rows = Queue(Row)
    put(1, 5.0)(queue)
    with pytest.raises(msgspec.DecodeError):
        Queue.load(queue.dump()[:-1], Row)
    with pytest.raises(msgspec.DecodeError, match="missing required field `wait`"):
        Queue.load(queue.dump(), Other)


class Other(msgspec.Struct, frozen=True):
    due: float
    number: int
    wait: float
