"""Bad days of the studio: the run goes, shrinks, or has two writers; the disk is full; two tabs write at once."""

from __future__ import annotations

import json
import resource
import shutil
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="pip install 'quintain[studio]'")
pytest.importorskip("httpx", reason="pip install 'quintain[http]'")

from starlette.testclient import TestClient

from quintain.studio import access
from quintain.studio.app import build
from quintain.studio.folders import Runs
from tests.studio.runs import Reader, line, trace, write
from tests.studio.studio import Reading, missing, started

PORT = 7414
ORIGIN = f"http://127.0.0.1:{PORT}"
TRACES = [trace(f"t{n}", m) for n in range(4) for m in range(2)]
REQUESTS = (
    "", "/columns", "/episodes/0", "/episodes/0/seconds", "/episodes/0/changes", "/holding?q=fine", "/search?q=fine",
    "/metrics", "/live", "/live/turns", "/export?n=0", "/reviews", "/agreement", "/profile", "/labels/0",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "runs" / "other", TRACES)
    return write(tmp_path / "runs" / "first", TRACES)


@pytest.fixture
def runs(folder: Path, tmp_path: Path) -> Iterator[Runs]:
    made = Runs([folder.parent], tmp_path / "cache")
    yield made
    made.close()


@pytest.fixture
def client(runs: Runs) -> TestClient:
    app = build(runs, "secret", PORT, reviewer="ada")
    return TestClient(app, base_url=ORIGIN, headers={"origin": ORIGIN}, cookies={access.COOKIE: "secret"})


def columns(client: TestClient) -> dict[str, list[Any]]:
    reader = Reader()
    reader.apply(client.get("/api/runs/first/columns").content)
    return reader.columns


def judged(client: TestClient, row: int = 0, owner: str = "env") -> tuple[int, Any]:
    answer = client.post("/api/runs/first/reviews", json={"kind": "verdict", "rows": [row], "owner": owner})
    return answer.status_code, answer.json()


@pytest.mark.parametrize("what", ["folder", "traces"])
def test_a_run_that_was_deleted_is_named(client: TestClient, folder: Path, what: str) -> None:
    columns(client)
    shutil.rmtree(folder) if what == "folder" else (folder / "traces.jsonl").unlink()
    assert [run["name"] for run in client.get("/api/runs").json()] == ["other"]
    for path in REQUESTS:
        answer = client.get(f"/api/runs/first{path}")
        assert (answer.status_code, "no run 'first'; it has other" in answer.json()["detail"]) == (404, True), path
    assert judged(client)[0] == 400
    assert folder.exists() == (what == "traces")
    write(folder, TRACES[:1])
    assert columns(client)["task"] == ["t0"]


