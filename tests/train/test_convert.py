"""Converters: golden fields of each trainer, from one row that has everything, and what each refuses."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quintain as qn
from quintain.errors import TraceError, UsageError
from quintain.trace import End, Message, Reply, Tokens
from quintain.train import advantages
from quintain.train.convert import columns, convert
from quintain.train.stream import MAX_FRAME_BYTES, read_rows, write_rows
from tests.test_trajectory import trace, turn
from tests.train.test_advantages import GROUPS, batch

SWAPPED = Tokens([5], [6, 7], logprobs=[-0.2, -0.3], versions=[(0, 8), (1, 9)])


def played(*, score: float = 1.0, member: int = 0, branch: int = 0, **fields: Any) -> qn.Trace:
    """Returns an episode of two turns: two sampled stretches, a dense reward, a weight swap in the second."""
    first = turn(0, [1, 2], [3, 4], logprobs=[-0.5, -0.1], version=8, rewards=((0.25, 1.0),))
    second = turn(1, [], [], branch=branch, **fields)
    reply = Reply(Message("assistant"), SWAPPED, policy_version=9, finish_reason=fields.get("finish", ""))
    return trace(first, msgspec.structs.replace(second, reply=reply), score=score, member=member)


ROWS = qn.trajectories([played(), played(score=0.0, member=1, finish="length")])
IDS = [1, 2, 3, 4, 5, 6, 7]
LOGPROBS = [0.0, 0.0, -0.5, -0.1, 0.0, -0.2, -0.3]
RESPONSE = {"mask": [1, 1, 0, 1, 1], "logprobs": LOGPROBS[2:]}
GROUP, EPISODE, ROW = 596073409876241855, 44515989428444424, 401501288744711242
"""Numbers of group, episode and row: equal in every process, so that samples of two workers meet."""

GOLDEN: dict[str, dict[str, Any]] = {
    "trl": {
        "prompt_ids": IDS[:2],
        "completion_ids": IDS[2:],
        "logprobs": RESPONSE["logprobs"],
        "env_mask": RESPONSE["mask"],
        "score": 1.0,
    },
    "trl_async": {
        "prompt": [],
        "completion": [],
        "input_ids": IDS,
        "completion_mask": [0, 0, 1, 1, 0, 1, 1],
        "old_log_probs": LOGPROBS,
        "advantage": 0.5,
        "model_version": 8,
        "group_id": GROUP,
        "metrics": {"reward": 1.0},
    },
    "prime_rl": {
        "token_ids": IDS,
        "mask": [False, False, True, True, False, True, True],
        "logprobs": LOGPROBS,
        "temperatures": [1.0] * 7,
        "env_name": "yard",
        "advantages": [0.0, 0.0, 0.5, 0.5, 0.0, 0.5, 0.5],
    },
    "verl": {
        "prompt_ids": IDS[:2],
        "response_ids": IDS[2:],
        "response_mask": RESPONSE["mask"],
        "response_logprobs": RESPONSE["logprobs"],
        "reward_score": 1.0,
        "num_turns": 2,
        "metrics": {},
        "extra_fields": {"min_global_steps": 8, "max_global_steps": 9},
    },
    "skyrl": {
        "prompt_token_ids": IDS[:2],
        "response_ids": IDS[2:],
        "rewards": [0.0, 0.0, 0.0, 0.0, 1.0],
        "loss_masks": RESPONSE["mask"],
        "stop_reasons": "stop",
        "rollout_logprobs": RESPONSE["logprobs"],
        "trajectory_ids": {"instance_id": "test-0/0/0", "repetition_id": 0},
        "is_last_step": True,
    },
    "slime": {
        "group_index": GROUP,
        "index": ROW,
        "rollout_id": EPISODE,
        "tokens": IDS,
        "response_length": 5,
        "reward": 1.0,
        "loss_mask": RESPONSE["mask"],
        "rollout_log_probs": RESPONSE["logprobs"],
        "weight_versions": ["8", "8", "9"],
        "status": "completed",
    },
    "openrlhf": {
        "prompt": "test-0",
        "label": "test-0",
        "observation_tokens": IDS,
        "action_ranges": [(2, 4), (5, 7)],
        "rollout_log_probs": LOGPROBS,
        "reward": 1.0,
        "scores": 1.0,
        "truncated": False,
        "extra_logs": {},
    },
    "nemo_rl": {
        "response": {
            "output": [
                {"prompt_token_ids": IDS[:2], "generation_token_ids": [3, 4], "generation_log_probs": [-0.5, -0.1]},
                {"prompt_token_ids": IDS[:5], "generation_token_ids": [6, 7], "generation_log_probs": [-0.2, -0.3]},
            ]
        },
        "responses_create_params": {"input": []},
        "reward": 1.0,
    },
}
EVERY = pytest.mark.parametrize("trainer", GOLDEN)


@EVERY
def test_fields_have_the_names_of_the_trainer(trainer: str) -> None:
    first, second = convert(ROWS, trainer)
    assert list(first.items()) == list(GOLDEN[trainer].items())
    assert second.keys() == first.keys()
    assert convert([], trainer) == []


def test_a_reply_that_was_cut_off_is_truncated() -> None:
    def second(trainer: str, name: str) -> Any:
        return convert(ROWS, trainer)[1][name]

    assert (second("skyrl", "stop_reasons"), second("slime", "status")) == ("length", "truncated")
    assert second("openrlhf", "truncated") is True
    episode = played()
    episode.end = End.TRUNCATED
    assert convert(qn.trajectories([episode]), "slime")[0]["status"] == "truncated"


def test_columns_hold_one_list_per_field() -> None:
    found = columns(convert(ROWS, "skyrl"))
    assert found.keys() == GOLDEN["skyrl"].keys()
    assert found["is_last_step"] == [True, True]
    assert [sum(rewards) for rewards in found["rewards"]] == [1.0, 0.0]
    assert columns([]) == {}


def test_dense_rewards_lie_at_the_last_token_of_their_turn() -> None:
    assert convert(ROWS, "skyrl", dense=True)[0]["rewards"] == [0.0, 0.25, 0.0, 0.0, 1.0]
    silent = qn.trajectories([trace(turn(0, [1], [], rewards=((0.5, 1.0),)), turn(1, [2], [3]))])
    assert convert(silent, "skyrl", dense=True)[0]["rewards"] == [0.5, 1.0], "the first of the response at the earliest"


def test_advantages_per_token_reach_the_trainers_that_take_them() -> None:
    given_ = advantages.turn_return(ROWS)
    assert [one["advantages"] for one in convert(ROWS, "prime_rl", advantages=given_)] == given_
    mean = advantages.leave_one_out(ROWS)
    assert [one["advantage"] for one in convert(ROWS, "trl_async", advantages=mean)] == [1.0, -1.0]
    with pytest.raises(UsageError, match=r"trl_async takes one advantage per row, got 2 .* use group_mean"):
        convert(ROWS, "trl_async", advantages=[[0.0, 0.0, 1.0, 1.0, 0.0, 2.0, 2.0], mean[1]])
    with pytest.raises(ValueError, match="zip"):
        convert(ROWS, "prime_rl", advantages=mean[:1])


def test_rows_of_a_rewritten_context_go_only_where_they_can() -> None:
    rows = qn.trajectories([played(branch=1)])
    assert len(rows) == 2
    for trainer in ("prime_rl", "skyrl", "slime", "trl_async"):
        assert len(convert(rows, trainer)) == 2
    slime = convert(rows, "slime")
    assert (len({one["rollout_id"] for one in slime}), len({one["index"] for one in slime})) == (1, 2)
    skyrl = convert(rows, "skyrl")
    assert [(one["is_last_step"], sum(one["rewards"])) for one in skyrl] == [(False, 0.0), (True, 1.0)]
    for trainer in ("trl", "verl", "openrlhf", "nemo_rl"):
        with pytest.raises(UsageError, match=rf"{trainer} takes one row per episode, but member 0 .* has 2; convert"):
            convert(rows, trainer)


BARE = qn.trajectories([trace(turn(0, [1], [2]))])


@pytest.mark.parametrize(
    ("rows", "trainer", "options", "says"),
    [
        (ROWS, "axolotl", {}, "no converter for 'axolotl'; there are trl, trl_async, prime_rl, verl, skyrl, slime,"),
        (
            ROWS,
            "verl",
            {"advantages": [[0.0] * 7] * 2},
            "verl does not take advantages; they are taken by trl_async, p",
        ),
        (ROWS, "trl", {"dense": True}, "trl does not take dense; they are taken by skyrl"),
        (BARE, "prime_rl", {}, "row of member 0 of group 'test-0/0/0' has no logprobs, which prime_rl needs"),
        (BARE, "nemo_rl", {}, "has no logprobs, which nemo_rl needs"),
        (
            qn.trajectories([trace(turn(0, [1], [2], logprobs=[-0.1]))]),
            "trl_async",
            {},
            "has no versions, which trl_async needs; use an endpoint that returns them",
        ),
        (qn.trajectories([trace(turn(0, [1], []))]), "slime", {}, "has no sampled token; leave it out"),
    ],
)
def test_rows_that_a_trainer_cannot_take_are_refused(
    rows: list[qn.Trajectory], trainer: str, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        convert(rows, trainer, **options)


def test_logprobs_that_a_trainer_can_do_without_are_none() -> None:
    assert convert(BARE, "verl")[0]["response_logprobs"] is None
    assert convert(BARE, "verl")[0]["extra_fields"] == {}
    assert convert(BARE, "openrlhf")[0]["rollout_log_probs"] is None
    assert convert(BARE, "slime")[0]["weight_versions"] == []


# --- streams ---


@given(groups=GROUPS, packed=st.lists(st.booleans(), min_size=1, max_size=3))
def test_a_stream_gives_back_the_rows(groups: list[Any], packed: list[bool]) -> None:
    _, rows = batch(groups)
    file = io.BytesIO()
    for one in packed:
        assert write_rows(file, iter(rows), packed=one) == len(rows)
    file.seek(0)
    assert list(read_rows(file)) == rows * len(packed)


def test_rows_of_an_export_are_read(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in ROWS))
    with (tmp_path / "rows.jsonl").open("rb") as file:
        assert list(read_rows(file)) == ROWS


@pytest.mark.parametrize("packed", [False, True])
def test_a_stream_cut_anywhere_gives_whole_rows_and_an_error(packed: bool) -> None:
    file = io.BytesIO()
    write_rows(file, ROWS[:1], packed=packed)
    whole = file.tell()
    write_rows(file, ROWS[1:], packed=packed)
    data = file.getvalue()
    for cut in range(whole + 1, len(data) - (not packed)):  # A JSON line is whole without its line break.
        rows = read_rows(io.BytesIO(data[:cut]))
        assert next(rows) == ROWS[0]
        with pytest.raises(TraceError, match="row 2 "):
            next(rows)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b'{"task": 1}\n', "row 1 is truncated, damaged or not a row: Expected `str`, got `int` - at `[$].task`"),
        (b"hello world", r"row 1 begins with b'hell', which is neither JSON nor the length of a row"),
        ((MAX_FRAME_BYTES + 1).to_bytes(4), "row 1 begins with"),
        (b"\x00\x00", "row 1 begins with"),
        (b"\x00\x00\x00\x01\xc0", "row 1 is truncated, damaged or not a row: Expected `object`"),
    ],
)
def test_a_damaged_stream_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(TraceError, match=says):
        list(read_rows(io.BytesIO(data)))
