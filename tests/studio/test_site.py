"""A run as a folder for a static host: its files, and the page that reads them with and without ranges."""

from __future__ import annotations

import contextlib
import functools
import json
import socket
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

pytest.importorskip("starlette", reason="pip install 'quintain[studio]'")

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from quintain.cli import main
from quintain.record import read_traces
from quintain.studio import page
from quintain.studio.access import HEADERS
from quintain.studio.reviews import Reviews, Target
from quintain.studio.site import PLACES
from tests.studio.cases import COUNTED, ODD, TRACES
from tests.studio.runs import HOSTILE, failed, line, trace, write
from tests.studio.studio import SECONDS, Reading, missing
from tests.studio.test_reports import report

NAME = 'a "run" & <b> %41'
COUNT = "document.querySelector('[role=status]')?.textContent"
HEADING = "document.querySelector('h1')?.textContent"
MAIN = "document.querySelector('main').textContent"


def export(folder: Path, out: Path, *arguments: str) -> None:
    with pytest.raises(SystemExit) as left:
        main(["export", str(folder), "--format", "site", "--out", str(out), *arguments])
    assert not left.value.code


@pytest.fixture
def unbuilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "static").mkdir()
    for name in page.TYPES:
        (tmp_path / "static" / name).write_text("<html><head></head></html>")
    monkeypatch.setattr(page, "STATIC", tmp_path / "static")


@pytest.mark.usefixtures("unbuilt")
def test_places_are_those_of_the_lines_and_their_facts(tmp_path: Path) -> None:
    traces = [trace("a"), failed("b"), trace(HOSTILE, 2, say=HOSTILE)]
    folder = write(tmp_path / NAME, traces)
    (folder / "traces.jsonl").write_bytes(line(traces[0]) + b"broken\n" + b"".join(map(line, traces[1:])) + b"torn")
    (folder / "labels.jsonl").write_text('{"task": "b", "owner": "infra", "why": "late"}\n')
    export(folder, tmp_path / "out")
    whole, facts = ((tmp_path / "out" / name).read_bytes() for name in ("traces.jsonl", "files/facts"))
    assert whole == (folder / "traces.jsonl").read_bytes()
    places = [*PLACES.iter_unpack((tmp_path / "out/files/places").read_bytes())]
    assert [whole[int(place[0]) : int(place[1])] for place in places] == [*map(line, traces)]
    said = [json.loads(facts[int(place[2]) : int(place[3])]) for place in places]
    assert [[one["owner"] for one in json.loads(each["labels"])] for each in said] == [[], ["infra"], []]
    assert str(tmp_path) not in "".join(
        path.read_bytes().decode("latin-1") for path in (tmp_path / "out").rglob("*") if path.is_file()
    )
    assert 'data-run="a &quot;run&quot; &amp; &lt;b&gt; %41"' in (tmp_path / "out/index.html").read_text()


@pytest.mark.usefixtures("unbuilt")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--out", "there"], "there exists; name a folder that does not"),
        (["--out", "new", "--where", "score<1"], "--where chooses episodes of --format table, run, html"),
        (["--out", "new", "--without", "names"], "--without and --canary change a file of --format html"),
        ([], "--format site needs a file"),
    ],
)
def test_wrong_wishes_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(write(tmp_path / "run", [trace("a")]))
    Path("there").mkdir()
    with pytest.raises(SystemExit) as left:
        main(["export", ".", "--format", "site", *arguments])
    assert left.value.code == 2
    assert words in capsys.readouterr().err
    assert not Path("new").exists()


