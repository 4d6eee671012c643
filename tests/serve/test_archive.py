"""`quintain serve --out DIR`: every episode that was played is in a run folder, and replays, however it ended."""

from __future__ import annotations

import asyncio
import json
import signal
import socket as sockets
import struct
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from websockets.frames import Frame, Opcode

from quintain.cli.folders import frames_by_episode
from quintain.record import PersistenceError, RunFolder, read_traces
from quintain.serve.episodes.archive import Archive
from quintain.serve.episodes.host import EpisodeSpec, Host
from quintain.serve.episodes.secrets import NOTHING, Secrets
from quintain.serve.http.keys import ANYONE
from quintain.serve.http.limits import Limits
from quintain.serve.http.server import expire
from quintain.studio.recorder import DELAY_S, Recorder
from quintain.trace import Trace
from tests.serve.environments import counter
from tests.serve.openenv.frames import HANDSHAKE, opened
from tests.serve.operation.again import mortal
from tests.serve.operation.raw import dial
from tests.serve.serving import ENVIRONMENTS, Served, serve, until
from tests.serve.test_ends import again

ADD = {"name": "add", "arguments": {"by": 1}}


@contextmanager
def serving(
    folder: Path, *options: str, names: tuple[str, ...] = ("counter",)
) -> Generator[tuple[Served, httpx.Client]]:
    with (
        serve("counter", folder=folder, options=("--out", str(folder / "out"), *options)) as served,
        httpx.Client(base_url=served.url, timeout=30) as http,
    ):
        yield served, http


def records(folder: Path, name: str = "counter") -> list[Trace]:
    return list(read_traces(folder / "out" / name))


