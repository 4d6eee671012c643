"""kill -9, and a server that goes on where the one before was: to the byte, each call once, all addresses valid."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import shutil
import threading
import time
from pathlib import Path

import pytest

from tests.serve.operation.again import Mortal, mortal
from tests.serve.operation.raw import dial, rest, result, task_id
from tests.serve.serving import ENVIRONMENTS, until


def output(document: dict[str, object]) -> str:
    assert document["ok"], document
    return str(document["output"]["blocks"][0]["text"])  # type: ignore[index]


def test_an_episode_goes_on_to_the_byte(tmp_path: Path) -> None:
    with mortal(tmp_path, "counter") as server:
        for session in ("killed", "spared"):
            server.create(session)
            assert server.call(session, "add", by=2)["ok"]
            assert not server.call(session, "nothing")["ok"]
            assert not server.call(session, "add", by="x")["ok"]
        before = server.trace("killed")
        server.again()
        assert server.trace("killed") == before
        server.call("killed", "add", by=1)
        server.again()
        last = server.call("killed", "submit", answer=3)
        assert last["output"]["finished"]
        assert last["output"]["reward"] == 1.0
        server.call("spared", "add", by=1)
        server.call("spared", "submit", answer=3)
        mine, other = (json.loads(server.trace(name)) for name in ("killed", "spared"))
        assert mine == other
        assert [turn["state_digest"] for turn in mine["trace"]["turns"]]


def test_verdicts_stay_until_they_are_closed(tmp_path: Path) -> None:
    with mortal(tmp_path, "counter") as server:
        for session, answer in (("good", 3), ("bad", 4), ("gone", 3)):
            server.create(session)
            server.call(session, "submit", answer=answer)
        before = {name: server.trace(name) for name in ("good", "bad")}
        details = {name: server.told(name) for name in ("good", "bad")}
        assert server.ask("POST", "/delete", "gone")[0] == 200
        for _ in range(2):
            server.again()
            assert {name: server.trace(name) for name in ("good", "bad")} == before
            assert server.call("good", "add") == {
                "ok": False, "error": "the episode has ended: submitted", "reason": "episode_finished",
            }  # fmt: skip
            again = {name: server.told(name) for name in ("good", "bad")}
            assert {name: one["score"] for name, one in again.items()} == {"good": 0.0, "bad": 0.0} | {
                name: one["score"] for name, one in details.items()
            }
            assert server.ask("POST", "/ping", "gone")[0] == 404


def test_closing_delivers_the_score_after_a_restart(tmp_path: Path) -> None:
    with mortal(tmp_path, "counter", "rough") as server:
        server.create("ended")
        before = server.call("ended", "submit", answer=3)["output"]["reward"]
        server.create("open", env_name="rough", index=0)
        server.call("open", "touch")
        server.create("new")
        server.again()
        closed = {name: json.loads(server.ask("POST", "/delete", name)[2]) for name in ("ended", "open", "new")}
        assert [closed[name]["reward"] for name in ("ended", "open")] == [before, 1.0] == [1.0, 1.0]
        assert closed["new"] == {"sid": "new"}


def test_a_client_that_waits_gets_its_answer_from_the_next_server(tmp_path: Path) -> None:
    with mortal(tmp_path, "gated") as server:
        server.create("s", index=0)
        server.call("s", "mark", label="before")
        body = json.dumps({"name": "hold", "input": {"gate": "g"}}).encode()
        head = f"POST /call HTTP/1.1\r\nhost: localhost\r\nx-session-id: s\r\ncontent-length: {len(body)}\r\n\r\n"
        with dial(server.port) as line:
            line.sendall(head.encode() + body)
            server.gates.await_entry("g")
            server.kill()
            key = task_id(rest(line).partition(b"\r\n\r\n")[2].partition(b"\r\n")[2])
        server.gates.open("g")
        server.start()
        status, _, said = server.ask(
            "POST", "/call", "s", body={"name": "hold", "input": {"gate": "g"}, "task_id": key}
        )
        assert status == 200
        assert output(result(said)) == "Through g."
        assert server.gates.entered("g") == 2  # Once in each process; in the world once.
        assert output(server.call("s", "mark", label="after")) == "Marked 3."


def test_a_call_that_had_not_begun_is_done_once_for_who_has_its_key(tmp_path: Path) -> None:
    with mortal(tmp_path, "gated") as server:
        server.create("s", index=0)
        lines = []
        for number, (name, given) in enumerate((("hold", {"gate": "g"}), ("mark", {"label": "queued"}))):
            body = json.dumps({"name": name, "input": given}).encode()
            head = f"POST /call HTTP/1.1\r\nhost: localhost\r\nx-session-id: s\r\ncontent-length: {len(body)}\r\n\r\n"
            lines.append(dial(server.port))
            lines[-1].sendall(head.encode() + body)
            if not number:
                server.gates.await_entry("g")
        first = b""
        while b"task_id\r\n" not in first or not first.endswith(b"\r\n\r\n\r\n"):
            first += lines[1].recv(65536)
        server.kill()
        (key,) = re.findall(rb"data: (\w+)", first)
        server.gates.open("g")
        server.start()
        asked = {"name": "mark", "input": {"label": "queued"}, "task_id": key.decode()}
        for _ in range(2):
            assert output(result(server.ask("POST", "/call", "s", body=asked)[2])) == "Marked 2."
        assert server.gates.entered("queued") == 1
        wrong = {**asked, "task_id": "f" * 32}
        assert b"unknown task_id" in server.ask("POST", "/call", "s", body=wrong)[2]
        for line in lines:
            line.close()


@pytest.mark.slow
def test_clients_go_on_through_many_kills(tmp_path: Path) -> None:
    """Twelve clients count on, each call again until it is answered, while the server is killed again and again."""
    calls = 40
    with mortal(tmp_path, "counter") as server:
        sessions = [f"s{number}" for number in range(12)]
        for session in sessions:
            server.create(session, index=4)
        counts: dict[str, list[str]] = {session: [] for session in sessions}

        def work(session: str) -> None:
            for _ in range(calls):
                counts[session].append(_stubborn(server, session))

        threads = [threading.Thread(target=work, args=(session,)) for session in sessions]
        for thread in threads:
            thread.start()
        kills = 0
        while any(thread.is_alive() for thread in threads):
            enough = sum(map(len, counts.values())) + 40

            def are_on(enough: int = enough) -> bool:
                return sum(map(len, counts.values())) > enough or not any(thread.is_alive() for thread in threads)

            until(are_on)
            server.again()
            kills += 1
        assert kills > 3
        expected = [f"The count is {number}." for number in range(1, calls + 1)]
        assert all(found == expected for found in counts.values())
        assert len({server.trace(session).partition(b'"turns"')[2] for session in sessions}) == 1


def _stubborn(server: Mortal, session: str) -> str:
    """Make a call until it is answered, by its key as soon as there is one."""
    asked: dict[str, object] = {"name": "add", "input": {}}
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        try:
            line.request("POST", "/call", json.dumps(asked), {"x-session-id": session})
            said = line.getresponse().read()
        except http.client.IncompleteRead as broken:
            said = broken.partial
        except (OSError, http.client.HTTPException):
            time.sleep(0.02)
            continue
        finally:
            line.close()
        if b"event: end" in said and said.endswith(b"\r\n\r\n"):
            return output(result(said))
        if found := re.findall(rb"event: task_id\r\ndata: (\w{32})\r\n", said):
            asked["task_id"] = found[0].decode()
    raise AssertionError("no answer")


@pytest.mark.slow
def test_secret_addresses_stay_valid(tmp_path: Path) -> None:
    from mcp import Client

    async def play(url: str, tool: str, **given: object) -> str:
        async with Client(url) as client:
            return str((await client.call_tool(tool, given)).content[0].text)  # type: ignore[union-attr]

    with mortal(tmp_path, "counter") as server:
        status, _, said = server.ask(
            "POST", "/v1/episodes", body={"environment": "counter", "split": "train", "task": "train-5"}
        )
        assert status == 201, said
        address = next(value for value in _strings(json.loads(said)) if "/e/" in value)
        url = address if address.startswith("http") else f"http://127.0.0.1:{server.port}{address}"
        url = url if url.endswith("/mcp") else f"{url}/mcp"
        assert asyncio.run(play(url, "add", by=2)) == "The count is 2."
        server.again()
        assert asyncio.run(play(url, "add", by=3)) == "The count is 5."


def _strings(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for one in value.values() for text in _strings(one)]
    return [value] if isinstance(value, str) else []


def test_another_version_is_void_and_the_others_go_on(tmp_path: Path) -> None:
    file = tmp_path / "changing.py"
    shutil.copy(ENVIRONMENTS, file)
    with mortal(tmp_path, f"{file}:counter", f"{ENVIRONMENTS}:words") as server:
        server.create("old", env_name="counter")
        server.call("old", "add", by=2)
        server.create("ended", env_name="counter")
        server.call("ended", "submit", answer=3)
        server.create("other", env_name="words", index=0)
        server.kill()
        file.write_text(file.read_text().replace("The count is", "The new count is"))
        for _ in range(2):
            server.start()
            failure = server.told("old")["failure"]
            assert failure["kind"] == "session_lost"
            assert "another version" in failure["message"]
            assert b"session_lost" in server.ask("POST", "/call", "old", body={"name": "add", "input": {}})[2]
            assert "'old' of counter" in server.said
            assert server.told("ended")["score"] == 1.0
            assert output(server.call("other", "look")) == "ash"
            server.kill()
            shutil.copy(ENVIRONMENTS, file)  # Its client has read that it is void, and it stays so.


def test_episodes_of_environments_not_served_stay_in_the_journal(tmp_path: Path) -> None:
    with mortal(tmp_path, "counter", "words") as server:
        server.create("s", env_name="words", index=0)
        server.call("s", "look")
        before = server.trace("s")
        server.again("counter")
        assert server.ask("POST", "/ping", "s")[0] == 404
        assert "cannot be had again" in server.said
        server.again("counter", "words")
        assert server.trace("s") == before


CHANCY = '''
import os, quintain as qn

class Chance(qn.State):
    """A world that is not what it was."""

    @qn.tool
    def draw(self) -> str:
        """Draw."""
        return os.environ.get("LUCK", str(os.getpid()))

    @qn.tool
    def leave(self) -> str:
        """End it."""
        self.finish("left")
        return str(os.getpid())

@qn.reward
def fair(outcome: qn.EpisodeView[Chance]) -> float:
    return 1.0

env = qn.Environment(
    "chance", tasks=lambda split: [qn.Task(id="a", prompt="Draw.", start=Chance())], harness=qn.ToolLoop(),
    verifier=qn.Verifier(fair), state=Chance, splits=("train",),
)
'''


def test_a_world_that_is_not_what_it_was_is_a_failure(tmp_path: Path) -> None:
    file = tmp_path / "chance.py"
    file.write_text(CHANCY)
    with mortal(tmp_path, f"{file}:env") as server:
        for session in ("open", "ended"):
            server.create(session, index=0)
            server.call(session, "draw")
        server.call("ended", "leave")
        verdict = server.trace("ended")
        server.again()
        said = server.ask("POST", "/call", "open", body={"name": "draw", "input": {}})
        assert b"quintain:replay_diverged" in said[2]
        failure = server.told("open")["failure"]
        assert (failure["part"], failure["kind"]) == ("S", "quintain:replay_diverged")
        assert server.told("ended")["score"] == 1.0  # A verdict that a client has read stands.
        assert server.ask("POST", "/call", "ended", body={"name": "draw", "input": {}})[0] == 409
        assert b'"score":1.0' in verdict
        assert "its verdict stands" in server.said


def test_a_start_does_not_wait_for_what_nobody_asks_for(tmp_path: Path) -> None:
    with mortal(tmp_path, "gated") as server:
        server.create("late", index=1)
        server.gates.await_entry("start")
        server.again()  # Were it played at once, its gate would be entered.
        assert server.ask("GET", "/health")[0] == 200
        assert server.gates.entered("start") == 1
        server.gates.open("start")
        assert output(server.call("late", "mark", label="m")) == "Marked 1."
        assert server.gates.entered("start") == 2


def test_a_full_disk_refuses_calls_before_they_are_done(tmp_path: Path) -> None:
    limit = 2 << 20
    before = f"import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))"
    with mortal(tmp_path, "counter", before=before) as server:
        server.create("s")
        count = 0
        for size in (1_000_000, 100_000, 10_000, 1_000, 0):
            body = {"name": "nothing", "input": {"text": "x" * size}} if size else {"name": "peek", "input": {}}
            while server.ask("POST", "/call", "s", body=body)[0] == 200:
                count += 1
                assert count < 300
        status, headers, said = server.ask("POST", "/call", "s", body={"name": "add", "input": {"by": 1}})
        assert (status, headers.get("retry-after")) == (503, "5"), said
        assert b"journal" in said
        assert server.ask("POST", "/create", "t", body={"split": "train", "index": 0})[0] == 503
        assert server.ask("POST", "/ping", "t")[0] == 404
        assert server.ask("GET", "/prompt", "s")[0] == 200
        assert server.ask("GET", "/health")[0] == 200
        assert len(json.loads(server.trace("s"))["trace"]["turns"]) == count
        server.before = ""
        server.again()  # Room was made on the disk.
        assert len(json.loads(server.trace("s"))["trace"]["turns"]) == count
        assert output(server.call("s", "add", by=1)) == "The count is 1."


def test_two_servers_do_not_write_one_journal(tmp_path: Path) -> None:
    with mortal(tmp_path, "counter") as server:
        other = Mortal(tmp_path, "counter")
        with pytest.raises(AssertionError, match="another server"):
            other.start()
        other.kill()
        assert server.ask("GET", "/health")[0] == 200
