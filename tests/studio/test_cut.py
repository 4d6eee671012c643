"""Texts of more than 100,000 characters: cut out of an episode, and brought when someone asks for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

pytest.importorskip("starlette", reason="pip install 'quintain[studio]'")
pytest.importorskip("httpx", reason="pip install 'quintain[http]'")

from starlette.testclient import TestClient

from quintain.errors import UsageError
from quintain.studio import access
from quintain.studio.app import build
from quintain.studio.cut import MOST, cut, text_at
from quintain.studio.folders import Runs
from quintain.trace import Message, Reply, Step, Text, ToolCall, Trace
from tests.studio.runs import HOSTILE, line, trace, write
from tests.studio.studio import AXE, Reading, missing, started

LONG = f"first {HOSTILE} " + "é 😀 " * (MOST // 4) + "last"


def lengthy() -> Trace:
    """Returns an episode whose call, result, reply and thoughts are long."""
    made = trace("long task", turns=3)
    call = ToolCall("c", "write", json.dumps({"text": "x" * MOST}))
    reply = Reply(Message("assistant", (Text(LONG),), calls=(call,), reasoning="think " * MOST))
    steps = (Step(call, LONG), Step(ToolCall("d", "read", "{}"), "short"))
    made.turns[1] = msgspec.structs.replace(made.turns[1], reply=reply, steps=steps)
    return made


def test_long_texts_are_cut_and_answered() -> None:
    whole = line(lengthy())
    short = json.loads(cut(whole, "there"))
    turn = short["trace"]["turns"][1]
    message = turn["reply"]["message"]
    found = [message["content"][0]["text"], message["reasoning"], turn["steps"][0]["observation"]]
    found += [turn["steps"][0]["call"]["arguments"], message["calls"][0]["arguments"]]
    texts = [LONG, "think " * MOST, LONG, *[json.dumps({"text": "x" * MOST})] * 2]
    for one, text in zip(found, texts, strict=True):
        assert (one["cut"], one["length"]) == (text[:1200], len(text))
        assert one["at"].startswith("there?at=")
    assert turn["steps"][1]["observation"] == "short"
    assert len(json.dumps(short)) < MOST
    assert cut(line(trace("short")), "there") == line(trace("short"))


def test_a_cut_text_has_an_address(tmp_path: Path) -> None:
    write(tmp_path / "runs" / "a run", [trace("short"), lengthy()])
    runs = Runs([tmp_path / "runs"], tmp_path / "cache")
    client = TestClient(build(runs, "secret", 7414), base_url="http://127.0.0.1:7414")
    client.cookies.set(access.COOKIE, "secret")
    client.get("/api/runs/a run/columns")
    turn = client.get("/api/runs/a run/episodes/1?cut=1").json()["trace"]["turns"][1]
    for place in (turn["steps"][0]["observation"], turn["reply"]["message"]["content"][0]["text"]):
        assert client.get(f"/api/{place['at']}").json() == LONG
    assert client.get("/api/runs/a run/episodes/1").content == line(lengthy())
    assert client.get("/api/runs/a run/episodes/1/text?at=[]").status_code == 404
    runs.close()


@pytest.mark.parametrize("at", ["", "5", "[", '["trace"]', '["trace", "no"]', '["trace", "turns", 99]', "[0]"])
def test_another_address_has_no_text(at: str) -> None:
    with pytest.raises(UsageError, match="no text"):
        text_at(line(trace("t")), at)


@pytest.mark.slow
@pytest.mark.skipif(bool(missing()), reason=missing() or "never")
def test_the_page_brings_a_long_text(tmp_path: Path) -> None:
    write(tmp_path / "runs" / "first", [lengthy()])
    buttons = "[...document.querySelectorAll('#t1 button')].filter(one => one.textContent.startsWith('fetch'))"
    with started(tmp_path / "runs", tmp_path) as address, Reading() as browser:
        browser.show(f"{address}#/first/e/long%20task/0?t=1")
        browser.until(f"{buttons}.length === 4")
        assert browser.run("document.documentElement.outerHTML.length") < MOST
        said: list[Any] = browser.run(f"{buttons}.map(one => one.textContent.trim())")
        assert said[1] == f"fetch all {len(LONG):,} characters"
        assert not AXE.exists() or browser.violations() == []
        before = len(browser.requests())
        browser.run(f"{buttons}[1].click()")
        browser.until(f"{buttons}.length === 3")
        assert sum("/text?at=" in url for url in browser.requests()[before:]) == 1
        text = browser.run("document.querySelectorAll('#t1 > [data-label=says]')[0].textContent")
        assert "last" in text
        assert "[U+202E]" in text
        assert browser.run("window.broken === undefined && document.querySelectorAll('img').length === 0")
        browser.press("v")
        browser.until("document.querySelector('.panel .heard')")
