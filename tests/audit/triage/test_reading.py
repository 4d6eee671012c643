from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintain.audit.triage import read
from quintain.audit.triage.episode_log import number, of_row
from quintain.errors import TraceError, UsageError
from tests.audit.triage.episodes import COUNTER, answers, asks, count, play, row, said

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["messages", "role", "content", "tool_calls", "prompt", "completion", "scores", "error", "x"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


def lines(folder: Path, *rows: bytes | dict[str, Any], name: str = "log.jsonl") -> Path:
    path = folder / name
    path.write_bytes(b"".join((one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n" for one in rows))
    return path


def test_a_folder_of_ours_is_read_with_its_seconds(tmp_path: Path) -> None:
    trace = play(COUNTER, count(1))
    (tmp_path / "traces.jsonl").write_bytes(trace.to_json() + b"\n")
    (tmp_path / "timings.jsonl").write_text('{"task":"test-0","member":0,"attempt":0,"tool_s":1.5}\n')
    reading = read(tmp_path)
    (one,) = reading.played
    assert one.trace == trace
    assert one.reward == 1
    assert one.seconds == {"tool_s": 1.5}
    assert [call.name for call in one.calls] == ["add"]
    assert reading.unreadable == []


def test_torn_and_changed_lines_are_named_and_counted(tmp_path: Path) -> None:
    line = play(COUNTER, count(1)).to_json()
    path = tmp_path / "traces.jsonl"
    path.write_bytes(
        line + b"\n" + line.replace(b'"score":1.0', b'"score":0.9') + b"\n" + line[:50] + b"\n" + line[:70]
    )
    reading = read(tmp_path)
    assert len(reading.played) == 1
    assert [(one.place, one.episode) for one in reading.unreadable] == [
        (f"{path}:2", True),
        (f"{path}:3", True),
        (f"{path}:4", False),  # it was never acknowledged
    ]
    assert "corrupted" in reading.unreadable[0].reason
    assert "truncated" in reading.unreadable[1].reason


def test_messages_rollouts_and_samples_become_the_same(tmp_path: Path) -> None:
    talk = [asks("get", '{"id": "A"}'), answers('{"id": "A"}'), said("fine")]
    rollout = {"prompt": "Do it.", "completion": talk, "reward": 1.0, "example_id": "t", "metrics": {"exact": 1.0}}
    sample = {
        "id": "t",
        "epoch": 2,
        "messages": row(*talk)["messages"],
        "scores": {"match": {"value": "C"}},
        "target": "x",
    }
    lines(tmp_path, row(*talk), rollout)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "log.json").write_text(json.dumps({"version": 2, "eval": {}, "samples": [sample]}))
    (tmp_path / "notes.md").write_text("not of them")
    reading = read(tmp_path)
    assert [one.form for one in reading.played] == ["messages", "rollout", "inspect"]
    assert reading.ignored == [str(tmp_path / "notes.md")]
    assert reading.unreadable == []
    for one in reading.played:
        assert (one.task, one.prompt, one.reward, one.answer) == ("t", "Do it.", 1.0, "fine")
        assert [(call.name, call.arguments, call.observation) for call in one.calls] == [
            ("get", {"id": "A"}, '{"id": "A"}')
        ]
    assert reading.played[1].components == {"exact": 1.0}
    assert (reading.played[2].member, reading.played[2].gold) == (2, "x")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"messages": [', "truncated"),
        (b"[1, 2]", "this is a list"),
        (b'{"a": 1}', "its keys are a"),
        (b'{"messages": [{"content": "x"}]}', "has no role"),
        (b'{"prompt": "a", "completion": 7}', "got int"),
        (b'{"messages": [{"role": "tool", "tool_call_id": "x", "content": "y"}]}', "unknown call"),
        (b'{"messages": [{"role": "assistant", "tool_calls": 3}]}', "tool_calls is a list"),
        (b"\xff\xfe", "no JSON"),
        (b"[" * 100_000, "no JSON"),
    ],
)
def test_unreadable_rows_have_a_reason(line: bytes, reason: str, tmp_path: Path) -> None:
    reading = read(lines(tmp_path, line, row(said("x"))))
    assert len(reading.played) == 1
    (lost,) = reading.unreadable
    assert lost.episode
    assert lost.place.endswith(":1")
    assert reason in lost.reason


def test_a_document_without_episodes_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "metadata.json").write_text('{"model": "x"}')
    (tmp_path / "cut.json").write_text('{"samples": [')
    reading = read(tmp_path)
    assert [(Path(one.place).name, one.episode) for one in reading.unreadable] == [
        ("cut.json", True),
        ("metadata.json", False),
    ]


def test_a_missing_path_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        read(tmp_path / "nowhere")


@given(st.lists(JSON, max_size=4))
def test_every_line_is_read_or_reported(tmp_path_factory: pytest.TempPathFactory, values: list[Any]) -> None:
    path = lines(tmp_path_factory.mktemp("any"), *(json.dumps(value).encode() for value in values))
    reading = read(path)
    assert len(reading.played) + len(reading.unreadable) == len(values)


@given(
    st.dictionaries(
        st.sampled_from(["messages", "prompt", "completion", "reward", "tools", "error", "info", "scores"]), JSON
    )
)
def test_a_row_is_an_episode_or_refused_in_words(value: dict[str, Any]) -> None:
    with contextlib.suppress(TraceError):
        assert of_row(value, place="x", index=0).place == "x"


@pytest.mark.parametrize(
    ("value", "expected"), [(1, 1.0), (True, 1.0), ("C", 1.0), ("I", 0.0), ("0.5", 0.5), ("great", None), ([], None)]
)
def test_scores_of_all_spellings(value: Any, expected: float | None) -> None:
    assert number(value) == expected