def test_a_run_that_was_truncated_shows_what_is_left(client: TestClient, folder: Path) -> None:
    columns(client)
    judged(client, 1)
    judged(client, 7)
    whole = (folder / "traces.jsonl").read_bytes()
    (folder / "traces.jsonl").write_bytes(whole[: len(whole) // 2 + 100])
    assert columns(client)["task"] == [one.task for one in TRACES[:4]]
    assert client.get("/api/runs/first/episodes/7").status_code == 404
    reviews = client.get("/api/runs/first/reviews").json()["reviews"]
    assert sorted((one["n"] is None, one["stale"]) for one in reviews) == [(False, False), (True, True)]
    (folder / "traces.jsonl").write_bytes(whole)
    assert columns(client)["task"] == [one.task for one in TRACES]
    assert not any(one["stale"] for one in client.get("/api/runs/first/reviews").json()["reviews"])


def test_whole_lines_of_two_writers_are_episodes(client: TestClient, folder: Path) -> None:
    mine, other = line(trace("t0", 0, say="mine")), line(trace("t0", 0, say="of the other"))
    with (folder / "traces.jsonl").open("ab") as file:
        file.write(mine + other[:300] + mine + other)
    found = columns(client)
    assert list(zip(found["task"], found["member"], strict=True))[8:] == [("t0", 0), ("t0", 0)]
    assert [client.get(f"/api/runs/first/episodes/{n}").content for n in (8, 9)] == [mine, other]
    assert client.get("/api/runs").json()[0]["broken"] == 1
    # Three episodes have the key now. A verdict is about the bytes that were read.
    _, (made,) = judged(client, 8)
    assert made["target"]["digest"] == json.loads(mine)["digest"]


def test_a_full_disk_stops_no_reading(client: TestClient, runs: Runs, folder: Path) -> None:
    columns(client)
    index = runs["first"].index
    index.database.execute(f"PRAGMA max_page_count = {index.database.execute('PRAGMA page_count').fetchone()[0]}")
    with (folder / "traces.jsonl").open("ab") as file:
        file.writelines(line(trace(f"late {n}", say="x" * 100)) for n in range(500))
    answer = client.get("/api/runs/first/columns?from=8")
    assert (answer.status_code, "database or disk is full" in answer.json()["detail"]) == (404, True)
    assert client.get("/api/runs/first/episodes/3").content == line(TRACES[3])
    assert [run["name"] for run in client.get("/api/runs").json()] == ["first", "other"]
    index.database.execute("PRAGMA max_page_count = 100000")
    assert len(columns(client)["task"]) == 508


def test_a_review_on_a_full_disk_is_refused(client: TestClient, folder: Path) -> None:
    columns(client)
    assert judged(client, 0)[0] == 200
    size = (folder / "reviews" / "ada.jsonl").stat().st_size
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, limit[1]))
    try:
        status, said = judged(client, 1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert (status, "File too large" in said["detail"]) == (400, True)
    assert judged(client, 2)[0] == 200
    answer = client.get("/api/runs/first/reviews").json()
    assert [one["n"] for one in answer["reviews"]] == [0, 2]
    assert [one.partition(" is not")[0] for one in answer["warnings"]] == ["reviews/ada.jsonl, line 2,"]


def test_verdicts_of_two_tabs_are_all_kept(client: TestClient, folder: Path) -> None:
    columns(client)
    with ThreadPoolExecutor(4) as tabs:
        found = [*tabs.map(lambda n: judged(client, n % 8, "env" if n % 2 else "policy"), range(40))]
    assert {status for status, _ in found} == {200}
    lines = [json.loads(one) for one in (folder / "reviews" / "ada.jsonl").read_bytes().splitlines()]
    assert len({one["id"] for one in lines}) == len({one["at"] for one in lines}) == 40
    answer = client.get("/api/runs/first/reviews").json()
    assert (len(answer["reviews"]), answer["warnings"]) == (8, [])


def test_an_index_that_another_program_holds_is_waited_for(client: TestClient, runs: Runs) -> None:
    file = runs["first"].index.file
    with sqlite3.connect(file, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with ThreadPoolExecutor(1) as tab:
            waiting = tab.submit(columns, client)
            with pytest.raises(TimeoutError):
                waiting.result(0.5)
            other.execute("COMMIT")
            assert len(waiting.result(30)["task"]) == 8
    other.close()


@pytest.mark.slow
@pytest.mark.skipif(bool(missing()), reason=missing() or "never")
def test_an_open_table_outlives_its_run(folder: Path, tmp_path: Path) -> None:
    count = "document.querySelector('[role=status]')?.textContent"
    with started(folder.parent, tmp_path) as address, Reading() as browser:
        browser.show(f"{address}#/first/episodes")
        browser.until(f"{count} === '8 of 8'")
        shutil.rmtree(folder)
        browser.until("document.querySelector('[role=alert]')?.textContent.includes(\"no run 'first'\")")
        assert browser.run(count) == "8 of 8"
        write(folder, [trace("back")])
        browser.until(f"{count} === '1 of 1' && !document.querySelector('[role=alert]')")
