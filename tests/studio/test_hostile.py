"""Hostile runs: huge lines, numbers that are none, broken Unicode, odd names. Nothing runs, breaks or is lost."""

from __future__ import annotations

import json
import os
import re
import zlib
from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

pytest.importorskip("starlette", reason="pip install 'quintain[studio]'")
pytest.importorskip("httpx", reason="pip install 'quintain[http]'")

from starlette.testclient import TestClient

from quintain import codec
from quintain.studio import access, page
from quintain.studio.app import build
from quintain.studio.folders import Runs
from quintain.trace import Image, Text
from tests.studio.runs import Reader, forged, line, trace, write
from tests.studio.studio import Reading, missing, started

PORT = 7414
Open = Callable[[Path], TestClient]
PATHS = (
    "", "/columns", "/episodes/0", "/episodes/0/seconds", "/holding?q=fine", "/search?q=fine", "/metrics", "/live",
    "/reviews", "/agreement", "/profile", "/labels/0",
)  # fmt: skip


@pytest.fixture
def studio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Opens the studio on a folder of runs."""
    (tmp_path / "static").mkdir()
    for name in page.TYPES.keys() | {"page.js"}:
        (tmp_path / "static" / name).write_text("built")
    monkeypatch.setattr(page, "STATIC", tmp_path / "static")
    opened = list[Runs]()

    def client(place: Path) -> TestClient:
        opened.append(Runs([place], tmp_path / "cache"))
        app = build(opened[-1], "secret", PORT)
        return TestClient(app, base_url=f"http://127.0.0.1:{PORT}", cookies={access.COOKIE: "secret"})

    yield client
    for runs in opened:
        runs.close()


def columns(client: TestClient, run: str = "run") -> dict[str, list[Any]]:
    reader = Reader()
    reader.apply(client.get(f"/api/runs/{quote(run, safe='')}/columns").content)
    return reader.columns


def sealed(body: str) -> bytes:
    """Returns a line with a right digest around any bytes of a trace."""
    raw = body.encode()
    return b'{"digest":"%s","trace":%s}\n' % (codec.digest(raw).encode(), raw)


def strict(text: str) -> Any:
    """Returns the value of JSON text that a browser reads, too."""

    def refuse(name: str) -> None:
        raise AssertionError(f"a browser cannot read {name}")

    return json.loads(text, parse_constant=refuse)


WHOLE = json.loads(line(trace("a")))["trace"]
FORGED = {
    "NaN": ({"score": "$"}, '"$"', "NaN"),
    "Infinity": ({"score": "$"}, '"$"', "-Infinity"),
    "beyond a float": ({"score": "$"}, '"$"', "1e999"),
    "beyond an integer": ({"seed": "$"}, '"$"', "9" * 400),
    "a large float": ({"score": "$"}, '"$"', "1e308"),
    "a negative count": ({"member": "$"}, '"$"', "-1"),
    "a surrogate in a name": ({"task": "$"}, "$", "\\ud800"),
    "a surrogate in a text": ({"reason": "$"}, "$", "x\\udfff"),
    "a surrogate in a turn": ({"turns": [WHOLE["turns"][0] | {"note": "$"}]}, "$", "\\ud83d"),
    "NUL": ({"task": "$"}, "$", "a\\u0000b"),
    "a name of an object's own": ({"task": "__proto__", "tags": {"__proto__": "$", "constructor": "x"}}, "$", "y"),
    "nested deeply": ({"tags": {}, "more": "$"}, '"$"', "[" * 100_000 + "]" * 100_000),
}


@pytest.mark.parametrize(("fields", "mark", "value"), FORGED.values(), ids=FORGED)
def test_forged_values_are_episodes_or_counted(
    studio: Open, tmp_path: Path, fields: dict[str, Any], mark: str, value: str
) -> None:
    hostile = sealed(json.dumps(WHOLE | {"task": "odd"} | fields).replace(mark, value, 1))
    write(tmp_path / "runs" / "run", [trace("before")], hostile + line(trace("after")))
    client = studio(tmp_path / "runs")
    tasks = columns(client)["task"]
    (row,) = strict(client.get("/api/runs").text)
    assert (tasks[0], tasks[-1]) == ("before", "after")
    assert len(tasks) + row["broken"] == 3
    for path in PATHS:
        answer = client.get(f"/api/runs/run{path}")
        assert answer.status_code == 200, path
        if path not in {"/columns", "/search?q=fine"}:
            strict(answer.text)
    for n in range(len(tasks)):
        assert client.get(f"/api/runs/run/export?n={n}").status_code == 200


@pytest.mark.slow
def test_lines_of_hostile_size_are_read_and_sent(studio: Open, tmp_path: Path) -> None:
    keys = {f"k{n}": n for n in range(100_000)}
    big = trace("big", turns=1, say="x" * 10_000_000)
    many = trace("many", turns=1, say=json.dumps(keys))
    write(tmp_path / "runs" / "run", [big, many], forged(tags=dict.fromkeys(keys, "x")))
    client = studio(tmp_path / "runs")
    assert columns(client)["task"] == ["big", "many", "forged"]
    assert client.get("/api/runs/run/episodes/0").content == line(big)
    hits = client.get("/api/runs/run/search?q=k99999").text.splitlines()
    assert {json.loads(one)["n"] for one in hits} == {1, 2}
    sent = client.get("/api/runs/run/export?n=0,1").text
    packed = re.search(r'id="data">([^<]*)<', sent)
    assert packed is not None
    lines = json.loads(zlib.decompress(b64decode(packed[1])))["lines"]
    assert lines == [json.loads(line(made)) for made in (big, many)]


NAMES = ["a?b#c&d", 'q"<b>', "\u202eevil", "~2", "run"]


def test_runs_of_odd_names_are_opened(studio: Open, tmp_path: Path) -> None:
    for name in NAMES:
        write(tmp_path / "runs" / name, [trace(name)])
        (tmp_path / "runs" / name / "run.json").write_text(json.dumps({"name": "../x/" + name, "agent": "/etc/passwd"}))
    client = studio(tmp_path / "runs")
    assert {run["name"] for run in client.get("/api/runs").json()} == {*NAMES}
    for name in NAMES:
        assert columns(client, name)["task"] == [name]
        assert client.get(f"/api/runs/{quote(name, safe='')}").json()["run"]["name"] == "../x/" + name
        assert client.get(f"/api/runs/{quote(name, safe='')}/export?n=0").status_code == 200


def test_a_name_that_is_no_text_is_opened(studio: Open, tmp_path: Path) -> None:
    write(tmp_path / "runs" / "run", [trace("a")])
    (tmp_path / "runs" / "run").rename(tmp_path / "runs" / os.fsdecode(b"\xff\xfe"))
    client = studio(tmp_path / "runs")
    (row,) = client.get("/api/runs").json()
    assert columns(client, row["name"])["task"] == ["a"]
    assert client.get(f"/api/runs/{quote(row['name'], safe='')}").status_code == 200
    (tmp_path / "runs" / os.fsdecode(b"\xff\xfe") / "traces.jsonl").write_bytes(line(trace("b")))
    answer = client.get(f"/api/runs/{quote(row['name'], safe='')}/episodes/0")
    assert "has changed since it was indexed" in answer.json()["detail"]


@pytest.mark.slow
@pytest.mark.skipif(bool(missing()), reason=missing() or "never")
def test_a_browser_opens_what_is_huge_odd_or_a_picture(tmp_path: Path) -> None:
    svg = "<svg xmlns='http://www.w3.org/2000/svg' onload='window.broken = 1'><script>window.broken = 1</script></svg>"
    drawn = [Text(svg), Image("image/svg+xml", svg.encode()), Image("text/html", b"<script>window.broken = 1</script>")]
    pictures = trace("pictures", turns=1)
    step = msgspec.structs.replace(pictures.turns[0].steps[0], observation=tuple(drawn))
    pictures.turns = [msgspec.structs.replace(pictures.turns[0], steps=(step,))]
    keys = json.dumps({f"k{n}": n for n in range(100_000)})
    made = [pictures, trace("big", turns=1, say="x" * 10_000_000), trace("many", turns=1, say=keys)]
    for name in ("a%2Fb", "..%2F..", "a?b#c"):
        write(tmp_path / "runs" / name, made, sealed(json.dumps(WHOLE | {"task": "$"}).replace("$", "\\ud800")))
    with started(tmp_path / "runs", tmp_path) as address, Reading() as browser:
        browser.show(address)
        browser.until("document.querySelectorAll('table.runs tbody a').length >= 3")
        for name in ("a%2Fb", "..%2F..", "a?b#c"):
            link = f"[...document.querySelectorAll('table.runs th a')].find(one => one.textContent === {name!r})"
            browser.run("location.hash = '#/'")
            browser.until(link)
            browser.run(f"{link}.click()")
            browser.until("document.querySelector('[role=status]')?.textContent.startsWith('3 of 3')")
        for task in ("pictures", "big", "many"):
            browser.run(f"location.hash = '#/' + encodeURIComponent('a%2Fb') + '/e/{task}/0'")
            browser.until(f"document.querySelector('h1')?.textContent === '{task} member 0'")
            browser.until("document.querySelectorAll('section.turn').length === 1")
            if task == "pictures":
                shown = browser.run("document.querySelector('#t0').textContent")
                assert svg in shown
                assert shown.count("which is not shown") == 2
            assert browser.run("window.broken === undefined && document.querySelectorAll('img, iframe').length === 0")
        assert {url.split("/")[2] for url in browser.requests() if not url.startswith("data:")} == {
            address.split("/")[2]
        }
        assert browser.complaints() == []
