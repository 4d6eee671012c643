from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from quintain.cli.training_rows import ExportOptions, conversations, groups, rows
from quintain.config import Config
from quintain.errors import Failure, UsageError
from quintain.trace import End, Image, Message, Reply, Step, Text, Tokens, ToolCall, Trace, Turn
from tests.cli.conftest import Call
from tests.cli.program import document, quintain

AGENTS = '''
import msgspec

from quintain.errors import ModelError
from quintain.models import Fixed
from quintain.models.scripted import Scripted
from quintain.trace import Message, Reply, Tokens, ToolCall

seen = {}


async def member(request):
    """Adds the right number in each second episode, and breaks in each fourth."""
    if len(request.messages) > 2:
        return Reply(Message("assistant", "Done.", reasoning="It is added."), tokens=Tokens([1, 2, 3, 4, 5], [6]))
    number = int(request.messages[-1].text.split()[1])
    count = seen[number] = seen.get(number, -1) + 1
    if count == 3:
        raise ModelError("no more")
    arguments = '{"name":"a","number":%d}' % (number if count % 2 else 0)
    return Reply(Message("assistant", calls=(ToolCall("c", "add", arguments),)), tokens=Tokens([1, 2], [3]))


agent = Fixed(member, "half")
'''


@pytest.fixture
def run(desk: Path, call: Call) -> Path:
    """A run of two groups of four: two right answers, one wrong one and one invalid episode in each."""
    (desk / "half.py").write_text(AGENTS)
    limits = ("--concurrency", 1, "--set", "gate_rate=none")
    ended = call("run", "desk.py:env", "--agent", "half.py:agent", "--tasks", 2, "--group", 4, "--out", "run", *limits)
    assert ended.status == 0, ended.err
    return desk / "run"


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_chat_rows_hold_messages_rewards_and_tools(run: Path, call: Call) -> None:
    ended = call("export", run)
    assert ended.status == 0
    found = lines(ended.out)
    assert [(row["task"], row["member"], row["score"]) for row in found] == [
        (f"add-{task}", member, score) for task in (1, 2) for member, score in ((0, 0.0), (1, 1.0), (2, 0.0))
    ]
    row = found[1]
    assert [message["role"] for message in row["messages"]] == ["system", "user", "assistant", "tool", "assistant"]
    function = {"name": "add", "arguments": '{"name":"a","number":1}'}
    assert row["messages"][2]["tool_calls"] == [{"id": "c", "type": "function", "function": function}]
    assert row["messages"][2]["content"] == ""
    assert row["messages"][3] == {"role": "tool", "content": "a is 1", "tool_call_id": "c"}
    assert row["messages"][4]["reasoning_content"] == "It is added."
    assert [(reward["name"], reward["value"], reward["message"]) for reward in row["rewards"]] == [
        ("added", 1.0, None), ("kept", 1.0, None),
    ]  # fmt: skip
    assert "add" in [tool["function"]["name"] for tool in row["tools"]]
    assert row["tags"] == {"family": "odd"}
    assert (
        ended.err == "6 rows from 6 of 8 episodes, mean score 0.333; skipped: 2 invalid (model, agent_request_failed)\n"
    )


def test_sft_takes_the_best_of_each_group_up_to_its_last_reply(run: Path, call: Call) -> None:
    ended = call("export", run, "--format", "sft")
    assert [(row["task"], row["score"], row["messages"][-1]["role"]) for row in lines(ended.out)] == [
        ("add-1", 1.0, "assistant"), ("add-2", 1.0, "assistant"),
    ]  # fmt: skip
    assert "4 not the best of the group" in ended.err


def test_sft_takes_all_scores_from_a_threshold_on(run: Path, call: Call) -> None:
    assert [row["score"] for row in lines(call("export", run, "--format", "sft", "--min-score", 0.0).out)] == [
        0.0, 1.0, 0.0, 0.0, 1.0, 0.0,
    ]  # fmt: skip
    ended = call("export", run, "--format", "sft", "--min-score", 1)
    assert [row["score"] for row in lines(ended.out)] == [1.0, 1.0]
    assert "4 score below 1" in ended.err