class Host:
    """ASGI application: a static host that knows ranges, with the headers of the studio, below a path.

    Attributes:
        parts: Path, status and size of each answer.
    """

    def __init__(self, folder: Path) -> None:
        routes = [Mount("/some/where", StaticFiles(directory=folder, html=True))]
        self._app: ASGIApp = Starlette(routes=routes)
        self.parts: list[tuple[str, int, int]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                size = int(dict(message["headers"]).get(b"content-length", 0))  # None where nothing was modified.
                self.parts.append((Request(scope).url.path.removeprefix("/some/where/"), message["status"], size))
                message["headers"] += [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
            await send(message)

        await self._app(scope, receive, sent)


@contextlib.contextmanager
def hosted(host: Host) -> Iterator[str]:
    """Yields the address."""
    server = uvicorn.Server(uvicorn.Config(host, log_level="warning", lifespan="off"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/some/where/"
        finally:
            server.should_exit = True
            thread.join(SECONDS)


@contextlib.contextmanager
def hosted_without_ranges(folder: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Says nothing."""

    handler = functools.partial(Quiet, directory=folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = write(tmp_path / NAME, TRACES, b"broken\n" + ODD)
    (folder / "run.json").write_text('{"fingerprint": "f1"}')
    (folder / "metrics.jsonl").write_text('{"step": 10, "loss": 0.5}\n{"step": 20, "loss": 0.25}\n')
    (folder / "labels.jsonl").write_text('{"task": "lend 5", "member": 3, "owner": "env", "why": "graded twice"}\n')
    report(folder / "audit", "f1")
    target = Target(task="lend 5", member=2, digest=json.loads(line(TRACES[22]))["digest"])
    Reviews(folder).add("ada", [{"kind": "verdict", "owner": "verifier", "modes": [], "target": target}])
    export(folder, tmp_path / "out")
    return tmp_path / "out"


@pytest.mark.slow
@pytest.mark.skipif(bool(missing()), reason=missing() or "never")
def test_a_static_host_shows_the_run(site: Path) -> None:
    host = Host(site)
    with hosted(host) as address, Reading() as browser:

        def see(screen: str, words: str) -> None:
            browser.run(f"location.hash = '#/' + encodeURIComponent({NAME!r}) + {screen!r}")
            browser.until(f"{MAIN}.includes({words!r})")

        browser.show(address)
        browser.until("document.querySelector('table.runs tbody a')")
        browser.run("document.querySelector('table.runs tbody a').click()")
        browser.until(f"{COUNT} === '{COUNTED} of {COUNTED}'")
        browser.run("location.hash += '?where=' + encodeURIComponent('label:verifier')")
        browser.until(f"{COUNT} === '1 of {COUNTED}'")
        assert browser.run("[...document.querySelectorAll('a[download]')].every(one => !one.checkVisibility())")
        browser.press("Enter")
        browser.until(f"{HEADING} === 'lend 5 member 2' && document.querySelectorAll('section.turn').length === 23")
        browser.press("]")
        browser.until(f"{HEADING} === 'lend 5 member 3' && {MAIN}.includes('graded twice')")
        browser.press("d")
        browser.until("document.querySelector('.panel')?.textContent.includes('this folder does not hold that')")
        see("/g/lend%205", "Where they part")
        see("/e/odd/0", "cannot be drawn")
        see("/shapes", "done")
        see("/tasks", "search")
        see("/curves", "loss")
        see("/findings", "look does not show what finish wrote")
        see("/review", "for this studio only reads")
        see("/agreement", "episodes judged by several")
        see("/live", "Nothing is in play")
        see("/search?q=fine", "this folder does not hold that")
        browser.run("location.hash = '#/other/episodes'")
        browser.until(f"{MAIN}.includes('this folder does not hold that')")
        assert {url.split("/")[2] for url in browser.requests() if not url.startswith("data:")} == {
            address.split("/")[2]
        }
        assert browser.complaints() == []
    episodes = [(status, size) for path, status, size in host.parts if path == "traces.jsonl"]
    wanted = [len(line(TRACES[22])), len(line(TRACES[23]))]
    assert episodes[:2] == [(206, size) for size in wanted]
    assert {status for status, _ in episodes} <= {206, 304}
    assert {size for path, status, size in host.parts if path == "files/places" and status != 304} == {PLACES.size}


@pytest.mark.slow
@pytest.mark.skipif(bool(missing()), reason=missing() or "never")
def test_a_host_without_ranges_shows_an_episode(site: Path) -> None:
    with hosted_without_ranges(site) as address, Reading() as browser:
        browser.show(f"{address}#/{quote(NAME)}/e/lend%205/3")
        browser.until(f"{HEADING} === 'lend 5 member 3' && {MAIN}.includes('graded twice')")
        assert browser.complaints() == []


@pytest.mark.slow
@pytest.mark.skipif(bool(missing()), reason=missing() or "never")
def test_a_folder_holds_the_changes_that_replays_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(SystemExit):
        main(["run", "sales", "--tasks", "1", "--agent", "oracle", "-q", "--out", str(tmp_path / "sales")])
    export(tmp_path / "sales", tmp_path / "out", "--env", "sales")
    (played,) = read_traces(tmp_path / "sales")
    facts = json.loads((tmp_path / "out/files/facts").read_bytes())
    steps = [json.loads(one) for one in facts["changes"].splitlines()]
    changed = next(one for one in steps[1:] if one["changes"])
    with hosted(Host(tmp_path / "out")) as address, Reading() as browser:
        browser.show(f"{address}#/sales/e/{played.task}/0?t={changed['turn']}")
        browser.until(f"document.activeElement.id === 't{changed['turn']}'")
        browser.press("d")
        browser.until(f"document.querySelectorAll('.panel dd').length === {len(changed['changes'])}")
