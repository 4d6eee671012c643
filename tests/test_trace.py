"""A record reads back as it was written, and not at all when one bit of it has changed."""

from __future__ import annotations

import math
import re
import sys
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintain import codec
from quintain.config import Config
from quintain.errors import KINDS, Failure, TraceError
from quintain.testing.elsewhere import fresh_processes
from quintain.trace import (
    SCHEMA,
    End,
    Image,
    Level,
    Message,
    Reply,
    Reward,
    Step,
    Text,
    Tokens,
    ToolCall,
    Trace,
    Turn,
    Usage,
    plain,
)

WORDS = st.text(max_size=6)
COUNTS = st.integers(0, 2**40)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
CONTENTS = WORDS | st.lists(st.builds(Text, WORDS) | st.builds(Image, WORDS, st.binary(max_size=6)), max_size=3).map(
    tuple
)
CALLS = st.builds(ToolCall, WORDS, WORDS, WORDS)
MESSAGES = st.builds(
    Message,
    role=st.sampled_from(["system", "user", "assistant", "tool"]),
    content=CONTENTS,
    calls=st.lists(CALLS, max_size=2).map(tuple),
    call_id=st.none() | WORDS,
    reasoning=WORDS,
)


def tokens(count: int, with_logprobs: bool, versions: list[int]) -> Tokens:
    runs = list(enumerate(versions))[:count] or msgspec.UNSET
    return Tokens(list(range(count)), list(range(count)), [-0.5] * count if with_logprobs else [], runs)


REPLIES = st.builds(
    Reply,
    message=MESSAGES,
    tokens=st.none() | st.builds(tokens, st.integers(0, 3), st.booleans(), st.lists(COUNTS, max_size=2)),
    usage=st.builds(Usage, COUNTS, COUNTS),
    policy_version=st.none() | COUNTS,
)
REWARDS = st.builds(
    Reward,
    name=WORDS,
    level=st.sampled_from(Level),
    raw=st.none() | NUMBERS,
    value=st.none() | NUMBERS,
    weight=NUMBERS,
    turn=st.none() | COUNTS,
    step=st.none() | COUNTS,
    reason=WORDS,
)
TURNS = st.builds(
    Turn,
    index=COUNTS,
    role=WORDS,
    thread=COUNTS,
    branch=COUNTS,
    keep=st.none() | COUNTS,
    added=st.lists(MESSAGES, max_size=2).map(tuple),
    reply=REPLIES,
    steps=st.lists(st.builds(Step, CALLS, CONTENTS, st.booleans(), st.none() | WORDS), max_size=2).map(tuple),
    rewards=st.lists(REWARDS, max_size=2).map(tuple),
    state_digest=WORDS,
)
FAILURES = st.builds(
    Failure,
    component=st.sampled_from(["T", "H", "V", "S", "C", "model"]),
    kind=st.sampled_from(sorted(KINDS)),
    stage=st.sampled_from(["admission", "seed", "agent", "verification", "cleanup"]),
    type=WORDS,
    message=WORDS,
    turn=COUNTS,
    traceback_digest=WORDS,
)
TRACES = st.builds(
    Trace,
    environment=WORDS,
    fingerprint=WORDS,
    tools_digest=WORDS,
    split=WORDS,
    task=WORDS,
    task_digest=WORDS,
    tags=st.dictionaries(WORDS, WORDS, max_size=2),
    seed=COUNTS,
    member=COUNTS,
    attempt=COUNTS,
    agent=WORDS,
    config=st.builds(Config, max_turns=st.integers(1, 600), temperature=st.sampled_from([0, 0.5, 1])),
    turns=st.lists(TURNS, max_size=3),
    end=st.none() | st.sampled_from(End),
    reason=WORDS,
    failure=st.none() | FAILURES,
    criteria=st.lists(WORDS, max_size=2).map(tuple),
    rewards=st.lists(REWARDS, max_size=2),
    score=st.none() | NUMBERS,
)


def blank(**fields: Any) -> Trace:
    names: dict[str, Any] = {
        "environment": "e",
        "fingerprint": "f",
        "tools_digest": "d",
        "task": "t",
        "task_digest": "g",
    }
    return Trace(**names | fields, seed=0, config=Config())


SAMPLE = blank(
    turns=[
        Turn(
            index=0,
            added=(Message("user", (Text("look"), Image("image/png", b"\x89PNG"))),),
            reply=Reply(
                Message("assistant", "ok", (ToolCall("1", "go", '{"to": "é"}'),), reasoning="hm"),
                Tokens([1, 2], [3], [-0.5]),
                Usage(2, 1),
                7,
            ),
            steps=(Step(ToolCall("1", "go", '{"to": "é"}'), "gone", fault="truncated"),),
            rewards=(Reward(name="r", level=Level.STEP, raw=0.1, value=0.1, turn=0, step=0),),
            state_digest="0123",
        )
    ],
    end=End.TERMINATED,
    reason="done",
    score=0.1,
)


