"""Server of the studio: its answers, and what it refuses."""

from __future__ import annotations

import json
import stat
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="pip install 'quintain[studio]'")
pytest.importorskip("httpx", reason="pip install 'quintain[http]'")

from starlette.testclient import TestClient

from quintain.errors import UsageError
from quintain.studio import access, page
from quintain.studio.app import build
from quintain.studio.folders import Runs
from quintain.studio.places import folder as home_folder
from tests.studio.runs import HOSTILE, Reader, line, trace, write

PORT = 7414
SECRET = "secret"
TRACES = [trace("a", n) for n in range(3)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "runs" / "first", TRACES)


@pytest.fixture
def stranger(folder: Path, tmp_path: Path) -> Iterator[TestClient]:
    """A client without the token."""
    runs = Runs([folder.parent], tmp_path / "cache")
    yield TestClient(build(runs, SECRET, PORT), base_url=f"http://127.0.0.1:{PORT}")
    runs.close()


@pytest.fixture
def client(stranger: TestClient) -> TestClient:
    stranger.cookies.set(access.COOKIE, SECRET)
    return stranger


def test_the_token_becomes_a_cookie(stranger: TestClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("the page")
    monkeypatch.setattr(page, "STATIC", tmp_path)
    assert stranger.get("/").status_code == 401
    assert stranger.get("/?token=other").status_code == 401
    assert stranger.get("/?token=%C3%A9%ED%A0%80").status_code == 401
    answer = stranger.get(f"/?token={SECRET}", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    said = answer.headers["set-cookie"].lower()
    assert "httponly" in said
    assert "samesite=strict" in said
    assert stranger.get("/").text == "the page"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": f"127.0.0.1:{PORT + 1}"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": f"http://127.0.0.1:{PORT}"}, 200),
        ({"host": f"localhost:{PORT}"}, 200),
    ],
)
def test_foreign_hosts_and_origins_are_refused(client: TestClient, headers: dict[str, str], status: int) -> None:
    assert client.get("/api", headers=headers).status_code == status


def test_requests_without_the_token_get_no_data(stranger: TestClient) -> None:
    for path in ("/", "/static/studio.js", "/api", "/api/runs", "/api/runs/first/episodes/0", "/nothing"):
        answer = stranger.get(path)
        assert answer.status_code == 401, path
        assert "quintain studio" in answer.text


def test_the_studio_only_reads(client: TestClient) -> None:
    methods = ("POST", "PUT", "DELETE", "PATCH")
    own = {"origin": f"http://127.0.0.1:{PORT}"}
    assert {client.request(method, "/api/runs", headers=own).status_code for method in methods} == {405}


