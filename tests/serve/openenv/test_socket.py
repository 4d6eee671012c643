"""Episodes over /ws: begun by reset, paid once, refused when late; and what is wrong with a frame is said."""

from __future__ import annotations

import random
from typing import Any

import pytest

pytest.importorskip("websockets", reason="pip install 'quintain[serve]'")

from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.serve.openenv.frames import Wire, opened
from tests.serve.serving import Served

KEY = "dev.quintain/"


def counted(wire: Wire, number: int) -> dict[str, Any]:
    """Solve the task of counting to a number."""
    wire.call("add", by=number)
    return wire.call("submit", answer=number)


def test_an_episode_is_begun_played_and_paid_once(served: Served) -> None:
    with opened(served.url, "counter") as wire:
        begun = wire.ask("reset", split="train", index=2, seed=5, episode_id="mine")
        assert begun["observation"]["result"] == "Be exact.\n\nCount to 3, then submit it."
        assert (begun["reward"], begun["done"]) == (None, False)
        assert begun["metadata"] == begun["observation"]["metadata"]
        assert begun["metadata"][f"{KEY}messages"][1] == {"role": "user", "content": "Count to 3, then submit it."}
        assert {begun["metadata"][KEY + name] for name in ("task", "split", "seed")} == {"train-3", "train", 5}

        first = wire.call("add", by=3)
        assert first["observation"]["tool_name"] == "add"
        assert first["observation"]["result"] == "The count is 3."
        assert (first["observation"]["error"], first["reward"], first["done"]) == (None, 0.0, False)

        last = wire.call("submit", answer=3)
        assert (last["reward"], last["done"]) == (1.0, True)
        assert last["metadata"] == last["observation"]["metadata"]
        told = {name: last["metadata"][KEY + name] for name in ("finished", "reward", "validity", "reason", "seq")}
        assert told == {"finished": True, "reward": 1.0, "validity": "valid", "reason": "submitted", "seq": 1}
        assert last["metadata"][f"{KEY}episode"] == begun["metadata"][f"{KEY}episode"]
        assert len(last["metadata"][f"{KEY}state_digest"]) == 32

        state = wire.ask("state")
        assert (state["episode_id"], state["step_count"], state["done"]) == ("mine", 2, True)
        refusal = wire.refused("step", tool_name="submit", arguments={"answer": 3})
        assert refusal["code"] == "VALIDATION_ERROR"
        assert "ended" in refusal["message"]
        assert wire.ask("state") == state


def test_steps_are_refused_before_reset(served: Served) -> None:
    with opened(served.url, "counter") as wire:
        assert [tool["name"] for tool in wire.ask("step", type="list_tools")["observation"]["tools"]][:2] == [
            "add",
            "submit",
        ]
        assert wire.refused("step", tool_name="add")["code"] == "VALIDATION_ERROR"
        assert wire.refused("step", type="answer", text="x")["code"] == "VALIDATION_ERROR"
        wire.raw({"type": "mcp", "data": rpc("tools/call", name="add")})
        assert wire.receive()["data"]["error"]["code"] == -32600
        assert wire.ask("state") == {"episode_id": None, "step_count": 0}


