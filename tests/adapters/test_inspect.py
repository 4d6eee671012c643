"""Tasks of Inspect: the same replies get the same scores there and here.

The tests with public tasks need inspect_evals; their rows are given here instead of downloaded.
"""

import asyncio
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from quintain import plugins
from quintain.adapters.inspect import load
from quintain.errors import UsageError
from quintain.harness import Request
from quintain.replay import replay
from quintain.rollout import rollout
from quintain.trace import End, Message, Reply, ToolCall, Trace, Usage

inspect_ai: Any = pytest.importorskip("inspect_ai", reason="pip install 'quintain[inspect]'")
# Inspect itself uses what its dependencies deprecate, and its `eval` leaves streams of memory behind.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{kind}")
    for kind in ("DeprecationWarning", "ResourceWarning", "pytest.PytestUnraisableExceptionWarning")
]

TASKS = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageAssistant, ChatMessageUser
from inspect_ai.scorer import Score, includes, match, mean, model_graded_qa, scorer
from inspect_ai.solver import generate, solver, system_message, use_tools
from inspect_ai.tool import tool

@tool
def add():
    async def execute(a: int, b: int) -> int:
        '''Adds two numbers.

        Args:
            a: One.
            b: The other.
        '''
        return a + b
    return execute

@scorer(metrics={"*": [mean()]})
def lengths():
    async def score(state, target):
        return Score(value={"words": len(state.output.completion.split()), "half": 0.5})
    return score

@scorer(metrics=[mean()])
def asks():
    async def score(state, target):
        from inspect_ai.model import get_model
        return Score(value=(await get_model().generate("fine?")).completion)
    return score

@solver
def breaks():
    async def solve(state, generate):
        raise KeyError("gone")
    return solve

FEW = [ChatMessageUser(content="1 + 1?"), ChatMessageAssistant(content="2"), ChatMessageUser(content="2 + 3?")]

@task
def sums(system: str = "Use the tools.", limit: int | None = None, seconds: int | None = None) -> Task:
    solver = [system_message(system), use_tools(add()), generate()]
    samples = [Sample(input="What is 2 + 3?", target="5"), Sample(id="few", input=FEW, target="5")]
    scorer = [match(), includes()]
    return Task(dataset=samples, solver=solver, scorer=scorer, message_limit=limit, time_limit=seconds)

@task
def several() -> Task:
    return Task(dataset=[Sample(input="2 + 3?", target="5")], scorer=[lengths(), match()])

@task
def graded() -> Task:
    return Task(dataset=[Sample(input="2 + 3?", target="5")], scorer=model_graded_qa())

@task
def asked() -> Task:
    return Task(dataset=[Sample(input="2 + 3?", target="5")], scorer=asks())

@task
def broken() -> Task:
    return Task(dataset=[Sample(input="2 + 3?", target="5")], solver=breaks(), scorer=match())

@task
def boxed() -> Task:
    return Task(dataset=[Sample(input="2 + 3?", target="5")], scorer=match(), sandbox="docker")

@task
def cleaned() -> Task:
    async def cleanup(state):
        pass
    return Task(dataset=[Sample(input="2 + 3?", target="5")], scorer=match(), cleanup=cleanup)

@task
def filed() -> Task:
    return Task(dataset=[Sample(input="2 + 3?", target="5", files={"a": "b"})], scorer=match())

@task
def unscored() -> Task:
    return Task(dataset=[Sample(input="2 + 3?", target="5")])
