"""Delta debugging: the minimised probe still shows the claim and has no superfluous part."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from quintain.audit.kernel.context import smaller
from quintain.audit.kernel.probe import Op, Probe, call, reset, score

NAMES = "abcdef"
CALLS = st.builds(call, st.sampled_from(NAMES), st.dictionaries(st.sampled_from("xyz"), st.integers(0, 3), max_size=3))
BODIES = st.lists(CALLS, max_size=12)


def probe(body: list[Op]) -> Probe:
    return Probe((reset("a"), *body, score()))


@given(BODIES, st.data())
def test_a_minimised_probe_still_holds_and_has_no_superfluous_op(body: list[Op], data: st.DataObject) -> None:
    """The claim needs some of the calls, in their order."""
    wanted = [op.name for op in body if data.draw(st.booleans())]

    def holds(candidate: Probe) -> bool:
        left = iter(op.name for op in candidate.ops if op.do == "call")
        return all(name in left for name in wanted)

    found = smaller(probe(body), holds, 10_000)
    assert holds(found)
    assert [op.name for op in found.ops if op.do == "call"] == wanted
    assert [op.do for op in found.ops if op.do != "call"] == ["reset", "score"]
    removable = [place for place, op in enumerate(found.ops) if op.do == "call"]
    assert not any(holds(found.without([place])) for place in removable)
    assert all(op.value == {} for op in found.ops if op.do == "call")


@given(BODIES.filter(bool), st.data())
def test_minimised_calls_have_no_superfluous_argument(body: list[Op], data: st.DataObject) -> None:
    wanted = {(op.name, key) for op in body for key in op.value if data.draw(st.booleans())}

    def holds(candidate: Probe) -> bool:
        return wanted <= {(op.name, key) for op in candidate.ops if op.do == "call" for key in op.value}

    found = smaller(probe(body), holds, 10_000)
    assert holds(found)
    left = [(op.name, key) for op in found.ops if op.do == "call" for key in op.value]
    assert sorted(left) == sorted(wanted)


@given(BODIES, st.integers(0, 30))
def test_minimising_plays_at_most_the_allowed_candidates(body: list[Op], most: int) -> None:
    trials = itertools.count()

    def holds(candidate: Probe) -> bool:
        next(trials)
        return len(candidate.ops) % 3 == len(body) % 3

    smaller(probe(body), holds, most)
    assert next(trials) <= most


def test_marked_ops_and_resets_stay() -> None:
    one = Probe((reset("a"), call("f", mark="seen"), call("g"), reset("b"), score()))
    assert smaller(one, lambda candidate: True, 100) == Probe((reset("a"), call("f", mark="seen"), reset("b"), score()))


def test_long_texts_become_short() -> None:
    one = Probe((call("f", {"text": "x" * 100, "n": 1}, mark="seen"),))
    found = smaller(one, lambda candidate: "text" in candidate.ops[0].value, 100)
    assert found.ops[0].value == {"text": "x" * 8}
