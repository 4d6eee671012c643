"""Exports in the forms of other tools: their own readers take them, and ours reads back what was written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quintain.cli import main
from quintain.cli.logs import run_of
from quintain.record import read_traces
from quintain.studio.atif import trajectory
from quintain.trace import Image, Message, Reply, Reward, Step, Text, Tokens, ToolCall, Trace, Turn
from tests.studio.runs import HOSTILE, failed, trace, write

PICTURE = (Text("a wall"), Image("image/png", b"\x89PNG"), Image("image/bmp", b"BM"))


def odd() -> Trace:
    """Returns an episode with reasoning, tokens, pictures, a call without arguments, another thread and a summary."""
    made = trace("odd", 3, score=0.5, turns=4)
    calls = (ToolCall("x", "look", "[1]"), ToolCall("y", "look", ""))
    message = Message("assistant", "Hm.", calls=calls, reasoning="I look.")
    made.turns[1] = msgspec.structs.replace(
        made.turns[1],
        reply=Reply(message, tokens=Tokens([1, 2], [3, 4], [-0.5, -0.25]), finish_reason="length"),
        steps=(Step(calls[0], PICTURE), Step(calls[1], HOSTILE, is_error=True)),
    )
    words = (
        Message("user", "a summary"),
        Message("assistant", "before", calls=calls),
        Message("tool", "seen", call_id="x"),
    )
    made.turns[2] = msgspec.structs.replace(made.turns[2], keep=0, added=words, branch=1)
    user = Turn(index=4, role="user", thread=1, reply=Reply(Message("assistant", "I am the user.")))
    made.turns.append(user)
    return made


TRACES = [trace("a"), trace("a", 1, score=0.25), odd(), failed("c"), trace("empty", turns=0)]
AGAIN = msgspec.structs.replace(trace("a", 1), attempt=1)


def export(kind: str, folder: Path, *arguments: str) -> Path:
    out = folder.parent / f"{kind}.json"
    with pytest.raises(SystemExit) as left:
        main(["export", str(folder), "--format", kind, "--out", str(out), *arguments])
    assert not left.value.code
    return out


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return write(tmp_path / "run", [*TRACES, AGAIN])


def test_inspect_reads_its_log(folder: Path) -> None:
    logs = pytest.importorskip("inspect_ai.log", reason="pip install 'quintain[inspect]'")
    log = logs.read_eval_log(str(export("inspect", folder)))
    assert (log.status, log.eval.task, log.eval.model) == (
        "success",
        TRACES[0].environment,
        TRACES[0].agent or "unknown",
    )
    assert log.samples is not None
    assert len({(one.id, one.epoch) for one in log.samples}) == len(log.samples) == len(TRACES) + 1
    for sample, made in zip(log.samples, [*TRACES, AGAIN], strict=True):
        assert sample.id == made.task
        assert sample.metadata["quintain"]["member"] == made.member
        agent = [turn for turn in made.turns if turn.thread == 0]
        said = [message for turn in agent for message in (*turn.added, *turn.produced())]
        assert [(one.role, one.text.strip()) for one in sample.messages] == [
            (one.role, one.text.partition("\n[image")[0].strip()) for one in said
        ]
        assert {name: one.value for name, one in (sample.scores or {}).items()} == (
            {} if made.score is None else {"score": made.score, "done": made.score}
        )
        assert (sample.error is not None) == (made.failure is not None)
    (_, looked) = [one for one in log.samples[2].messages if one.role == "assistant"][:2]
    assert [(call.function, call.arguments, bool(call.parse_error)) for call in looked.tool_calls] == [
        ("look", {}, True),
        ("look", {}, False),
    ]
    _, *pictures = log.samples[2].messages[5].content
    assert [one.image for one in pictures] == ["data:image/png;base64,iVBORw==", "data:image/bmp;base64,Qk0="]
    assert log.samples[2].messages[6].error.message == HOSTILE


def test_harbor_takes_its_trajectories(folder: Path) -> None:
    models = pytest.importorskip("harbor.models.trajectories", reason="pip install harbor, which needs Python 3.12")
    found = [models.Trajectory.model_validate_json(line) for line in export("atif", folder).read_text().splitlines()]
    assert len(found) == len(TRACES) + 1
    for one, made in zip(found, [*TRACES, AGAIN], strict=True):
        agent = [turn for turn in made.turns if turn.thread == 0]
        replies = [step for step in one.steps if step.source == "agent" and not step.is_copied_context]
        assert [len(step.tool_calls or ()) for step in replies] == [len(turn.reply.message.calls) for turn in agent]
        assert one.final_metrics.total_prompt_tokens == sum(turn.reply.usage.prompt for turn in agent)
        assert one.extra["reward"] == made.score


def test_a_trajectory_holds_what_the_episode_says() -> None:
    found = trajectory(odd())
    sources = ["system", "user", "agent", "agent", "user", "agent", "system", "agent", "agent"]
    assert [step["source"] for step in found["steps"]] == sources
    assert [step["step_id"] for step in found["steps"]] == list(range(1, len(sources) + 1))
    looked = found["steps"][3]
    assert (looked["message"], looked["reasoning_content"]) == ("Hm.", "I look.")
    assert looked["metrics"] == {
        "prompt_tokens": 0, "completion_tokens": 0, "completion_token_ids": [3, 4], "logprobs": [-0.5, -0.25],
    }  # fmt: skip
    assert looked["tool_calls"][0]["extra"] == {"not_an_object": "[1]"}
    seen, refused = looked["observation"]["results"]
    assert [part.get("text", part["type"]) for part in seen["content"]] == ["a wall", "image", "[image/bmp]"]
    assert (refused["source_call_id"], refused["extra"]) == ("y", {"is_error": True})
    (user,) = found["subagent_trajectories"]
    assert (user["trajectory_id"], user["steps"][0]["message"]) == ("thread-1", "I am the user.")
    (nothing,) = trajectory(TRACES[-1])["steps"]
    assert nothing["source"] == "system"


def test_a_filter_chooses_what_is_written(folder: Path, capsys: Any) -> None:
    assert len(export("atif", folder, "--where", "task:a").read_text().splitlines()) == 3
    assert len(json.loads(export("inspect", folder, "--where", "score<1").read_text())["samples"]) == 2
    for kind in ("atif", "inspect"):
        with pytest.raises(SystemExit) as left:
            main(["export", str(folder), "--format", kind, "--where", "task:none"])
        assert left.value.code == 2
        assert "has no such episode" in capsys.readouterr().err


WORDS = st.text(st.sampled_from('ab \n\u00e9\u202e<"\\'), min_size=1, max_size=8)
CALLS = st.lists(st.tuples(st.dictionaries(WORDS, st.integers() | WORDS, max_size=2), WORDS, st.booleans()), max_size=2)
TURNS = st.lists(st.tuples(WORDS, WORDS | st.just(""), CALLS), min_size=1, max_size=3)


@settings(max_examples=30, deadline=None)
@given(turns=TURNS, score=st.none() | st.floats(0, 1), member=st.integers(0, 9))
def test_a_log_of_inspect_read_back_says_the_same(
    turns: list[Any], score: float | None, member: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    made = trace("task", member, score=0.0 if score is None else score, turns=0)
    made.rewards.append(Reward(**(msgspec.structs.asdict(made.rewards[0]) | {"name": "score", "value": 0.125})))
    for n, (said, thought, asked) in enumerate(turns):
        calls = tuple(ToolCall(f"{n}/{m}", "tool", json.dumps(given)) for m, (given, _, _) in enumerate(asked))
        steps = tuple(Step(c, seen, is_error=bad) for c, (_, seen, bad) in zip(calls, asked, strict=True))
        added = (Message("system", "Do it."), Message("user", "Now.")) if n == 0 else ()
        reply = Reply(Message("assistant", said, calls=calls, reasoning=thought))
        made.turns.append(Turn(index=n, added=added, reply=reply, steps=steps))
    home = tmp_path_factory.mktemp("law")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(home))
        (read,) = read_traces(run_of(export("inspect", write(home / "run", [made])))[0])
    assert (read.task, read.member, read.score) == ("task", member, made.score)
    assert [(one.name, one.value) for one in read.rewards] == [
        (one.name, one.value) for one in made.rewards if one.value is not None
    ]
    assert [turn.added for turn in read.turns] == [turn.added for turn in made.turns]
    for found, was in zip(read.turns, made.turns, strict=True):
        assert (found.reply.message.text, found.reply.message.reasoning) == (
            was.reply.message.text,
            was.reply.message.reasoning,
        )
        assert [(json.loads(one.call.arguments), one.observation, one.is_error) for one in found.steps] == [
            (json.loads(one.call.arguments), one.observation, one.is_error) for one in was.steps
        ]
