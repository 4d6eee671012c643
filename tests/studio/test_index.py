"""Index and columns of a run: whole, continued, torn, hostile; and equal to what `quintain show` says."""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quintain.cli import main
from quintain.errors import UsageError
from quintain.record import EpisodeRecord, RunFolder, read_traces
from quintain.studio import columns as module
from quintain.studio.columns import Columns
from quintain.studio.index import Index
from quintain.trace import Step, Timing, ToolCall, Trace, Usage
from tests.studio.runs import HOSTILE, Reader, failed, forged, line, timing, trace, write

TRACES = [trace("a"), trace("b", 1, score=0.1), failed("c"), trace(HOSTILE, 2), trace("a", 3, turns=0)]
BROKEN = [b"{}\n", b"not json\n", line(trace("a")).replace(b"fine", b"fake"), forged(version=99), forged(seed=2**70)]
LINES = [*map(line, TRACES[:2]), *BROKEN, *map(line, TRACES[2:]), forged(tags={"x" * n: "y" for n in range(50)})]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "run", TRACES)


@pytest.fixture
def index(folder: Path, tmp_path: Path) -> Iterator[Index]:
    made = Index(folder, tmp_path / "index.sqlite")
    made.update()
    yield made
    made.close()


def dump(index: Index) -> list[list[Any]]:
    tables = ("episode", "timing", "broken")
    return [index.database.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in tables]


def in_memory(folder: Path) -> Index:
    return Index(folder, ":memory:")


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_index_of_a_prefix_continued_equals_the_index_of_the_whole(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lines = data.draw(st.lists(st.sampled_from(LINES), max_size=8))
    traces, timings = b"".join(lines), b"".join(map(timing, TRACES))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(traces)), max_size=4)))
    folder = write(tmp_path_factory.mktemp("run"), [])
    (index, reader), columns = (in_memory(folder), Reader()), Columns()
    for cut in [*cuts, len(traces)]:
        (folder / "traces.jsonl").write_bytes(traces[:cut])
        (folder / "timings.jsonl").write_bytes(timings[: cut if cut < len(traces) else None])
        assert index.update()
        columns.update(index)
        reader.apply(columns.pack(reader.rows))
    whole = in_memory(folder)
    whole.update()
    assert dump(index) == dump(whole)
    once, all_columns = Reader(), Columns()
    all_columns.update(whole)
    once.apply(all_columns.pack())
    # Seconds that came after their episode was sent are seen when the page is loaded again.
    late = [name for name in reader.columns if name.endswith("_s")]
    for one in (reader, once):
        one.columns = {name: values for name, values in sorted(one.columns.items()) if name not in late}
    assert reader.table() == once.table()
    index.close()
    whole.close()


def test_columns_hold_what_the_traces_say(index: Index) -> None:
    columns, reader = Columns(), Reader()
    assert columns.update(index)
    reader.apply(columns.pack())
    found = reader.columns
    assert found["task"] == [one.task for one in TRACES]
    assert found["end"] == ["terminated", "terminated", "failed", "terminated", "terminated"]
    assert found["component"] == ["", "", "S", "", ""]
    assert found["steps"] == [3, 3, 3, 3, 0]
    assert found["errors"] == [1, 1, 1, 1, 0]
    assert found["moved"] == [1, 1, 1, 1, 0]
    assert found["completion"] == [33, 33, 33, 33, 0]
    assert found["tag.level"] == ["easy", "hard", "easy", "easy", "hard"]
    assert found["tool"] == [["search", "update"]] * 4 + [[]]
    assert found["total_s"] == [1.5] * 5
    assert repr(found["score"]) == repr(array("f", [1.0, 0.1, float("nan"), 1.0, 1.0]).tolist())
    assert repr(found["reward.done"]) == repr(found["score"])
    assert repr(found["reward.progress"]) == "[0.75, 0.75, 0.75, 0.75, nan]"
    assert "reward.seen" not in found


def test_numbers_have_as_few_bytes_as_the_largest_needs(tmp_path: Path) -> None:
    def spent(n: int, tokens: int) -> Trace:
        made = trace(f"task {n}", turns=1)
        reply = msgspec.structs.replace(made.turns[0].reply, usage=Usage(tokens))
        step = Step(ToolCall("c", f"tool {n}", "{}"), "")
        made.turns = [msgspec.structs.replace(made.turns[0], reply=reply, steps=(step,))]
        return made

    traces = [spent(n, 1) for n in range(256)]
    index, columns, reader = in_memory(write(tmp_path, traces)), Columns(), Reader()
    widths = []
    for more in (0, 1, 2**16, 2**31):
        if more:
            traces.append(spent(len(traces), more))
            write(tmp_path, traces)
        index.update()
        columns.update(index)
        message = columns.pack(reader.rows)
        reader.apply(message)
        head = json.loads(message[4 : 4 + int.from_bytes(message[:4], "little")])
        types = {one["name"]: one["type"] for one in head["columns"]}
        widths.append([types[name] for name in ("task", "tool", "prompt", "member", "score")])
    assert widths == [
        ["u1", "u1", "u1", "u1", "f4"],
        ["u2", "u2", "u1", "u1", "f4"],
        ["u2", "u2", "u4", "u1", "f4"],
        ["u2", "u2", "u4", "u1", "f4"],
    ]
    assert reader.columns["task"] == [f"task {n}" for n in range(259)]
    assert reader.columns["tool"] == [[f"tool {n}"] for n in range(259)]
    assert reader.columns["prompt"] == [1] * 257 + [2**16, 2**31]
    with pytest.raises(OverflowError):
        module.Numbers("u4").extend([2**32])
    index.close()


