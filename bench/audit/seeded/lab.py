"""Demonstrations of bugs: a few calls that are right on the clean world and wrong on the bugged one."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Data = Any
Call = Sequence[Data]
CHILD = """
import importlib, json, sys
root, module, name, work = sys.argv[1:]
sys.path.insert(0, root)
factory = getattr(importlib.import_module(module), name)
answers = []
for task, seed, calls in json.loads(work):
    world = factory()
    answers.append([world.reset(task, seed)] + [world.call(*call) for call in calls] + [world.score()])
print(json.dumps(answers))
"""


class Lab:
    """Makes worlds of one kind and closes them."""

    def __init__(self, factory: Callable[[], Any]) -> None:
        self.factory = factory
        self.made: list[Any] = []

    def make(self) -> Any:
        self.made.append(self.factory())
        return self.made[-1]

    def close(self) -> None:
        for world in self.made:
            if hasattr(world, "close"):
                world.close()

    def task(self, name: str) -> Data:
        """The task of an id, as the world lists it."""
        tasks = self.make().tasks()
        return next(task for task in tasks if (task if isinstance(task, str) else task["id"]) == name)

    def begin(self, name: str, seed: int = 1) -> Any:
        world = self.make()
        world.reset(self.task(name), seed)
        return world

    def play(self, name: str, calls: Sequence[Call], seed: int = 1) -> tuple[Any, list[Data]]:
        world = self.begin(name, seed)
        return world, [world.call(*call) for call in calls]

    def oracle(self, name: str) -> list[list[Data]]:
        return list(self.make().oracle(self.task(name)))

    def reward(self, name: str, calls: Sequence[Call]) -> float | None:
        return paid(self.play(name, calls)[0])

    def crash(self, name: str, call: Call) -> str | None:
        """The class of what a call raises."""
        world = self.begin(name)
        try:
            world.call(*call)
        except Exception as error:  # noqa: BLE001  # a crash is what is looked for
            return type(error).__name__
        return None

    def children(self, work: list[Data], *environments: dict[str, str], folder: str | None = None) -> list[Data]:
        """Returns the answers of fresh processes to [task, seed, calls], one for each set of variables."""
        module = self.factory.__module__
        file = Path(str(sys.modules[module].__file__)).resolve()
        command = [sys.executable, "-c", CHILD, str(file.parents[module.count(".")]), module, self.factory.__name__]
        found: list[Data] = []
        for environment in environments:
            done = subprocess.run(
                [*command, json.dumps(work)],
                env={**os.environ, **environment},
                cwd=folder,
                capture_output=True,
                text=True,
                check=True,
            )
            found.append(json.loads(done.stdout))
        return found

    def same(self, name: str, calls: Sequence[Call], *environments: dict[str, str]) -> bool:
        """True if one episode is the same in processes with these variables."""
        first, *rest = self.children([[self.task(name), 1, list(calls)]], *environments)
        return all(one == first for one in rest)


def altered(calls: Sequence[Call], name: str, **changes: Data) -> list[Call]:
    """The calls, those of one tool with other arguments."""
    return [[one, {**given, **changes}] if one == name else [one, given] for one, given in calls]


def paid(world: Any) -> float | None:
    score = world.score()
    return score["score"] if isinstance(score, dict) else score


def at_once(*actions: Callable[[], Data]) -> list[Data]:
    """Returns the results (or exception names) of actions that start together."""
    found: list[Data] = [None] * len(actions)
    gate = threading.Barrier(len(actions))

    def run(number: int) -> None:
        gate.wait()
        try:
            found[number] = actions[number]()
        except Exception as error:  # noqa: BLE001  # a crash is an outcome here
            found[number] = type(error).__name__

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(actions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@contextlib.contextmanager
def eager_switches() -> Any:
    """Threads take turns as often as the interpreter lets them."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


HASHES = tuple({"PYTHONHASHSEED": str(seed)} for seed in (1, 2, 3))
Demo = Callable[[Lab], Data]
DEMOS: dict[str, tuple[Demo, Data]] = {}


def shows(right: Data) -> Callable[[Demo], Demo]:
    """A demonstration, under the name of its module (`demo_desk`) and its own; `right` is what a sound world gives."""

    def keep(demo: Demo) -> Demo:
        name = f"{demo.__module__.rpartition('demo_')[2]}__{demo.__name__}"
        assert name not in DEMOS
        DEMOS[name] = (demo, right)
        return demo

    return keep