"""


def said(text: str = "", *calls: tuple[str, str]) -> Reply:
    made = tuple(ToolCall(f"c{number}", *call) for number, call in enumerate(calls))
    return Reply(Message("assistant", text, made), usage=Usage(7, 3))


SUM = said("", ("add", '{"a": 2, "b": 3}'))
SCRIPTS = {
    "an answer": [said("It is 5")],
    "a wrong answer": [said("It is 6")],
    "only in the middle": [said("5 it is")],
    "a call and an answer": [SUM, said("5")],
    "two calls at once": [said("wait", ("add", '{"a": 2, "b": 3}'), ("add", '{"a":5,"b":5}')), said("5")],
    "calls that do not fit": [said("", ("add", "[2"), ("sub", "{}"), ("add", '{"a": 2}')), said("5")],
    "silence": [said()],
    "a thought": [Reply(Message("assistant", "5", reasoning="2 and 3"), finish_reason="length")],
}


@pytest.fixture(name="file", scope="module")
def _file(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("inspect") / "tasks.py"
    file.write_text(TASKS)
    return str(file)


def here(env: Any, index: int, replies: Sequence[Reply]) -> Trace:
    left = iter(replies)

    async def model(request: Request) -> Reply:
        return next(left)

    return asyncio.run(rollout(env, env.tasks("test")[index], model)).trace


def there(task: Any, index: int, replies: Sequence[Reply], folder: Path) -> Any:
    """Returns the sample that `eval` of Inspect logs for its mock model, without a line of the adapter."""
    models: Any = importlib.import_module("inspect_ai.model")
    parse: Any = importlib.import_module("inspect_ai.model._call_tools").parse_tool_call

    left = iter(replies)

    def output(_: Any, tools: Any, *__: Any) -> Any:
        said = next(left).message
        # The providers of Inspect also pass the tools, which lets it take "[2" for the first argument.
        calls = [parse(call.id, call.name, call.arguments, tools) for call in said.calls] or None
        made = models.ModelOutput.from_message(models.ChatMessageAssistant(content=said.text, tool_calls=calls))
        made.usage = models.ModelUsage(input_tokens=7, output_tokens=3, total_tokens=10)
        return made

    model = models.get_model("mockllm/model", custom_outputs=output, memoize=False)
    settings = {"display": "none", "log_dir": str(folder), "sample_id": [task.dataset[index].id or index + 1]}
    (log,) = inspect_ai.eval(task, model=model, **settings)
    assert log.status == "success", log.error
    return log.samples[0]


def assert_same(env: Any, task: Any, index: int, replies: Sequence[Reply], folder: Path) -> Trace:
    trace, logged = here(env, index, replies), there(task, index, replies, folder)
    number = importlib.import_module("inspect_ai.scorer").value_to_float()
    values = {name: number(score.value) for name, score in logged.scores.items()}
    assert trace.failure is None
    assert {reward.name: reward.value for reward in trace.rewards[1:]} == values
    assert trace.score == next(iter(values.values()))
    observed = [step.observation for turn in trace.turns for step in turn.steps]
    assert observed == [
        f"Error: {one.error.message}" if one.error else one.text for one in logged.messages if one.role == "tool"
    ]
    asked = [one.text for one in logged.messages if one.role in {"system", "user"}]
    assert [one.text for turn in trace.turns for one in turn.added if one.role in {"system", "user"}] == asked
    assert asyncio.run(replay(env, env.task("test", trace.task), trace)).to_bytes() == trace.to_bytes()
    return trace


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("index", [0, 1])
def test_scores_are_those_of_inspect(file: str, script: str, index: int, tmp_path: Path) -> None:
    task = plugins.attribute(f"{file}:sums")()
    assert_same(plugins.environment(f"inspect:{file}@sums"), task, index, SCRIPTS[script], tmp_path)


def test_limit_of_messages_ends_both(file: str, tmp_path: Path) -> None:
    task = plugins.attribute(f"{file}:sums")(limit=5)
    assert len(assert_same(load(f"{file}@sums", limit="5"), task, 0, [SUM] * 9, tmp_path).turns) < 3


def test_limit_of_turns_ends_the_solvers(file: str) -> None:
    env = load(f"{file}@sums")
    trace = here(env.replace(config=env.config.override({"max_turns": 1})), 0, [SUM])
    assert (trace.end, trace.reason, trace.score) == (End.TRUNCATED, "max_turns", 0.0)


def test_limit_of_time_is_in_the_config(file: str) -> None:
    assert load(f"{file}@sums").config.episode_timeout_s is None
    assert load(f"{file}@sums", seconds="60").config.episode_timeout_s == 60


def test_options_are_arguments_of_the_task(file: str) -> None:
    env = load(f"{file}@sums", system="Hi.")
    assert here(env, 0, [said("5")]).turns[0].added[0] == Message("system", "Hi.")
    assert env.fingerprint != load(f"{file}@sums").fingerprint == load(f"{file}@sums").fingerprint
    assert [task.id for task in env.tasks("test")] == ["1", "few"]


def test_scorer_is_chosen(file: str) -> None:
    assert here(load(f"{file}@several", score="match"), 0, [said("It is 5")]).score == 1.0
    assert here(load(f"{file}@several", score="lengths/words"), 0, [said("It is 5")]).score == 3.0
    failure = here(load(f"{file}@several", score="match/words"), 0, [said("It is 5")]).failure
    assert failure is not None
    assert "scorer 'match' has no value 'words'; choose one: score=match" in failure.message
    with pytest.raises(UsageError, match="no scorer 'other'; it has lengths, match"):
        load(f"{file}@several", score="other")


@pytest.mark.parametrize(
    ("name", "component", "words"),
    [
        ("several", "V", "choose one: score=lengths/words, lengths/half"),
        ("asked", "V", "a scorer asks the model that is judged"),
        ("broken", "S", "gone"),
    ],
)
def test_exception_of_the_task_is_a_failure(file: str, name: str, component: str, words: str) -> None:
    failure = here(load(f"{file}@{name}"), 0, [said("5")]).failure
    assert failure is not None
    assert failure.component == component
    assert words in failure.message


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("boxed", "needs a sandbox"),
        ("cleaned", "needs a cleanup"),
        ("filed", "sample 1 needs a sandbox"),
        ("graded", "scorer 'model_graded_qa' needs a model"),
        ("unscored", "has no scorer"),
        ("nothing", "cannot be made|found: none"),
    ],
)
def test_task_that_cannot_be_played_is_refused(file: str, name: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        load(f"{file}@{name}")


# --- public tasks ---

ROWS: dict[str, list[dict[str, Any]]] = {
    "gsm8k": [{"question": "Two dozen eggs are how many?", "answer": "2 * 12 = 24\n#### 24"}],
    "boolq": [{"question": "is ice cold", "passage": "Ice is cold.", "answer": True}],
    "paws": [{"id": 7, "sentence1": "A saw B.", "sentence2": "B saw A.", "label": 0}],
    "commonsense_qa": [
        {
            "id": "q",
            "question": "What is cold?",
            "question_concept": "cold",
            "choices": {"text": ["fire", "sun", "ice", "tea", "soup"]},
            "answerKey": "C",
        }
    ],
}
ANSWERS = {
    "gsm8k": ["ANSWER: 24", "ANSWER: $24.00", "It is 24, no, 25", ""],
    "boolq": ["Yes", "no", "**Yes**.", "Yes, it is"],
    "paws": ["No", "Yes", "'no'", "perhaps"],
    "commonsense_qa": ["ANSWER: C", "ANSWER: A", "C", "answer: c"],
}


@pytest.mark.parametrize("name", ROWS)
def test_public_task_gives_the_same_scores(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("inspect_evals", reason="pip install inspect-evals")
    data: Any = importlib.import_module("inspect_ai.dataset")
    module = importlib.import_module(f"inspect_evals.{name}.{name}")

    def hf_dataset(path: str, *, sample_fields: Any, **_: Any) -> Any:
        return data.MemoryDataset([sample_fields(row) for row in ROWS[name]])

    monkeypatch.setattr(module, "hf_dataset", hf_dataset)
    env = load(f"inspect_evals/{name}")
    scores = {assert_same(env, getattr(module, name)(), 0, [said(text)], tmp_path).score for text in ANSWERS[name]}
    assert scores == {0.0, 1.0}
