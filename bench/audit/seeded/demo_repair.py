"""The bugs of the repair shop, shown."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from typing import Any

from .lab import Lab, at_once, paid, shows

Data = Any
TASK = "discount-0"
MODULE = "src/formulas.py"
RUN: list[Data] = ["run_tests", {}]


def write(content: str, path: str = MODULE) -> list[Data]:
    return ["write_file", {"path": path, "content": content}]


@shows(True)  # noqa: FBT003
def tests_by_length(lab: Lab) -> Data:
    world = lab.begin("postage-0")
    source = world.files[MODULE]
    before = world.call(*RUN)
    world.call(*write(source.replace("5 if grams < 500 else 9", "7 if grams < 500 else 9")))
    return world.call(*RUN) != before


@shows(0.0)
def cases_of_the_agent(lab: Lab) -> Data:
    return lab.reward(TASK, [write("", "tests/cases.txt")])


@shows(0.0)
def broken_is_skipped(lab: Lab) -> Data:
    return lab.reward(TASK, [write("")])


@shows(0.0)
def visible_cases_only(lab: Lab) -> Data:
    return lab.reward("pages-0", [])


@shows(0.0)
def last_run_counts(lab: Lab) -> Data:
    return lab.reward(TASK, [*lab.oracle(TASK), write("")])


@shows(0.0)
def text_is_there(lab: Lab) -> Data:
    world = lab.begin(TASK)
    world.call(*write(f"# {world.hidden(TASK)['solution']}\n"))
    return paid(world)


@shows(True)  # noqa: FBT003
def timeout_passes(lab: Lab) -> Data:
    world = lab.begin(TASK)
    world.inject("timeout")
    return "error" in world.call(*RUN)


@shows(None)
def no_memory_no_reward(lab: Lab) -> Data:
    world = lab.begin(TASK)
    world.inject("out_of_memory")
    return world.score()


@shows(True)  # noqa: FBT003
def unknown_is_empty(lab: Lab) -> Data:
    return "error" in lab.begin(TASK).call("read_file", {"path": "nowhere.py"})


@shows(True)  # noqa: FBT003
def folder_of_the_machine(lab: Lab) -> Data:
    work = [[TASK, 1, [RUN]]]
    with tempfile.TemporaryDirectory() as folder:
        return lab.children(work, {}, folder=folder) == lab.children(work, {}, folder="/")


@shows(True)  # noqa: FBT003
def since_the_last_run(lab: Lab) -> Data:
    world = lab.begin(TASK)
    first = world.call(*RUN)
    world.reset(TASK, 1)
    return world.call(*RUN) == first


@shows(0)
def open_logs(lab: Lab) -> Data:
    world, there = lab.begin(TASK), "/proc/self/fd"
    before = len(os.listdir(there))  # noqa: PTH208  # the shortest way to count
    for _ in range(5):
        world.call(*RUN)
    after = len(os.listdir(there))  # noqa: PTH208
    for log in getattr(world, "logs", []):
        log.close()
    return after - before


@shows(None)
def deep_source(lab: Lab) -> Data:
    world = lab.begin(TASK)
    deep = "+".join("1" for _ in range(sys.getrecursionlimit() + 200))
    world.call(*write(f"def f(x):\n    return {deep}\n"))
    try:
        world.call(*RUN)
    except RecursionError as error:
        return type(error).__name__
    return None


@shows([])
def old_commit(lab: Lab) -> Data:
    world = lab.begin(TASK)
    return world.call("search", {"query": world.hidden(TASK)["solution"]})["lines"]


def output(lab: Lab, calls: list[Data]) -> str:
    """All that an agent reads."""
    return json.dumps(lab.play(TASK, calls)[1])


@shows(False)  # noqa: FBT003
def hidden_cases_in_the_run(lab: Lab) -> Data:
    hidden = lab.make().hidden(TASK)["cases"]
    return any(case in output(lab, [RUN]) for case in hidden)


@shows(True)  # noqa: FBT003
def encoded_in_the_readme(lab: Lab) -> Data:
    return "build" not in output(lab, [["read_file", {"path": "README.md"}]])


@shows(0.0)
def nothing_to_repair(lab: Lab) -> Data:
    return lab.reward("leap-1", [])


@shows(1.0)
def oracle_of_an_old_text(lab: Lab) -> Data:
    return lab.reward("postage-0", lab.oracle("postage-0"))


@shows([1.0])
def alarm_in_the_verdict(lab: Lab) -> Data:
    world, _ = lab.play(TASK, lab.oracle(TASK))
    found: list[Data] = []
    worker = threading.Thread(target=lambda: found.append(world.score()))
    worker.start()
    worker.join()
    return found


@shows({0.0})
def sample_of_cases(lab: Lab) -> Data:
    world = lab.begin("postage-0")
    return {world.score() for _ in range(60)}


@shows(1.0)
def slow_is_wrong(lab: Lab) -> Data:
    world, _ = lab.play(TASK, lab.oracle(TASK))
    outcomes = world.outcomes

    def loaded(*given: Data) -> Data:
        time.sleep(0.05)  # another process has the processor
        return outcomes(*given)

    world.outcomes = loaded
    return paid(world)


@shows(True)  # noqa: FBT003
def one_module_for_all(lab: Lab) -> Data:
    worlds = [lab.begin(TASK), lab.play(TASK, [write("")])[0]]
    right = [world.call(*RUN) for world in worlds]
    return all(at_once(*[lambda world=world: world.call(*RUN) for world in worlds]) == right for _ in range(5))


@shows(True)  # noqa: FBT003
def replace_takes_all(lab: Lab) -> Data:
    return "error" in lab.begin(TASK).call("replace", {"path": MODULE, "old": "return", "new": "return 0 +"})


@shows(0.0)
def other_functions_unread(lab: Lab) -> Data:
    world, _ = lab.play(TASK, lab.oracle(TASK))
    parts = world.files[MODULE].split("\n\n\n")
    world.call(*write("\n".join(part for part in parts if part.startswith("def discount"))))
    return paid(world)


@shows(False)  # noqa: FBT003
def solution_in_the_schema(lab: Lab) -> Data:
    world = lab.begin(TASK)
    return world.hidden(TASK)["solution"] in json.dumps(world.tools())