def test_dpo_pairs_the_best_with_the_worst_member(run: Path, call: Call) -> None:
    ended = call("export", run, "--format", "dpo")
    first, _ = lines(ended.out)
    assert [message["role"] for message in first["prompt"]] == ["system", "user"]
    numbers = [
        json.loads(first[side][0]["tool_calls"][0]["function"]["arguments"])["number"]
        for side in ("chosen", "rejected")
    ]
    assert numbers == [1, 0]
    assert (first["score_chosen"], first["score_rejected"]) == (1.0, 0.0)
    assert first["chosen"][-1]["role"] == first["rejected"][-1]["role"] == "assistant"
    assert "2 in no pair" in ended.err


def test_dpo_pairs_all_members_with_different_scores(run: Path, call: Call) -> None:
    ended = call("export", run, "--format", "dpo", "--all-pairs")
    assert len(lines(ended.out)) == 4
    assert "in no pair" not in ended.err


def test_token_rows_equal_the_trajectories_of_the_groups(run: Path, call: Call) -> None:
    found = lines(call("export", run, "--format", "rows").out)
    assert [(row["token_ids"], row["mask"], round(row["advantage"], 3)) for row in found[:3]] == [
        ([1, 2, 3, 4, 5, 6], [False, False, True, False, False, True], advantage)
        for advantage in (-0.333, 0.667, -0.333)
    ]


def test_json_counts_every_episode_once(run: Path, call: Call) -> None:
    for kind in ("chat", "sft", "dpo", "rows"):
        said = document(call("export", run, "--format", kind, "--out", "file.jsonl", "--json").out)
        assert said["episodes"] == 8 == said["exported"] + sum(said["skipped"].values())
        assert said["rows"] == len(lines(Path("file.jsonl").read_text()))
        assert said["skipped"]["invalid (model, agent_request_failed)"] == 2
        assert said["tools_missing"] is None


def test_a_run_without_token_ids_gives_no_token_rows(desk: Path, call: Call) -> None:
    call("run", "desk.py:env", "--tasks", 2, "--out", "here")
    Path("rows.jsonl").write_text("earlier\n")
    ended = call("export", "here", "--format", "rows", "--out", "rows.jsonl")
    assert ended.status == 1
    assert "2 no token ids in the group\ntoken rows need a model whose endpoint returns token ids" in ended.err
    assert Path("rows.jsonl").read_text() == "earlier\n"
    assert not list(desk.glob("*.part"))


def test_prints_of_an_environment_do_not_reach_the_rows(desk: Path) -> None:
    (desk / "loud.py").write_text("print('hello')\n" + (desk / "desk.py").read_text())
    quintain("run", "loud.py:env", "--tasks", 1, "--out", "here", cwd=desk)
    ended = quintain("export", "here", cwd=desk)
    assert len(lines(ended.stdout)) == 1
    assert "hello" in ended.stderr


def test_rows_without_the_environment_have_no_tools(run: Path, call: Call) -> None:
    Path("bare").mkdir()
    Path("bare/alone.jsonl").write_bytes((run / "traces.jsonl").read_bytes())
    ended = call("export", "bare/alone.jsonl")
    assert "tools" not in lines(ended.out)[0]
    assert "Without schemas of the tools: no run.json next to" in ended.err
    assert "tools" in lines(call("export", "bare/alone.jsonl", "--env", "desk.py:env").out)[0]


def test_tools_that_changed_since_the_run_are_left_out(run: Path, call: Call) -> None:
    Path("changed.py").write_text(Path("desk.py").read_text().replace("Add a number to a sum.", "Add it."))
    ended = call("export", run, "--env", "changed.py:env")
    assert "tools" not in lines(ended.out)[0]
    assert "the tools of desk are not those of task" in ended.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing"], ["missing", "does not exist"]),
        (["run", "--min-score", 1], ["--min-score", "--format chat"]),
        (["run", "--all-pairs", "--format", "sft"], ["--all-pairs", "--format sft"]),
        (["run", "--json"], ["--json needs a file", "--out"]),
        (["run", "--format", "parquet"], ["--format parquet needs a file"]),
        (["run", "--out", "missing/file"], ["cannot write", "missing/file", "No such file"]),
        (["run", "--env", "gone.py:env"], ["gone.py"]),
        (["run", "--format", "csv"], ["csv", "chat"]),
    ],
)
def test_export_refuses_wrong_usage(run: Path, call: Call, arguments: list[object], words: list[str]) -> None:
    ended = call("export", *arguments)
    assert ended.status == 2
    for word in words:
        assert word in ended.err
    assert ended.out == ""


