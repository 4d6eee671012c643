"""Limits, results, and what is read of a program's output, without a sandbox."""

from __future__ import annotations

import asyncio
import os

import msgspec
import pytest

from quintain import codec
from quintain.resources.sandbox import Limits, Policy, Result, Sandbox
from quintain.resources.sandbox.output import Output
from quintain.resources.sandbox.policy import environment


@pytest.mark.parametrize("field", Limits.__struct_fields__)
@pytest.mark.parametrize("value", [0, -1, 2**62])
def test_a_limit_is_above_zero(field: str, value: int) -> None:
    with pytest.raises(ValueError, match=field):
        Limits(**{field: value})


def test_a_policy_knows_its_words() -> None:
    with pytest.raises(msgspec.ValidationError):
        codec.loads(codec.dumps({"require": ["everything"]}), Policy)
    with pytest.raises(msgspec.ValidationError):
        codec.loads(codec.dumps({"sekonds": 1}), Limits)


def test_seconds_have_one_form() -> None:
    one, other = Sandbox(limits=Limits(seconds=20)), Sandbox(limits=Limits(seconds=20.0))
    assert one.digest() == other.digest() == Sandbox.load(one.dump()).digest()
    assert one.digest() != Sandbox(limits=Limits(seconds=21)).digest()
    assert one.digest() != Sandbox(Policy(pool=1), limits=Limits(seconds=20)).digest()


@pytest.mark.parametrize(("status", "signal"), [(0, 0), (1, 0), (127, 0), (128, 0), (137, 9), (143, 15), (255, 0)])
def test_a_signal_is_a_status_above_128(status: int, signal: int) -> None:
    assert Result(status=status).signal == signal


def test_variables_of_a_call_come_before_those_of_the_policy_and_ours() -> None:
    seen = environment(Policy(env={"TZ": "CET", "A": "policy", "B": "policy"}), {"A": "call"})
    assert {name: seen[name] for name in ("TZ", "A", "B", "LC_ALL")} == {
        "TZ": "CET",
        "A": "call",
        "B": "policy",
        "LC_ALL": "C.UTF-8",
    }


def test_no_more_is_held_than_the_limit() -> None:
    async def read() -> None:
        full: list[bool] = []
        output = Output(10, full=lambda: full.append(True))
        out, err = output.ends
        os.write(out, b"123456")
        os.write(err, b"abcdef")
        output.listen()
        while not output.is_cut:
            await asyncio.wait_for(output.arrived(), 20)
        assert full == [True]
        os.write(out, b"more")
        output.drain()
        assert sorted(map(len, output.take())) == [4, 6]
        output.renew()
        output.drain()
        assert output.take() == (b"more", b"")
        output.close()

    asyncio.run(read())
