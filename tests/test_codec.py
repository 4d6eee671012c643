"""Equal values have equal bytes, everywhere, and come back as they were."""

from __future__ import annotations

import datetime as dt
import enum
import json
import math
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintain import codec
from quintain.testing.elsewhere import fresh_processes

ANYTHING: Any = Any
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary(max_size=8)
PLAIN = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
FINITE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


class Colour(enum.Enum):
    RED = "red"
    BROKEN = math.nan


class Point(msgspec.Struct):
    x: float
    y: float | None = None


def backwards(value: Any) -> Any:
    """The same value with every dict in the opposite order."""
    if isinstance(value, dict):
        return {key: backwards(item) for key, item in reversed(value.items())}
    return [backwards(item) for item in value] if isinstance(value, list) else value


@given(PLAIN)
def test_encoded_values_decode_to_equal_values(value: Any) -> None:
    for canonical in (True, False):
        again = codec.loads(codec.dumps(value, canonical=canonical), ANYTHING)
        assert codec.dumps(again) == codec.dumps(value)


@given(PLAIN)
def test_the_order_of_a_dict_does_not_count(value: Any) -> None:
    assert codec.dumps(backwards(value)) == codec.dumps(value)


@given(st.dictionaries(st.text(max_size=4) | st.integers(0, 9), st.integers(0, 9)))
def test_the_order_of_a_dict_survives_where_bytes_need_not_be_canonical(value: dict[Any, int]) -> None:
    again = codec.loads(codec.dumps(value, canonical=False), dict[Any, int])
    assert list(again.items()) == list(value.items())


@given(st.sets(st.text(max_size=4)), st.randoms())
def test_the_order_of_a_set_does_not_count(value: set[str], random: Any) -> None:
    shuffled = sorted(value)
    random.shuffle(shuffled)
    assert codec.dumps(set(shuffled)) == codec.dumps(value) == codec.dumps(sorted(value))


def test_nan_and_infinity_survive() -> None:
    again = codec.loads(codec.dumps([math.nan, math.inf, -math.inf]), list[float])
    assert math.isnan(again[0])
    assert again[1:] == [math.inf, -math.inf]


BYTES = "codec.dumps([{'b': {'x', 'y', 'z', 'w'}, 'a': [None, True, 1.5]}, frozenset('quintain'), float('nan')])"


def test_bytes_are_the_same_in_every_process() -> None:
    program = f"from quintain import codec; print({BYTES}.hex(), codec.text({{'b': set('edcba'), 'a': 1}}))"
    outputs = {done.stdout or done.stderr for done in fresh_processes([sys.executable, "-c", program], [1, 2, 3])}
    here = codec.dumps(
        [{"b": {"x", "y", "z", "w"}, "a": [None, True, 1.5]}, frozenset("quintain"), math.nan],
    ).hex()
    assert outputs == {f'{here} {{"a":1,"b":["a","b","c","d","e"]}}\n'}


class Opaque:
    def __init__(self, name: str) -> None:
        self.name = name


@pytest.mark.parametrize("canonical", [True, False])
def test_opaque_objects_go_through_their_handlers(canonical: bool) -> None:
    data = codec.dumps([Opaque("a"), Opaque("b")], lambda one: one.name, canonical=canonical)
    again = codec.loads(data, list[Opaque], lambda declared, name: declared(name))
    assert [one.name for one in again] == ["a", "b"]


def test_an_unknown_object_is_refused() -> None:
    with pytest.raises(TypeError, match="Opaque"):
        codec.dumps([Opaque("a")])


@given(st.binary(max_size=16))
def test_any_bytes_are_decoded_or_refused(data: bytes) -> None:
    try:
        codec.loads(data, list[Point])
    except msgspec.DecodeError:
        return


def test_string_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(msgspec.DecodeError, match="a string is not UTF-8"):
        codec.loads(b"\xa1\xff", str)


def test_a_wrong_type_is_named_with_its_path() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"Expected `float`, got `str` - at `\$\[0\]\.x`"):
        codec.loads(codec.dumps([{"x": "far"}]), list[Point])


@given(st.text())
def test_text_of_a_string_is_the_string(value: str) -> None:
    assert codec.text(value) == value


@given(FINITE)
def test_text_is_json_of_the_same_value(value: Any) -> None:
    assert json.loads(codec.text([value])) == [value]
    assert codec.text([value]) == codec.json([value]).decode()


def is_finite(value: Any) -> bool:
    if isinstance(value, dict | list):
        return all(map(is_finite, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, float) or math.isfinite(value)


@given(PLAIN)
def test_text_refuses_exactly_what_is_not_finite(value: Any) -> None:
    if is_finite(value):
        assert isinstance(codec.text(value), str)
    else:
        with pytest.raises(ValueError, match=r"JSON has no (nan|-?inf)"):
            codec.text(value)


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        [1.0, math.inf],
        (-math.inf,),
        {math.nan},
        frozenset({math.inf}),
        {"a": [{"b": math.nan}]},
        Point(1.0, math.nan),
        [None, Point(math.inf)],
        Colour.BROKEN,
    ],
)
def test_text_refuses_what_json_cannot_say(value: Any) -> None:
    with pytest.raises(ValueError, match="JSON has no"):
        codec.text(value)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "null"),
        ({"b": None, "a": ["null"]}, '{"a":["null"],"b":null}'),
        (Point(1.0), '{"x":1.0,"y":null}'),
        (Colour.RED, '"red"'),
        (dt.date(2026, 1, 2), '"2026-01-02"'),
    ],
)
def test_text_says(value: Any, said: str) -> None:
    assert codec.text(value) == said


def test_digests_are_golden() -> None:
    assert codec.digest(b"") == "cae66941d9efbd404e4d88758ea67670"
    assert codec.digest(codec.dumps({"a": 1})) == codec.digest(b"\x81\xa1a\x01")


def test_threads_may_meet_a_type_for_the_first_time_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a lock the process crashes."""
    often = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for number in range(100):
            parts = [msgspec.defstruct(f"Part{number}{one}", [("x", "int | None", None)]) for one in "abcde"]
            for part in parts:
                monkeypatch.setitem(globals(), part.__name__, part)
            fields = [(part.__name__.lower(), part.__name__) for part in parts]
            whole = msgspec.defstruct(f"Whole{number}", fields, module=__name__)
            data = codec.dumps(whole(*(part() for part in parts)))
            found = _at_once(4, partial(codec.loads, data, whole, _as_it_is))
            assert [type(one) for one in found] == [whole] * 4
    finally:
        sys.setswitchinterval(often)


def _as_it_is(_declared: Any, value: Any) -> Any:
    return value


def _at_once(count: int, work: Callable[[], Any]) -> list[Any]:
    """Returns the results of several threads that start together."""
    ready = threading.Barrier(count)

    def begin(_number: int) -> Any:
        ready.wait(60)
        return work()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(begin, range(count)))
