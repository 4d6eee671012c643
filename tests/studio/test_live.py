"""Episodes in play: what the flight recorder has written by now, whatever happened to its file."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="pip install 'quintain[studio]'")
pytest.importorskip("httpx", reason="pip install 'quintain[http]'")

from starlette.testclient import TestClient

from quintain import codec
from quintain.studio import access
from quintain.studio.app import build
from quintain.studio.folders import Runs
from quintain.studio.live import Live
from quintain.studio.recorder import FILE
from tests.studio.runs import began, trace, turned, write

A, B = trace("a"), trace("b", 1)
ENDED = b'{"ended":["a",0,0]}\n'


def append(folder: Path, *lines: bytes) -> None:
    with (folder / FILE).open("ab") as file:
        file.write(b"".join(lines))


def rows(live: Live) -> list[tuple[Any, ...]]:
    return [(*row["key"], row["turns"], row["call"], row["errors"]) for row in live.playing()["playing"]]


def test_live_follows_episodes_from_begin_to_end(tmp_path: Path) -> None:
    live = Live(tmp_path)
    assert rows(live) == []
    append(tmp_path, began(A, 5.0), began(B, 6.0), turned(A, 0, 7.0))
    assert rows(live) == [("b", 1, 0, 0, "", 0), ("a", 0, 0, 1, "search", 0)]
    line = turned(A, 1, 8.0)
    append(tmp_path, line[:40])
    assert len(live.turns(("a", 0, 0), 0)["turns"]) == 1
    append(tmp_path, line[40:])
    assert rows(live)[1] == ("a", 0, 0, 2, "update", 1)
    found = live.turns(("a", 0, 0), 1)
    assert json.loads(codec.json(found)) == {
        "turns": [json.loads(codec.json(A.turns[1]))],
        "head": json.loads(began(A, 0))["head"],
    }
    forged = [
        b'{"key":["a",0,0],"turn":{"steps":5}}\n',
        b'{"began":"x"}\n',
        b"[" * 100_000 + b"\n",
        b'"\xff"\n',
        b"5\n",
    ]
    append(tmp_path, b"torn by a full disk\n", *forged)
    assert rows(live)[1] == ("a", 0, 0, 2, "update", 1)
    append(tmp_path, ENDED)
    assert rows(live) == [("b", 1, 0, 0, "", 0)]
    assert live.turns(("a", 0, 0), 0) == {"head": None, "turns": []}


@pytest.mark.parametrize("another", [False, True], ids=["emptied", "another file"])
def test_live_begins_anew_with_the_file(tmp_path: Path, another: bool) -> None:
    live = Live(tmp_path)
    append(tmp_path, began(A, 5.0), turned(A, 0, 6.0))
    assert len(rows(live)) == 1
    before = live.playing()["version"]
    if another:
        (tmp_path / FILE).rename(tmp_path / "old")
        append(tmp_path, began(B, 5.0), turned(B, 0, 6.0), turned(B, 1, 7.0), turned(B, 2, 7.0))
    else:
        (tmp_path / FILE).write_bytes(b"")
    assert rows(live) == ([("b", 1, 0, 3, "search", 1)] if another else [])
    assert live.playing()["version"] > before


def test_a_request_waits_for_the_next_turn(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", [trace("done")])
    append(folder, began(A, 5.0))
    runs = Runs([folder], tmp_path)
    client = TestClient(build(runs, "s", 7414), base_url="http://127.0.0.1:7414", cookies={access.COOKIE: "s"})
    version = client.get("/api/runs/run/live").json()["version"]
    timer = threading.Timer(0.1, append, (folder, turned(A, 0, 9.0)))
    timer.start()
    found = client.get("/api/runs/run/live/turns?task=a&member=0&attempt=0&from=0&wait=20").json()
    assert [turn["index"] for turn in found["turns"]] == [0]
    timer.join()
    assert client.get(f"/api/runs/run/live?from={version}&wait=20").json()["playing"][0]["turns"] == 1
    assert client.get("/api/runs/run/live/turns?task=none").json() == {"head": None, "turns": []}
    runs.close()
