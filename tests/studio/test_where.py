"""Filters of the command line: what they leave, and that they read as the page does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quintain.cli import main
from quintain.record import read_traces
from quintain.studio.reviews import Reviews, Target
from tests.studio.cases import ODD, TRACES, WHERE, WRONG
from tests.studio.runs import trace, write


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return write(tmp_path / "run", TRACES, b"damaged\n" + ODD)


def left(capsys: Any, *arguments: object) -> str:
    with pytest.raises(SystemExit) as ended:
        main([*map(str, arguments)])
    assert not ended.value.code
    return str(capsys.readouterr().out)


def listed(capsys: Any, folder: Path, where: str) -> list[tuple[str, int]]:
    found = json.loads(left(capsys, "show", folder, "--where", where, "--json"))["traces"]
    return [(one["task"], one["member"]) for one in found]


def test_the_command_line_leaves_what_the_page_leaves(folder: Path, capsys: Any) -> None:
    traces = [*TRACES, trace("odd", turns=0)]
    for where, holds in WHERE:
        assert listed(capsys, folder, where) == [(one.task, one.member) for one in traces if holds(one)], where


def test_labels_and_tools_are_terms(folder: Path, capsys: Any) -> None:
    digest = json.loads((folder / "traces.jsonl").read_bytes().splitlines()[1])["digest"]
    target = Target(task=TRACES[1].task, member=1, digest=digest)
    said = {"kind": "verdict", "owner": "env", "modes": ["env.race"], "target": target}
    Reviews(folder).add("ada", [said])
    for where in ("label:env", "by:ada", "mode:env.*", "-label:none"):
        assert listed(capsys, folder, where) == [(TRACES[1].task, 1)]
    assert len(listed(capsys, folder, "label:none")) == len(TRACES)


def test_labels_of_programs_are_terms(folder: Path, capsys: Any) -> None:
    row = {"task": TRACES[1].task, "member": 1, "grade": 0.5, "kind": "late"}
    (folder / "labels").mkdir()
    (folder / "labels" / "judge.jsonl").write_text(json.dumps(row) + "\n")
    for where in ("label.judge.grade<1", "label.judge.kind:l*", "-label.judge.grade:none"):
        assert listed(capsys, folder, where) == [(TRACES[1].task, 1)]
    assert listed(capsys, folder, "label.judge.grade>0.5") == []


def test_wrong_terms_are_refused(folder: Path, capsys: Any) -> None:
    more = (("task<3", "task is text"), ("tool=search", "takes a colon"))
    for wrong, words in (*WRONG, *more):
        with pytest.raises(SystemExit) as ended:
            main(["show", str(folder), "--where", wrong])
        assert ended.value.code == 2
        assert words in capsys.readouterr().err


def test_chosen_episodes_become_a_run_folder_of_their_own(folder: Path, tmp_path: Path, capsys: Any) -> None:
    arguments = ("export", folder, "--format", "run", "--where", "score<1 turns>=10", "--out", tmp_path / "few")
    left(capsys, *arguments)
    wanted = [one for one in TRACES if one.score is not None and one.score < 1 and len(one.turns) >= 10]
    assert list(read_traces(tmp_path / "few")) == wanted
    lines = set((folder / "traces.jsonl").read_bytes().splitlines())
    assert set((tmp_path / "few" / "traces.jsonl").read_bytes().splitlines()) < lines
    for options, words in ((arguments[1:], "exists"), ((folder, "--where", "score<1"), "--where chooses")):
        with pytest.raises(SystemExit) as ended:
            main(["export", *map(str, options)])
        assert ended.value.code == 2
        assert words in capsys.readouterr().err
