"""An agent that talks with a simulated user: its words go out as answers, and what it is told comes back."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="pip install 'quintain[serve]'")
pytest.importorskip("websockets", reason="pip install 'quintain[serve]'")

import quintain as qn
from quintain.models import Scripted
from quintain.serve.episodes.host import Host
from quintain.serve.http.app import build
from quintain.serve.http.auth import NoAuth
from quintain.trace import Message, Reply
from tests.audit.subjects.serving import serving
from tests.serve.control.talk import talk
from tests.serve.openenv.frames import opened

KEY = "dev.quintain/"


class Client:
    """Who knows a number."""

    name = "client"

    def model(self, task: qn.Task[Any], seed: int) -> Scripted:
        said = ("Hello.", f"It is {task.truth}.", "###STOP###")
        return Scripted(Reply(Message("assistant", words)) for words in said)


def test_words_go_out_and_theirs_come_back() -> None:
    host = Host([talk], user=Client())
    with serving(build(host, NoAuth())) as url, opened(url, "talk") as wire:
        begun = wire.ask("reset", split="train", index=7)
        roles = [one["role"] for one in begun["metadata"][f"{KEY}messages"]]
        assert roles == ["system", "assistant", "user"]
        assert begun["observation"]["result"] == "Ask for the number.\n\nGood day.\n\nHello."
        assert [one["name"] for one in wire.ask("step", type="list_tools")["observation"]["tools"]] == [
            "write",
            "drop",
            "answer",
        ]
        answer = wire.ask("step", type="answer", text="Your number, please?")
        assert (answer["observation"]["result"], answer["reward"], answer["done"]) == ("It is 7.", 0.0, False)
        assert wire.read("write", number=7) == "written"
        last = wire.call("answer", text="Thank you.")
        assert (last["reward"], last["done"]) == (1.0, True)
        assert last["metadata"][f"{KEY}reason"] == "the user ended the conversation"
        assert wire.ask("state")["step_count"] == 4
    host.executor.close()


def test_an_episode_without_anybody_to_talk_with_cannot_be_begun() -> None:
    host = Host([talk])
    with serving(build(host, NoAuth())) as url, opened(url, "talk") as wire:
        void = wire.refused("reset")
        assert void["code"] == "EXECUTION_ERROR"
        assert "--user" in void["message"]
    host.executor.close()
