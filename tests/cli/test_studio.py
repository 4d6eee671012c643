"""`quintain studio`: the addresses that it listens on, and who may come in."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from quintain.serve.http.keys import add
from quintain.studio.page import STATIC
from tests.cli.conftest import Call
from tests.studio.runs import trace, write
from tests.studio.studio import running


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--host", "0.0.0.0"], ["0.0.0.0 can be reached from outside", "--keys FILE"]),
        (["--host", "0.0.0.0", "--keys", "keys.jsonl"], ["--name HOST:PORT"]),
        (["--host", "203.0.113.7", "--keys", "keys.jsonl"], ["cannot listen on 203.0.113.7", "--host"]),
        (["--keys", "lost.jsonl"], ["lost.jsonl", "quintain keys add lost.jsonl"]),
        (["--keys", "keys.jsonl", "--reviewer", "ada"], ["leave out --reviewer"]),
    ],
)
def test_an_address_that_others_reach_needs_keys_and_a_name(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("quintain.studio.server.built", lambda _: b"")
    write(tmp_path / "run", [trace("a")])
    add(tmp_path / "keys.jsonl", "ada", "admin")
    ended = call("studio", "run", *options)
    assert (ended.status, ended.out) == (2, "")
    assert [word for word in words if word not in ended.err] == []


@pytest.mark.skipif(not (STATIC / "studio.js").exists(), reason="the studio's page is not built: make web")
def test_a_key_of_role_admin_opens_the_studio(tmp_path: Path) -> None:
    write(tmp_path / "run", [trace("a")])
    file = tmp_path / "keys.jsonl"
    mine, other = add(file, "Ada", "admin"), add(file, "bot", "agent")
    with running(tmp_path / "run", tmp_path, "--host", "127.0.0.2", "--keys", file) as (_, address):
        assert address.startswith("http://127.0.0.2:")
        assert address.endswith("/")
        statuses = [httpx.get(address, auth=("", key)).status_code for key in (mine, other, "")]
        assert statuses == [200, 401, 401]
        said = httpx.get(f"{address}api/runs/run/reviews", auth=("", mine)).json()
        assert said["reviewer"] == "ada"


@pytest.mark.skipif(not (STATIC / "studio.js").exists(), reason="the studio's page is not built: make web")
def test_a_studio_at_each_address_prints_its_name(tmp_path: Path) -> None:
    write(tmp_path / "run", [trace("a")])
    add(tmp_path / "keys.jsonl", "ada", "admin")
    options = ("--host", "0.0.0.0", "--keys", tmp_path / "keys.jsonl", "--name", "lab.example")
    with running(tmp_path / "run", tmp_path, *options) as (_, address):
        assert address == "http://lab.example/"