def test_each_answer_has_the_policy(client: TestClient) -> None:
    for path in ("/api", "/api/runs", "/api/runs/none", "/nothing"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self';"), path
        assert "require-trusted-types-for 'script'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"


def test_a_line_is_answered_byte_by_byte(client: TestClient) -> None:
    answer = client.get("/api/runs/first/episodes/1")
    assert answer.content == line(TRACES[1])
    again = client.get("/api/runs/first/episodes/1", headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    missing = client.get("/api/runs/first/episodes/3")
    assert (missing.status_code, "no episode 3" in missing.json()["detail"]) == (404, True)


def test_runs_are_listed_with_their_counts(client: TestClient, folder: Path) -> None:
    write(folder.parent / "second", [trace("b", score=0.25)])
    (folder.parent / "second" / "run.json").write_text("not json")
    (folder.parent / "second" / "environment.json").write_text('{"name": "no criteria"}')
    client.get("/api/runs/first/columns")
    rows: list[dict[str, Any]] = client.get("/api/runs").json()
    assert [row["name"] for row in rows] == ["first", "second"]
    assert (rows[0]["environment"], rows[0]["agent"], rows[0]["episodes"], rows[0]["mean"]) == (
        "desk",
        "random",
        3,
        1.0,
    )
    facts = client.get("/api/runs/second").json()
    assert (facts["run"], facts["environment"]) == (None, None)
    assert [warning.partition(":")[0] for warning in facts["warnings"]] == [
        "cannot read run.json",
        "cannot read environment.json",
    ]


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/%2e%2e%2fapp.py",
        "/static//etc/passwd",
        "/api/runs/..%2f..",
    ],
)
def test_paths_stay_below_the_named_folders(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


def test_new_episodes_arrive_while_a_request_waits(client: TestClient, folder: Path) -> None:
    reader = Reader()
    reader.apply(client.get("/api/runs/first/columns?from=0&wait=20").content)
    assert reader.columns["task"] == ["a"] * 3

    def append() -> None:
        with (folder / "traces.jsonl").open("ab") as file:
            file.write(line(trace("late")))

    timer = threading.Timer(0.1, append)
    timer.start()
    reader.apply(client.get("/api/runs/first/columns?from=3&wait=20").content)
    timer.join()
    assert reader.columns["task"] == ["a", "a", "a", "late"]
    assert client.get("/api/runs/first/columns?from=-1").status_code == 404


def test_code_that_a_run_names_is_not_imported(client: TestClient, folder: Path, tmp_path: Path) -> None:
    evil = tmp_path / "evil.py"
    evil.write_text(f"import pathlib; pathlib.Path({str(tmp_path / 'ran')!r}).touch()")
    for name in ("run.json", "environment.json"):
        (folder / name).write_text(json.dumps({"environment": f"{evil}:env", "verifier": f"{evil}:v", "name": "x"}))
    for path in ("", "/columns", "/episodes/0", "/export?n=0"):
        client.get(f"/api/runs/first{path}")
    client.get("/api/runs")
    assert not (tmp_path / "ran").exists()
    assert "evil" not in sys.modules


def test_an_unbuilt_page_says_what_to_do(client: TestClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(page, "STATIC", tmp_path)
    for path in ("/", "/api/runs/first/export?n=0"):
        answer = client.get(path)
        assert (answer.status_code, "run `make web`" in answer.json()["detail"]) == (404, True)


def test_an_exported_file_escapes_what_a_run_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("page.js", "studio.css"):
        (tmp_path / name).write_text("built")
    monkeypatch.setattr(page, "STATIC", tmp_path)
    made = page.page(HOSTILE, [line(trace(HOSTILE))], run=HOSTILE).decode()
    assert made.count("<script") == made.count("</script>") == 2
    assert "<img" not in made
    assert "default-src 'none'" in made


def test_runs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    for place in ("x", "y"):
        write(tmp_path / place / "run", TRACES)
    runs = Runs([tmp_path / "x", tmp_path / "y" / "run"], tmp_path)
    assert [*runs.all()] == ["run", "run~2"]
    with pytest.raises(UsageError, match="the studio has no run 'z'; it has run, run~2"):
        runs["z"]
    for place in ("missing", "x/run/run.json", "."):
        with pytest.raises(UsageError, match=r"not a folder|no run folder"):
            Runs([tmp_path / place], tmp_path)


def test_the_token_is_kept_and_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    state = home_folder("XDG_STATE_HOME", ".local/state")
    assert access.token(state) == access.token(state)
    assert stat.S_IMODE((state / "studio-token").stat().st_mode) == 0o600
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert home_folder("XDG_STATE_HOME", ".local/state") == Path.home() / ".local/state/quintain"


KEYS = {"key-of-ada": "ada", "key-of-ben": "ben"}


@pytest.fixture
def outside(folder: Path, tmp_path: Path) -> Iterator[TestClient]:
    """A client of a studio that listens at another address, without a key."""
    runs = Runs([folder.parent], tmp_path / "cache")
    app = build(runs, SECRET, PORT, hosts=["Lab.example:7414", "proxy.example"], owner_of=KEYS.get, reviewer="login")
    yield TestClient(app, base_url=f"http://lab.example:{PORT}")
    runs.close()


def test_another_address_needs_a_key(outside: TestClient) -> None:
    outside.cookies.set(access.COOKIE, SECRET)
    wrong = ("Basic", "Basic !", "Basic /////w==", "Bearer", "Bearer other", f"Bearer {SECRET}", "key-of-ada")
    for headers in ({}, *({"authorization": value} for value in wrong)):
        answer = outside.get("/api", headers=headers)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, 'Basic realm="studio"'), headers
    assert outside.get(f"/?token={SECRET}", follow_redirects=False).status_code == 401
    assert outside.get("/api", auth=("anything", "key-of-ada")).status_code == 200
    assert outside.get("/api", headers={"authorization": "bearer key-of-ben"}).status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "LAB.example:7414", "origin": "http://lab.example:7414"}, 200),
        ({"host": "proxy.example", "origin": "https://proxy.example"}, 200),
        ({"host": f"localhost:{PORT}"}, 200),
        ({"host": "lab.example"}, 421),
        ({"host": "proxy.example:7414"}, 421),
        ({"host": "evil.example:7414"}, 421),
        ({"host": "proxy.example", "origin": "http://lab.example:7414"}, 403),
        ({"origin": "http://evil.example"}, 403),
    ],
)
def test_a_key_helps_no_other_host_and_no_other_page(outside: TestClient, headers: dict[str, str], status: int) -> None:
    assert outside.get("/api", headers=headers, auth=("", "key-of-ada")).status_code == status


def test_the_owner_of_the_key_is_the_reviewer(outside: TestClient, folder: Path) -> None:
    own = {"origin": f"http://lab.example:{PORT}"}
    outside.get("/api/runs/first/columns", auth=("", "key-of-ada"))
    for key in KEYS:
        body = {"kind": "verdict", "rows": [0], "owner": "env"}
        assert outside.post("/api/runs/first/reviews", json=body, headers=own, auth=("", key)).status_code == 200
    assert {path.name for path in (folder / "reviews").iterdir()} == {"ada.jsonl", "ben.jsonl"}
    said = outside.get("/api/runs/first/reviews", auth=("", "key-of-ben")).json()
    assert (said["reviewer"], sorted(one["reviewer"] for one in said["reviews"])) == ("ben", ["ada", "ben"])
