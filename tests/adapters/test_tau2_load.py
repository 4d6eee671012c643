"""From a folder to an environment, and what its criteria say."""

from __future__ import annotations

import asyncio
import gzip
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from quintain import codec
from quintain.adapters.tau2 import load
from quintain.adapters.tau2.data import Criteria, Function, Scenario
from quintain.adapters.tau2.world import World
from quintain.config import Config
from quintain.environment import Environment
from quintain.episode import Episode
from quintain.errors import DefinitionError, UsageError
from quintain.harness import Request
from quintain.harnesses import Dialogue
from quintain.task import Task
from quintain.trace import End, Message, Reply, ToolCall
from quintain.verifier import EpisodeView

CANCEL = ToolCall("1", "cancel_pending_order", '{"order_id": "#W3", "reason": "no longer needed"}')


def play(env: Environment[World], task: str, *calls: ToolCall, answer: str = "done") -> Episode[World]:
    """An episode of one turn of calls and one of words, judged."""

    async def run() -> Episode[World]:
        episode = await Episode[World].begin(env, env.task("base", task))
        if calls:
            await episode.session.step(Reply(Message("assistant", calls=calls)))
        if not episode.ended:
            await episode.session.step(Reply(Message("assistant", answer)))
        episode.terminate("the agent answered")
        await episode.verify()
        return episode

    return asyncio.run(run())


def values(episode: Episode[World]) -> dict[str, float | None]:
    return {reward.name: reward.value for reward in episode.trace.rewards}


def reasons(episode: Episode[World]) -> dict[str, str]:
    return {reward.name: reward.reason for reward in episode.trace.rewards}


@pytest.fixture
def env(upstream: Path) -> Environment[World]:
    return load("retail", data=upstream)


@pytest.mark.parametrize("place", [".", "data", "data/tau2", "data/tau2/domains"])
def test_the_folder_may_be_any_of_upstreams(upstream: Path, place: str) -> None:
    env = load("retail", data=upstream / place)
    assert env.name == "tau2_retail"
    assert env.splits == ("train", "test", "base")
    assert [task.id for task in env.tasks("base")] == ["cancel", "ask", "call", "free"]
    assert [task.id for task in env.tasks("train")] == ["cancel"]
    assert load("airline", data=upstream / place).tasks("base") == []


def test_files_may_be_gzipped(upstream: Path, tmp_path: Path) -> None:
    shutil.copytree(upstream / "data/tau2/domains", tmp_path, dirs_exist_ok=True)
    for file in (tmp_path / "retail").iterdir():
        file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    packed, plain = load("retail", data=tmp_path), load("retail", data=upstream)
    mine, theirs = packed.tasks("base")[0], plain.tasks("base")[0]
    assert asyncio.run(mine.digest(mine.world())) == asyncio.run(theirs.digest(theirs.world()))


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("db.json", '{"products": {}}', "db.json of tau2's retail: KeyError"),
        ("db.json", '{"products": {"P": {}}, "users": {}, "orders": {}}', "missing required field `name`"),
        ("db.json", "{", "db.json of tau2's retail"),
        ("tasks.json", '[{"id": 1}]', "tasks.json of tau2's retail: Expected `str`, got `int`"),
        (
            "tasks.json",
            '[{"id": "a", "user_scenario": {"instructions": "x"}, "initial_state": {"message_history": [1]}}]',
            "begins in a state of its own",
        ),
        ("tasks.json", None, "lacks tasks.json"),
        ("tasks.json.gz", "torn", "cannot read tasks.json"),
        ("split_tasks.json", '{"base": ["zz"]}', "names unknown tasks: ['zz']"),
    ],
)
def test_data_that_are_not_tau2_benchs_are_told(
    upstream: Path, tmp_path: Path, file: str, content: str | None, message: str
) -> None:
    shutil.copytree(upstream / "data/tau2/domains", tmp_path, dirs_exist_ok=True)
    (tmp_path / "retail" / file.removesuffix(".gz")).unlink()
    if content is not None:
        (tmp_path / "retail" / file).write_text(content)
    with pytest.raises((UsageError, DefinitionError), match=re.escape(message)):
        load("retail", data=tmp_path).tasks("base")


def test_wrong_usage_names_what_is_right(upstream: Path, tmp_path: Path) -> None:
    wrong: Any = "maybe"
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: load("bakery", data=upstream), "no domain 'bakery' here; it has retail, airline"),
        (lambda: load("retail", data=tmp_path), "no data of tau2's retail below"),
        (lambda: load("retail", data=upstream, nl_assertions=wrong), "one of judge, assume-true, got 'maybe'"),
        (lambda: load("retail", data=upstream, customer=wrong), "one of written, simulated, got 'maybe'"),
    ]
    for call, message in calls:
        with pytest.raises(UsageError, match=message):
            call()


def test_only_the_case_crosses_to_the_agent(env: Environment[World]) -> None:
    task = env.task("base", "cancel")
    assert "You are Ann." in str(task.prompt)
    assert "A cup." in task.roles["user"]
    assert "#W3" not in str(task.prompt)
    assert task.answer == "Done.\n5.0\nGift Card"
    assert task.tags == {"basis": "DB+COMMUNICATE"}
    assert str(Scenario("Ask.", "A pirate.")) == "Who you are:\nA pirate.\n\nAsk."


