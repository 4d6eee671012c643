"""Environments of `verifiers`: the same replies get the same rewards there and here.

QUINTAIN_VERIFIERS_ENVS names the folder `environments` of its repository at v0.2.0, for the tests with public ones.
"""

import asyncio
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from quintain import plugins
from quintain.adapters.verifiers import load
from quintain.errors import UsageError
from quintain.harness import Request
from quintain.record import EpisodeRecord
from quintain.replay import replay
from quintain.rollout import rollout
from quintain.trace import End, Message, Reply, ToolCall, Usage

vf: Any = pytest.importorskip("verifiers", reason="pip install 'quintain[verifiers]'")
if not hasattr(vf, "MultiTurnEnv"):
    pytest.skip("this verifiers has no load_environment: pip install 'quintain[verifiers]'", allow_module_level=True)

ENV = """\
from typing import Any

import verifiers as vf
from datasets import Dataset

ROWS = [
    {"question": "What is 2 + 3?", "answer": "5", "info": {"fails": ""}},
    {"question": "What is 4 + 4?", "answer": "8", "info": {"fails": "setup"}},
    {"question": "What is 1 + 1?", "answer": "2", "info": {"fails": "reward"}},
    {"question": "What is 0 + 7?", "answer": "7", "info": {"fails": "response"}},
]


def add(a: int, b: int) -> int:
    '''Adds two numbers.

    Args:
        a: One.
        b: The other.
    '''
    return a + b


class Sums(vf.ToolEnv):
    async def setup_state(self, state: Any) -> Any:
        if state["info"]["fails"] == "setup":
            raise vf.InfraError("no sandbox")
        return state

    async def env_response(self, messages: Any, state: Any, **objects: Any) -> Any:
        if state["info"]["fails"] == "response":
            raise KeyError("gone")
        return await super().env_response(messages, state, **objects)


def correct(completion: Any, answer: str, info: Any) -> float:
    if info["fails"] == "reward":
        raise ValueError("no answer was found")
    return float(completion[-1]["content"] == answer)


async def length(completion: Any, **_: Any) -> float:
    return 1 / len(completion)


def ranks(completions: Any) -> list[float]:
    return [0.0 for _ in completions]


def load_environment(count: int = 4, system: str = "Use the tools.", group: bool = False) -> Any:
    rubric = vf.Rubric(funcs=[ranks] if group else [correct, length], weights=[1.0] if group else [1.0, 0.3])
    rows = Dataset.from_list(ROWS[:count])
    return Sums(dataset=rows, system_prompt=system, tools=[add], max_turns=3, rubric=rubric)
"""
PUBLIC = Path(os.environ.get("QUINTAIN_VERIFIERS_ENVS", "/nowhere"))


