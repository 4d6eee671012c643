"""Environments that the test suites of the two reference servers need, built with Quintain.

Names, splits, prompts, tools, rewards and delays are those of the classes in their tests.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import quintain as qn


class Sum(qn.State):
    """A question of arithmetic."""

    right: str
    given: str = ""

    @qn.tool
    def submit(self, answer: str) -> str:
        """Submit your answer to the math problem

        Args:
            answer: The number.
        """
        self.given = answer.strip()
        self.finish("submitted")
        return "Correct!" if self.given == self.right else "Incorrect."


@qn.reward
def solved(outcome: qn.EpisodeView[Sum]) -> float:
    return float(outcome.state.given == outcome.state.right)


def sums(split: str) -> list[qn.Task[Sum]]:
    asked = {"train": (("0", "2+2", "4"), ("1", "3*3", "9")), "test": (("test-0", "5+5", "10"),)}[split]
    return [qn.Task(id=name, prompt=f"What is {what}?", start=Sum(right=number)) for name, what, number in asked]


gsm8k = qn.Environment(
    "GSM8KEnv",
    tasks=sums,
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(solved),
    state=Sum,
    splits=("train", "test"),
)


class Form(qn.State):
    """Form to hand in."""

    stamp: str = ""
    worth: float = 1.0
    handed_in: bool = False

    @qn.tool
    def submit(self) -> str:
        """Hand it in."""
        self.handed_in = True
        self.finish("submitted")
        return self.stamp


class Sluggish(qn.State):
    """State with a slow tool."""

    @qn.tool
    def slow(self) -> str:
        """Sleep."""
        time.sleep(1.5)
        self.finish("slept")
        return "slept"


@qn.reward
def worth(outcome: qn.EpisodeView[Form]) -> float:
    return outcome.state.worth if outcome.state.handed_in else 0.0


@qn.reward
def nothing(outcome: qn.EpisodeView[Sluggish]) -> float:
    return 0.0


def form(
    name: str, *, prompt: str, worth_it: float = 1.0, splits: tuple[str, ...] = ("train",), delay: float = 0.0
) -> qn.Environment[Form]:
    """An environment with one task, whose world takes `delay` seconds to build."""
    whole = Form(stamp=f"{name.lower().removeprefix('async')}_result", worth=worth_it)

    def build() -> Form:
        time.sleep(delay)
        return whole.copy()

    def tasks(split: str) -> Sequence[qn.Task[Form]]:
        return [qn.Task(id="only", prompt=prompt, start=build if delay else whole)]

    return environment(name, tasks, splits)


def environment(
    name: str, tasks: Callable[[str], Sequence[qn.Task[Form]]], splits: tuple[str, ...]
) -> qn.Environment[Form]:
    return qn.Environment(
        name, tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(worth), state=Form, splits=splits
    )


def large_tasks(split: str) -> qn.Tasks[Form]:
    def make(index: int) -> qn.Task[Form]:
        start = Form(stamp=f"result_{index}", worth=index / 1000)
        return qn.Task(id=str(index), prompt=f"task_{index}", start=start)

    return qn.Tasks({"train": 1000, "test": 200}[split], make)


def late_tasks(split: str) -> list[qn.Task[Form]]:
    time.sleep(1.5)
    return [qn.Task(id="only", prompt="blocking", start=Form(stamp="ok"))]


def sluggish_tasks(split: str) -> list[qn.Task[Sluggish]]:
    return [qn.Task(id="only", prompt="blocking-tool", start=Sluggish())]


foo = form("Foo", prompt="bar")
bar = form("Bar", prompt="baz", worth_it=0.5, splits=("test",))
baz = form("AsyncBaz", prompt="qux", worth_it=0.75)
large = environment("LargeEnv", large_tasks, ("train", "test"))
task_tools = form("EnvWithTaskTools", prompt="task tools prompt")
slow_setup = form("SlowSetupEnv", prompt="prompt-before-setup", delay=30.0)
blocking_prompt = form("BlockingPromptEnv", prompt="prompt-after-setup", delay=1.0)
blocking_list = environment("BlockingListTasksEnv", late_tasks, ("slow",))
blocking_init = form("BlockingInitEnv", prompt="blocking-init", delay=1.5)
blocking_tool = qn.Environment(
    "BlockingToolEnv",
    tasks=sluggish_tasks,
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(nothing),
    state=Sluggish,
    splits=("train",),
)
