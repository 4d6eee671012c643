"""A fingerprint changes exactly when the author's code does, or what it was set up with."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import MethodType
from typing import Any

import msgspec

import quintain as qn
from quintain import environment
from quintain.harness import Model
from quintain.harnesses import Dialogue
from quintain.testing.elsewhere import fresh_processes
from quintain.trace import Level
from quintain.verifier import Criterion
from tests.test_environment import Bigger, Loop, desk, make, tasks, took_one


def judge(outcome: Any) -> float:
    return 1.0


def other_judge(outcome: Any) -> float:
    return 1.0


def judged_by(judge: Any, **fields: Any) -> qn.Verifier[Any]:
    parts: dict[str, Any] = {"name": "c", "level": Level.TRAJECTORY, "fn": judge}
    return qn.Verifier(Criterion(**parts | fields))


def matches(target: object) -> Callable[[Any], float]:
    def closed_over(outcome: Any) -> float:
        return float(outcome == target)

    return closed_over


def with_default(target: object) -> Callable[[Any], float]:
    def judge(outcome: Any, limit: object = target, *, last: object = target) -> float:
        return float(limit == last)

    return judge


class Judge(msgspec.Struct):
    limit: float = 1.0

    def __call__(self, outcome: Any) -> float:
        return self.limit

    def method(self, outcome: Any) -> float:
        return self.limit


class WithCallback(msgspec.Struct):
    callback: Callable[[], object]

    async def play(self, session: qn.Session, model: Model) -> None:
        raise NotImplementedError


DIFFERENT: list[dict[str, Any]] = [
    {},
    {"name": "other"},
    {"state": Bigger},
    {"harness": qn.ToolLoop(system="Be long.")},
    {"harness": Dialogue(system="Be brief.")},
    {"harness": Loop("Be brief.")},
    {"harness": Loop("Be long.")},
    {"harness": WithCallback(desk)},
    {"harness": WithCallback(tasks)},  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    {"verifier": judged_by(judge)},
    {"verifier": judged_by(other_judge)},
    {"verifier": judged_by(judge, name="d")},
    {"verifier": judged_by(judge, weight=0.5)},
    {"verifier": judged_by(judge, high=2)},
    {"verifier": judged_by(judge, normalize=True)},
    {"verifier": qn.Verifier(*judged_by(judge).criteria, combine="product")},
    {"verifier": qn.Verifier(*judged_by(judge).criteria, *judged_by(judge, name="d").criteria)},
    {"verifier": qn.Verifier(*judged_by(judge, name="d").criteria, *judged_by(judge).criteria)},
    {"verifier": judged_by(matches("a"))},
    {"verifier": judged_by(matches({"b", "c"}))},
    {"verifier": judged_by(with_default(1))},
    {"verifier": judged_by(with_default(2))},
    {"verifier": judged_by(Judge(1.0))},
    {"verifier": judged_by(Judge(2.0))},
    {"verifier": judged_by(Judge(1.0).method)},
]


def fingerprints() -> list[str]:
    return [make(**parts).fingerprint for parts in DIFFERENT]


def test_every_difference_shows() -> None:
    found = fingerprints()
    assert len(set(found)) == len(DIFFERENT)
    assert found == fingerprints()


def test_fingerprints_are_the_same_in_every_process() -> None:
    program = "from tests.test_fingerprint import *; print(fingerprints())"
    done = fresh_processes([sys.executable, "-c", program], [1, 2])
    assert {(one.stdout, one.stderr) for one in done} == {(f"{fingerprints()}\n", "")}


def test_a_fingerprint_excludes_config_tasks_and_splits() -> None:
    fingerprint = make().fingerprint
    assert make(config=qn.Config(max_turns=3)).fingerprint == fingerprint
    assert make(tasks=lambda split: ()).fingerprint == fingerprint
    assert make(splits=("all",)).fingerprint == fingerprint


def test_a_setting_that_is_not_plain_data_counts_by_its_name() -> None:
    assert make(harness=Loop("x", object())).fingerprint == make(harness=Loop("x", object())).fingerprint
    assert make(harness=Loop("x", object())).fingerprint != make(harness=Loop("x", {1: 2})).fingerprint
    assert (
        make(verifier=judged_by(matches(object()))).fingerprint
        == make(verifier=judged_by(matches(object()))).fingerprint
    )
    assert make(verifier=judged_by(matches(2**70))).fingerprint != make(verifier=judged_by(matches("x"))).fingerprint


def test_a_variable_without_a_value_is_no_trouble() -> None:
    def judge(outcome: Any) -> float:
        return late

    env = make(verifier=judged_by(judge))
    late = 1.0
    assert env.fingerprint != make(verifier=judged_by(judge)).fingerprint


def test_a_replaced_part_shows_and_the_origin_stays() -> None:
    env = make()
    before = env.fingerprint
    assert env.replace().fingerprint == before
    assert env.replace(config=qn.Config(max_turns=1)).fingerprint == before
    assert env.replace(harness=Loop("x")).fingerprint == make(harness=Loop("x")).fingerprint
    twin = env.replace(verifier=judged_by(judge), config=qn.Config(max_turns=1))
    assert twin.fingerprint == make(verifier=judged_by(judge)).fingerprint
    assert (twin.config.max_turns, twin.harness) == (1, env.harness)
    assert (env.fingerprint, env.config, env.verifier.criteria) == (before, qn.Config(), (took_one,))


# --- the code in it

SOURCE = """
    import quintain as qn
    {top}

    class Part(qn.State):
        n: int = 0

        @qn.tool
        def add(self) -> int:
            "Add."
            self.n += {step}
            return self.n

        @staticmethod
        def helper() -> int:
            return {helper}

        @property
        def shown(self) -> int:
            return {shown}

    class World(qn.State):
        part: Part

    @qn.reward
    def judge(outcome: qn.EpisodeView[World]) -> float:
        return {score} if outcome.answer in {{"a", "b", "c"}} else float(any(n for n in [{inner}]))

    def tasks(split: str) -> list[qn.Task[World]]:
        return []

    env = qn.Environment("e", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(judge), state=World)
