"""Registry: a finding can name registered functions only."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from quintain import plugins
from quintain.audit.checks import stale_cache
from quintain.audit.kernel import registry
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.loader import Subject
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, Probe, Record, ask, reset, together
from quintain.audit.kernel.replay import replay_finding
from quintain.errors import UsageError

TRAP = """
import pathlib

pathlib.Path(__file__).with_name("imported").touch()


def run(*_):
    return True
"""


@registry.relation
def holds(records: Sequence[Record], evidence: Evidence) -> bool:
    return bool(records) and evidence.data is None


@registry.probe_function
def shout(player: Player, on: str, value: Any) -> Any:
    return [on, value.upper(), len(player.adapters)]


def finding(*ops: Op, relation: str = "shows", path: Path) -> Finding:
    return Finding(
        check="x.one",
        class_="leak",
        part="S",
        severity="error",
        confidence="proven",
        title="so",
        probes=(Probe((reset("a"), *ops)),),
        evidence=Evidence(relation, data={} if relation == "shows" else None),
        subject=Subject(f"{path}:Bare"),
    )


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "trap_of_a_stranger.py").write_text(TRAP)
    monkeypatch.syspath_prepend(str(tmp_path))
    made = tmp_path / "bare.py"
    made.write_text(
        "class Bare:\n    def tasks(self):\n        return ['a']\n\n"
        "    def reset(self, task, seed):\n        return task\n\n    def score(self):\n        return 1.0\n"
    )
    return made


@pytest.mark.parametrize("name", ["trap_of_a_stranger:run", "os:system", "quintain.audit.codec:loads", "nothing"])
def test_an_unregistered_relation_is_refused_and_not_imported(name: str, path: Path) -> None:
    with pytest.raises(UsageError, match=f"'{name}' is not registered.*@relation.*quintain.checks"):
        replay_finding(finding(relation=name, path=path))
    assert not path.with_name("imported").exists()


@pytest.mark.parametrize("name", ["trap_of_a_stranger:run", "os:system", "quintain.audit.facts.load:percentile"])
@pytest.mark.parametrize("is_lane", [False, True])
def test_an_unregistered_probe_function_is_refused_and_not_imported(name: str, is_lane: bool, path: Path) -> None:
    op = together([ask(name, "x")]) if is_lane else ask(name, "x")
    with pytest.raises(UsageError, match=f"'{name}' is not registered.*@probe_function"):
        replay_finding(finding(op, path=path))
    assert not path.with_name("imported").exists()


def test_a_worker_refuses_an_unregistered_probe_function(path: Path) -> None:
    player = Player(lambda: None)
    seen = player.do(ask("trap_of_a_stranger:run"))
    assert "is not registered" in seen.raised
    assert not path.with_name("imported").exists()


def test_a_registered_function_is_called_in_the_worker(path: Path) -> None:
    name = f"{__name__}:shout"
    replayed = replay_finding(finding(ask(name, "x"), relation=f"{__name__}:holds", path=path), plays=1)
    assert replayed.held == 1
    assert replayed.trajectories[0][-1]["observed"] == ["a", "X", 1]


def test_functions_of_this_package_are_found_in_a_fresh_process() -> None:
    code = (
        "from quintain.audit.kernel.registry import find_probe_function, find_relation\n"
        "find_relation('shows'); find_relation('quintain.audit.mutants.judging:still_paid')\n"
        "find_probe_function('quintain.audit.mutants.reach:trace')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_relations_of_installed_plugins_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []

    def load(_group: str, name: str) -> Any:
        loaded.append(name)
        monkeypatch.setitem(registry._relations, "plugin_of_somebody:rule", holds)
        return stale_cache

    monkeypatch.setattr(plugins, "names", lambda group: (f"all {group}",))
    monkeypatch.setattr(plugins, "load", load)
    assert registry.find_relation("plugin_of_somebody:rule") is holds
    assert loaded == ["all checks"]