def replays(folder: Path, name: str = "counter") -> None:
    """As anybody has a run folder replayed."""
    command = [sys.executable, "-m", "quintain", "replay", "--here", "--json", str(folder / "out" / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["episodes"] == len(records(folder, name))


def begin(http: httpx.Client, **asked: Any) -> str:
    """The path of an episode of the control plane that has made one call."""
    made = http.post("/v1/episodes", json={"environment": "counter", **asked}).raise_for_status().json()
    path = f"/v1/episodes/{made['id']}"
    http.post(f"{path}/calls", json=ADD).raise_for_status()
    return path


def ors(http: httpx.Client, name: str) -> dict[str, str]:
    head = {"x-session-id": name}
    http.post("/create", headers=head, json={"env_name": "counter", "split": "test", "index": 0}).raise_for_status()
    body = {"name": "add", "input": {"by": 1}}
    http.post("/counter/call", headers=head, json=body).raise_for_status()
    return head


def test_each_protocol_and_each_way_to_end(tmp_path: Path) -> None:
    with serving(tmp_path) as (served, http):
        for end, body in (("answer", {"text": "Done."}), ("terminate", {"reason": "enough"})):
            http.post(f"{begin(http)}/{end}", json=body).raise_for_status()
        torn = {"part": "H", "kind": "cancelled", "stage": "agent", "type": "T", "message": "m", "turn": 1}
        http.post(f"{begin(http)}/terminate", json={"failure": {**torn, "traceback_digest": "0"}}).raise_for_status()
        http.delete(begin(http)).raise_for_status()
        http.post("/delete", headers=ors(http, "gone")).raise_for_status()
        with opened(served.url, "counter") as wire:
            for _ in range(2):
                wire.ask("reset")
                wire.call("add", by=1)
        untouched = http.post("/v1/episodes", json={"environment": "counter"}).json()["id"]
        http.delete(f"/v1/episodes/{untouched}").raise_for_status()
        while len(records(tmp_path)) < 7:  # A socket that is closed says so to nobody.
            assert http.get("/healthz").status_code == 200
        ors(http, "open")
    found = records(tmp_path)
    assert [trace.reason for trace in found] == [
        "the agent answered", "enough", "cancelled", *["the agent left"] * 4, "shutdown",
    ]  # fmt: skip
    assert [bool(trace.interrupted) for trace in found] == [False, *[True] * 7]
    assert [trace.validity for trace in found] == ["valid"] * 2 + ["invalid"] + ["valid"] * 4 + ["invalid"]
    assert len({(trace.task, trace.member) for trace in found}) == 8
    replays(tmp_path)


def reset(line: sockets.socket) -> None:
    """Closes a connection by a reset."""
    line.setsockopt(sockets.SOL_SOCKET, sockets.SO_LINGER, struct.pack("ii", 1, 0))
    line.close()


def test_an_openenv_client_that_vanishes_leaves_an_invalid_record(tmp_path: Path) -> None:
    """One that closes its socket is scored as the world stands."""
    frames = [{"type": "reset"}, {"type": "step", "data": {"tool_name": "add", "arguments": {"by": 1}}}]
    with serving(tmp_path) as (served, http):
        with opened(served.url, "counter") as wire:
            wire.ask("reset")
            wire.call("add", by=1)
        until(lambda: len(records(tmp_path)) == 1)
        for number, leave in enumerate((reset, sockets.socket.close), 2):  # By a reset, and by a mere end.
            line = sockets.create_connection(("127.0.0.1", served.port))
            line.sendall(HANDSHAKE)
            assert line.recv(1000).startswith(b"HTTP/1.1 101")
            for frame in frames:
                line.sendall(Frame(Opcode.TEXT, json.dumps(frame).encode()).serialize(mask=True))
                assert b"observation" in line.recv(65_536)
            leave(line)
            while len(records(tmp_path)) < number:
                time.sleep(0.01)
        assert http.get("/v1/episodes").json()["count"] == 0
    closed, *lost = records(tmp_path)
    assert (closed.validity, closed.reason, closed.failure) == ("valid", "the agent left", None)
    for trace in lost:
        assert trace.failure is not None
        assert (trace.validity, trace.score, trace.failure.kind) == ("invalid", None, "transport_peer_drop")
    replays(tmp_path)


def in_play(folder: Path) -> list[tuple[str, Any]]:
    """Returns the lines of the flight recorder: what each is, and its task, or its turn's calls."""
    lines = [json.loads(line) for line in (folder / "live.jsonl").read_bytes().splitlines()]
    return [
        ("turn", [step["call"]["name"] for step in line["turn"].get("steps", ())]) if "turn" in line
        else next((kind, line[kind][0]) for kind in ("began", "ended") if kind in line)
        for line in lines
    ]  # fmt: skip


def test_the_flight_recorder_says_what_a_server_plays(tmp_path: Path) -> None:
    live = tmp_path / "out" / "counter"
    with serving(tmp_path) as (_, http):
        path = begin(http)
        until(lambda: len(in_play(live)) == 2)
        ((began, task), turn) = in_play(live)
        assert (began, turn) == ("began", ("turn", ["add"]))
        http.post(f"{path}/answer", json={"text": "Done."}).raise_for_status()
        until(lambda: in_play(live)[2:] == [("turn", []), ("ended", task)])
        http.delete(begin(http)).raise_for_status()
        until(lambda: in_play(live)[6:] == [("ended", task)])
    assert in_play(live) == []
    (timing, _) = map(json.loads, (live / "timings.jsonl").read_bytes().splitlines())
    assert len(timing["turns"]) == 2
    assert timing["began"] > 0


def test_the_flight_recorder_leaves_episodes_with_secrets_out(tmp_path: Path) -> None:
    async def play() -> list[tuple[str, Any]]:
        with RunFolder(tmp_path / "counter", {}) as folder, Recorder(folder) as recorder:
            host = Host([counter], archive=Archive({"counter": folder}, {"counter": recorder}))
            for secrets in (Secrets({"key": "a-secret-of-some-length"}), NOTHING):
                made = await host.create(EpisodeSpec(task=0, agent=",".join(secrets.names)), ANYONE, secrets=secrets)
                await made.call("add", '{"by": 1}')
            await asyncio.sleep(2 * DELAY_S)
            host.executor.close()
            return in_play(folder.path)

    assert [kind for kind, _ in asyncio.run(play())] == ["began", "turn"]


def test_idle_episodes_are_archived_as_expired(tmp_path: Path) -> None:
    async def play() -> list[Trace]:
        with RunFolder(tmp_path / "out" / "counter", {}) as folder:
            host = Host([counter], limits=Limits(idle_s=0.0), archive=Archive({"counter": folder}))
            lives = [await host.create(EpisodeSpec(task=0), ANYONE) for _ in range(2)]
            await lives[0].call("add", '{"by": 1}')
            await lives[1].ready()
            await expire(host)
            assert host.open == 0
            host.executor.close()
        return [await again(counter, trace) for trace in records(tmp_path)]

    (trace,) = asyncio.run(play())
    assert trace.failure is not None
    assert (trace.failure.component, trace.failure.kind, trace.interrupted) == ("C", "session_expired", True)


def test_a_folder_is_gone_on_with_and_a_group_is_numbered(tmp_path: Path) -> None:
    for _ in range(2):
        with serving(tmp_path) as (_, http):
            for asked in ({"member": 1}, {}):
                http.post(f"{begin(http, **asked)}/answer", json={"text": "Done."}).raise_for_status()
    assert [(trace.member, trace.attempt) for trace in records(tmp_path)] == [(1, 0), (0, 0), (1, 1), (2, 0)]


def test_a_call_that_never_ends_takes_no_record_with_it(tmp_path: Path) -> None:
    """Neither that of an open episode nor that of one whose client has left already."""
    body = json.dumps({"name": "hold", "input": {"gate": "never"}})
    with (
        mortal(tmp_path, "gated", keeps=False, options=("--out", str(tmp_path / "out"))) as server,
        ExitStack() as lines,
    ):
        for name in ("open", "left"):
            server.create(name, index=0)
            server.call(name, "mark", label="before")
            line = lines.enter_context(dial(server.port))
            head = f"POST /call HTTP/1.1\r\nhost: localhost\r\nx-session-id: {name}\r\n"
            line.sendall(f"{head}content-length: {len(body)}\r\n\r\n{body}".encode())
        until(lambda: server.gates.entered("never") == 2)
        assert server.ask("POST", "/delete", "left")[0] == 200
        assert server.process
        server.process.terminate()
        until(lambda: server.ask("GET", "/readyz")[0] == 503)
        server.process.terminate()
        assert server.process.wait(30) == 128 + signal.SIGTERM
    assert sorted((len(trace.turns), trace.reason) for trace in records(tmp_path, "gated")) == [
        (1, "cancelled"),
        (1, "shutdown"),
    ]


def test_members_are_numbered_without_remembering_each(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "out" / "counter", {}) as folder:
        archive = Archive({"counter": folder})
        wanted = [None, 1, None, 4, 4, *[None] * 1000, 2000, 0, None]
        members = [archive.member("counter", "one", one) for one in wanted]
        assert members == [0, 1, 2, 4, 4, 3, *range(5, 1004), 2000, 0, 1004]
        assert archive.member("counter", "another", None) == 0
        assert sum(map(len, archive._taken.values())) == 1


@pytest.mark.slow
def test_after_a_kill_an_episode_is_there_once(tmp_path: Path) -> None:
    """One that goes on, one that was kept, and one whose server was killed before it was."""
    lines = tmp_path / "out" / "counter" / "traces.jsonl"
    with (
        mortal(tmp_path, "counter", options=("--out", str(tmp_path / "out"))) as server,
        httpx.Client(base_url=f"http://127.0.0.1:{server.port}") as http,
    ):
        path, over = begin(http), begin(http)
        http.post(f"{over}/answer", json={"text": "Done."}).raise_for_status()
        server.kill()
        kept = lines.read_bytes()
        for before in (kept, b""):
            lines.write_bytes(before)
            server.start()
            assert lines.read_bytes() == kept
            server.kill()
        server.start()
        http.post(f"{path}/answer", json={"text": "Done."}).raise_for_status()
    assert sorted(trace.member for trace in records(tmp_path)) == [0, 1]
    replays(tmp_path)


def test_full_disk_is_logged_and_ends_no_call(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Full(RunFolder):
        def add(self, rollout: Any) -> None:
            raise PersistenceError("cannot write: no space left on device")

    async def play() -> float | None:
        with Full(tmp_path / "out", {}) as folder:
            host = Host([counter], archive=Archive({"counter": folder}))
            live = await host.create(EpisodeSpec(task=0), ANYONE)
            answer = await live.answer("done")
            host.executor.close()
            return answer.reward

    assert asyncio.run(play()) is not None
    assert "is lost: cannot write: no space left" in caplog.text


def test_run_that_is_played_again_keeps_its_numbers_and_becomes_another_attempt(tmp_path: Path) -> None:
    """And an episode of a day is kept as one that began after the one of its own run."""

    async def play() -> None:
        with RunFolder(tmp_path / "out" / "counter", {}) as folder:
            host = Host([counter], archive=Archive({"counter": folder}))
            for _ in range(2):
                for task, after in ((0, None), (1, (counter.tasks("test")[0].id, 0))):
                    live = await host.create(EpisodeSpec(split="test", task=task, member=1, after=after), ANYONE)
                    await live.answer("done")
                    assert (live.trace.member, live.trace.attempt) == (1, 0)
            host.executor.close()

    asyncio.run(play())
    assert [(trace.attempt, trace.continues and trace.continues[1]) for trace in records(tmp_path)] == [
        (0, msgspec.UNSET),
        (0, 0),
        (1, msgspec.UNSET),
        (1, 1),
    ]


def test_forks_name_their_origin_and_leave_its_number_to_it(tmp_path: Path) -> None:
    with serving(tmp_path) as (_, http):
        trunk = begin(http)
        for _ in range(2):
            twin = http.post(f"{trunk}/fork").raise_for_status().json()["id"]
            http.post(f"/v1/episodes/{twin}/calls", json=ADD).raise_for_status()
            http.post(f"/v1/episodes/{twin}/answer", json={"text": "Done."}).raise_for_status()
        http.post(f"{trunk}/answer", json={"text": "Done."}).raise_for_status()
    found = records(tmp_path)
    origin = (found[0].task, 0, 0, 1)
    assert [(one.attempt, one.forked, len(one.turns)) for one in found] == [
        (1, origin, 3),
        (2, origin, 3),
        (0, msgspec.UNSET, 2),
    ]
    replays(tmp_path)


def test_numbers_that_are_played_often_are_kept_without_looking_through_all_that_were_kept(tmp_path: Path) -> None:
    """And what is remembered of it is one place for each that was asked for."""
    times = 20

    class Counting(RunFolder):
        found = 0

        def find(self, key: Any) -> Any:
            self.found += 1
            return super().find(key)

    async def play() -> None:
        folder = Counting(tmp_path / "out" / "counter", {})
        with folder:
            archive = Archive({"counter": folder})
            host = Host([counter], archive=archive)
            for _ in range(times):
                live = await host.create(EpisodeSpec(split="test", task=0, member=1), ANYONE)
                await live.answer("done")
            host.executor.close()
            assert folder.found <= 2 * times
            assert len(archive._moved) == 1

    asyncio.run(play())
    assert [trace.attempt for trace in records(tmp_path)] == list(range(times))


def test_failures_name_the_lines_of_the_author_in_the_folder_alone(tmp_path: Path) -> None:
    heard: list[httpx.Response] = []
    with (
        serve("rough", folder=tmp_path, options=("--out", str(tmp_path / "out"))) as served,
        httpx.Client(base_url=served.url, timeout=30, event_hooks={"response": [heard.append]}) as http,
    ):
        for task, calls in (("plain", ["crash"]), ("broken", ["touch"]), ("plain", ["touch"] * 3 + ["leave"])):
            path = http.post("/v1/episodes", json={"environment": "rough", "task": task}).json()["id"]
            for name in calls:
                http.post(f"/v1/episodes/{path}/calls", json={"name": name, "arguments": {}})
            http.get(f"/v1/episodes/{path}")
    found = frames_by_episode(tmp_path / "out" / "rough")
    source = ENVIRONMENTS.read_text().splitlines()
    for function, code in (
        ("crash", 'raise RuntimeError("the world\\nfell\\r\\n\\r\\napart")'),
        ("broken", 'raise RuntimeError("the world cannot be built")'),
        ("strict", 'raise RuntimeError("the judge fell over")'),
    ):
        (frame,) = [frames[-1] for frames in found.values() if frames[-1].function == function]
        assert (frame.file, source[frame.line - 1].strip(), frame.code) == (str(ENVIRONMENTS), code, code)
    assert len(found) == 3
    assert heard
    assert not [one for one in heard if ENVIRONMENTS.name in one.text]


def test_a_folder_of_another_version_is_refused(tmp_path: Path) -> None:
    with serving(tmp_path):
        manifest = tmp_path / "out" / "counter" / "run.json"
    manifest.write_text(manifest.read_text().replace('"fingerprint": "', '"fingerprint": "0'))
    command = [sys.executable, "-m", "quintain", "serve", f"{ENVIRONMENTS}:counter", "--port", "0"]
    done = subprocess.run([*command, "--out", tmp_path / "out"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "cannot be continued by this one" in done.stderr
