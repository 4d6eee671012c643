"""Episodes as one HTML file: what it holds, and what it leaves out."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from quintain.cli import main
from quintain.studio import page
from quintain.studio.description import FILE
from quintain.studio.reviews import Reviews, Target
from quintain.trace import Message
from tests.studio.runs import failed, line, trace, write

CANARY = "canary <GUID> 1f2e & more"
SECRETS = {
    "reasons": ["gold-in-reward", "gold-in-end", "gold-in-failure", "gold-in-label", "gold-in-details"],
    "prompts": ["Do it.", "first words", "later system"],
    "names": ["ada", "grader-run", "desk-name", "model-name"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "static").mkdir()
    for name in ("page.js", "studio.css"):
        (tmp_path / "static" / name).write_text("built")
    monkeypatch.setattr(page, "STATIC", tmp_path / "static")
    first = trace("a")
    first.agent, first.environment, first.reason = "model-name", "desk-name", "gold-in-end"
    first.rewards = [
        msgspec.structs.replace(one, reason="gold-in-reward", details={"why": "gold-in-details"})
        for one in first.rewards
    ]
    prompt = (Message("system", "Do it."), Message("user", "first words"))
    first.turns[0] = msgspec.structs.replace(first.turns[0], added=prompt)
    later = (Message("system", "later system"), Message("user", "words of a user"))
    first.turns[1] = msgspec.structs.replace(first.turns[1], added=later)
    lost = failed("b")
    assert lost.failure is not None
    lost.failure = msgspec.structs.replace(lost.failure, message="gold-in-failure")
    made = write(tmp_path / "grader-run", [first, lost])
    (made / "labels.jsonl").write_text('{"task": "a", "owner": "env", "why": "gold-in-label"}\n')
    described = {"name": "desk-name", "fingerprint": "f", "combine": "sum", "criteria": [], "tools": [], "splits": {}}
    (made / FILE).write_text(json.dumps(described))
    target = Target(task="a", member=0, digest=json.loads(line(first))["digest"])
    Reviews(made).add("ada", [{"kind": "verdict", "owner": "env", "modes": [], "target": target}])
    return made


def sent(folder: Path, *arguments: str) -> tuple[str, dict[str, Any]]:
    """Returns the text of the file without its data, and the data."""
    out = folder.parent / "sent.html"
    with pytest.raises(SystemExit) as left:
        main(["export", str(folder), "--format", "html", "--out", str(out), *arguments])
    assert not left.value.code
    text = out.read_text()
    packed = re.search(r'id="data">([^<]*)<', text)
    assert packed is not None
    return text.replace(packed[1], ""), json.loads(zlib.decompress(base64.b64decode(packed[1])))


def test_a_file_leaves_out_what_is_named(folder: Path) -> None:
    text, whole = sent(folder)
    assert [one["trace"]["task"] for one in whole["lines"]] == ["a", "b"]
    everything = json.dumps(whole) + text
    assert [one for words in SECRETS.values() for one in words if one not in everything] == []
    assert "Left out" not in text
    for part, words in SECRETS.items():
        text, found = sent(folder, "--without", part)
        here = json.dumps(found) + text
        assert [one for one in words if one in here] == []
        assert [one for other, many in SECRETS.items() if other != part for one in many if one not in here] == []
        assert f"<p>Left out: {part}.</p>" in text
        assert "words of a user" in here
        assert [one["digest"] for one in found["lines"]] == [one["digest"] for one in whole["lines"]]
    _, found = sent(folder, "--without", "names,prompts,reasons")
    assert [one for words in SECRETS.values() for one in words if one in json.dumps(found)] == []
    assert found["facts"][0]["reviews"][0]["reviewer"] == "reviewer 1"
    assert found["lines"][0]["trace"]["turns"][0]["steps"] == whole["lines"][0]["trace"]["turns"][0]["steps"]


def test_a_file_carries_a_canary_and_the_chosen_episodes(folder: Path) -> None:
    text, found = sent(folder, "--canary", CANARY, "--where", "task:b")
    assert "<p>canary &lt;GUID&gt; 1f2e &amp; more</p>" in text
    assert [one["trace"]["task"] for one in found["lines"]] == ["b"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--format", "html"], "--format html needs a file"),
        (["--format", "html", "--out", "x.html", "--without", "reason"], "reasons, prompts, names, got 'reason'"),
        (["--format", "html", "--out", "x.html", "--where", "task:none"], "a file holds 1 to 500 episodes, got 0"),
        (["--format", "table", "--canary", "x"], "--without and --canary change a file of --format html"),
    ],
)
def test_wrong_wishes_are_refused(
    folder: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(folder.parent)
    with pytest.raises(SystemExit) as left:
        main(["export", str(folder), *arguments])
    assert left.value.code == 2
    assert words in capsys.readouterr().err
    assert not Path("x.html").exists()
