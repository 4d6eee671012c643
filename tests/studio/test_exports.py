"""Exports of a whole run: the table as CSV and Parquet, and OpenTelemetry spans."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from quintain import codec
from quintain.cli import main
from quintain.studio.reviews import Reviews, Target
from tests.studio.runs import failed, trace, write

TRACES = [trace("a", 0), trace("a", 1, score=0.25, turns=5, say='é, "x"\n2'), failed("b")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = write(tmp_path / "run", TRACES)
    digest = json.loads((made / "traces.jsonl").read_bytes().splitlines()[1])["digest"]
    target = Target(task="a", member=1, digest=digest)
    for name, owner in (("ada", "env"), ("ben", "policy")):
        Reviews(made).add(name, [{"kind": "verdict", "owner": owner, "modes": ["env.race"], "target": target}])
    (made / "labels.jsonl").write_text('{"task": "b", "owner": "infra"}\n')
    return made


def export(folder: Path, *arguments: str) -> None:
    with pytest.raises(SystemExit) as left:
        main(["export", str(folder), *arguments])
    assert not left.value.code


def test_the_table_holds_facts_rewards_tools_and_labels(folder: Path, tmp_path: Path, capsys: Any) -> None:
    export(folder, "--format", "table")
    text = capsys.readouterr().out
    export(folder, "--format", "table", "--out", str(tmp_path / "rows.csv"))
    assert (tmp_path / "rows.csv").read_text() == text
    rows = list(csv.DictReader(text.splitlines(keepends=True)))
    assert len(rows) == 3
    assert [(one["task"], one["member"], one["score"], one["turns"]) for one in rows] == [
        (one.task, str(one.member), "" if one.score is None else str(one.score), str(len(one.turns))) for one in TRACES
    ]
    assert (rows[1]["reward.done"], rows[1]["tag.level"], rows[1]["tool.search"]) == ("0.25", "hard", "3")
    assert (rows[1]["label"], rows[1]["by"], rows[1]["mode"]) == ("env, policy", "ada, ben", "env.race, env.race")
    assert (rows[0]["label"], rows[2]["owner"], rows[2]["kind"]) == ("", "infra", "quintain:tool_bug")


def test_the_table_is_written_as_parquet(folder: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pip install 'quintain[parquet]'")
    export(folder, "--format", "table", "--out", str(tmp_path / "rows.parquet"))
    rows = parquet.read_table(tmp_path / "rows.parquet").to_pylist()
    assert [(one["task"], one["score"], one["label"]) for one in rows] == [
        ("a", 1.0, None),
        ("a", 0.25, "env, policy"),
        ("b", None, None),
    ]


def spans(folder: Path, out: Path) -> list[list[dict[str, Any]]]:
    export(folder, "--format", "otlp", "--out", str(out))
    requests = [json.loads(line) for line in out.read_text().splitlines()]
    return [one["resourceSpans"][0]["scopeSpans"][0]["spans"] for one in requests]


def facts(span: dict[str, Any]) -> dict[str, Any]:
    return {one["key"]: next(iter(one["value"].values())) for one in span["attributes"]}


def test_an_episode_is_a_tree_of_spans(folder: Path, tmp_path: Path) -> None:
    found = spans(folder, tmp_path / "spans.jsonl")
    assert len(found) == len(TRACES)
    assert len({one["spanId"] for episode in found for one in episode}) == sum(map(len, found))
    for made, episode in zip(TRACES, found, strict=True):
        root, *rest = episode
        names = [facts(one)["gen_ai.operation.name"] for one in episode]
        steps = sum(len(turn.steps) for turn in made.turns)
        assert (names.count("chat"), names.count("execute_tool")) == (len(made.turns), steps)
        assert "parentSpanId" not in root
        assert {one["parentSpanId"] for one in rest} == {root["spanId"]}
        assert {one["traceId"] for one in episode} == {root["traceId"]}
        times = [(int(one["startTimeUnixNano"]), int(one["endTimeUnixNano"])) for one in episode]
        assert all(times[0][0] <= start <= end <= times[0][1] for start, end in times)
        assert times[1:] == sorted(times[1:])
    root, chat, tool = found[1][:3]
    assert facts(root)["quintain.score"] == 0.25
    assert json.loads(facts(root)["gen_ai.input.messages"])[0]["parts"] == [{"type": "text", "content": "Do it."}]
    assert facts(chat)["gen_ai.usage.input_tokens"] == "100"
    (said,) = json.loads(facts(chat)["gen_ai.output.messages"])
    assert (said["role"], said["finish_reason"]) == ("assistant", TRACES[1].turns[0].reply.finish_reason or "stop")
    (seen,) = json.loads(facts(found[1][3])["gen_ai.input.messages"])  # Of the second turn.
    assert seen["parts"] == [{"type": "tool_call_response", "id": "c0", "response": '{"rows": 0}'}]
    assert facts(tool)["gen_ai.tool.call.result"] == '{"rows": 0}'
    assert [facts(one)["gen_ai.evaluation.name"] for one in root["events"]] == ["done"]
    assert [one["status"]["code"] for one in found[1] if "status" in one] == [2, 2]
    assert found[2][0]["status"]["message"].startswith("quintain:tool_bug")


def test_spans_have_the_measured_times(folder: Path, tmp_path: Path) -> None:
    seconds = {"model_s": 4.0, "tool_s": 2.0, "verifier_s": 0.5, "queue_s": 0.0, "total_s": 7.0}
    row = {"task": "a", "member": 0, "attempt": 0, "began": 1000.5, "turns": [[1, 0.5, 0], [2, 1, 0.25], [1, 0.5, 0]]}
    (folder / "timings.jsonl").write_bytes(codec.json(row | seconds) + b"\n" + b'{"task": "a", "mem')
    episode = spans(folder, tmp_path / "spans.jsonl")[0]
    times = [(int(one["startTimeUnixNano"]) / 1e9, int(one["endTimeUnixNano"]) / 1e9) for one in episode]
    steps = [(1000.5, 1001.5), (1001.5, 1002.0), (1002.0, 1004.0), (1004.0, 1005.0), (1005.0, 1006.0), (1006.0, 1006.5)]
    assert times == [(1000.5, 1007.5), *steps]
    assert facts(episode[0])["quintain.times"] == "measured"


def test_spans_are_requests_of_the_protocol(folder: Path, tmp_path: Path) -> None:
    json_format = pytest.importorskip("google.protobuf.json_format", reason="pip install opentelemetry-proto")
    service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    spans(folder, tmp_path / "spans.jsonl")
    for line in (tmp_path / "spans.jsonl").read_text().splitlines():
        request = json_format.Parse(line, service.ExportTraceServiceRequest())
        assert request.resource_spans[0].scope_spans[0].spans


def test_a_file_of_traces_alone_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "some.jsonl").write_bytes(trace("a").to_json() + b"\n")
    with pytest.raises(SystemExit) as left:
        main(["export", str(tmp_path / "some.jsonl"), "--format", "otlp"])
    assert left.value.code == 2
    assert "needs a run folder" in capsys.readouterr().err
