"""A tool that blocks its thread is given up: the episode is void in every protocol, and its record is kept."""

from __future__ import annotations

import json
import os
from pathlib import Path

from quintain.record import read_traces
from tests.serve import stuck
from tests.serve.openenv.frames import opened
from tests.serve.operation.raw import ask
from tests.serve.serving import serve

KIND = "quintain:tool_timeout"
HASTY = "import quintain.serve.limits as limits\nlimits.GRACE_S = 0.1"


def test_every_protocol_tells_it_and_the_record_is_kept(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / stuck.PIPE)
    options = ("--out", str(tmp_path / "out"))
    with serve("env", folder=tmp_path, file=Path(stuck.__file__), options=options, before=HASTY) as served:
        at = {"x-session-id": "s"}
        assert ask(served.port, "POST", "/create", body={"split": "train", "index": 0}, headers=at)[0] == 200
        status, _, said = ask(served.port, "POST", "/call", body={"name": "read", "input": {}}, headers=at)
        assert status == 200
        assert KIND.encode() in said, said
        with opened(served.url, "stuck") as wire:
            wire.ask("reset", index=0)
            void = wire.refused("step", tool_name="read", arguments={})
            assert void["metadata"]["dev.quintain/failure"]["kind"] == KIND
        begun = ask(served.port, "POST", "/v1/episodes", body={"environment": "stuck", "index": 0})[2]
        path = f"/v1/episodes/{json.loads(begun)['id']}/calls"
        status, _, said = ask(served.port, "POST", path, body={"name": "read", "arguments": {}})
        assert (status, json.loads(said)["status"]["failure"]["kind"]) == (200, KIND)
        os.close(os.open(tmp_path / stuck.PIPE, os.O_RDWR))  # All that wait for it go on.
    traces = list(read_traces(tmp_path / "out" / "stuck"))
    assert [(one.failure and one.failure.kind, one.criteria) for one in traces] == [(KIND, ("read",))] * 3