def test_parquet_needs_its_extra(run: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    ended = call("export", run, "--format", "parquet", "--out", "rows.parquet")
    assert ended.status == 2
    assert "pip install 'quintain[parquet]'" in ended.err


def test_parquet_holds_the_chat_rows(run: Path, call: Call) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: pip install '.[parquet]'")
    said = document(call("export", run, "--format", "parquet", "--out", "rows.parquet", "--json").out)
    table = parquet.read_table("rows.parquet").to_pylist()
    chat = lines(call("export", run).out)
    assert said["rows"] == len(table) == len(chat) == 6
    for row, plain in zip(table, chat, strict=True):
        assert {name: row[name] for name in ("task", "member", "score", "agent")} == {
            name: plain[name] for name in ("task", "member", "score", "agent")
        }
        assert json.loads(row["tools"]) == plain["tools"]
        assert row["messages"][2]["tool_calls"] == plain["messages"][2]["tool_calls"]
        assert [message["content"] for message in row["messages"]] == [
            message["content"] for message in plain["messages"]
        ]
        assert [reward["value"] for reward in row["rewards"]] == [1.0 * plain["score"], 1.0]


# Traces that the command line cannot make.

CALL = ToolCall("c", "look", "{}")
PICTURE = (Text("a wall"), Image("image/png", b"\x89PNG"))


def turn(index: int, text: str = "", **fields: Any) -> Turn:
    calls = (CALL,) if fields.get("steps") else ()
    return Turn(
        index=index, reply=Reply(Message("assistant", text, calls), tokens=fields.pop("tokens", None)), **fields
    )


def trace(*turns: Turn, score: float | None = 1.0, **fields: Any) -> Trace:
    fields = {"seed": 0, "score": score, "end": None if score is None else End.TERMINATED, "task": "one"} | fields
    fields |= {"environment": "e", "fingerprint": "f", "tools_digest": "t", "task_digest": "d"}
    return Trace(config=Config(), turns=list(turns), **fields)


def made(kind: str, *group: Trace, **choice: Any) -> tuple[list[dict[str, Any]], Counter[str]]:
    skipped: Counter[str] = Counter()
    parts: dict[str, Any] = {"tools": lambda _: None, "truth": lambda trace: f"truth of {trace.task}"}
    return list(rows(kind, group, ExportOptions(**choice), skipped=skipped, **parts)), skipped


ASKED = (Message("user", "Look."),)
BROKEN = Failure(component="S", kind="quintain:tool_bug", stage="agent", type="KeyError", turn=0, message="")


def test_a_rewritten_context_begins_another_conversation() -> None:
    first = turn(0, added=ASKED, steps=(Step(CALL, "a wall"),))
    second = turn(1, "A wall.")
    third = turn(2, "Shorter.", keep=0, added=(Message("user", "Summary."),), branch=1)
    one, two = conversations(trace(first, second, third))
    assert [message["content"] for message in one.messages] == ["Look.", "", "a wall", "A wall."]
    assert (one.prompt, one.places) == (1, {0: 1, 1: 3})
    assert [message["content"] for message in two.messages] == ["Summary.", "Shorter."]
    assert two.places == {2: 1}


def test_a_rewritten_observation_continues_the_conversation() -> None:
    """A cut tool message was no reply's context yet, so nothing that the model read is lost."""
    first = turn(0, added=ASKED, steps=(Step(CALL, "a very long wall"),))
    second = turn(1, "A wall.", keep=2, added=(Message("tool", "a wall", call_id="c"),))
    (one,) = conversations(trace(first, second))
    assert [message["content"] for message in one.messages] == ["Look.", "", "a wall", "A wall."]


def test_a_break_of_tokens_alone_keeps_one_conversation() -> None:
    """Chat templates that drop earlier reasoning break the tokens at each turn, but not the messages."""
    second = turn(1, "B", branch=1, added=(Message("user", "More."),))
    (one,) = conversations(trace(turn(0, "A", added=ASKED), second))
    assert [message["content"] for message in one.messages] == ["Look.", "A", "More.", "B"]


def test_threads_and_roles_are_separate_conversations() -> None:
    turns = (turn(0, "A", added=ASKED), turn(1, "U", role="user", thread=1), turn(2, "S", thread=2, added=ASKED))
    found = [one.messages[-1]["content"] for one in conversations(trace(*turns))]
    assert found == ["A", "S"]


def test_a_picture_of_a_tool_follows_as_words_of_a_user() -> None:
    first = turn(0, added=ASKED, steps=(Step(CALL, PICTURE),))
    (one,) = conversations(trace(first, turn(1, "A wall.")))
    assert [message["role"] for message in one.messages] == ["user", "assistant", "tool", "user", "assistant"]
    assert one.messages[3]["content"][0]["image_url"]["url"].startswith("data:image/png;base64,")
    assert one.places == {0: 1, 1: 4}


def test_rewards_name_the_message_that_earned_them() -> None:
    from quintain.trace import Level, Reward

    def reward(**fields: Any) -> Reward:
        return Reward(name="r", raw=0.5, value=fields.pop("value", 0.5), **fields)

    first = turn(0, "A", added=ASKED, rewards=(reward(level=Level.TURN, turn=0),))
    last = turn(1, "B", keep=0, added=ASKED, branch=1, rewards=(reward(level=Level.STEP, turn=1, step=0),))
    whole = [reward(level=Level.TRAJECTORY), reward(level=Level.PHASE, value=None)]
    one, two = made("chat", trace(first, last, rewards=whole))[0]
    assert [(r["level"], r["message"], r["step"]) for r in one["rewards"]] == [
        ("turn", 1, None), ("trajectory", None, None),
    ]  # fmt: skip
    assert [(r["level"], r["message"], r["step"]) for r in two["rewards"]] == [
        ("step", 1, 0), ("trajectory", None, None),
    ]  # fmt: skip


def test_sft_ends_with_the_last_reply() -> None:
    found = turn(0, added=ASKED, steps=(Step(CALL, "a wall"),))
    (row,), _ = made("sft", trace(found))
    assert row["messages"][-1]["tool_calls"]
    (row,), _ = made("chat", trace(found))
    assert row["messages"][-1]["role"] == "tool"


@pytest.mark.parametrize("kind", ["chat", "sft", "dpo", "rft", "rows", "parquet"])
def test_an_episode_without_a_valid_score_is_in_no_row(kind: str) -> None:
    tokens = Tokens([1], [2])
    good = [trace(turn(0, "A", added=ASKED, tokens=tokens), score=float(n), member=n) for n in range(2)]
    lost = turn(0, "lost", added=ASKED, tokens=Tokens([1], [404]))
    failed = trace(lost, score=None, end=End.FAILED, failure=BROKEN, member=2)
    unfinished = trace(lost, score=None, member=3)
    silent = trace(score=9.0, member=4)
    found, skipped = made(kind, *good, failed, unfinished, silent)
    assert found
    assert not {"lost", "404"} & set(re.findall(r"\w+", json.dumps(found)))
    expected = {"invalid (S, quintain:tool_bug)": 1, "unfinished": 1, "no reply of the agent": 1}
    assert {reason: skipped[reason] for reason in expected} == expected


def test_rft_rows_hold_the_prompt_and_the_truth_once_per_task() -> None:
    group = [trace(turn(0, answer, added=ASKED), score=score, member=n) for n, (answer, score) in enumerate(ANSWERS)]
    found, skipped = made("rft", *group)
    assert [(row["messages"], row["truth"], row["task"]) for row in found] == [
        ([{"role": "user", "content": "Look."}], "truth of one", "one")
    ]
    assert not {"tools", "score"} & found[0].keys()
    assert skipped == {"same prompt as another member": 1}
    assert made("rft", group[0])[1] == {}


ANSWERS = (("A", 1.0), ("B", 0.0))


@pytest.mark.parametrize(
    ("turns", "says"),
    [
        ((turn(0, added=ASKED), turn(1, "A")), "an episode of task 'one' has 2 replies and 0 calls"),
        ((turn(0, added=ASKED, steps=(Step(CALL, "a wall"),)),), "has 1 replies and 1 calls"),
        ((turn(0, "A", added=(Message("system", "Look."),)),), "needs a prompt that ends with a user's message"),
        ((turn(0, "A"),), "needs a prompt that ends with a user's message"),
    ],
)
def test_rft_refuses_tasks_that_its_grader_cannot_see(turns: tuple[Turn, ...], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        made("rft", trace(*turns))


def test_an_rft_file_of_tools_is_refused(run: Path, call: Call) -> None:
    ended = call("export", run, "--format", "rft", "--out", "rft.jsonl")
    assert (ended.status, ended.out) == (2, "")
    assert (
        "--format rft is for tasks of one reply, but an episode of task 'add-1' has 2 replies and 1 calls" in ended.err
    )
    assert not Path("rft.jsonl").exists()


def test_an_rft_file_needs_the_environment_for_the_truth(desk: Path, call: Call) -> None:
    (desk / "ask.py").write_text(ASK)
    assert call("run", "ask.py:env", "--agent", "ask.py:agent", "--out", "asked").status == 0
    assert lines(call("export", "asked", "--format", "rft").out) == [
        {
            "messages": [{"role": "user", "content": "6 * 7?"}],
            "truth": {"number": 42},
            "environment": "ask",
            "split": "test",
            "task": "a",
            "tags": {},
            "agent": "yes",
        }
    ]
    (desk / "other.py").write_text(ASK.replace('id="a"', 'id="b"'))
    ended = call("export", "asked", "--format", "rft", "--env", "other.py:env")
    assert (ended.status, ended.out) == (2, "")
    assert "the truth of task 'a' is unknown: split 'test' of ask has no task 'a'" in ended.err


ASK = """
import quintain as qn
from quintain.models import Fixed
from quintain.trace import Message, Reply


class Blank(qn.State):
    pass


@qn.reward
def right(view: qn.EpisodeView[Blank]) -> float:
    return 1.0


async def yes(request):
    return Reply(Message("assistant", "42"))


def tasks(split):
    return [qn.Task(id="a", prompt="6 * 7?", start=Blank(), truth={"number": 42})]


env = qn.Environment("ask", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(right), state=Blank)
agent = Fixed(yes, "yes")
"""


def test_a_group_with_too_few_valid_members_has_no_token_rows() -> None:
    one = trace(turn(0, "A", added=ASKED, tokens=Tokens([1], [2])))
    failed = [trace(score=None, end=End.FAILED, failure=BROKEN, member=n) for n in (1, 2)]
    found, skipped = made("rows", one, *failed)
    assert not found
    assert skipped["too few valid episodes in the group"] == 1


def test_dpo_takes_one_context_and_one_prompt_only() -> None:
    whole = trace(turn(0, "A", added=ASKED))
    other = trace(turn(0, "B", added=(Message("user", "Listen."),)), score=0.0, member=1)
    found, skipped = made("dpo", whole, other)
    assert (found, skipped) == ([], Counter({"in no pair": 2}))
    rewritten = trace(turn(0, "B", added=ASKED), turn(1, "C", keep=0, branch=1), score=0.0, member=1)
    found, skipped = made("dpo", whole, rewritten)
    assert (found, skipped) == ([], Counter({"several contexts": 1, "in no pair": 1}))


def test_groups_are_complete_and_separate(tmp_path: Path) -> None:
    written = [trace(task=task, member=n, attempt=a) for n in (1, 0) for task in "ab" for a in (0, 1)]
    (tmp_path / "traces.jsonl").write_bytes(b"".join(one.to_json() + b"\n" for one in written))
    found = [[(one.task, one.attempt, one.member) for one in group] for group in groups(tmp_path)]
    assert found == [[(task, a, 0), (task, a, 1)] for task in "ab" for a in (0, 1)]
