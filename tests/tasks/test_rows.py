from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import quintain as qn
from quintain.errors import DefinitionError, UsageError
from quintain.judges import exact
from quintain.models import Oracle, Scripted
from quintain.tasks import from_file, from_rows, read_rows

ROWS = [{"question": "1 + 1?", "answer": 2}, {"question": "2 + 2?", "answer": 4, "id": "four"}]


def play(env: qn.Environment[Any], task: qn.Task[Any], agent: Any) -> qn.Trace:
    return asyncio.run(qn.rollout(env, task, agent)).trace


def test_rows_become_tasks() -> None:
    env = from_rows("sums", ROWS, scorer=exact(), system="Be brief.")
    assert env.splits == ("test",)
    assert [(task.id, task.prompt, task.truth) for task in env.tasks("test")] == [
        ("test-1", "1 + 1?", 2), ("four", "2 + 2?", 4),
    ]  # fmt: skip
    trace = play(env, env.tasks("test")[1], Oracle())
    assert (trace.score, trace.turns[0].added[0].text) == (1.0, "Be brief.")
    assert play(env, env.tasks("test")[1], Scripted.calls((), "5")).score == 0.0


def test_columns_become_tags(tmp_path: Path) -> None:
    rows = [{**row, "level": level, "page": page} for row, level, page in zip(ROWS, "ab", (1, 2), strict=True)]
    tags = [{"level": "a", "page": "1"}, {"level": "b", "page": "2"}]
    env = from_rows("sums", rows, scorer=exact(), tag_columns=["level", "page"])
    assert [task.tags for task in env.tasks("test")] == tags
    file = tmp_path / "sums.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    env = from_file(str(file), scorer="exact", tag_columns="level, page")
    assert [task.tags for task in env.tasks("test")] == tags
    with pytest.raises(UsageError, match="row 1 has no 'topic'; it has: question, answer, level"):
        from_rows("sums", rows, scorer=exact(), tag_columns=["topic"])


def test_rows_of_several_splits() -> None:
    env = from_rows("sums", {"train": ROWS[:1], "test": iter(ROWS)}, scorer=exact())
    assert env.splits == ("train", "test")
    assert [len(env.tasks(split)) for split in env.splits] == [1, 2]
    assert env.tasks("train")[0].id == "train-1"


def test_a_function_of_answer_and_truth_scores() -> None:
    def close(answer: str, truth: int) -> float:
        return 1 / (1 + abs(float(answer) - truth))

    env = from_rows("sums", ROWS, scorer=close)
    trace = play(env, env.tasks("test")[0], Scripted.calls((), "3"))
    assert (trace.rewards[0].name, trace.score) == ("close", 0.5)


def test_an_async_function_with_a_reason_scores() -> None:
    async def judged(answer: str, truth: int) -> qn.Score:
        await asyncio.sleep(0)
        return qn.Score(0.25, f"{answer} for {truth}")

    env = from_rows("sums", ROWS, scorer=judged)
    (reward,) = play(env, env.tasks("test")[0], Scripted.calls((), "3")).rewards
    assert (reward.value, reward.reason) == (0.25, "3 for 2")


def test_the_code_of_a_scoring_function_is_in_the_fingerprint(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"input": "?", "target": "x"}\n')
    prints: list[str] = []
    for number in (0, 0, 1):
        file = tmp_path / str(len(prints)) / "score.py"
        file.parent.mkdir()
        file.write_text(f"def score(answer, truth):\n    return {number}\n")
        prints.append(from_file(str(tmp_path / "rows.jsonl"), scorer=f"{file}:score").fingerprint)
    assert prints[0] == prints[1] != prints[2]


@pytest.mark.parametrize(
    ("rows", "options", "words"),
    [
        ([], {}, "split 'test' has no rows"),
        (
            [{"text": "?", "answer": 1}],
            {},
            "no column 'prompt' or 'question' or 'input'; the columns are: 'text', 'answer'",
        ),
        ([{"prompt": "?", "gold": 1}], {}, "no column 'answer' or 'target'; the columns are: 'prompt', 'gold'"),
        ([{"prompt": "?", "answer": 1}], {"answer_column": "gold"}, "no column 'gold'.*--answer-column"),
        ([*ROWS, {"question": "?"}], {}, "row 3 has no 'answer'; it has: question"),
        ([*ROWS, {"question": None, "answer": 1}], {}, "row 3 has no 'question'"),
        ([{"question": 7, "answer": 1}], {}, "row 1: 'question' must be text, it is a int"),
        ([ROWS[1], ROWS[1]], {}, "row 2 has the id 'four' of an earlier row"),
    ],
)
def test_wrong_rows_are_refused(rows: list[dict[str, Any]], options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        from_rows("sums", rows, scorer=exact(), **options)


@pytest.mark.parametrize("scorer", [lambda answer: 1.0, "exact", 4])
def test_a_scorer_that_cannot_score_is_refused(scorer: Any) -> None:
    with pytest.raises(UsageError, match="a scorer is a criterion"):
        from_rows("sums", ROWS, scorer=scorer)


def test_a_name_that_is_no_identifier_is_refused() -> None:
    with pytest.raises(DefinitionError, match="identifier"):
        from_rows("my sums", ROWS, scorer=exact())


def test_files_hold_the_same_rows(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, ROWS)) + "\n\n")
    (tmp_path / "a.csv").write_text('\ufeffquestion,answer\n"one, two?",2\n2 + 2?,4\n', encoding="utf-8")
    assert read_rows(tmp_path / "a.jsonl") == ROWS
    assert read_rows(tmp_path / "a.csv") == [
        {"question": "one, two?", "answer": "2"}, {"question": "2 + 2?", "answer": "4"},
    ]  # fmt: skip


def test_parquet_holds_the_same_rows(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[parquet]'")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [{"question": "1 + 1?", "answer": 2}, {"question": "2 + 2?", "answer": 4}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    assert read_rows(tmp_path / "a.parquet") == rows
    (tmp_path / "b.parquet").write_text("no parquet")
    with pytest.raises(UsageError, match=r"b\.parquet is not a Parquet file"):
        read_rows(tmp_path / "b.parquet")


def test_parquet_needs_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "pyarrow.parquet", raising=False)
    with pytest.raises(UsageError, match=r"pip install 'quintain\[parquet\]'"):
        read_rows(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.jsonl", '{"prompt": "?", "answer": 1}\n{"prompt"\n', r"a\.jsonl, line 2 is not a JSON object"),
        ("a.jsonl", "[1]\n", "line 1 is not a JSON object"),
        ("a.jsonl", "", "has no rows"),
        ("a.csv", "prompt,answer\nwhy?\n", "row 1 has no 'answer'"),
        ("a.csv", "\xff", "cannot read"),
        ("a.txt", "", r"suffix '\.txt', expected \.jsonl, \.csv, \.parquet"),
    ],
)
def test_wrong_files_are_refused(tmp_path: Path, name: str, text: str, words: str) -> None:
    (tmp_path / name).write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match=words):
        from_file(str(tmp_path / name), scorer="exact")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read .*gone\.jsonl.*No such file"):
        from_file(str(tmp_path / "gone.jsonl"), scorer="exact")


def test_an_environment_is_named_after_its_file(tmp_path: Path) -> None:
    for file, name in (("my-sums.csv", "my_sums"), ("2024.csv", "_2024")):
        (tmp_path / file).write_text("prompt,answer\n?,1\n")
        assert from_file(str(tmp_path / file), scorer="numeric").name == name
