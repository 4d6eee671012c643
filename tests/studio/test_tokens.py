"""Texts of tokens: by the server, on the page, and what is said where they cannot be had."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("starlette", reason="pip install 'quintain[studio]'")
pytest.importorskip("httpx", reason="pip install 'quintain[http]'")

from starlette.testclient import TestClient

from quintain.errors import UsageError
from quintain.studio import access
from quintain.studio.app import build
from quintain.studio.folders import Runs
from quintain.studio.tokens import Tokenizer
from quintain.trace import Tokens, Trace
from tests.studio.runs import HOSTILE, line, trace, write
from tests.studio.studio import AXE, Reading, missing, running

library = pytest.importorskip("tokenizers", reason="pip install 'quintain[tokenizer]'")

IDS = [0, 1, 1, 2, 99]
LOGPROBS = [-0.01, -0.5, -1.5, -3.0, -9.0]
TEXTS = ["I", " can", " can", " " + HOSTILE, ""]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A tokenizer that marks the space before a word, as those of Llama do."""
    made = library.Tokenizer(library.models.WordLevel({"▁I": 0, "▁can": 1, "▁" + HOSTILE: 2}, unk_token="▁I"))
    made.decoder = library.decoders.Metaspace()
    made.save(str(tmp_path / "tokenizer.json"))
    return tmp_path / "tokenizer.json"


def drawn(logprobs: list[float]) -> Trace:
    made = trace("a")
    reply = msgspec.structs.replace(made.turns[1].reply, tokens=Tokens([1], IDS, logprobs))
    made.turns[1] = msgspec.structs.replace(made.turns[1], reply=reply)
    return made


def test_each_token_has_its_text_with_the_space_before_it(file: Path) -> None:
    found = Tokenizer(file.parent).of(line(drawn(LOGPROBS)), 1)
    assert found == list(zip(IDS, TEXTS, LOGPROBS, strict=True))
    assert [one[2] for one in Tokenizer(file).of(line(drawn([])), 1)] == [None] * len(IDS)
    assert Tokenizer(file).of(line(drawn([])), 0) == []


def test_a_part_of_a_character_is_marked(tmp_path: Path) -> None:
    made = library.Tokenizer(library.models.BPE({"Ã": 0, "©": 1, "a": 2}, []))
    made.decoder = library.decoders.ByteLevel()
    made.save(str(tmp_path / "bytes.json"))
    assert Tokenizer(tmp_path / "bytes.json").texts([2, 0, 1, 2]) == ["a", "\ufffd", "\ufffd", "a"]


@pytest.mark.parametrize(
    "tokens", [{"completion": [-1]}, {"completion": ["x"]}, {"completion": [1], "logprobs": [0, 0]}]
)
def test_a_broken_record_is_told(file: Path, tokens: object) -> None:
    forged = msgspec.json.encode({"trace": {"turns": [{"index": 0, "reply": {"tokens": tokens}}]}})
    with pytest.raises(UsageError, match="token"):
        Tokenizer(file).of(forged, 0)


def test_a_broken_file_and_a_missing_library_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bad.json").write_text('{"model": 1}')
    with pytest.raises(UsageError, match=r"bad\.json is not a file of tokenizers: "):
        Tokenizer(tmp_path / "bad.json")
    with pytest.raises(UsageError, match=r"cannot read .*tokenizer\.json: No such file"):
        Tokenizer(tmp_path)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(UsageError, match=r"pip install 'quintain\[tokenizer\]'"):
        Tokenizer(tmp_path)


def test_the_server_answers_with_the_tokens_of_a_turn(file: Path, tmp_path: Path) -> None:
    runs = Runs([write(tmp_path / "runs" / "first", [drawn(LOGPROBS)])], tmp_path / "cache")
    cookies = {access.COOKIE: "secret"}
    place = "/api/runs/first/episodes/0/tokens?turn="
    client, bare = (
        TestClient(build(runs, "secret", 7414, tokenizer=one), base_url="http://127.0.0.1:7414", cookies=cookies)
        for one in (Tokenizer(file), None)
    )
    assert client.get("/api/runs/first").json()["tokenizer"] is True
    client.get("/api/runs/first/columns?from=0")
    assert client.get(place + "1").json() == [list(one) for one in zip(IDS, TEXTS, LOGPROBS, strict=True)]
    assert client.get(place + "9").json() == {"detail": "the episode has no turn 9"}
    assert bare.get(place + "1").json() == {"detail": "the studio was started without --tokenizer"}
    runs.close()


@pytest.mark.slow
@pytest.mark.skipif(bool(missing()), reason=missing() or "never")
def test_a_fold_shows_the_tokens_of_a_turn(file: Path, tmp_path: Path) -> None:
    folder = write(tmp_path / "runs" / "first", [drawn(LOGPROBS)])
    with running(folder, tmp_path, "--tokenizer", file) as (_, address), Reading() as browser:
        browser.show(address)
        browser.until("document.querySelectorAll('table.runs tbody tr').length")
        browser.show(address.split("?")[0] + "#/first/e/a/0")
        browser.until("document.querySelector('#t1 summary')")
        assert browser.run("document.querySelectorAll('section.turn summary').length") == 1
        browser.run("document.querySelector('#t1 summary').click()")
        browser.until("document.querySelector('#t1 .token')")
        shades = browser.run("[...document.querySelectorAll('#t1 .token')].map(one => one.className.slice(-1))")
        assert shades == ["0", "1", "2", "3", "4"]
        said = browser.run("document.querySelector('#t1 details').innerText")
        assert "5 tokens, mean logprob -2.802; least likely: #99 -9, " in said
        assert "[U+202E]evil[U+200B]" in said
        assert browser.run("window.broken === undefined && document.querySelectorAll('img').length === 0")
        assert not AXE.exists() or browser.violations() == []