def test_the_solution_scores_one_though_an_action_of_it_fails(env: Environment[World]) -> None:
    task = env.task("base", "cancel")
    calls = [ToolCall(str(n), name, codec.text(args)) for n, (name, args) in enumerate(task.solution or ())]
    episode = play(env, "cancel", *calls, answer="It was 5.0, now on your GIFT, CARD.")
    assert [step.is_error for step in episode.trace.turns[0].steps] == [False, True]
    assert episode.trace.turns[0].steps[1].observation == "Error: Order not found"
    assert values(episode) == {
        "DB": 1.0,
        "COMMUNICATE": 1.0,
        "ACTION": None,
        "ENV_ASSERTION": None,
        "NL_ASSERTION": None,
    }
    assert episode.trace.score == 1.0
    assert reasons(episode)["ACTION"] == "not in this task's reward basis"


def test_each_component_judges_alone(env: Environment[World]) -> None:
    silent = play(env, "cancel", CANCEL)
    assert (values(silent)["DB"], values(silent)["COMMUNICATE"], silent.trace.score) == (1.0, 0.0, 0.0)
    assert reasons(silent)["COMMUNICATE"] == "not said: 5.0, Gift Card"
    idle = play(env, "cancel", answer="5.0 on your gift card")
    assert (values(idle)["DB"], values(idle)["COMMUNICATE"], idle.trace.score) == (0.0, 1.0, 0.0)
    assert values(play(env, "call", CANCEL)) == values(idle) | {
        "DB": None,
        "COMMUNICATE": None,
        "ACTION": 1.0,
        "ENV_ASSERTION": 1.0,
    }
    other = msgspec.structs.replace(CANCEL, arguments="{torn")
    assert values(play(env, "call", other))["ACTION"] == 0.0
    assert play(env, "free").trace.score == 1.0


def test_calls_are_compared_on_the_keys_that_were_given(env: Environment[World]) -> None:
    part = msgspec.structs.replace(CANCEL, arguments='{"order_id": "#W3"}')
    assert values(play(env, "call", part))["ACTION"] == 1.0
    assert values(play(env, "call", msgspec.structs.replace(CANCEL, arguments="{}")))["ACTION"] == 1.0
    assert values(play(env, "call", msgspec.structs.replace(CANCEL, arguments="[]")))["ACTION"] == 0.0
    assert values(play(env, "call", msgspec.structs.replace(CANCEL, name="calculate")))["ACTION"] == 0.0


def test_an_episode_that_was_cut_off_scores_nothing(env: Environment[World]) -> None:
    short = env.replace(config=Config(max_turns=1))

    async def run() -> Episode[World]:
        episode = await Episode[World].begin(short, short.task("base", "ask"))
        await episode.session.step(Reply(Message("assistant", calls=(CANCEL,))))
        await episode.verify()
        return episode

    episode = asyncio.run(run())
    assert episode.trace.end is End.TRUNCATED
    assert (values(episode)["DB"], values(episode)["NL_ASSERTION"], episode.trace.score) == (0.0, 0.0, 0.0)
    assert reasons(episode)["DB"] == "cut off by max_turns"


def test_sentences_need_a_judge_unless_they_are_assumed(upstream: Path, env: Environment[World]) -> None:
    failed = play(env, "ask").trace
    assert failed.failure is not None
    assert (failed.failure.component, failed.failure.kind) == ("V", "quintain:judge_missing")
    assumed = play(load("retail", data=upstream, nl_assertions="assume-true"), "ask")
    assert (assumed.trace.score, reasons(assumed)["NL_ASSERTION"]) == (1.0, "1 assumed true, not judged")

    async def judge(outcome: EpisodeView[World], sentence: str) -> bool:
        assert sentence == "The agent is polite."
        return "please" in outcome.answer

    judged = load("retail", data=upstream, judge=judge)
    assert play(judged, "ask", answer="please").trace.score == 1.0
    rude = play(judged, "ask", answer="no")
    assert (rude.trace.score, reasons(rude)["NL_ASSERTION"]) == (0.0, "judged false; The agent is polite.")


@pytest.mark.parametrize(
    ("truth", "score"),
    [
        (Criteria(actions=None), 1.0),
        (Criteria(actions=[], nl_assertions=[], reward_basis=("NL_ASSERTION",)), 1.0),
        (Criteria(env_assertions=[Function("f", {})], reward_basis=("ENV_ASSERTION",)), None),
    ],
)
def test_criteria_that_upstream_allows_but_does_not_use(
    env: Environment[World], truth: Criteria, score: float | None
) -> None:
    task: Task[World] = msgspec.structs.replace(env.task("base", "ask"), truth=truth)

    async def run() -> float | None:
        episode = await Episode[World].begin(env, task)
        episode.terminate("done")
        return await episode.verify()

    assert asyncio.run(run()) == score


def test_a_simulated_customer_speaks_first_and_ends_it(upstream: Path) -> None:
    env = load("retail", data=upstream, customer="simulated", nl_assertions="assume-true")
    assert isinstance(env.harness, Dialogue)
    heard: list[tuple[str, str]] = []

    async def model(request: Request) -> Reply:
        heard.append((request.role, request.messages[-1].text))
        said = "I want a cup." if len(heard) == 1 else "###STOP###"
        return Reply(Message("assistant", said if request.role == "user" else "Here it is."))

    async def run() -> Episode[World]:
        episode = await Episode[World].begin(env, env.task("base", "ask"))
        await env.harness.play(episode.session, model)
        await episode.verify()
        return episode

    episode = asyncio.run(run())
    assert heard == [("user", "Hi! How can I help you today?"), ("agent", "I want a cup."), ("user", "Here it is.")]
    assert (episode.trace.end, episode.trace.score) == (End.TERMINATED, 1.0)