def test_columns_agree_with_show(folder: Path, index: Index, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["show", str(folder), "--list", "--json"])
    said = json.loads(capsys.readouterr().out)["traces"]
    columns, reader = Columns(), Reader()
    columns.update(index)
    reader.apply(columns.pack())
    for name in ("task", "member", "attempt", "turns", "reason"):
        assert reader.columns[name] == [row[name] for row in said], name
    scores = array("f", [float("nan") if row["score"] is None else row["score"] for row in said]).tolist()
    assert repr(reader.columns["score"]) == repr(scores)
    assert [row["index"] for row in said] == [n for (n,) in index.database.execute("SELECT n FROM episode")]


def test_broken_lines_are_counted_with_their_reason(tmp_path: Path) -> None:
    index = in_memory(write(tmp_path, TRACES, b"".join(BROKEN) + line(trace("z"))))
    index.update()
    reasons = [reason for (reason,) in index.database.execute("SELECT reason FROM broken")]
    assert len(reasons) == index.progress()["broken"] == len(BROKEN)
    assert "the digest does not fit" in reasons[2]
    assert "schema version 99" in reasons[3]
    assert index.line(len(TRACES)) == line(trace("z"))
    index.close()


def test_lines_of_hostile_size_are_read(tmp_path: Path) -> None:
    many = forged(tags={f"t{n}": "x" for n in range(5_000)})
    surrogate = line(trace("s")).replace(b'"fine"', b'"\\ud800"')
    index = in_memory(write(tmp_path, [trace("big", say="x" * 1_000_000)], many + surrogate))
    index.update()
    columns = Columns()
    columns.update(index)
    assert (columns.rows, index.progress()["broken"]) == (2, 1)
    assert columns.left_out + module.MOST == 5_000 + 2 + 1  # with two rewards and one tag of the first
    index.close()


def test_a_resumed_run_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with RunFolder(path, {}) as folder:
        folder.add(EpisodeRecord(trace("a"), Timing()))
    with (path / "traces.jsonl").open("ab") as file:
        file.write(line(trace("torn"))[:500])
    index = in_memory(path)
    index.update()
    with RunFolder(path, {}, resume=True) as folder:
        folder.add(EpisodeRecord(trace("b"), Timing()))
    index.update()
    tasks = [task for (task,) in index.database.execute("SELECT task FROM episode ORDER BY n")]
    assert tasks == [one.task for one in read_traces(path)] == ["a", "b"]
    index.close()


@pytest.mark.parametrize("others", [[trace("new")], [trace("new", n) for n in range(20)]], ids=["shorter", "longer"])
def test_another_run_in_the_same_folder_is_indexed_anew(folder: Path, index: Index, others: list[Any]) -> None:
    columns, epoch = Columns(), index.progress()["epoch"]
    columns.update(index)
    write(folder, others)
    index.update()
    columns.update(index)
    assert columns.rows == len(others)
    assert index.progress()["epoch"] != epoch
    reader = Reader()
    reader.apply(columns.pack())
    assert set(reader.columns["task"]) == {"new"}


@settings(max_examples=25, deadline=None)
@given(
    said=st.lists(st.text(st.sampled_from('ab"\\\n\u00e9\u202e'), max_size=12), min_size=1, max_size=6),
    text=st.text(st.sampled_from('ab"\\\n\u00e9\u202e'), min_size=1, max_size=3),
    chunk=st.integers(1, 3000),
)
def test_search_finds_what_a_scan_of_the_texts_finds(
    said: list[str], text: str, chunk: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    traces = [trace("t", n, say=f"<{words}>") for n, words in enumerate(said)]
    index = in_memory(write(tmp_path_factory.mktemp("run"), traces))
    index.update()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("quintain.studio.search.CHUNK", chunk)
        found, rows = index.search(f"<{text}")
        rest, _ = index.search(f"<{text}", 2)
    assert rows == len(said)
    assert found == [n for n, words in enumerate(said) if words.startswith(text)]
    assert rest == [n for n in found if n >= 2]
    assert index.search("") == ([], rows)
    index.close()


def test_a_changed_line_is_not_shown(folder: Path, index: Index) -> None:
    write(folder, [trace("other")])
    with pytest.raises(UsageError, match="changed since it was indexed"):
        index.line(0)
    with pytest.raises(UsageError, match="no episode 99"):
        index.line(99)


def test_an_unusable_index_is_made_anew(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "old.sqlite"
    file.write_bytes(b"no database" * 100)
    first = Index(folder, file)
    first.update()
    first.database.execute("PRAGMA user_version = 99")
    first.close()
    second = Index(folder, file)
    assert second.update()
    assert second.database.execute("SELECT count(*) FROM episode").fetchone() == (len(TRACES),)
    second.close()
    with pytest.raises(UsageError, match="cannot use"):
        Index(folder, tmp_path)
    with pytest.raises(UsageError, match=r"no traces\.jsonl"):
        Index(tmp_path, file)


def test_indexing_in_slices_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quintain.studio.index._BATCH", 2)
    folder = write(tmp_path, TRACES)
    sliced, whole = in_memory(folder), in_memory(folder)
    slices = 0
    while not sliced.update(-1):
        slices += 1
    whole.update()
    assert slices >= 3
    assert dump(sliced) == dump(whole)
    sliced.close()
    whole.close()


def test_two_processes_may_index_one_run(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "shared.sqlite"
    one, other = Index(folder, file), Index(folder, file)
    one.update()
    other.update()
    with sqlite3.connect(file) as database:
        assert database.execute("SELECT count(*) FROM episode").fetchone() == (len(TRACES),)
    database.close()
    one.close()
    other.close()