# --- on paper


@given(TRACES)
def test_a_trace_reads_back_as_it_was_written(trace: Trace) -> None:
    line = trace.to_json()
    again = Trace.from_json(line)
    assert again == trace
    assert again.to_bytes() == trace.to_bytes()
    assert again.to_json() == line
    assert codec.loads(trace.to_bytes(), Trace) == trace


@given(TRACES)
def test_a_trace_is_one_line(trace: Trace) -> None:
    assert not {b"\n", b"\r"} & {bytes([byte]) for byte in trace.to_json()}


@given(TRACES, TRACES)
def test_bytes_agree_exactly_when_traces_do(one: Trace, two: Trace) -> None:
    assert (one.to_bytes() == two.to_bytes()) == (one == two)


@given(st.data())
def test_a_flipped_byte_is_noticed(data: st.DataObject) -> None:
    line = bytearray(SAMPLE.to_json())
    line[data.draw(st.integers(0, len(line) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(TraceError):
        Trace.from_json(bytes(line))


def test_every_flip_of_one_bit_is_noticed() -> None:
    line = bytearray(SAMPLE.to_json())
    for place in range(len(line)):
        for bit in range(8):
            line[place] ^= 1 << bit
            with pytest.raises(TraceError):
                Trace.from_json(bytes(line))
            line[place] ^= 1 << bit


def test_every_truncation_is_noticed() -> None:
    line = SAMPLE.to_json()
    for length in range(len(line)):
        with pytest.raises(TraceError, match=r"not a trace, or a truncated one"):
            Trace.from_json(line[:length])


@given(st.binary(max_size=64) | st.text().map(str.encode))
def test_anything_else_is_no_trace(line: bytes) -> None:
    with pytest.raises(TraceError):
        Trace.from_json(line)


@pytest.mark.parametrize("line", [b"[" * 100_000, b'{"digest":"","trace":' + b"[" * 100_000])
def test_a_line_of_brackets_is_no_trace(line: bytes) -> None:
    with pytest.raises(TraceError):
        Trace.from_json(line)


WRONG = "a trace of version 1 with a wrong field: "


def signed(body: bytes) -> bytes:
    return b'{"digest":"%s","trace":%s}' % (codec.digest(body).encode(), body)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b'{"version":99}', f"this trace has schema version 99, this program reads version {SCHEMA}"),
        (b"{}", "not a trace, or a truncated one: Object missing required field `version`"),
        (b'{"version":1}', WRONG + "Object missing required field `environment`"),
        (
            codec.json(SAMPLE).replace(b'"max_turns":50', b'"max_turns":0'),
            WRONG + "Expected `int` >= 1 - at `$.config.max_turns`",
        ),
        (
            codec.json(SAMPLE).replace(b'"max_turns":50', b'"max_moons":50'),
            WRONG + "Object contains unknown field `max_moons` - at `$.config`",
        ),
        (
            codec.json(SAMPLE).replace(b"[-0.5]", b"[-0.5,-0.5]"),
            WRONG + "1 completion tokens, but 2 logprobs - at `$.turns[0].reply.tokens`",
        ),
    ],
)
def test_an_unreadable_trace_is_explained(body: bytes, says: str) -> None:
    with pytest.raises(TraceError) as raised:
        Trace.from_json(signed(body))
    assert str(raised.value) == says


def test_a_changed_trace_shows_both_digests() -> None:
    line = SAMPLE.to_json()
    changed = line.replace(b'"score":0.1', b'"score":1.0')
    assert changed != line
    with pytest.raises(TraceError) as raised:
        Trace.from_json(changed)
    written = line[11:43].decode()
    assert str(raised.value).startswith(f"a corrupted trace: its digest was {written} when it was written, and is ")


def test_bytes_are_the_same_in_every_process() -> None:
    program = (
        "import sys; from quintain.trace import Trace; print(Trace.from_json(sys.argv[1].encode()).to_bytes().hex())"
    )
    trace = msgspec.structs.replace(SAMPLE, tags={"b": "1", "a": "2", "c": "3"})
    done = fresh_processes([sys.executable, "-c", program, trace.to_json().decode()], [1, 2])
    assert {(one.stdout, one.stderr) for one in done} == {(trace.to_bytes().hex() + "\n", "")}


def test_an_old_record_still_reads() -> None:
    """Written by schema version 1. If this fails, raise SCHEMA."""
    assert SAMPLE.to_json() == GOLDEN
    assert Trace.from_json(GOLDEN) == SAMPLE


