"""The end of a server: in order after one signal, at once after two."""

from __future__ import annotations

import contextlib
import functools
import json
import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.serve.openenv.frames import opened
from tests.serve.operation.again import Mortal, mortal
from tests.serve.operation.raw import dial, until_end
from tests.serve.serving import until


def test_calls_end_and_nothing_new_begins(tmp_path: Path) -> None:
    with mortal(tmp_path, "gated") as server:
        server.create("s", index=0)
        answers: list[dict[str, Any]] = []
        caller = threading.Thread(target=lambda: answers.append(server.call("s", "hold", gate="g")))
        caller.start()
        server.gates.await_entry("g")
        assert server.process
        server.process.terminate()
        until(lambda: server.ask("GET", "/readyz")[0] == 503)
        status, headers, said = server.ask("POST", "/create", "t", body={"split": "train", "index": 0})
        assert status == 503, said
        assert int(headers["retry-after"]) >= 1
        assert server.process.poll() is None
        server.gates.open("g")
        assert server.process.wait(30) == 0
        caller.join()
        assert answers[0]["output"]["blocks"][0]["text"] == "Through g."
        server.start()
        assert server.call("s", "mark", label="after")["output"]["blocks"][0]["text"] == "Marked 2."


def test_server_ends_at_once_on_a_second_signal(tmp_path: Path) -> None:
    with mortal(tmp_path, "gated") as server:
        server.create("s", index=0)
        body = json.dumps({"name": "hold", "input": {"gate": "g"}})
        with dial(server.port) as line:
            head = f"POST /call HTTP/1.1\r\nhost: localhost\r\nx-session-id: s\r\ncontent-length: {len(body)}\r\n\r\n"
            line.sendall(f"{head}{body}".encode())
            server.gates.await_entry("g")
            assert server.process
            server.process.terminate()
            until(lambda: server.ask("GET", "/readyz")[0] == 503)
            started = time.monotonic()
            server.process.terminate()
            assert server.process.wait(30) == 128 + signal.SIGTERM
            assert time.monotonic() - started < 5


def test_a_call_that_does_not_end_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    with mortal(tmp_path, "gated", options=("--drain", "1")) as server:
        server.create("s", index=0)
        body = json.dumps({"name": "hold", "input": {"gate": "never"}})
        with dial(server.port) as line:
            head = f"POST /call HTTP/1.1\r\nhost: localhost\r\nx-session-id: s\r\ncontent-length: {len(body)}\r\n\r\n"
            line.sendall(f"{head}{body}".encode())
            server.gates.await_entry("never")
            assert server.process
            server.process.terminate()
            assert server.process.wait(30) == 0


def test_a_world_that_is_still_being_built_is_not_waited_for(tmp_path: Path) -> None:
    with mortal(tmp_path, "gated") as server:
        server.create("s", index=1)
        server.gates.await_entry("start")
        assert server.process
        server.process.terminate()
        assert server.process.wait(30) == 0
        assert "ending: waiting" not in server.said


# --- all protocols at once


MORE = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
    "mcp-protocol-version": "2025-11-25",
}


class Callers:
    """Clients, one of each protocol, each with a session and a call that lasts."""

    def __init__(self, server: Mortal) -> None:
        self.server = server
        self.said: dict[str, str] = {}
        self.threads: list[threading.Thread] = []

    def all_begin(self) -> None:
        url = f"http://127.0.0.1:{self.server.port}"
        with contextlib.ExitStack() as opening:
            wire = opening.enter_context(opened(url, "gated"))
            wire.ask("reset")
            self._begin("openenv socket", lambda: str(wire.read("hold", gate="g")))
            self._stay = opening.pop_all()
        _, headers, _ = self.server.ask("POST", "/openenv/gated/reset", body={})
        step = {"action": {"tool_name": "hold", "arguments": {"gate": "g"}}, "session_id": headers["x-session-id"]}
        self._begin("openenv", lambda: self._posted("/openenv/gated/step", step))
        for name in ("control", "mcp"):
            body: dict[str, Any]
            made = json.loads(self.server.ask("POST", "/v1/episodes", body={"environment": "gated"})[2])
            if name == "control":
                path, body = f"/v1/episodes/{made['id']}/calls", {"name": "hold", "arguments": {"gate": "g"}}
            else:
                call = {"name": "hold", "arguments": {"gate": "g"}}
                path = "/e/" + made["mcp_url"].partition("/e/")[2]
                body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
            self._begin(name, functools.partial(self._posted, path, body))
        self.server.create("s", index=0)
        self._begin("ors", lambda: json.dumps(self.server.call("s", "hold", gate="g")))

    def _begin(self, name: str, call: Callable[[], str]) -> None:
        def run() -> None:
            self.said[name] = call()

        self.threads.append(threading.Thread(target=run))
        self.threads[-1].start()

    def _posted(self, path: str, body: Any) -> str:
        status, _, said = self.server.ask("POST", path, body=body, headers=MORE)
        return f"{status} {said.decode()}"

    def leave(self) -> None:
        for thread in self.threads:
            thread.join(30)
        self._stay.close()


@pytest.mark.slow
def test_a_call_of_each_protocol_is_answered_before_the_end(tmp_path: Path) -> None:
    with mortal(tmp_path, "gated") as server, contextlib.ExitStack() as closing:
        idle = [closing.enter_context(dial(server.port)) for _ in range(4)]
        for line in idle:
            line.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert until_end(line, b"}")
        callers = Callers(server)
        callers.all_begin()
        until(lambda: server.gates.entered("g") == 5)
        assert server.process
        server.process.terminate()
        until(lambda: server.ask("GET", "/readyz")[0] == 503)
        for path in ("/create", "/v1/episodes", "/openenv/gated/reset"):
            body = {"environment": "gated"} if path.startswith("/v1") else {"split": "train", "index": 0}
            status, headers, said = server.ask("POST", path, "t" if path == "/create" else "", body=body)
            assert status == 503, (path, said)
            assert int(headers["retry-after"]) >= 1
        began = time.monotonic()
        server.gates.open("g")
        callers.leave()
        assert sorted(callers.said) == ["control", "mcp", "openenv", "openenv socket", "ors"]
        assert all("Through g." in said for said in callers.said.values()), callers.said
        assert server.process.wait(30) == 0
        assert time.monotonic() - began < 8
        for line in idle:
            assert line.recv(65536) == b""
        assert "Traceback" not in server.said, server.said
        counts = re.findall(r"ending: waiting up to 10 s for (\d) calls?\n", server.said)
        assert sum(map(int, counts)) == 5, server.said
