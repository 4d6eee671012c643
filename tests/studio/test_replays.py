"""Changes of steps: equal to those of `quintain show`, only with code that the user named, and in bounded time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="pip install 'quintain[studio]'")
pytest.importorskip("httpx", reason="pip install 'quintain[http]'")

from starlette.testclient import TestClient

from quintain import plugins
from quintain.changes import MISSING, shown
from quintain.cli import main
from quintain.studio import access, player
from quintain.studio.app import build
from quintain.studio.folders import Runs
from quintain.studio.replays import Replays
from tests.cli.program import DESK

SECRET = "secret"
Client = Callable[..., TestClient]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with desk.py and a run of it."""
    made = tmp_path_factory.mktemp("desk")
    (made / "desk.py").write_text(DESK)
    command("run", made / "desk.py", "--tasks", "2", "--agent", "oracle", "-q", "--out", made / "run")
    return made


@pytest.fixture
def client(home: Path, tmp_path: Path) -> Iterator[Client]:
    """Makes clients of a studio with other replays."""
    runs, opened = Runs([home / "run"], tmp_path), list[Replays]()

    def make(env: str | None = None, **limits: float) -> TestClient:
        opened.append(Replays(env, **limits))
        base = "http://127.0.0.1:7414"
        return TestClient(build(runs, SECRET, 7414, replays=opened[-1]), base_url=base, cookies={access.COOKIE: SECRET})

    yield make
    for replays in opened:
        replays.close()
    runs.close()


def command(*words: object) -> None:
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    assert not left.value.code


def rows(client: TestClient, n: int = 0, turns: str = ":") -> list[dict[str, Any]]:
    answer = client.get(f"/api/runs/run/episodes/{n}/changes?turns={turns}")
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def test_changes_are_those_that_show_names(client: Client, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    studio = client(f"{home / 'desk.py'}")
    for n in range(2):
        capsys.readouterr()
        command("show", home / "run", "--index", n, "--json")
        expected = json.loads(capsys.readouterr().out)["state_diff"]
        head, *steps = rows(studio, n)
        assert head == {"diverged": None, "stale": False}
        assert [(one["turn"], one["step"]) for one in steps] == [(one["turn"], one["step"]) for one in expected]
        for found, wanted in zip(steps, expected, strict=True):
            sides = [(one["path"], one.get("before"), one.get("after")) for one in found["changes"]]
            assert sides == [(one["path"], side(one, "before"), side(one, "after")) for one in wanted["changes"]]
    _, *steps = rows(studio)
    assert any(step["changes"] for step in steps)
    assert rows(studio, turns="1:2")[1:] == [step for step in steps if step["turn"] == 1]
    assert studio.get("/api/runs/run/episodes/0/changes?turns=x").status_code == 404


def test_steps_that_change_much_are_cut(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env, line = plugins.environment(f"{home / 'desk.py'}"), (home / "run" / "traces.jsonl").read_bytes().splitlines()[0]
    whole = player.played(env, line).steps
    monkeypatch.setattr(player, "_CHANGES", 1)
    cut = player.played(env, line).steps
    assert any(step.more for step in cut)
    assert [len(step.changes) + step.more for step in cut] == [len(step.changes) for step in whole]


def side(change: dict[str, Any], name: str) -> str | None:
    return shown(change[name]) if change.get(name, MISSING) is not MISSING else None


def test_code_that_only_a_run_names_is_not_played(client: Client, home: Path) -> None:
    answer = client().get("/api/runs/run/episodes/0/changes")
    assert answer.status_code == 409
    assert f"imports no code that a run names. If you trust it: quintain studio RUNS --env {home}" in answer.text


def test_another_environment_is_named(client: Client) -> None:
    answer = client("sales").get("/api/runs/run/episodes/0/changes")
    assert (answer.status_code, "not of 'sales'" in answer.text) == (409, True)


def test_a_changed_environment_diverges(client: Client, home: Path, tmp_path: Path) -> None:
    (tmp_path / "desk.py").write_text(DESK.replace("row.total += number", "row.total += number + 1"))
    head, *steps = rows(client(f"{tmp_path / 'desk.py'}"))
    first = json.loads((home / "run" / "traces.jsonl").read_bytes().splitlines()[0])["trace"]
    diverged = next(turn["index"] for turn in first["turns"] if any(s["call"]["name"] == "add" for s in turn["steps"]))
    assert head == {"diverged": diverged, "stale": True}
    assert all(step["turn"] < diverged for step in steps)


def test_an_environment_that_is_gone_is_named(client: Client, tmp_path: Path) -> None:
    (tmp_path / "desk.py").write_text(DESK)
    studio = client(f"{tmp_path / 'desk.py'}")
    (tmp_path / "desk.py").unlink()
    answer = studio.get("/api/runs/run/episodes/0/changes")
    assert (answer.status_code, f"{tmp_path / 'desk.py'}" in answer.json()["detail"]) == (409, True), answer.text


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import time; time.sleep(60)", "took longer than 2 s"),
        ("import os; os._exit(1)", "crashed"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_a_bad_environment_is_an_answer(client: Client, tmp_path: Path, code: str, reason: str) -> None:
    (tmp_path / "bad.py").write_text(code)
    studio = client(f"{tmp_path / 'bad.py'}", seconds=2 if "sleep" in code else 60)
    for _ in range(2):  # The child is started again.
        answer = studio.get("/api/runs/run/episodes/0/changes")
        assert (answer.status_code, reason in answer.text) == (409, True), answer.text