def rpc(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def test_a_late_message_over_a_new_socket_is_refused(served: Served) -> None:
    with opened(served.url, "gated") as wire:
        wire.ask("reset", split="train", index=0)
        wire.send("step", tool_name="hold", arguments={"gate": "timed_out"})
        served.gates.await_entry("timed_out")
    # The client has given up, and its socket with it; the next one was never reset.
    with opened(served.url, "gated") as wire:
        assert "reset" in wire.refused("step", tool_name="mark", arguments={"label": "too_late"})["message"]
        served.gates.open("timed_out")
        assert wire.refused("step", tool_name="mark", arguments={"label": "too_late"})["code"] == "VALIDATION_ERROR"
    assert served.gates.entered("too_late") == 0


def test_reset_closes_the_episode_before_it_even_when_it_is_refused(served: Served) -> None:
    with opened(served.url, "counter") as wire:
        one = wire.ask("reset", split="train", index=0)["metadata"][f"{KEY}episode"]
        wire.call("add", by=1)
        two = wire.ask("reset", split="train", index=0)["metadata"][f"{KEY}episode"]
        assert one != two
        assert wire.read("peek") == "0"
        assert wire.ask("state")["step_count"] == 1
        assert wire.refused("reset", split="nowhere")["code"] == "VALIDATION_ERROR"
        assert wire.refused("step", tool_name="peek")["code"] == "VALIDATION_ERROR"
        assert wire.ask("state")["episode_id"] is None
        assert counted_after_reset(wire) == 1.0


def counted_after_reset(wire: Wire) -> float:
    wire.ask("reset", split="train", index=0)
    reward: float = counted(wire, 1)["reward"]
    return reward


@pytest.mark.parametrize(
    ("data", "task"),
    [
        ({"split": "train", "index": 4}, "train-5"),
        ({"split": "train", "index": -1}, "train-5"),
        ({"split": "train", "task": "train-2"}, "train-2"),
        ({"split": "train"}, "train-1"),
        ({"split": "train", "seed": 7}, "train-3"),
        ({"split": "train", "seed": 7, "index": 0}, "train-1"),
        ({}, "test-1"),
        ({"split": None, "index": None, "task": None, "seed": None, "episode_id": None}, "test-1"),
    ],
)
def test_reset_chooses_the_task(served: Served, data: dict[str, Any], task: str) -> None:
    with opened(served.url, "counter") as wire:
        assert wire.ask("reset", **data)["metadata"][f"{KEY}task"] == task


@pytest.mark.parametrize(
    "data",
    [
        {"split": "nowhere"},
        {"split": "train", "index": 5},
        {"split": "train", "index": -6},
        {"split": "train", "task": "train-9"},
        {"split": "train", "task": "train-1", "index": 0},
        {"split": 3},
        {"index": "0"},
        {"seed": -1},
        {"seed": 2**63},
        {"seed": 2**70},
        {"episode_id": "e" * 256},
    ],
)
def test_an_impossible_reset_is_a_validation_error(served: Served, data: dict[str, Any]) -> None:
    with opened(served.url, "counter") as wire:
        refusal = wire.refused("reset", **data)
        assert (refusal["code"], len(refusal["errors"])) == ("VALIDATION_ERROR", 1)
        wire.ask("reset", split="train", index=0)


def test_unknown_fields_of_reset_are_named_in_metadata(served: Served) -> None:
    """Clients pass on the columns of their datasets, and each environment takes what it knows."""
    with opened(served.url, "counter") as wire:
        begun = wire.ask("reset", split="train", index=1, prompt=[{"role": "user"}], difficulty=None)
        assert begun["observation"]["result"].endswith("Count to 2, then submit it.")
        assert begun["metadata"][f"{KEY}ignored"] == ["difficulty", "prompt"]
        assert f"{KEY}ignored" not in wire.ask("reset", split="train", index=1)["metadata"]


MALFORMED: list[tuple[Any, str]] = [
    ("{", "INVALID_JSON"),
    ("", "INVALID_JSON"),
    ('{"type": "state"} x', "INVALID_JSON"),
    ('{"type": "step", "data": {"arguments": {"by": NaN}}}', "INVALID_JSON"),
    ('{"type": "step", "data": {"tool_name": "\\ud800"}}', "INVALID_JSON"),
    ("[" * 100_000, "VALIDATION_ERROR"),
    ('{"type": "step", "data": {"tool_name": "add", "arguments": ' + '{"a":' * 100_000, "INVALID_JSON"),
    (b'{"type": "state"}', "INVALID_JSON"),
    ("[]", "VALIDATION_ERROR"),
    ("3", "VALIDATION_ERROR"),
    ("null", "VALIDATION_ERROR"),
    ({}, "UNKNOWN_TYPE"),
    ({"type": "fly"}, "UNKNOWN_TYPE"),
    ({"type": None}, "UNKNOWN_TYPE"),
    ({"type": ["state"]}, "UNKNOWN_TYPE"),
    ({"type": "fly", "more": 1}, "UNKNOWN_TYPE"),
    ({"type": "state", "data": {}}, "VALIDATION_ERROR"),
    ({"type": "state", "more": 1}, "VALIDATION_ERROR"),
    ({"type": "close", "more": 1}, "VALIDATION_ERROR"),
    ({"type": "reset", "data": None}, "VALIDATION_ERROR"),
    ({"type": "reset", "data": []}, "VALIDATION_ERROR"),
    ({"type": "step"}, "VALIDATION_ERROR"),
    ({"type": "step", "data": None}, "VALIDATION_ERROR"),
    ({"type": "step", "data": {}}, "VALIDATION_ERROR"),
    ({"type": "step", "data": {"type": "call_tool"}}, "VALIDATION_ERROR"),
    ({"type": "step", "data": {"tool_name": ""}}, "VALIDATION_ERROR"),
    ({"type": "step", "data": {"tool_name": 3}}, "VALIDATION_ERROR"),
    ({"type": "step", "data": {"tool_name": "add", "arguments": []}}, "VALIDATION_ERROR"),
    ({"type": "step", "data": {"tool_name": "add", "arguments": None}}, "VALIDATION_ERROR"),
    ({"type": "step", "data": {"tool_name": "add", "arguments": "{}"}}, "VALIDATION_ERROR"),
    ({"type": "step", "data": {"tool_name": "add", "by": 1}}, "VALIDATION_ERROR"),
    ({"type": "step", "data": {"tool_name": "add", "text": "x"}}, "VALIDATION_ERROR"),
    ({"type": "step", "data": {"tool_name": "add"}, "id": 1}, "VALIDATION_ERROR"),
    ({"type": "step", "data": {"type": "jump", "tool_name": "add"}}, "VALIDATION_ERROR"),
    ({"type": "step", "data": {"type": "answer"}}, "VALIDATION_ERROR"),
    ({"type": "step", "data": {"type": "answer", "text": "x", "tool_name": "add"}}, "VALIDATION_ERROR"),
    ({"type": "step", "data": {"type": "answer", "text": "x", "arguments": {"a": 1}}}, "VALIDATION_ERROR"),
    ({"type": "step", "data": {"type": "list_tools", "text": "x"}}, "VALIDATION_ERROR"),
    ({"type": "mcp"}, "VALIDATION_ERROR"),
    ({"type": "state", "data": "x" * (4 << 20)}, "VALIDATION_ERROR"),
]


def test_a_malformed_frame_is_told_and_the_socket_stays_open(served: Served) -> None:
    with opened(served.url, "counter") as wire:
        wire.ask("reset", split="train", index=0)
        for frame, code in MALFORMED:
            wire.raw(frame)
            answer = wire.receive()
            assert answer["type"] == "error", frame
            assert answer["data"]["code"] == code, (frame, answer)
        assert wire.ask("state")["step_count"] == 0
        assert counted(wire, 1)["reward"] == 1.0


def test_no_garbage_ends_the_socket_or_goes_unanswered(served: Served) -> None:
    dice = random.Random(7)
    valid = [
        '{"type": "step", "data": {"type": "call_tool", "tool_name": "add", "arguments": {"by": 1}, "metadata": {}}}',
        '{"type": "step", "data": {"type": "answer", "text": "x"}}',
        '{"type": "reset", "data": {"split": "train", "index": 0, "seed": 1, "episode_id": "e"}}',
        '{"type": "mcp", "data": {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add"}}}',
        '{"type": "state"}',
    ]
    pieces = [
        '"',
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "null",
        "1e999",
        "-0",
        "\\ud800",
        "\x00",
        "é",
        "😀",
        "\\",
        " ",
        "9" * 400,
    ]
    with opened(served.url, "counter") as wire:
        for _ in range(600):
            frame = list(dice.choice(valid))
            for _ in range(dice.randrange(1, 4)):
                place = dice.randrange(len(frame))
                frame[place : place + dice.randrange(3)] = dice.choice(pieces)
            wire.raw("".join(frame))
            assert wire.receive()["type"] in {"error", "observation", "state", "mcp"}
        wire.ask("reset", split="train", index=0)
        assert counted(wire, 1)["reward"] == 1.0


def test_a_frame_of_many_times_the_allowed_size_ends_the_socket(served: Served) -> None:
    with opened(served.url, "counter") as wire, pytest.raises(ConnectionClosed):
        wire.raw("x" * (17 << 20))
        wire.receive()


@pytest.mark.parametrize(
    ("tool", "arguments", "kind"),
    [
        ("fly", {}, "tool_not_found"),
        ("add", {"by": "x"}, "invalid_args"),
        ("add", {"by": 101}, "invalid_args"),
        ("add", {"more": 1}, "invalid_args"),
        ("source", {"module": "nothing.py"}, "execution_error"),
    ],
)
def test_the_agents_mistake_is_an_observation(served: Served, tool: str, arguments: Any, kind: str) -> None:
    with opened(served.url, "counter") as wire:
        wire.ask("reset", split="train", index=0)
        seen = wire.call(tool, **arguments)
        assert seen["observation"]["error"] == {"error_type": kind, "message": seen["observation"]["result"]}
        assert (seen["reward"], seen["done"]) == (0.0, False)
        assert wire.ask("state")["step_count"] == 1
        assert counted(wire, 1)["reward"] == 1.0


@pytest.mark.parametrize(
    ("tool", "arguments", "kind"),
    [
        ("crash", {}, "quintain:tool_bug"),
        ("hang", {}, "quintain:tool_timeout"),
        ("flood", {"megabytes": 11}, "quintain:tool_bug"),
    ],
)
def test_the_environments_failure_is_an_error_and_never_paid(
    served: Served, tool: str, arguments: Any, kind: str
) -> None:
    with opened(served.url, "rough") as wire:
        wire.ask("reset", index=0)
        void = wire.refused("step", tool_name=tool, arguments=arguments)
        assert void["code"] == "EXECUTION_ERROR"
        assert void["metadata"][f"{KEY}failure"]["kind"] == kind
        assert (void["metadata"][f"{KEY}validity"], void["metadata"][f"{KEY}reward"]) == ("invalid", None)
        assert "Traceback" not in void["message"]
        assert wire.refused("step", tool_name="leave")["metadata"] == void["metadata"]
        wire.ask("reset", index=0)
        assert wire.call("leave")["reward"] == 1.0


def test_a_judge_that_falls_over_pays_nothing(served: Served) -> None:
    with opened(served.url, "rough") as wire:
        wire.ask("reset", index=0)
        for _ in range(3):
            wire.call("touch")
        assert wire.refused("step", tool_name="leave")["metadata"][f"{KEY}failure"]["kind"] == "verifier_error"


def test_a_world_that_cannot_be_built_is_an_error_of_reset(served: Served) -> None:
    with opened(served.url, "rough") as wire:
        void = wire.refused("reset", task="broken")
        assert void["code"] == "EXECUTION_ERROR"
        assert void["metadata"][f"{KEY}failure"]["kind"] == "quintain:reset_failed"
        assert "reset" in wire.refused("step", tool_name="touch")["message"]
        wire.ask("reset", task="plain")


def test_words_end_an_episode(served: Served) -> None:
    with opened(served.url, "words") as wire:
        wire.ask("reset", split="train", task="elm")
        assert [tool["name"] for tool in wire.ask("step", type="list_tools")["observation"]["tools"]] == [
            "look",
            "answer",
        ]
        word = wire.read("look")
        last = wire.ask("step", type="answer", text=word)
        assert (last["reward"], last["done"]) == (1.0, True)
        assert wire.refused("step", type="answer", text=word)["code"] == "VALIDATION_ERROR"
        assert wire.ask("state")["step_count"] == 3

        wire.ask("reset", split="train", task="elm")
        slip = wire.call("answer", words="x")
        assert (slip["observation"]["error"]["error_type"], slip["reward"], slip["done"]) == (
            "invalid_args",
            0.0,
            False,
        )
        assert wire.call("answer", text="oak")["reward"] == 0.0
        assert wire.ask("state")["step_count"] == 2
        assert wire.refused("step", tool_name="answer", arguments={})["code"] == "VALIDATION_ERROR"


def test_the_last_tool_of_a_list_says_words(served: Served) -> None:
    with opened(served.url, "counter") as wire:
        wire.ask("reset", split="train", index=0)
        listed = wire.ask("step", type="list_tools")
        assert [tool["name"] for tool in listed["observation"]["tools"]][-1] == "answer"
        assert (listed["reward"], listed["done"]) == (0.0, False)
        assert wire.ask("step", type="answer", text="I give up.")["done"]
        assert wire.ask("step", type="list_tools")["reward"] is None


def test_a_slow_world_does_not_block_others(served: Served) -> None:
    with opened(served.url, "gated") as slow, opened(served.url, "gated") as other:
        slow.ask("reset", index=0)
        other.ask("reset", index=0)
        slow.send("step", tool_name="hold", arguments={"gate": "slow"})
        served.gates.await_entry("slow")
        assert other.read("mark", label="other") == "Marked 1."
        served.gates.open("slow")
        assert slow.receive()["data"]["observation"]["result"] == "Through slow."


def test_frames_are_answered_in_their_order(served: Served) -> None:
    with opened(served.url, "counter") as wire:
        wire.ask("reset", split="train", index=0)
        for by in range(50):
            wire.send("step", tool_name="add", arguments={"by": by})
        totals = [wire.receive()["data"]["observation"]["result"] for _ in range(50)]
        assert totals == [f"The count is {by * (by + 1) // 2}." for by in range(50)]


def test_results_round_trip_any_text(served: Served) -> None:
    text = ' \u2028"\\\x00é😀' + " " * 20_000
    with opened(served.url, "counter") as wire:
        wire.ask("reset", split="train", index=0)
        assert wire.read("echo", text=text) == text
        assert wire.read("repeat", text="ab ", times=300_000) == "ab " * 300_000


def test_close_ends_the_socket(served: Served) -> None:
    with opened(served.url, "counter") as wire:
        wire.send("close")
        with pytest.raises(ConnectionClosed) as closed:
            wire.receive()
        assert closed.value.rcvd
        assert closed.value.rcvd.code == 1000


@pytest.mark.parametrize(("env", "path"), [("nowhere", "ws"), ("counter", "harness"), ("counter", "")])
def test_a_socket_at_another_path_gets_404(served: Served, env: str, path: str) -> None:
    with pytest.raises(InvalidStatus) as refused, opened(served.url, env, path=path):
        pass
    assert refused.value.response.status_code == 404
    assert "handshake" not in served.said  # What a stranger asks for is no fault of the server's.
