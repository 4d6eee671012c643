"""Every dial has a type and a range, and says both sides when it is turned too far."""

from __future__ import annotations

import math
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintain import codec
from quintain.config import Config
from quintain.errors import UsageError

NEAR = 1e-9


RANGES: dict[str, tuple[float, float, str]] = (
    dict.fromkeys(("max_turns", "max_calls", "max_tokens", "context_tokens", "max_observation_bytes"), (1, 2**63, "[)"))
    | dict.fromkeys(("max_reply_tokens", "concurrency", "gate_window", "gate_minimum"), (1, 2**63, "[)"))
    | dict.fromkeys(("retries", "group_retries", "noise_budget"), (0, 2**63, "[)"))
    | dict.fromkeys(("model_timeout_s", "tool_timeout_s", "verifier_timeout_s"), (0.0, math.inf, "()"))
    | {"episode_timeout_s": (0.0, math.inf, "()"), "temperature": (0.0, math.inf, "[)")}
    | {"top_p": (0.0, 1.0, "(]"), "gate_rate": (0.0, 1.0, "(]"), "noise_rate": (0.0, 1.0, "[)")}
)
"""Smallest and largest value of each number; a square bracket takes the bound in."""


def edges() -> Iterator[tuple[str, Any, bool]]:
    """(field, value, True if it is allowed) on both sides of every edge."""
    for name, (low, high, closed) in RANGES.items():
        if isinstance(low, int):
            yield from ((name, low - 1, False), (name, low, True), (name, high - 1, True), (name, high, False))
            continue
        for value, is_allowed in (
            (low - NEAR, False),
            (low, closed[0] == "["),
            (low + NEAR, True),
            (min(high, 1e300) * (1 - NEAR), True),
            (high, closed[1] == "]"),
            (high * 1.1, False),
            (math.nan, False),
        ):
            yield name, value, is_allowed


EDGES = list(edges())
TOO_FAR = [edge[:2] for edge in EDGES if not edge[2]]
JUST_RIGHT = [edge[:2] for edge in EDGES if edge[2]]


@pytest.mark.parametrize(("name", "value"), TOO_FAR)
def test_a_value_out_of_range_is_shown_beside_the_range(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=r"^\w+=\S+: Expected `(int|float)` [<>]=? ") as raised:
        Config(**{name: value})
    assert str(raised.value).startswith(f"{name}={value}: ")
    with pytest.raises(UsageError, match=rf"^{name}='\S+': Expected `(int|float)` [<>]=? "):
        Config().override({name: str(value)})


@pytest.mark.parametrize(("name", "value"), JUST_RIGHT)
def test_the_edge_of_a_range_is_as_written(name: str, value: Any) -> None:
    assert getattr(Config(**{name: value}), name) == value
    assert getattr(Config().override({name: str(value)}), name) == value


def test_every_number_has_a_range() -> None:
    words = {"arguments", "noise_weights"}
    assert set(Config.__struct_fields__) == {*RANGES, *words}


@pytest.mark.parametrize("weights", [{}, {"hail": 0.5}, {"stale": 0.0}, {"stale": 1.1}, "some"])
def test_weights_of_faults_are_checked(weights: Any) -> None:
    with pytest.raises(UsageError, match=r"^noise_weights="):
        Config(noise_weights=weights)


def test_weights_of_faults_are_in_the_record_only_if_chosen() -> None:
    assert b"noise_weights" not in codec.dumps(Config())
    chosen = Config(noise_weights={"stale": 0.5})
    assert codec.loads(codec.dumps(chosen), Config) == chosen
    assert Config().override({"noise_weights": "all"}).noise_weights == "all"


def test_every_field_is_documented() -> None:
    assert Config.__doc__
    assert [name for name in Config.__struct_fields__ if f"        {name}: " not in Config.__doc__] == []


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"max_turns": 2.5}, "max_turns=2.5: Expected `int`, got `float`"),
        ({"max_turns": "8"}, "max_turns='8': Expected `int`, got `str`"),
        ({"max_turns": True}, "max_turns=True: Expected `int`, got `bool`"),
        ({"max_turns": None}, "max_turns=None: Expected `int`, got `null`"),
        ({"arguments": "lenien"}, "arguments='lenien': Invalid enum value 'lenien'"),
    ],
)
def test_a_value_of_another_type_is_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as raised:
        Config(**fields)
    assert str(raised.value) == says


