"""Logs of other tools as run folders that the studio shows."""

from __future__ import annotations

import json
import re
import zipfile
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from quintain import plugins
from quintain.cli.logs import is_run, run_of
from quintain.errors import UsageError
from quintain.record import read_traces
from quintain.studio.index import Index
from quintain.trace import Trace
from tests.studio.runs import trace

ASKED = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2 + 2?"}]
CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 2, "b": 2}'}}
ANSWERED = [
    {"role": "assistant", "content": "", "tool_calls": [CALL], "reasoning_content": "I add."},
    {"role": "tool", "tool_call_id": "c1", "content": "error: busy"},
    {"role": "assistant", "content": "4", "finish_reason": "stop"},
]


def lines(path: Path, *rows: dict[str, Any] | str) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def check(log: Path, form: str) -> list[Any]:
    """Reads a log, and checks its first episode and that the studio's index takes all."""
    folder, _ = run_of(log)
    traces = list(read_traces(folder))
    index = Index(folder, ":memory:")
    index.update()
    rows = index.database.execute("SELECT task, steps, errors FROM episode").fetchall()
    assert index.database.execute("SELECT count(*) FROM broken").fetchone() == (0,)
    index.close()
    first = traces[0]
    assert len(rows) == len(traces)
    assert (rows[0], first.tags) == ((first.task, 1, 1), {"form": form})
    assert [(one.role, one.text) for one in first.turns[0].added] == [("system", "Be brief."), ("user", "2 + 2?")]
    step = first.turns[0].steps[0]
    assert (step.call.name, step.call.arguments, step.observation) == ("add", '{"a": 2, "b": 2}', "error: busy")
    assert [turn.reply.message.text for turn in first.turns] == ["", "4"]
    assert first.turns[0].reply.message.reasoning == "I add."
    return traces


def test_openai_messages_become_a_run(tmp_path: Path) -> None:
    row = {"messages": ASKED + ANSWERED, "id": "sum", "reward": 1}
    log = lines(tmp_path / "log.jsonl", row, row, '{"messages": [')
    traces = check(log, "OpenAI messages")
    assert [(one.task, one.member, one.score) for one in traces] == [("sum", 0, 1.0), ("sum", 1, 1.0)]
    assert "1 cannot be read, the first in" in run_of(log)[1]


def test_rollouts_of_verifiers_become_a_run(tmp_path: Path) -> None:
    row = {"prompt": ASKED, "completion": ANSWERED, "example_id": 7, "reward": 0.5, "metrics": {"correct": 0.5}}
    lost = row | {"reward": None, "error": {"error": "ToolError", "message": "tool died"}}
    (tmp_path / "evals").mkdir()
    lines(tmp_path / "evals" / "results.jsonl", row, lost)
    (tmp_path / "evals" / "metadata.json").write_text('{"env_id": "sums"}')
    traces = check(tmp_path / "evals", "verifiers")
    assert [(one.task, one.score, one.validity) for one in traces] == [("7", 0.5, "valid"), ("7", None, "invalid")]
    assert [(one.name, one.value) for one in traces[0].rewards] == [("correct", 0.5)]
    assert traces[1].failure is not None
    assert (traces[1].failure.component, traces[1].failure.message) == ("S", "tool died")


SAMPLE = {"id": 1, "epoch": 1, "messages": ASKED + ANSWERED, "output": {}, "scores": {"match": {"value": "C"}}}


@pytest.mark.parametrize("binary", [False, True])
def test_samples_of_inspect_become_a_run(tmp_path: Path, binary: bool) -> None:
    log = tmp_path / ("log.eval" if binary else "log.json")
    if binary:
        with zipfile.ZipFile(log, "w") as archive:
            archive.writestr("header.json", "{}")
            archive.writestr("samples/1_epoch_1.json", json.dumps(SAMPLE))
    else:
        log.write_text(json.dumps({"eval": {}, "samples": [SAMPLE]}))
    (trace,) = check(log, "Inspect")
    assert (trace.task, trace.member, trace.score) == ("1", 1, 1.0)


def test_an_archive_of_inspect_is_read_with_its_compression(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard", reason="pip install 'quintain[studio]'")
    log = tmp_path / "log.eval"
    with zipfile.ZipFile(log, "w") as archive:
        archive.writestr(
            "samples/1_epoch_1.json",
            zstandard.ZstdCompressor(write_content_size=False).compress(json.dumps(SAMPLE).encode()),
        )
    # `zipfile` cannot write method 93 before Python 3.14, so it is written into both headers.
    marked = re.sub(rb"(PK\x03\x04....|PK\x01\x02......)\0\0", b"\\g<1>\x5d\0", log.read_bytes(), flags=re.DOTALL)
    log.write_bytes(marked)
    (trace,) = check(log, "Inspect")
    assert (trace.task, trace.member, trace.score) == ("1", 1, 1.0)


def chat(log: Path) -> list[Trace] | None:
    """Returns the episodes of a log whose lines begin with "chat ": the reader of a plugin."""
    words = log.read_text().splitlines()
    return [trace(one.split()[1]) for one in words] if all(one.startswith("chat ") for one in words) else None


def test_a_plugin_reads_a_log_of_its_own_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        plugins, "_entries", lambda group: [EntryPoint("chat", f"{__name__}:chat", f"quintain.{group}")]
    )
    folder, words = run_of(lines(tmp_path / "chats.log", "chat a", "chat a", "chat b"))
    assert [(one.task, one.member) for one in read_traces(folder)] == [("a", 0), ("a", 1), ("b", 0)]
    assert words.startswith("3 episodes of ")
    check(lines(tmp_path / "log.jsonl", {"messages": ASKED + ANSWERED, "id": "sum", "reward": 1}), "OpenAI messages")
    with pytest.raises(UsageError, match="the reader 'chat' finds no episode"):
        run_of(lines(tmp_path / "empty.log"))
    with pytest.raises(UsageError, match=r"the reader 'chat' fails on .*IndexError"):
        run_of(lines(tmp_path / "short.log", "chat "))


def test_a_log_is_read_again_when_it_has_changed(tmp_path: Path) -> None:
    log = lines(tmp_path / "log.jsonl", {"messages": ASKED + ANSWERED, "id": "a"})
    folder, words = run_of(log)
    (folder / "reviews").mkdir()
    traces = folder / "traces.jsonl"
    before = traces.stat().st_mtime_ns
    assert (run_of(log)[1], traces.stat().st_mtime_ns) == (words, before)
    lines(log, {"messages": ASKED + ANSWERED, "id": "a"}, {"messages": ASKED + ANSWERED, "id": "b"})
    run_of(log)
    assert [one.task for one in read_traces(folder)] == ["a", "b"]
    assert (folder / "reviews").is_dir()
    assert is_run(folder)
    assert is_run(tmp_path)


@pytest.mark.parametrize("name", ["log.jsonl", "log.json", "log.eval"])
def test_a_file_without_episodes_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("nothing")
    with pytest.raises(UsageError, match=r"no episode|inspect log convert"):
        run_of(tmp_path / name)
    assert not (tmp_path / f"{name}.quintain").exists()
