"""Scores that closing a session delivers, and rollouts of TRL that end in plain words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quintain.errors import UsageError
from quintain.serve.client.trl import reward_function
from tests.cli.program import quintain
from tests.serve.ors.wire import PREFIX, Json, Ors, begun, connected, result, text
from tests.serve.serving import Served, serve


def closed(ors: Ors, sid: str) -> Json:
    """Returns the answer to POST /delete."""
    answer = ors.post("/delete", sid=sid)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_closing_a_session_delivers_the_score_of_its_world(ors: Ors) -> None:
    sid = ors.open("rough")
    ors.call(sid, "touch", env="rough")
    found = closed(ors, sid)
    assert (found["sid"], found["reward"]) == (sid, 1.0)
    assert found["metadata"][f"{PREFIX}reason"] == "the agent left"
    assert found["metadata"][f"{PREFIX}validity"] == "valid"
    assert closed(ors, sid) == {"sid": sid}


def test_closing_a_session_delivers_the_score_of_its_answer(ors: Ors) -> None:
    sid = ors.open("words")
    word = text(ors.call(sid, "look", env="words"))
    assert ors.call(sid, "answer", env="words", text=word)["output"]["reward"] == 1.0
    found = closed(ors, sid)
    assert found["reward"] == 1.0
    assert found["metadata"][f"{PREFIX}reason"] == "the agent answered"


def test_closing_delivers_no_score_for_a_void_episode(ors: Ors) -> None:
    sid = ors.open("rough")
    for _ in range(3):
        ors.call(sid, "touch", env="rough")
    found = closed(ors, sid)  # Its scoring function raises.
    assert found["reward"] is None
    assert found["metadata"][f"{PREFIX}failure"]["part"] == "V"


def test_closing_delivers_no_score_without_a_call(ors: Ors) -> None:
    sid = ors.open()
    assert closed(ors, sid) == {"sid": sid}


def test_closing_does_not_wait_for_a_call_that_runs(ors: Ors, served: Served) -> None:
    sid = ors.open("gated")
    with connected(served.port) as connection:
        begun(connection, sid, "hold", {"gate": "closing"})
        served.gates.await_entry("closing")
        found = closed(ors, sid)
        served.gates.open("closing")
    assert found["reward"] is None
    assert found["metadata"][f"{PREFIX}validity"] == "unknown"


def test_the_tool_answer_says_that_other_replies_are_not_delivered(ors: Ors) -> None:
    listed = ors.get("/words/tools").json()
    assert listed["tools"][-1]["name"] == listed["terminal_tool"]["name"] == "answer"
    for one in (listed["tools"][-1], listed["terminal_tool"]):
        assert "A reply without a tool call is not delivered: call this tool instead." in one["description"]


class Rollout:
    """Rollout with the attributes of one that TRL's factory makes, and the tools of `words` and `rough`."""

    def __init__(self, ors: Ors, env: str, *, index: int = 0) -> None:
        self.ors, self.env, self.sid = ors, env, ors.open(env, index=index)
        self.reward: float | None = None
        self.finished = False
        self.metadata: list[dict[str, Any] | None] = []

    def call(self, tool: str, **arguments: object) -> str:
        """Calls a tool as TRL does: an error of the session leaves the attributes as they are."""
        answer = self.ors.post(f"/{self.env}/call", {"name": tool, "input": arguments}, self.sid)
        if "event: error" in answer.text:
            self.metadata.append(None)
            return "Error"
        document = result(answer.content)
        output = document["output"]
        self.reward = self.reward if output["reward"] is None else output["reward"]
        self.metadata.append(output["metadata"])
        self.finished = output["finished"]
        return text(document)

    def answer(self, text: str) -> str:
        return self.call("answer", text=text)


def score(served: Served, rollout: Rollout, *messages: Json) -> float | None:
    """Returns what the reward function says of one rollout."""
    (found,) = reward_function(served.url, key="")(environments=[rollout], completions=[messages], prompts=[[]])
    return found


@pytest.mark.parametrize(
    ("content", "reward"),
    [("ash", 1.0), ([{"type": "text", "text": "a"}, {"type": "text", "text": "sh"}], 1.0), ("oak", 0.0), (None, 0.0)],
)
def test_a_rollout_that_ends_in_plain_words_gets_its_score(
    ors: Ors, served: Served, content: object, reward: float
) -> None:
    rollout = Rollout(ors, "words")
    assert score(served, rollout, {"role": "assistant", "content": content}) == reward
    assert rollout.finished


def test_a_rollout_that_was_scored_is_left_as_it_is(ors: Ors, served: Served) -> None:
    rollout = Rollout(ors, "words")
    rollout.answer("oak")
    assert score(served, rollout, {"role": "assistant", "content": "ash"}) == 0.0
    assert len(rollout.metadata) == 1


@pytest.mark.parametrize("last", [{"role": "tool", "content": "1"}, {"role": "assistant", "tool_calls": [{}]}])
def test_a_rollout_that_is_cut_off_is_closed_and_scored(ors: Ors, served: Served, last: Json) -> None:
    rollout = Rollout(ors, "rough")
    rollout.call("touch")
    assert score(served, rollout, last) == 1.0
    assert closed(ors, rollout.sid) == {"sid": rollout.sid}


def test_a_rollout_without_a_call_has_no_score(ors: Ors, served: Served) -> None:
    assert score(served, Rollout(ors, "words"), {"role": "assistant", "tool_calls": [{}]}) is None
    assert score(served, Rollout(ors, "words")) is None


def test_a_failed_rollout_has_no_score(ors: Ors, served: Served) -> None:
    rollout = Rollout(ors, "rough")
    rollout.call("touch")
    assert rollout.call("crash") == "Error"
    assert score(served, rollout, {"role": "assistant", "content": "Done."}) is None


def test_a_session_that_cannot_be_closed_has_no_score_and_is_logged(
    ors: Ors, served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    rollout = Rollout(ors, "rough")
    rollout.call("touch")
    nowhere = reward_function("http://127.0.0.1:9")
    assert nowhere(environments=[rollout], completions=[[{"role": "tool", "content": "1"}]]) == [None]
    assert f"session {rollout.sid} has no score" in caplog.text


def test_a_session_is_closed_with_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = quintain("keys", "add", tmp_path / "keys", "trainer", "--role", "agent", cwd=tmp_path).stdout.split()[-1]
    monkeypatch.setenv("OPENREWARD_API_KEY", key)
    with serve("rough", folder=tmp_path, options=("--keys", str(tmp_path / "keys"))) as server:
        ors = Ors(server.url)
        ors.http.headers["Authorization"] = f"Bearer {key}"
        rollout = Rollout(ors, "rough")
        rollout.call("touch")
        assert reward_function(server.url)(environments=[rollout], completions=[[]]) == [1.0]
        ors.http.close()


def test_a_reward_function_needs_a_server_and_a_tool(ors: Ors) -> None:
    with pytest.raises(UsageError, match="a server is named like http://localhost:8080, not 'sales'"):
        reward_function("sales")
    other = reward_function(str(ors.http.base_url), tool="final_answer")
    with pytest.raises(UsageError, match=r"no tool 'final_answer' .* reward_function\(url, tool=...\)"):
        other(environments=[Rollout(ors, "words")], completions=[[{"role": "assistant", "content": "ash"}]])
