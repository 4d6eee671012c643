"""Profile of a task set and its runs: figures against the record, and the tasks that it flags."""

from __future__ import annotations

import itertools
import json
import re
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintain.cli import main
from quintain.environment import Environment
from quintain.studio.folders import Runs
from quintain.studio.profile import Distribution, profile_of_runs, profile_of_tasks
from quintain.task import Task
from quintain.trace import Trace
from tests.cli.program import DESK
from tests.studio.runs import failed, trace, write
from tests.worlds import environment


def played(agent: str, task: str, score: float | None, member: int = 0) -> Trace:
    made = trace(task, member, score=score)
    made.agent = agent
    return made


TRACES = [
    *(
        played("policy", task, score, member)
        for member in range(3)
        for task, score in zip("abc", (1.0, member / 2, 0.0), strict=True)
    ),
    *(played("noop", task, score) for task, score in zip("abc", (1.0, 0.0, 0.0), strict=True)),
    *(played("oracle", task, score) for task, score in zip("ab", (1.0, 0.5), strict=True)),
    played("random", "d", 0.0),
]


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    lost = [failed("b"), failed("e")]
    for one in lost:
        one.agent = "policy"
    write(tmp_path / "runs" / "one", [*TRACES, *lost])
    made = Runs([tmp_path / "runs"], tmp_path / "cache")
    yield made
    made.close()


def test_difficulty_is_that_of_agents_beyond_the_baselines(runs: Runs) -> None:
    found = profile_of_runs([*runs.all().values()])
    assert (found["episodes"], found["measured"]) == (len(TRACES) + 2, ["policy"])
    tasks = found["tasks"]
    assert [tasks[name]["difficulty"] for name in "abcd"] == [0.0, 0.5, 1.0, None]
    assert (tasks["b"]["episodes"], tasks["b"]["failed"]) == (4, 1)
    low, high = tasks["b"]["interval"]
    assert (round(low, 3), round(high, 3)) == (0.125, 0.875)  # Wilson (1927) for 1.5 of 3
    assert found["agents"]["noop"]["difficulty"] == pytest.approx(2 / 3)
    assert found["tags"]["level: hard"]["episodes"] == 3


def test_shares_of_pairs_of_tools_add_up(runs: Runs) -> None:
    found = profile_of_runs([*runs.all().values()])["follows"]
    wanted = Counter[tuple[str | None, str | None]]()
    for one in [*TRACES, failed("b"), failed("e")]:
        names = [step.call.name for turn in one.turns for step in turn.steps]
        wanted.update(itertools.pairwise([None, *names, None]))
    assert {(one["tool"], one["next"]): one["times"] for one in found} == wanted
    for tool in ("search", "update", None):
        own = [one for one in found if one["tool"] == tool]
        assert sum(one["share"] for one in own) == pytest.approx(1)
        assert [one["times"] for one in own] == sorted((one["times"] for one in own), reverse=True)


def test_tasks_that_deserve_a_look_are_flagged(runs: Runs) -> None:
    flags = {one["flag"]: one["tasks"] for one in profile_of_runs([*runs.all().values()])["flags"]}
    assert flags == {"noop_solves": ["a"], "solution_fails": ["b"], "unsolved": ["c"]}


def test_calls_and_refusals_are_counted_by_tool(runs: Runs) -> None:
    found = profile_of_runs([*runs.all().values()])
    steps = [step for one in [*TRACES] for turn in one.turns for step in turn.steps]
    tools = {one["tool"]: one for one in found["tools"]}
    assert tools["search"]["calls"] - 4 == sum(step.call.name == "search" for step in steps)
    assert tools["update"]["refused"] - 2 == sum(step.is_error for step in steps)
    assert found["distributions"]["turns"]["quantiles"] == (3,) * 5
    assert found["distributions"]["tools"]["mean"] == 2


def test_a_task_that_goes_with_the_others_discriminates(tmp_path: Path) -> None:
    traces = [played("p", task, float(good), n) for n, good in enumerate((0, 1, 1, 0)) for task in "abc"]
    traces += [played("p", "odd", float(not good), n) for n, good in enumerate((0, 1, 1, 0))]
    write(tmp_path / "run", [*traces, *(played("p", "flat", 1.0, n) for n in range(4))])
    runs = Runs([tmp_path / "run"], tmp_path)
    tasks = profile_of_runs([*runs.all().values()])["tasks"]
    runs.close()
    assert tasks["a"]["discrimination"] > 0
    assert tasks["odd"]["discrimination"] == pytest.approx(-1)
    assert tasks["flat"]["discrimination"] is None


NUMBERS = st.lists(st.one_of(st.none(), st.integers(0, 50), st.floats(-5, 5)), max_size=40)


@given(values=NUMBERS)
def test_a_distribution_counts_each_value_once(values: list[float | None]) -> None:
    known = [value for value in values if value is not None]
    found = Distribution.of(values)
    if not known:
        assert found is None
        return
    assert found is not None
    assert sum(found.bins) == found.count == len(known)
    assert found.quantiles[0] == min(known)
    assert found.quantiles[4] == max(known)
    assert found.mean == pytest.approx(statistics.fmean(known))


def test_tasks_that_two_splits_share_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    env: Environment[Any] = environment()
    one, *rest = env.tasks(env.splits[0])
    import msgspec

    copy, other = (
        msgspec.structs.replace(one, id="copy"),
        msgspec.structs.replace(one, id="other", prompt="Something else."),
    )
    sets: dict[str, Sequence[Task[Any]]] = {split: [] for split in env.splits}
    sets |= {env.splits[0]: [one, *rest], env.splits[-1]: [copy, other]}
    monkeypatch.setattr(env, "tasks", sets.__getitem__)
    found = profile_of_tasks(env)
    assert found["overlaps"] == [{"splits": (env.splits[0], env.splits[-1]), "tasks": [(one.id, "copy")]}]
    assert found["splits"][env.splits[-1]]["tasks"] == 2


def test_the_command_prints_bars_and_flags(
    tmp_path: Path, monkeypatch: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.chdir(tmp_path)
    Path("desk.py").write_text(DESK)
    other = write(tmp_path / "runs" / "other", [trace("x")])
    (other / "run.json").write_text('{"name": "another"}')
    write(tmp_path / "runs" / "played", [played("policy", "y", 1.0)])
    for arguments in (
        ["run", "desk.py", "--agent", "noop", "-q", "--out", "runs/noop"],
        ["profile", "desk.py", "--runs", "runs", "--json"],
        ["profile", "desk.py", "--runs", "runs"],
    ):
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main(arguments)
        assert not left.value.code
        if arguments[-1] == "--json":
            found = json.loads(capsys.readouterr().out)
            assert [*found["runs"]["agents"]] == ["noop", "policy"]
            assert {"tool": None, "next": "search", "times": 1, "share": 1.0} in found["runs"]["follows"]
            assert found["tasks"]["splits"]
    text = capsys.readouterr().out
    assert "characters of the prompt" in text
    assert "█" in text
    assert re.search(r"search +the end 50%, update 50%|search +update 50%, the end 50%", text)
    assert re.search(r"the beginning +search 100%", text)
