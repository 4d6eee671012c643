"""States on the wire as differences from a start state."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from quintain import codec
from quintain.audit.kernel.wire import KEPT, StartStates, packed, unpacked

ROWS = st.dictionaries(st.sampled_from("abc"), st.integers(-9, 9) | st.text(max_size=3), max_size=3)
TABLES = st.dictionaries(st.text(max_size=2), ROWS)
PARTS = st.none() | st.integers(-9, 9) | st.lists(ROWS | st.integers(-9, 9), max_size=4) | TABLES
STATES = st.dictionaries(st.sampled_from(["tickets", "users", "open", "log"]), PARTS)


@st.composite
def changed(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns a start state and a later one, which shares some parts and rows with it."""
    start = draw(STATES)
    later = {name: part for name, part in start.items() if draw(st.booleans())} | draw(STATES)
    for name, part in later.items():
        if isinstance(part, list) and draw(st.booleans()):
            later[name] = [*part[1:], *draw(st.lists(ROWS, max_size=1))]
        elif isinstance(part, dict) and draw(st.booleans()):
            later[name] = dict(list(part.items())[1:]) | draw(TABLES)
    return start, later


@given(changed())
def test_packed_states_unpack_to_what_they_were(states: tuple[dict[str, Any], dict[str, Any]]) -> None:
    start, later = states
    sent = codec.loads(codec.dumps(packed(later, start), canonical=False), dict[str, Any])
    assert unpacked(sent, start) == later
    assert [list(part) for part in unpacked(sent, start).values() if isinstance(part, dict)] == [
        list(part) for part in later.values() if isinstance(part, dict)
    ]


def test_unchanged_rows_are_sent_as_places() -> None:
    start = {"tickets": [{"id": 1}, {"id": 2}], "users": {"u": {"name": "Ada"}}}
    later = {"tickets": [*start["tickets"], {"id": 3}], "users": start["users"]}
    assert packed(later, start) == {"tickets": [[0, 1, {"id": 3}]], "users": []}
    assert unpacked(packed(later, start), start)["users"] is start["users"]


def test_start_states_are_sent_as_their_difference_from_a_known_one() -> None:
    users = {"u": {"name": "Ada"}}
    first, second = {"users": users, "tickets": [{"id": 1}]}, {"users": users, "tickets": [{"id": 2}]}
    starts = StartStates()
    starts.add("t1", first)
    starts.add("t2", second)
    whole = starts.frame("t1", ())
    assert whole is not None
    assert (whole.view, whole.near) == (first, "")
    assert starts.frame("t1", [whole.digest]) is None
    later = starts.frame("t2", [whole.digest])
    assert later is not None
    assert (later.near, later.view) == (whole.digest, {"users": [], "tickets": [[{"id": 2}]]})
    assert unpacked(later.view, first) == second


def test_equal_start_states_have_equal_digests_in_any_worker() -> None:
    digests = set[str]()
    for extra in (0, KEPT + 2):  # The second worker has forgotten its first states.
        starts = StartStates()
        for number in range(extra):
            starts.add(f"e{number}", {"n": number})
        starts.add("t", {"tickets": [{"id": 1}], "open": 3})
        found = starts.find("t")
        assert found is not None
        digests.add(found[1])
        assert (starts.find("e0") is None) == (extra > KEPT or not extra)
    assert len(digests) == 1
