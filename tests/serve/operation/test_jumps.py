"""The clock of the machine is set while a server runs: by hours, forward and back. Nothing that it keeps is moved."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from quintain.serve.http import keys as made
from tests.serve.operation.again import Mortal, mortal
from tests.serve.operation.raw import ask
from tests.serve.serving import until

pytestmark = pytest.mark.slow

FAKETIME = next(map(str, Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), "")
if not FAKETIME:
    pytest.skip("libfaketime is not installed: apt-get install faketime", allow_module_level=True)

HOURS = (5, -5, 70, -70)
HASTY = """
import quintain.serve.http.asgi as asgi, quintain.serve.http.keys as keys, quintain.serve.http.server as server
server.REAP_S, keys.LOOK_S = 0.2, 0.2
asgi.Events.__init__.__kwdefaults__["ping_s"] = 0.1
"""
WORLD = '''
import time
import quintain as qn

class Clock(qn.State):
    """Tells what the machine's clock says."""

    @qn.tool
    def now(self) -> float:
        """Look at it."""
        return time.time()

@qn.reward
def fair(outcome: qn.EpisodeView[Clock]) -> float:
    return 1.0

env = qn.Environment(
    "clock", tasks=lambda split: [qn.Task(id="a", prompt="Look.", start=Clock())], harness=qn.ToolLoop(),
    verifier=qn.Verifier(fair), state=Clock, splits=("train",),
)
'''


class Machine:
    """A server, and the clock by which it lives."""

    def __init__(self, server: Mortal, key: str) -> None:
        self.server = server
        self.key = key

    def set(self, hours: int) -> None:
        """Set its clock so many hours from the true time, and see that it is."""
        part = self.server.folder / "time.new"
        part.write_text(f"{hours * 3600:+d}")
        part.replace(self.server.folder / "time")
        self.ask("POST", "/create", "look", {"env_name": "clock", "split": "train", "index": 0})
        answer = self.ask("POST", "/call", "look", {"name": "now", "input": {}})[1]
        assert abs(float(answer.partition(b'"text":"')[2].partition(b'"')[0]) - time.time() - hours * 3600) < 60
        assert self.ask("POST", "/delete", "look")[0] == 200

    def ask(self, method: str, path: str, session: str = "", body: Any = None, key: str = "") -> tuple[int, bytes]:
        headers = {"x-session-id": session, "x-api-key": key or self.key}
        status, _, said = ask(self.server.port, method, path, body=body, headers=headers)
        return status, said

    def create(self, session: str, env: str = "counter", index: int = 2) -> None:
        body = {"env_name": env, "split": "train", "index": index}
        status, said = self.ask("POST", "/create", session, body)
        assert status == 200, said

    def add(self, session: str) -> bytes:
        return self.ask("POST", "/call", session, {"name": "add", "input": {}})[1]


@contextlib.contextmanager
def machine(folder: Path, *options: str) -> Generator[Machine]:
    (folder / "time").write_text("+0")
    (folder / "clock.py").write_text(WORLD)
    key = made.add(folder / "keys", "lab", "admin")
    variables = {
        "LD_PRELOAD": FAKETIME,
        "FAKETIME_TIMESTAMP_FILE": str(folder / "time"),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",
    }
    targets = ("counter", "gated", f"{folder / 'clock.py'}:env")
    options = ("--keys", str(folder / "keys"), *options)
    with mortal(folder, *targets, options=options, before=HASTY, variables=variables) as server:
        yield Machine(server, key)


def test_sessions_stay_as_long_as_they_may_and_no_longer(tmp_path: Path) -> None:
    with machine(tmp_path, "--idle", "3") as served:
        for number, hours in enumerate(HOURS):
            served.create(f"s{number}")
            served.set(hours)
            assert b"The count is 1." in served.add(f"s{number}")
        left = time.monotonic()
        until(lambda: json.loads(served.ask("GET", "/v1/episodes")[1])["episodes"] == [])
        assert time.monotonic() - left < 15
        assert b"not found" in served.add("s0")


def test_a_call_that_runs_is_kept_alive_and_answered(tmp_path: Path) -> None:
    with machine(tmp_path) as served:
        served.create("s", "gated", 0)
        answers: list[bytes] = []
        # Another tool would block in `time.sleep`, which libfaketime breaks when the clock is set meanwhile.
        body = {"name": "hold_awaiting", "input": {"gate": "g"}}
        caller = threading.Thread(target=lambda: answers.append(served.ask("POST", "/call", "s", body)[1]))
        caller.start()
        served.server.gates.await_entry("g")
        for hours in HOURS:
            served.set(hours)
            time.sleep(0.3)
        served.server.gates.open("g")
        caller.join()
        assert b"Through g." in answers[0]
        assert 8 <= answers[0].count(b": ping") < 200


def test_rates_are_measured_by_a_monotonic_clock(tmp_path: Path) -> None:
    with machine(tmp_path, "--rate", "20") as served:
        for hours in HOURS:
            served.set(hours)
            begin = time.monotonic()
            given = 0
            while served.ask("GET", "/list_environments")[0] == 200:
                given += 1
            assert given <= 45 + 20 * (time.monotonic() - begin)
            until(lambda: served.ask("GET", "/list_environments")[0] == 200)
            assert time.monotonic() - begin < 15
            time.sleep(1)


def until_status(served: Machine, key: str, status: int) -> None:
    until(lambda: served.ask("GET", "/list_environments", key=key)[0] == status)


def test_keys_are_read_again(tmp_path: Path) -> None:
    with machine(tmp_path) as served:
        for number, hours in enumerate(HOURS):
            served.set(hours)
            key = made.add(served.server.folder / "keys", f"new{number}", "agent")
            until_status(served, key, 200)
            made.remove(served.server.folder / "keys", f"new{number}")
            until_status(served, key, 401)


def test_the_next_process_may_live_before_the_one_that_was_killed(tmp_path: Path) -> None:
    with machine(tmp_path) as served:
        served.create("s")
        for count, hours in enumerate((*HOURS, 0), 1):
            assert f"The count is {count}.".encode() in served.add("s")
            served.server.kill()
            (served.server.folder / "time").write_text(f"{hours * 3600:+d}")
            served.server.start()
        status, said = served.ask("POST", "/call", "s", {"name": "submit", "input": {"answer": 3}})
        assert (status, b'"finished":true' in said) == (200, True)
