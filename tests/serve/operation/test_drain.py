"""The end of a server: in order when it is told once, at once when it is told twice."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.serve.operation.again import mortal
from tests.serve.operation.raw import dial


def _until(holds: Callable[[], bool]) -> None:
    limit = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < limit
        time.sleep(0.01)


def test_calls_end_and_nothing_new_begins(tmp_path: Path) -> None:
    with mortal(tmp_path, "gated") as server:
        server.create("s", index=0)
        answers: list[dict[str, Any]] = []
        caller = threading.Thread(target=lambda: answers.append(server.call("s", "hold", gate="g")))
        caller.start()
        _until(lambda: server.gates.entered("g") == 1)
        assert server.process
        server.process.terminate()
        _until(lambda: server.ask("GET", "/readyz")[0] == 503)
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


def test_told_twice_it_ends_at_once(tmp_path: Path) -> None:
    with mortal(tmp_path, "gated") as server:
        server.create("s", index=0)
        body = json.dumps({"name": "hold", "input": {"gate": "g"}})
        with dial(server.port) as line:
            head = f"POST /call HTTP/1.1\r\nhost: localhost\r\nx-session-id: s\r\ncontent-length: {len(body)}\r\n\r\n"
            line.sendall(f"{head}{body}".encode())
            _until(lambda: server.gates.entered("g") == 1)
            assert server.process
            server.process.terminate()
            _until(lambda: server.ask("GET", "/readyz")[0] == 503)
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
            _until(lambda: server.gates.entered("never") == 1)
            assert server.process
            server.process.terminate()
            assert server.process.wait(30) == 0