@pytest.fixture(name="ours", scope="module")
def _ours(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Returns the path of `ENV` as a module."""
    file = tmp_path_factory.mktemp("verifiers") / "sums.py"
    file.write_text(ENV)
    return str(file)


def said(text: str = "", *calls: tuple[str, str]) -> Reply:
    made = tuple(ToolCall(f"c{number}", *call) for number, call in enumerate(calls))
    return Reply(Message("assistant", text, made), usage=Usage(7, 3))


SUM = said("", ("add", '{"a": 2, "b": 3}'))
SCRIPTS = {
    "an answer": [said("5")],
    "a wrong answer": [said("6")],
    "a call and an answer": [SUM, said("5")],
    "two calls at once": [said("wait", ("add", '{"a": 2, "b": 3}'), ("add", '{"a": 5, "b": 5}')), said("5")],
    "calls that do not fit": [said("", ("add", "[2"), ("sub", "{}"), ("add", '{"a": 2}')), said("5")],
    "calls to the last turn": [SUM, SUM, SUM],
    "silence": [said()],
    "a reply that was cut off": [Reply(Message("assistant", "5"), finish_reason="length")],
}


def played_here(env: Any, split: str, index: int, replies: Sequence[Reply]) -> EpisodeRecord:
    left = iter(replies)

    async def model(request: Request) -> Reply:
        return next(left)

    return asyncio.run(rollout(env, env.tasks(split)[index], model))


def played_there(env: Any, split: str, index: int, replies: Sequence[Reply]) -> dict[str, Any]:
    """Returns what `run_rollout` of `verifiers` gives for scripted replies, without a line of the adapter."""
    types: Any = __import__("verifiers.types").types
    left = iter(replies)

    class Scripted(vf.Client):  # type: ignore[misc]  # of a library that is not installed here
        async def get_response(self, prompt: Any, model: str, sampling_args: Any, tools: Any = None, **_: Any) -> Any:
            reply = next(left)
            calls = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in reply.message.calls]
            return types.Response.model_validate(
                {
                    "id": "1",
                    "created": 1,
                    "model": model,
                    "usage": {"prompt_tokens": 7, "completion_tokens": 3, "reasoning_tokens": 0, "total_tokens": 10},
                    "message": {
                        "content": reply.message.text,
                        "tool_calls": calls or None,
                        "finish_reason": "stop",
                        "is_truncated": reply.finish_reason == "length",
                    },
                }
            )

    Scripted.__abstractmethods__ = frozenset()
    data = env.get_dataset() if split == "train" else env.get_eval_dataset()
    found: dict[str, Any] = asyncio.run(env.run_rollout(data[index], Scripted(None), "scripted", {}))
    return found


def assert_same(env: Any, original: Any, split: str, index: int, replies: Sequence[Reply]) -> EpisodeRecord:
    record, there = played_here(env, split, index, replies), played_there(original, split, index, replies)
    trace = record.trace
    assert trace.failure is None
    assert trace.score == there["reward"]
    parts = {reward.name: reward.value for reward in trace.rewards[1:]}
    assert parts == {name: value for name, value in there["metrics"].items() if name in parts}
    assert len(parts) == len(there["metrics"])
    heard = [one["content"] for one in there["completion"] if one["role"] != "assistant"]
    assert [text.text for turn in trace.turns[1:] for text in turn.added if text.role == "user"] + [
        step.observation for turn in trace.turns for step in turn.steps
    ] == [text for text in heard if text is not None]
    task = env.task(split, trace.task)
    assert asyncio.run(replay(env, task, trace)).to_bytes() == trace.to_bytes()
    return record


@pytest.mark.parametrize("script", SCRIPTS)
def test_reward_is_that_of_verifiers(ours: str, script: str) -> None:
    original = plugins.attribute(f"{ours}:load_environment")()
    assert_same(plugins.environment(f"verifiers:{ours}"), original, "test", 0, SCRIPTS[script])


def test_record_has_the_calls_and_their_results(ours: str) -> None:
    trace = played_here(load(ours), "train", 0, SCRIPTS["calls that do not fit"]).trace
    observed = [str(step.observation) for step in trace.turns[0].steps]
    assert [text.partition(" ")[0] for text in observed] == ["Expecting", "'sub'", "add()"]
    assert trace.turns[0].added == (Message("system", "Use the tools."), Message("user", "What is 2 + 3?"))
    assert (trace.end, trace.reason) == (End.TERMINATED, "no_tools_called")


def test_options_are_arguments_of_load_environment(ours: str) -> None:
    env = plugins.environment(f"verifiers:{ours}", count="2", system="Hi.")
    assert [task.prompt for task in env.tasks("train")] == ["What is 2 + 3?", "What is 4 + 4?"]
    assert played_here(env, "test", 0, [said("5")]).trace.turns[0].added[0] == Message("system", "Hi.")
    assert env.config.max_turns == 3
    assert env.fingerprint != load(ours).fingerprint == load(ours).fingerprint


@pytest.mark.parametrize(
    ("index", "component", "words"),
    [(1, "S", "InfraError: InfraError: no sandbox"), (2, "V", "no answer was found"), (3, "S", "gone")],
)
def test_exception_of_the_environment_is_a_failure(ours: str, index: int, component: str, words: str) -> None:
    failure = played_here(load(ours), "test", index, [SUM, said("8")]).trace.failure
    assert failure is not None
    assert failure.component == component
    assert words in failure.message


def test_limit_of_turns_ends_the_rollout(ours: str) -> None:
    env = load(ours)
    short = env.replace(config=env.config.override({"max_turns": 1}))
    trace = played_here(short, "test", 0, [SUM]).trace
    original = plugins.attribute(f"{ours}:load_environment")()
    original.max_turns = 1
    there = played_there(original, "test", 0, [SUM])
    assert (trace.end, trace.reason, trace.score) == (End.TRUNCATED, "max_turns", there["reward"])


def test_signals_stay_played_here(ours: str) -> None:
    before = signal.getsignal(signal.SIGINT)
    load(ours)
    assert signal.getsignal(signal.SIGINT) is before


def test_environment_that_cannot_be_played_is_refused(ours: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="compares the rollouts of a group"):
        load(ours, group="true")
    with pytest.raises(UsageError, match=r"'quintain\.nothing' does not exist"):
        load("quintain.nothing")
    (tmp_path / "other.py").write_text("def load_environment():\n    return 3\n")
    with pytest.raises(UsageError, match=r"must return a vf\.Environment, it returned a <class 'int'>"):
        load(str(tmp_path / "other.py"))


# --- public environments ---

PARAGRAPH = "The first one is here. The second one is there. The third one is long. The fourth one is red. The last one"
DATA = {
    "agentlans/wikipedia-paragraphs": [{"text": PARAGRAPH}],
    "PrimeIntellect/Reverse-Text-RL": [{"prompt": "abc def"}],
    "openai/gsm8k": [{"question": "Two dozen eggs are how many?", "answer": "2 * 12 = 24\n#### 24"}],
}
ANSWERS: dict[str, list[list[Reply]]] = {
    "gsm8k": [[said("\\boxed{24}")], [said("It is \\boxed{24.0}.")], [said("24")], [said("\\boxed{25}")]],
    "reverse_text": [
        [said(text)] for text in ("<reversed_text>fed cba</reversed_text>", "<reversed_text>fed</reversed_text>", "fed")
    ],
    "sentence_repeater": [[said(f"The {word} one is here.") for word in "abcde"], [said(PARAGRAPH)] * 5],
    "tool_test": [[said("", *((f"tool_{name}", '{"x": 1}') for name in names))] for names in ("C", "A", "AB", "ABCD")]
    + [[said("no")]],
}


@pytest.mark.parametrize("name", ANSWERS)
def test_public_environment_gives_the_same_rewards(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = PUBLIC / name / f"{name}.py"
    if not file.exists():
        pytest.skip("QUINTAIN_VERIFIERS_ENVS must name the folder `environments` of verifiers v0.2.0")
    datasets: Any = pytest.importorskip("datasets")

    def load_dataset(path: str, *_: Any, split: str | None = None) -> Any:
        rows = datasets.Dataset.from_list(DATA[path])
        return {"train": rows, "test": rows} if split is None else rows

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    env, original = load(str(file)), plugins.attribute(f"{file}:load_environment")()
    split = "train" if name in {"reverse_text", "sentence_repeater"} else "test"
    original.dataset_source = lambda: env_rows(env, split)
    original.eval_dataset_source = original.dataset_source
    scores = {assert_same(env, original, split, 0, replies).trace.score for replies in ANSWERS[name]}
    assert len(scores) > 1


def env_rows(env: Any, split: str) -> Any:
    """Returns the rows of the tasks here: some environments draw theirs with an unseeded random generator."""
    datasets: Any = pytest.importorskip("datasets")
    return datasets.Dataset.from_list([task.truth for task in env.tasks(split)])
