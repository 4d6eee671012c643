"""The adapter beside the reference: its stored verdicts, and the two baselines whose scores it published."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quintain import codec
from quintain.adapters.tau2 import conform
from quintain.adapters.tau2.world import World
from quintain.environment import Environment
from quintain.episode import Episode
from quintain.errors import UsageError
from quintain.trace import Message, Reply, ToolCall

Real = Callable[[str], Environment[World]]


@pytest.mark.parametrize("live", [pytest.param(1, marks=pytest.mark.slow), 64])
@pytest.mark.parametrize(
    ("domain", "cases"),
    [
        ("airline", 221),
        pytest.param("retail", 671, marks=pytest.mark.slow),
        pytest.param("telecom", 819, marks=pytest.mark.slow),
    ],
)
def test_every_stored_case_agrees(reference_data: Path, domain: str, cases: int, live: int) -> None:
    data = reference_data / "tau2"
    report = conform(domain, data, data / "dev" / f"cases_{domain}.jsonl.gz", live=live, seed=7)
    assert report.mismatches == {}
    assert (report.cases, report.agree) == (cases, cases)


@pytest.mark.slow
@pytest.mark.parametrize("live", [1, 64])
def test_bankings_stored_cases_agree_but_for_texts(reference_data: Path, live: int) -> None:
    """Descriptions of tools and most answers are this project's words; the cases have only their hashes."""
    data = reference_data / "tau2"
    report = conform("banking_knowledge", data, data / "dev" / "cases_banking_knowledge.jsonl.gz", live=live, seed=7)
    assert (report.cases, report.steps) == (894, 11352)
    assert {field: count.count for field, count in report.mismatches.items()} == {"result": 7158}


async def _score(env: Environment[World], split: str, *, gold: bool) -> list[float | None]:
    scores: list[float | None] = []
    for task in env.tasks(split):
        episode = await Episode[World].begin(env, task)
        made = [
            ToolCall(str(number), name, codec.text(arguments))
            for number, (name, arguments) in enumerate(task.solution or () if gold else ())
        ]
        for call in made:
            await episode.session.step(Reply(Message("assistant", calls=(call,))))
        await episode.session.step(Reply(Message("assistant", task.answer if gold else "done")))
        episode.terminate("the agent answered")
        scores.append(await episode.verify())
    return scores


@pytest.mark.slow
@pytest.mark.parametrize(
    ("domain", "split", "tasks", "idle"),
    [
        ("retail", "base", 114, 11),
        ("airline", "base", 50, 23),
        ("telecom", "full", 2285, 0),
        ("banking_knowledge", "base", 97, 0),
    ],
)
def test_gold_actions_score_one_and_doing_nothing_seldom_does(
    real: Real, domain: str, split: str, tasks: int, idle: int
) -> None:
    assert asyncio.run(_score(real(domain), split, gold=True)) == [1.0] * tasks
    noop = asyncio.run(_score(real(domain), split, gold=False))
    assert (noop.count(1.0), noop.count(0.0)) == (idle, tasks - idle)


def test_an_episode_starts_without_copying_the_database(real: Real) -> None:
    env = real("airline")
    first = asyncio.run(Episode[World].begin(env, env.tasks("base")[0]))
    for name in ("flights", "dates", "users", "reservations"):
        mine, base = getattr(first.state, name), getattr(first.task.start, name)
        assert mine.diff(base) == []
        assert mine._rows.layers[-1] is base._rows.layers[-1]


def _line(**changes: Any) -> bytes:
    step = {"name": "no_such_tool", "arguments": {"x": 1}, "error": True, "result_sha256": "0", "result_head": "Error"}
    case = {
        "domain": "retail",
        "task": "ask",
        "variant": "made",
        "final_text": "Done.",
        "steps": [step],
        "final_db_sha256": "0",
        "reward": 0.5,
        "breakdown": {"DB": 0.0, "COMMUNICATE": 1.0},
    }
    return json.dumps(case | changes).encode() + b"\n"


def test_disagreements_are_counted_by_field_and_the_first_three_shown(upstream: Path, tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl.gz"
    file.write_bytes(gzip.compress(_line() * 4))
    report = conform("retail", upstream, file)
    assert (report.cases, report.agree, report.steps) == (4, 0, 4)
    counts = {field: (count.count, len(count.first)) for field, count in report.mismatches.items()}
    assert counts == dict.fromkeys(("result", "db", "DB", "NL_ASSERTION", "COMMUNICATE", "reward"), (4, 3))
    first = report.mismatches["reward"].first[0]
    assert (first.task, first.variant, first.step, first.expected, first.found) == ("ask", "made", None, 0.5, 1.0)
    assert report.mismatches["result"].first[0].step == 0
    assert report.mismatches["result"].first[0].found.endswith("Error: Tool 'no_such_tool' not found.")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (_line(domain="airline"), "a case of 'airline', not of 'retail'"),
        (_line(task="none"), "task 'none', which retail doesn't have"),
        (_line()[:-9], "cannot read the cases"),
    ],
)
def test_cases_that_cannot_be_played_are_told(upstream: Path, tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=message):
        conform("retail", upstream, file)
    with pytest.raises(UsageError, match="cannot read the cases"):
        conform("retail", upstream, tmp_path / "nowhere")
