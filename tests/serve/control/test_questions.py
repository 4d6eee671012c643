"""A question is told as what comes after the question that was answered, whoever else looks at the episode."""

from __future__ import annotations

import asyncio
import threading

import httpx

import quintain as qn
from quintain import codec
from quintain.serve.episodes.host import Host
from quintain.serve.http.app import build
from quintain.serve.http.auth import NoAuth

WEIGHED, GATE = threading.Event(), threading.Event()


class Stone:
    """It takes its time to be weighed, which is done when the next question stands already."""

    def fork(self) -> Stone:
        return self

    def dump(self) -> bytes:
        return b""

    def digest(self) -> str:
        return codec.digest(b"")

    @classmethod
    def load(cls, _data: bytes) -> Stone:
        return cls()

    def weight(self) -> int:
        WEIGHED.set()
        while not GATE.wait(0.01):  # Where one never runs Python again, the tracer of coverage in 3.11 waits for ever.
            continue
        return 0


class Quarry(qn.State):
    """World with one stone."""

    stone: Stone

    @qn.tool
    def look(self) -> str:
        """Look at it."""
        return "It is grey."


@qn.reward
def nothing(_: qn.EpisodeView[Quarry]) -> float:
    return 0.0


ENV = qn.Environment(
    "quarry",
    tasks=lambda _split: [qn.Task(id="one", prompt="Look at the stone.", start=Quarry(stone=Stone()))],
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(nothing),
    state=Quarry,
)


def test_a_read_leaves_the_next_question_complete() -> None:
    async def play() -> None:
        host = Host([ENV])
        transport = httpx.ASGITransport(app=build(host, NoAuth()))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            episode = (await http.post("/v1/episodes", json={})).json()
            path = f"/v1/episodes/{episode['id']}"
            try:
                calling = asyncio.create_task(http.post(f"{path}/calls", json={"name": "look"}))
                await asyncio.to_thread(WEIGHED.wait)
                whole = (await http.get(path)).json()["question"]
            finally:
                GATE.set()
            question = (await calling).json()["question"]
        host.executor.close()
        assert [one["role"] for one in whole["added"]] == ["user", "assistant", "tool"]
        assert question["keep"] == len(episode["question"]["added"]) == 1
        assert question["added"] == whole["added"][1:]

    asyncio.run(play())