GOLDEN = (
    '{"digest":"5f86e320ab25f3aa7e239df79bbecdec","trace":{"version":1,"environment":"e","fingerprint":"f'
    '","tools_digest":"d","split":"","task":"t","task_digest":"g","tags":{},"seed":0,"member":0,"attempt"'
    ':0,"agent":"","config":{"max_turns":50,"max_calls":null,"max_tokens":null,"context_tokens":null,"max'
    '_observation_bytes":10000000,"arguments":"strict","temperature":1.0,"top_p":1.0,"max_reply_tokens":n'
    'ull,"model_timeout_s":600.0,"tool_timeout_s":60.0,"verifier_timeout_s":300.0,"episode_timeout_s":nul'
    'l,"concurrency":64,"retries":4,"group_retries":2,"noise_rate":0.0,"noise_budget":null,"gate_rate":0.'
    '05,"gate_window":500,"gate_minimum":20},"turns":[{"index":0,"added":[{"role":"user","content":[{"typ'
    'e":"text","text":"look"},{"type":"image","media_type":"image/png","data":"iVBORw=="}]}],"reply":{"me'
    'ssage":{"role":"assistant","content":"ok","calls":[{"id":"1","name":"go","arguments":"{\\"to\\": \\"é\\"'
    '}"}],"reasoning":"hm"},"tokens":{"prompt":[1,2],"completion":[3],"logprobs":[-0.5]},"usage":{"prompt'
    '":2,"completion":1},"policy_version":7},"steps":[{"call":{"id":"1","name":"go","arguments":"{\\"to\\":'
    ' \\"é\\"}"},"observation":"gone","fault":"truncated"}],"rewards":[{"name":"r","level":"step","raw":0.1'
    ',"value":0.1,"turn":0,"step":0}],"state_digest":"0123"}],"end":"terminated","reason":"done","failure'
    '":null,"criteria":[],"rewards":[],"score":0.1}}'
).encode()

# --- what it says


@pytest.mark.parametrize(
    ("fields", "validity"),
    [
        ({}, "unknown"),
        ({"end": End.TERMINATED}, "unknown"),
        ({"end": End.TERMINATED, "score": 0.0}, "valid"),
        ({"end": End.TRUNCATED, "score": -1.0}, "valid"),
        (
            {
                "end": End.FAILED,
                "failure": Failure(component="S", kind="cancelled", stage="agent", type="", message="", turn=0),
            },
            "invalid",
        ),
    ],
)
def test_validity_follows_end_and_score(fields: dict[str, Any], validity: str) -> None:
    assert blank(**fields).validity == validity


def test_every_reward_comes_in_the_order_it_was_given() -> None:
    def reward(name: str) -> Reward:
        return Reward(name=name, level=Level.TURN, raw=1.0, value=1.0)

    reply = Reply(Message("assistant"))
    turns = [Turn(index=n, reply=reply, rewards=(reward(f"{n}a"), reward(f"{n}b"))) for n in range(2)]
    names = [one.name for one in blank(turns=turns, rewards=[reward("last")]).every_reward()]
    assert names == ["0a", "0b", "1a", "1b", "last"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a", "a"),
        ((), ""),
        ((Text("a"), Image("image/png", b"123"), Text("b")), "a\n[image/png, 3 bytes]\nb"),
    ],
)
def test_the_words_of_a_content(content: Any, words: str) -> None:
    assert plain(content) == Message("user", content).text == words


@pytest.mark.parametrize(
    ("logprobs", "says"),
    [
        ([-1.0], "2 completion tokens, but 1 logprobs"),
        ([-1.0, -1.0, -1.0], "2 completion tokens, but 3 logprobs"),
        ([-1.0, math.nan], "a logprob is not finite"),
        ([-math.inf, 0.0], "a logprob is not finite"),
    ],
)
def test_tokens_need_one_logprob_each(logprobs: list[float], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Tokens([1], [2, 3], logprobs)


@pytest.mark.parametrize("versions", [[], [(1, 0)], [(0, 5), (0, 6)], [(0, 5), (2, 6)], [(0, 5), (1, 6), (1, 7)]])
def test_versions_of_tokens_cover_the_completion(versions: list[tuple[int, int]]) -> None:
    starts = re.escape(str([first for first, _ in versions]))
    with pytest.raises(ValueError, match=rf"begin at token 0 and rise below 2, .* got runs that begin at {starts}"):
        Tokens([1], [2, 3], versions=versions)


def test_versions_of_tokens_are_in_the_record_only_if_the_endpoint_gave_them() -> None:
    bare, known = Tokens([1], [2, 3]), Tokens([1], [2, 3], versions=[(0, 5), (1, 6)])
    assert codec.json(bare) == b'{"prompt":[1],"completion":[2,3],"logprobs":[]}'
    assert codec.json(known) == b'{"prompt":[1],"completion":[2,3],"logprobs":[],"versions":[[0,5],[1,6]]}'
    assert msgspec.json.decode(codec.json(known), type=Tokens) == known