def test_an_int_is_the_float_it_stands_for() -> None:
    as_int, as_float = Config(temperature=0, gate_rate=1), Config(temperature=0.0, gate_rate=1.0)
    assert codec.dumps(as_int) == codec.dumps(as_float)
    assert codec.dumps(codec.loads(codec.dumps(as_int), Config)) == codec.dumps(as_float)


VALUES = {
    int: st.integers(1, 10**6),
    float: st.floats(0.01, 0.99),
    int | None: st.none() | st.integers(1, 10**6),
    float | None: st.none() | st.floats(0.01, 0.99),
}
HINTS = typing.get_type_hints(Config)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        name: VALUES.get(kind, st.sampled_from(["strict", "lenient"]))
        for name, kind in typing.get_type_hints(Config).items()
        if name != "noise_weights"
    }
    | {"noise_weights": st.just("all")},
)


@given(FIELDS)
def test_text_from_a_command_line_means_the_value(fields: dict[str, Any]) -> None:
    texts = {name: "none" if value is None else str(value) for name, value in fields.items()}
    assert Config().override(texts) == Config(**fields)


@given(FIELDS, FIELDS)
def test_the_last_override_wins(one: dict[str, Any], two: dict[str, Any]) -> None:
    assert Config(**one).override(two) == Config(**one | two)


@given(FIELDS)
def test_a_configuration_survives_its_record(fields: dict[str, Any]) -> None:
    config = Config(**fields)
    assert codec.loads(codec.dumps(config), Config) == config
    assert msgspec.json.decode(codec.json(config), type=Config) == config


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("soon", "max_turns='soon': Expected `int`, got `str`"),
        ("1.5", "max_turns='1.5': Expected `int`, got `str`"),
        ("true", "max_turns='true': Expected `int`, got `str`"),
        ("none", "max_turns=None: Expected `int`, got `null`"),
        ("", "max_turns='': Expected `int`, got `str`"),
    ],
)
def test_text_that_is_no_number_is_refused(text: str, says: str) -> None:
    with pytest.raises(UsageError) as raised:
        Config().override({"max_turns": text})
    assert str(raised.value) == says


def test_an_unknown_field_is_refused_with_the_nearest_known_one() -> None:
    with pytest.raises(UsageError) as raised:
        Config().override({"max_turn": 8})
    known = ", ".join(Config.__struct_fields__)
    assert str(raised.value) == f"unknown config field 'max_turn'; did you mean 'max_turns'? known: {known}"
    with pytest.raises(UsageError, match="unknown config field 'zzz'; known: max_turns, max_calls"):
        Config().override({"zzz": 8})
    with pytest.raises(TypeError, match="Unexpected keyword argument 'max_turn'"):
        Config(max_turn=8)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def test_a_file_is_read_and_overridden(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('max_turns = 7\ntemperature = 0\ngate_rate = "none"\narguments = "lenient"\n')
    assert Config.load(path) == Config(max_turns=7, temperature=0.0, gate_rate=None, arguments="lenient")
    assert Config.load(str(path), {"max_turns": "9", "gate_rate": "0.5"}).max_turns == 9


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"max_turns = ", "cannot read the configuration"),
        (b"\xff", "cannot read the configuration"),
        (b"max_tuns = 3", "did you mean 'max_turns'"),
        (b"max_turns = 0", "max_turns=0: Expected `int` >= 1"),
        (b"[max_turns]\nx = 1", "Expected `int`, got `object`"),
    ],
)
def test_a_bad_file_is_refused(tmp_path: Path, text: bytes, says: str) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(text)
    with pytest.raises(UsageError, match=says):
        Config.load(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read the configuration '.*nowhere\.toml'"):
        Config.load(tmp_path / "nowhere.toml")