"""


def source(**changes: object) -> str:
    parts: dict[str, object] = {"top": "", "step": 1, "helper": 1, "shown": 1, "score": 1.0, "inner": 1}
    return textwrap.dedent(SOURCE).format(**parts | changes)


CHANGES: list[dict[str, Any]] = [{}, {"step": 2}, {"helper": 2}, {"shown": 2}, {"score": 0.5}, {"inner": 2}]


def executed(text: str) -> str:
    names: dict[str, Any] = {}
    exec(compile(text, "<generated>", "exec", dont_inherit=True), names)
    fingerprint: str = names["env"].fingerprint
    return fingerprint


def test_code_without_a_source_counts_as_it_was_compiled() -> None:
    found = [executed(source(**change)) for change in CHANGES]
    assert len(set(found)) == len(CHANGES)
    assert executed(source(top="# words for people\n\n")) == found[0]


def test_compiled_code_is_the_same_in_every_process() -> None:
    program = f"names = {{}}; exec({source()!r}, names); print(names['env'].fingerprint)"
    done = fresh_processes([sys.executable, "-c", program], [1, 2, 3])
    assert {(one.stdout, one.stderr) for one in done} == {(f"{executed(source())}\n", "")}


def played(*command: str, folder: Path) -> str:
    done = subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.stdout


def test_a_script_and_a_module_are_the_same_environment(tmp_path: Path) -> None:
    (tmp_path / "desk.py").write_text(source() + "\nprint(env.fingerprint)")
    (tmp_path / "stranger.py").write_text("a stranger in the same folder, not even Python")
    script = played("desk.py", folder=tmp_path)
    assert script == played("-c", "import desk", folder=tmp_path)
    (tmp_path / "stranger.py").write_text("changed")
    assert script == played("desk.py", folder=tmp_path)
    changes: list[dict[str, Any]] = [*CHANGES[1:], {"top": "LIMIT = 3"}]
    for change in changes:
        (tmp_path / "desk.py").write_text(source(**change) + "\nprint(env.fingerprint)")
        assert played("desk.py", folder=tmp_path) != script


def test_a_package_counts_as_a_whole(tmp_path: Path) -> None:
    package = tmp_path / "office" / "desk"
    (package / "inner").mkdir(parents=True)
    for file in (tmp_path / "office/__init__.py", package / "__init__.py", package / "inner/__init__.py"):
        file.write_text("")
    (package / "environment.py").write_text(source(top="from .inner import prices"))
    (package / "inner" / "prices.py").write_text("PEN = 1")
    (package / "README.md").write_text("words")
    program = "from office.desk.environment import env; print(env.fingerprint)"
    before = played("-c", program, folder=tmp_path)
    (package / "README.md").write_text("other words")
    (tmp_path / "office" / "chair.py").write_text("another product")
    assert played("-c", program, folder=tmp_path) == before
    (package / "inner" / "prices.py").write_text("PEN = 2")
    assert played("-c", program, folder=tmp_path) != before


def test_a_package_without_sources_counts_as_it_was_compiled(tmp_path: Path) -> None:
    (tmp_path / "office").mkdir()
    (tmp_path / "office" / "__init__.py").write_text("")
    (tmp_path / "office" / "desk.py").write_text(source())
    for text in (source(), source(step=2)):
        (tmp_path / "office" / "desk.py").write_text(text)
        played("-m", "compileall", "-q", "-f", "-b", "office", folder=tmp_path)
        (tmp_path / "office" / "desk.py").unlink()
        (tmp_path / "office" / "__init__.py").unlink(missing_ok=True)
        found = played("-c", "from office.desk import env; print(env.fingerprint)", folder=tmp_path)
        assert found.strip() == executed(text)


def test_the_framework_itself_is_not_in_it() -> None:
    read = environment._files.cache_info().currsize  # pyright: ignore[reportPrivateUsage]
    qn.Environment(
        "bare", tasks=lambda split: (), harness=qn.ToolLoop(), verifier=judged_by(MethodType(print, 1)), state=qn.State
    )
    assert environment._files.cache_info().currsize == read  # pyright: ignore[reportPrivateUsage]
