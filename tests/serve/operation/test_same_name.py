"""A session's name that is used again while what had it before still runs: neither has to do with the other."""

from __future__ import annotations

import threading
from pathlib import Path

from tests.serve.operation.again import mortal


def test_a_call_that_outlives_its_session_is_not_written_down_for_the_next(tmp_path: Path) -> None:
    with mortal(tmp_path, "gated") as server:
        server.create("twice", index=0)
        late = threading.Thread(target=server.ask, args=("POST", "/call", "twice"), kwargs={"body": SLOW})
        late.start()
        server.gates.await_entry("slow")
        assert server.ask("POST", "/delete", "twice")[0] == 200
        server.create("twice", index=0)
        assert server.call("twice", "mark", label="new")["ok"]
        server.gates.open("slow")
        late.join()
        before = server.trace("twice")
        server.again()
        assert server.trace("twice") == before
        assert server.told("twice")["validity"] == "unknown"


SLOW = {"name": "hold", "input": {"gate": "slow"}}
