"""Every twin looks as healthy as the sound environment, and differs from it in one thing."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import quintain as qn
from quintain import plugins
from quintain.cli import main
from quintain.environments.twins import CLASSES
from quintain.errors import UsageError
from tests.resources.sandbox import house

from .playing import ENVIRONMENTS, Task, made, play

EVERY = [
    pytest.param(name, twin, marks=[pytest.mark.slow] * (name == "coding" and twin != "stale_cache"))
    for name in ENVIRONMENTS
    for twin in CLASSES
]
ONE = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name != "sales")) for name in ENVIRONMENTS]
)
PLAYED = {"sales": range(0, 36, 5), "coding": range(9), "helpdesk": range(33)}
"""Places of tasks that are, between them, of every family and of every level."""
PLACES = pytest.mark.parametrize(
    "places", [slice(0, 2), pytest.param(slice(2, None), marks=pytest.mark.slow)], ids=["two", "the others"]
)
SHOWN_OTHERWISE = {
    ("sales", "data_realism"): {"crm_search", "crm_get", "crm_history"},
    ("sales", "action_drift"): {"crm_history"},
    ("coding", "data_realism"): {"list_issues"},
    ("helpdesk", "data_realism"): {"search", "show_tickets"},
    ("coding", "action_drift"): {"list_issues"},
}
"""Tools of which the oracle reads something else than in the sound environment."""


@pytest.fixture(autouse=True, scope="module")
def sandbox() -> None:
    house.need()


@pytest.mark.parametrize(("name", "twin"), EVERY)
@PLACES
def test_the_oracle_sees_what_it_sees_in_the_sound_environment_and_is_paid_in_full(
    name: str, twin: str, places: slice
) -> None:
    poisoned = made(name, twin)
    otherwise = SHOWN_OTHERWISE.get((name, twin), set())
    for index in PLAYED[name][places]:
        plain, healthy = _sound(name, index)
        twisted = poisoned.tasks("test")[index]
        assert (twisted.id, twisted.prompt, twisted.truth) == (plain.id, plain.prompt, plain.truth)
        ill = play(poisoned, twisted)
        assert healthy.score == ill.score == 1.0
        assert _rewards(ill) == _rewards(healthy)
        assert _seen(ill, otherwise) == _seen(healthy, otherwise)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "twin"), EVERY)
def test_the_oracle_is_paid_in_full_on_tasks_of_every_kind(name: str, twin: str) -> None:
    env = made(name, twin)
    assert {play(env, task).score for task in env.tasks("validation")[:120]} == {1.0}


@pytest.mark.parametrize(("name", "twin"), EVERY)
def test_doing_nothing_pays_nothing(name: str, twin: str) -> None:
    env = made(name, twin)
    assert {play(env, env.tasks("test")[index], []).score for index in PLAYED[name][:3]} == {0.0}


@pytest.mark.parametrize(("name", "twin"), EVERY)
def test_a_twin_is_the_sound_environment_but_for_its_name_and_its_bug(name: str, twin: str) -> None:
    sound, poisoned = made(name), made(name, twin)
    assert poisoned.name == f"{name}_{twin}"
    assert (poisoned.tools_digest, poisoned.config, poisoned.splits) == (sound.tools_digest, sound.config, sound.splits)
    assert [len(poisoned.tasks(split)) for split in poisoned.splits] == [len(sound.tasks(s)) for s in sound.splits]
    assert [one.name for one in poisoned.verifier.criteria] == [one.name for one in sound.verifier.criteria]
    assert len(_replaced(sound, poisoned)) == 1


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_no_two_have_the_same_fingerprint(name: str) -> None:
    assert len({made(name, twin).fingerprint for twin in ("", *CLASSES)}) == 1 + len(CLASSES)


@ONE
def test_another_process_replays_all_twins_to_the_byte(name: str, tmp_path: Path) -> None:
    # The oracle never meets what is left over or comes in no order; test_sales shows who does.
    folders = [tmp_path / twin for twin in CLASSES]
    for folder in folders:
        _quintain("run", name, "--twin", folder.name, "--tasks", "1", "--out", folder)
    command = [sys.executable, "-m", "quintain", "replay", "--processes", "1", *map(str, folders)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.count("equal to the byte") == 1, done.stdout + done.stderr


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_unknown_twin_is_refused_with_the_names_of_all(name: str) -> None:
    with pytest.raises(UsageError) as refused:
        plugins.environment(name, twin="stale_cach")
    assert str(refused.value) == f"unknown twin 'stale_cach'; known: {', '.join(CLASSES)}"


def test_an_environment_without_twins_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="enterprise takes no options, got twin"):
        plugins.environment("enterprise", twin="stale_cache")


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_without_a_twin_it_is_the_sound_environment_itself(name: str) -> None:
    module = sys.modules[f"quintain.environments.{name}"]
    assert plugins.environment(name) is module.__dict__["env"]


@ONE
def test_no_bug_is_imported_before_it_is_asked_for(name: str) -> None:
    program = (
        "import sys\nfrom quintain import plugins\n"
        f"plugins.environment({name!r})\n"
        f"early = [one for one in sys.modules if one.startswith('quintain.environments.{name}.twins')]\n"
        f"plugins.environment({name!r}, twin='reset_leak')\n"
        f"late = [one for one in sys.modules if one.startswith('quintain.environments.{name}.twins')]\n"
        "print(early, sorted(late))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    package = f"quintain.environments.{name}.twins"
    wanted = [package] if name == "helpdesk" else [package, f"{package}.reset_leak"]
    assert done.stdout.strip() == f"[] {wanted}"


@functools.cache
def _sound(name: str, index: int) -> tuple[Task, qn.Trace]:
    """A task, and how the oracle plays it in the sound environment."""
    env = made(name)
    task = env.tasks("test")[index]
    return task, play(env, task)


def _quintain(*arguments: object) -> None:
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    assert not left.value.code


def _rewards(trace: qn.Trace) -> list[tuple[str, float | None]]:
    return [(reward.name, reward.value) for reward in trace.every_reward()]


def _seen(trace: qn.Trace, otherwise: set[str]) -> list[Any]:
    steps = [step for turn in trace.turns for step in turn.steps]
    return [
        (step.call.name, None if step.call.name in otherwise else step.observation, step.is_error) for step in steps
    ]


def _replaced(sound: qn.Environment[Any], poisoned: qn.Environment[Any]) -> list[str]:
    """The parts in which two environments differ."""
    starts = [_start(env.tasks("test")[1]) for env in (sound, poisoned)]
    parts: dict[str, Callable[[qn.Environment[Any]], Any]] = {
        "state": lambda env: env.state,
        "harness": lambda env: env.harness,
        "verifier": lambda env: [one.fn for one in env.verifier.criteria],
    }
    found = [name for name, part in parts.items() if part(sound) != part(poisoned)]
    return found or ["tasks"] * (starts[0] != starts[1])


def _start(task: qn.Task[Any]) -> bytes:
    from quintain import resource

    plain, held = resource.split(task.world())
    return plain + repr([one.digest() for one in held]).encode()
