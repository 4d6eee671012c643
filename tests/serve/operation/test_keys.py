"""Keys: made once, kept as digests, asked for by every protocol, and changed while the server runs."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from quintain.cli import program
from quintain.errors import UsageError
from quintain.serve.http import keys as made
from quintain.serve.http.keys import Caller, Keys, Line
from tests.serve.operation.raw import ask
from tests.serve.serving import Served, environment, serve, until


def quintain(*arguments: str) -> Any:
    return CliRunner().invoke(program, arguments)


def test_a_key_is_printed_once_and_kept_as_a_digest(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    done = quintain("keys", "add", str(file), "lab", "--role", "trainer")
    key = done.stdout.strip()
    assert done.exit_code == 0
    assert key.startswith("qn_")
    assert len(key.partition(".")[2]) == 43  # 256 bits
    assert key.partition(".")[2] not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert Keys(file).caller(key) == Caller("lab", "trainer")
    listed = quintain("keys", "list", str(file)).stdout
    assert listed.split() == ["lab", "trainer", key.partition(".")[0]]


@pytest.mark.parametrize("wrong", ["", "qn_", "qn_0.", "x", "qn_{number}.", "qn_{number}.{secret}x", "{number}", "é"])
def test_malformed_keys_are_refused(tmp_path: Path, wrong: str) -> None:
    key = made.add(tmp_path / "keys", "lab", "admin")
    number, _, secret = key.removeprefix("qn_").partition(".")
    assert Keys(tmp_path / "keys").caller(wrong.format(number=number, secret=secret)) is None


def test_unknown_id_has_no_caller(tmp_path: Path) -> None:
    made.add(tmp_path / "keys", "lab", "admin")
    assert (
        Keys(tmp_path / "keys").caller("qn_") is None
    )  # The line that is compared for unknown ids belongs to no caller.


def test_a_key_is_compared_in_a_time_that_does_not_depend_on_it() -> None:
    class Hash(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            raise AssertionError("this takes longer the more of it is right")

    assert not Line("lab", "agent", "0", salt="00", hash=Hash("0" * 64)).fits("qn_0.x")


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "anyone", "ä", "a/b", "a\n"])
def test_a_name_is_a_word(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="a key's name"):
        made.add(tmp_path / "keys", name, "agent")
    (tmp_path / "keys").write_text(json.dumps(LINE | {"name": name}))
    with pytest.raises(UsageError, match="a key's name"):  # Nor one that was written by hand.
        Keys(tmp_path / "keys")


def test_a_name_has_one_key(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    made.add(file, "lab", "agent")
    with pytest.raises(UsageError, match="already"):
        made.add(file, "lab", "agent")
    made.remove(file, "lab")
    with pytest.raises(UsageError, match="no key"):
        made.remove(file, "lab")
    assert made.read(file) == []


def test_keys_that_are_made_at_once_are_all_kept(tmp_path: Path) -> None:
    threads = [threading.Thread(target=made.add, args=(tmp_path / "keys", f"k{n}", "agent")) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made.read(tmp_path / "keys")) == 20


LINE = {"name": "a", "role": "agent", "number": "1", "salt": "00", "hash": "0" * 64}


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        "[]",
        json.dumps({**LINE, "role": "king"}),
        json.dumps({**LINE, "salt": "xy"}),
        json.dumps({**LINE, "hash": "0"}),
        json.dumps({**LINE, "more": 1}),
        json.dumps(LINE) + "\n" + json.dumps({**LINE, "number": "2"}),
        json.dumps(LINE) + "\n" + json.dumps({**LINE, "name": "b"}),
        "\udcff",
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "keys").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(UsageError, match="keys"):
        Keys(tmp_path / "keys")


def test_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        Keys(tmp_path / "none")


def test_a_file_that_breaks_leaves_the_keys_as_they_were(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "keys"
    key = made.add(file, "lab", "agent")
    keys = Keys(file)
    file.write_text("nonsense")
    keys.look()
    assert keys.caller(key) == Caller("lab", "agent")
    assert "stay as they were" in caplog.text


def test_a_file_that_could_not_be_read_is_read_again_though_it_looks_the_same(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    made.add(file, "lab", "agent")
    keys = Keys(file)
    key = made.add(file, "new", "agent")
    whole, times = file.read_bytes(), file.stat()
    with file.open("r+b") as halfway:
        halfway.write(b" " * len(whole))
        halfway.seek(0)
        halfway.write(b"{")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    keys.look()
    assert keys.caller(key) is None
    with file.open("r+b") as halfway:
        halfway.write(whole)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    keys.look()
    assert keys.caller(key) == Caller("new", "agent")


def test_a_server_does_not_start_where_nobody_could_come_in(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    key = made.add(file, "lab", "agent")
    running = Keys(file)
    made.remove(file, "lab")
    with pytest.raises(UsageError, match="holds no key, so nobody could come in; `quintain keys add"):
        Keys(file)
    running.look()
    assert running.caller(key) is None, "one that runs goes on, and lets nobody in"


@pytest.mark.parametrize("mode", [0o602, 0o620, 0o666])
def test_a_file_that_others_may_change_is_refused(tmp_path: Path, mode: int, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "keys"
    key = made.add(file, "lab", "agent")
    running = Keys(file)
    file.chmod(mode)
    with pytest.raises(UsageError, match=f"others may change {file} .*`chmod go-w {file}`"):
        Keys(file)
    file.touch()
    running.look()
    assert "others may change" in caplog.text
    assert running.caller(key) == Caller("lab", "agent")
    file.chmod(0o644)
    assert Keys(file).caller(key), "all may read it, as where a file is mounted for a user who is not its owner"


# --- a server that asks for them


class Door:
    """A server with a key of each role."""

    def __init__(self, served: Served, file: Path, keys: dict[str, str]) -> None:
        self.served = served
        self.file = file
        self.keys = keys

    def ask(self, method: str, path: str, who: str = "", **more: Any) -> tuple[int, dict[str, str], bytes]:
        headers = {**more.pop("headers", {}), **({"authorization": f"Bearer {self.keys[who]}"} if who else {})}
        return ask(self.served.port, method, path, headers=headers, **more)


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    folder = tmp_path_factory.mktemp("keyed")
    file = folder / "keys"
    names = {"anna": "agent", "bert": "agent", "tess": "trainer", "root": "admin"}
    keys = {name: made.add(file, name, role) for name, role in names.items()}  # type: ignore[arg-type]
    with serve("counter", folder=folder, options=("--keys", str(file))) as served:
        yield Door(served, file, keys)


@pytest.mark.parametrize("path", ["/health", "/healthz", "/readyz"])
def test_health_needs_no_key(door: Door, path: str) -> None:
    assert door.ask("GET", path)[0] == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/list_environments"),
        ("POST", "/create_session"),
        ("POST", "/create"),
        ("POST", "/call"),
        ("GET", "/openenv/counter/health"),
        ("POST", "/openenv/counter/reset"),
        ("GET", "/v1/environments"),
        ("GET", "/metrics"),
        ("GET", "/nowhere"),
        ("GET", "/health/tools"),
    ],
)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": "Basic YTpi"},
        {"x-api-key": ""},
        {"x-api-key": "qn_0.0"},
        {"authorization": "\xff\xfe"},
    ],
)
def test_request_without_a_key_is_refused(door: Door, method: str, path: str, headers: dict[str, str]) -> None:
    status, received, body = door.ask(method, path, headers=headers)
    assert status == 401
    assert received["www-authenticate"].startswith("Bearer")
    assert b"Traceback" not in body


def test_both_headers_are_read(door: Door) -> None:
    for headers in ({"x-api-key": door.keys["anna"]}, {"authorization": f"bearer   {door.keys['anna']}"}):
        assert door.ask("GET", "/list_environments", headers=headers)[0] == 200


@pytest.mark.parametrize("key", ["", "anna"])
def test_a_websocket_asks_for_a_key_too(door: Door, key: str) -> None:
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect

    url = f"ws://127.0.0.1:{door.served.port}/openenv/counter/ws"
    if not key:
        with pytest.raises(InvalidStatus) as refused:
            connect(url)
        assert refused.value.response.status_code == 401
        assert refused.value.response.headers["www-authenticate"].startswith("Bearer")
        return
    with connect(url, additional_headers={"X-API-Key": door.keys[key]}) as socket:
        socket.send(json.dumps({"type": "reset", "data": {}}))
        assert json.loads(socket.recv())["type"] == "observation"


def test_episodes_of_other_keys_are_unknown(door: Door) -> None:
    session = {"X-Session-ID": "annas"}
    body = {"split": "train", "index": 0}
    assert door.ask("POST", "/create", "anna", body=body, headers=session)[0] == 200
    assert door.ask("GET", "/prompt", "anna", headers=session)[0] == 200
    for other in ("bert", "tess"):
        assert door.ask("GET", "/prompt", other, headers=session)[0] == 404
        assert door.ask("POST", "/call", other, headers=session, body={"name": "add", "input": {}})[0] == 404
        assert door.ask("POST", "/ping", other, headers=session)[0] == 404
        assert door.ask("POST", "/delete", other, headers=session)[0] == 200  # As for any that is not there.
    assert door.ask("GET", "/prompt", "anna", headers=session)[0] == 200
    assert door.ask("GET", "/prompt", "root", headers=session)[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "who"),
    [
        ("POST", "/v1/episodes/annas/snapshot", "anna"),
        ("GET", "/v1/episodes/annas/trace", "anna"),
        ("GET", "/metrics", "tess"),
    ],
)
def test_key_of_the_wrong_role_is_refused(door: Door, method: str, path: str, who: str) -> None:
    assert door.ask(method, path, who)[0] == 403


def test_keys_come_and_go_while_the_server_runs(door: Door) -> None:
    key = made.add(door.file, "new", "agent")
    door.served.process.send_signal(signal.SIGHUP)
    until(lambda: ask(door.served.port, "GET", "/list_environments", headers={"x-api-key": key})[0] == 200)
    made.remove(door.file, "new")
    until(lambda: ask(door.served.port, "GET", "/list_environments", headers={"x-api-key": key})[0] == 401)


@pytest.mark.slow
@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.0.2.7", "example.com"])
def test_a_public_address_requires_keys(tmp_path: Path, address: str) -> None:
    target = Path(__file__).parents[1] / "environments.py"
    command = [sys.executable, "-m", "quintain", "serve", f"{target}:counter", "--host", address, "--port", "0"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path, env=environment(tmp_path))
    assert done.returncode == 2
    assert "--keys" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file to somebody else")
def test_a_change_leaves_the_file_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "keys.jsonl"
    made.add(path, "one", "agent")
    os.chown(path, 10001, 10002)
    made.add(path, "two", "agent")
    assert (path.stat().st_uid, path.stat().st_gid, path.stat().st_mode & 0o777) == (10001, 10002, 0o600)
