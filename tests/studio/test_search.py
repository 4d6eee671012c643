"""Search in the texts of runs: places as a plain scan finds them, and in the browser, where Enter opens the turn."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("starlette", reason="pip install 'quintain[studio]'")
pytest.importorskip("httpx", reason="pip install 'quintain[http]'")

from starlette.testclient import TestClient

from quintain.errors import UsageError
from quintain.studio import access
from quintain.studio.app import build
from quintain.studio.finder import fitting
from quintain.studio.folders import Runs
from quintain.studio.index import Index
from quintain.studio.search import PER_EPISODE, hits
from quintain.trace import Trace, plain
from tests.studio.runs import HOSTILE, failed, forged, trace, write
from tests.studio.studio import AXE, Reading, missing, started

PORT = 7414
LETTERS = st.text(st.sampled_from('abAB"\\\n\u00e9\u00c9'), max_size=8)


def scanned(made: Trace, text: str, *, fold: bool) -> list[tuple[int, str]]:
    """Returns turn and label of the texts of turns that hold a text, by looking at each."""
    alike = str.maketrans("AB", "ab") if fold else {}
    # In arguments, a text is escaped.
    wanted = {one.translate(alike) for one in (text, json.dumps(text, ensure_ascii=False)[1:-1])}
    return [(n, label) for n, label, words in texts(made) if any(one in words.translate(alike) for one in wanted)]


def texts(made: Trace) -> Iterator[tuple[int, str, str]]:
    """Yields turn, label and words of the texts of turns."""
    for turn in made.turns:
        yield from ((turn.index, added.role, plain(added.content)) for added in turn.added)
        yield turn.index, "says", plain(turn.reply.message.content)
        for step in turn.steps:
            yield turn.index, "calls", step.call.name
            yield turn.index, "calls", step.call.arguments
            yield turn.index, "sees", plain(step.observation)


@settings(max_examples=25, deadline=None)
@given(said=st.lists(LETTERS, min_size=1, max_size=4), text=LETTERS.filter(len), fold=st.booleans())
def test_hits_are_what_a_scan_of_the_texts_finds(
    said: list[str], text: str, fold: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("run")
    traces = [trace("t", n, say=f"<{words}>", turns=1) for n, words in enumerate(said)]
    index = Index(write(folder, traces), folder / "index.sqlite")
    index.update()
    found = [(one.n, one.turn, one.field) for one in hits(index, f"<{text}", fold=fold) if one.turn is not None]
    index.close()
    assert found == [(n, *place) for n, made in enumerate(traces) for place in scanned(made, f"<{text}", fold=fold)]


ONE = trace("one", say="a Needle in hay")


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    traces = [ONE, trace("two", turns=9, say="needle " * 40), failed("broken")]
    odd = forged(
        task="odd", turns=[{"index": 0, "reply": {"message": {"role": "assistant", "content": 5}}}], x="needle"
    )
    made = Index(write(tmp_path / "run", traces, odd), tmp_path / "index.sqlite")
    made.update()
    yield made
    made.close()


def test_excerpts_show_what_stands_around_it(index: Index) -> None:
    first, *_ = hits(index, "needle", fold=True, field="says")
    assert (first.task, first.turn, first.step, first.excerpt) == ("one", 0, None, ("a ", "Needle", " in hay"))
    exact = list(hits(index, "needle"))
    assert {one.task for one in exact} == {"two", "odd"}
    assert sum(one.task == "two" for one in exact) == PER_EPISODE
    assert max(len("".join(one.excerpt)) for one in exact) < 200
    # What only an unreadable trace has is still found.
    assert [(one.field, one.turn) for one in exact if one.task == "odd"] == [("record", None)]
    assert {one.field for one in hits(index, "KeyError")} == {"failure"}
    with pytest.raises(UsageError, match="needs a text"):
        list(hits(index, ""))


def test_hits_come_line_by_line(tmp_path: Path) -> None:
    write(tmp_path / "runs" / "first", [trace("one", say="needle"), trace("two", say="needle")])
    runs = Runs([tmp_path / "runs"], tmp_path / "cache")
    client = TestClient(build(runs, "secret", PORT), base_url=f"http://127.0.0.1:{PORT}")
    client.cookies.set(access.COOKIE, "secret")
    answer = client.get("/api/runs/first/search?q=NEEDLE&most=3&field=says")
    found: list[dict[str, Any]] = [json.loads(line) for line in answer.text.splitlines()]
    assert [(one["task"], one["turn"], one["field"]) for one in found] == [("one", n, "says") for n in range(3)]
    assert client.get("/api/runs/first/search?q=NEEDLE&case=1").text == ""
    assert client.get("/api/runs/first/search").status_code == 404
    answer = client.get("/api/runs/first/search?q=NE%2B&regex=1&most=2&field=says")
    assert [json.loads(line)["excerpt"][1] for line in answer.text.splitlines()] == ["nee", "nee"]
    assert client.get("/api/runs/first/search?q=NE%2B&regex=1&case=1").text == ""
    assert "is not a regular expression" in client.get("/api/runs/first/search?q=(&regex=1").json()["detail"]
    runs.close()


def fits(index: Index, expression: str, **more: Any) -> list[dict[str, Any]]:
    async def lines() -> list[bytes]:
        return [line async for line in fitting(index, expression, **more)]

    return [json.loads(line) for line in asyncio.run(lines())]


@pytest.mark.parametrize(
    ("expression", "fold"),
    [("^n\\w+|hay$", False), ("^A ne+dle|[0-9]*", True), (r"\{\W+rows", False), ("NEEDLE", False)],
)
def test_an_expression_finds_what_a_scan_finds(index: Index, expression: str, fold: bool) -> None:
    pattern = re.compile(expression, re.MULTILINE | (re.IGNORECASE if fold else 0))
    wanted = [(n, label) for n, label, words in texts(ONE) if any(pattern.findall(words))]
    found = fits(index, expression, fold=fold)
    assert [(one["turn"], one["field"]) for one in found if one["task"] == "one" and "turn" in one] == wanted[:5]
    assert all(pattern.fullmatch(one["excerpt"][1]) for one in found)


def test_a_wrong_expression_is_refused(index: Index) -> None:
    (last,) = fits(index, "a(b")
    assert last == {"detail": "'a(b' is not a regular expression: missing ), unterminated subpattern at position 1"}
    (last,) = fits(index, "(" * 5000 + ")" * 5000)
    assert "is not a regular expression" in last["detail"]


@pytest.fixture
def endless(tmp_path: Path) -> Iterator[Index]:
    """Index of two episodes; on the second one ENDLESS never ends."""
    folder = write(tmp_path / "run", [trace("one", say="needle"), trace("two", say="a" * 60 + "!")])
    made = Index(folder, tmp_path / "index.sqlite")
    made.update()
    yield made
    made.close()


ENDLESS = "needle|(a+)+$"


def test_an_expression_without_end_is_ended(endless: Index) -> None:
    *hits, last = fits(endless, ENDLESS, seconds=0.2)
    assert {one["task"] for one in hits} == {"one"}
    assert last == {"detail": "the expression takes longer than 0.2 s on one episode; write a simpler one"}


def test_a_search_ends_when_the_client_leaves(endless: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    children = list[asyncio.subprocess.Process]()
    start = asyncio.create_subprocess_exec

    async def started(*words: Any, **more: Any) -> asyncio.subprocess.Process:
        children.append(await start(*words, **more))
        return children[-1]

    async def left() -> int:
        lines = fitting(endless, ENDLESS, seconds=60)
        await anext(lines)
        await lines.aclose()
        return await asyncio.wait_for(children[0].wait(), 10)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", started)
    assert asyncio.run(left()) == -signal.SIGKILL


def enter(browser: Reading, text: str) -> None:
    browser.on(lambda page: page.keyboard.insert_text(text))
    browser.press("Enter")


@pytest.mark.slow
@pytest.mark.skipif(bool(missing()), reason=missing() or "never")
def test_a_hit_opens_its_episode_at_the_turn(tmp_path: Path) -> None:
    write(tmp_path / "runs" / "first", [trace("one", turns=40, say=f"hay {HOSTILE}"), trace("two")])
    write(tmp_path / "runs" / "second", [trace("other", say="HAY")])
    rows = "[...document.querySelectorAll('tbody tr')].map(one => [...one.cells].map(cell => cell.textContent))"
    status = "document.querySelector('[role=status]')?.textContent"
    with started(tmp_path / "runs", tmp_path) as address, Reading() as browser:
        browser.resize(1180, 760)
        browser.show(address)
        browser.until("document.querySelector('table.runs')")
        browser.press("/")
        browser.until("document.activeElement.id === 'search'")
        enter(browser, "hay")
        browser.until(f"{status} === '10 places'")
        found = browser.run(rows)
        assert {line[0] for line in found} == {"first ▸ one, member 0", "second ▸ other, member 0"}
        assert [line[1:3] for line in found[:3]] == [["0", "user"], ["0", "says"], ["1", "says"]]
        assert browser.run("document.querySelector('mark').textContent") == "hay"
        assert "[U+202E]" in found[0][3]
        assert browser.run("window.broken === undefined && document.querySelectorAll('img').length === 0")
        assert not AXE.exists() or browser.violations() == []
        browser.run("document.querySelector('input[name=regex]').click()")
        browser.run("document.getElementById('search').focus()")
        for typed, shown in (("^tw[o]$", "1 place"), ("(", "0 places")):
            browser.run("document.getElementById('search').select()")
            enter(browser, typed)
            browser.until(f"{status} === '{shown}'")
            browser.run("document.getElementById('search').focus()")
        browser.until(
            "document.querySelector('[role=alert]').textContent.startsWith(\"'(' is not a regular expression\")"
        )
        assert not AXE.exists() or browser.violations() == []
        browser.run("location.hash = '#/first/episodes'")
        browser.until("document.querySelector('.scroller .line')")
        browser.press("/")
        browser.until("document.activeElement.id === 'search'")
        enter(browser, '"by": 0')
        browser.until(f"{status} === '8 places'")
        browser.press("j", "j", "Enter")
        browser.until("document.activeElement.id === 't2'")
        assert browser.run("location.hash") == "#/first/e/one/0?t=2"
        assert browser.complaints() == []
