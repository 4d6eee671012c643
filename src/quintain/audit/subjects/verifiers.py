"""Adapter for tasksets of verifiers (v1) without a model: tasks and scoring.

An episode is one answer. If a task's rewards need more than the conversation (a runtime, a judge's model), "score" is
absent instead of a sum of the rest.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from quintain import plugins
from quintain.errors import UsageError

from . import loops, native, spaces
from .failure import SubjectFailure
from .matching import sealed
from .scorer import AnswerSubject

MAX_TASKS = 1000  # tasks that are read from an endless taskset
FORMS = ("{}", "\\boxed{{{}}}", "#### {}", "<answer>{}</answer>", "The answer is {}.")
"""Forms of an answer of which a task may want one."""


def make(text: str) -> Callable[[], VerifiersSubject | native.NativeSubject]:
    """Returns a factory of sessions; a module with `load_environment` is played by the adapter for `quintain run`.

    The text is "package.module", "path/to/file.py" or the name of an installed taskset; after ":" the Taskset in it, as
    a class, an instance, or a function that makes one; by default the only one there.
    """
    plugins.package("verifiers", extra="audit-verifiers")
    place, _, name = text.partition(":")
    module = _module(place)
    if hasattr(module, "load_environment"):
        return native.of(plugins.environment(f"verifiers:{text}"))
    taskset = _taskset(module, name, text)
    tasks: dict[str, Any] = {}
    for task in itertools.islice(iter(taskset), None if taskset.bounded else MAX_TASKS):
        names = (task.data.id, task.data.name, task.data.idx)
        tasks[str(next(one for one in names if one is not None))] = task
    if not tasks:
        raise UsageError(f"verifiers:{text} has no tasks")
    return functools.partial(VerifiersSubject, tasks)


class VerifiersSubject(AnswerSubject[Any]):
    """Session on a taskset; without "score" if one of the rewards in `lacking` needs a runtime or a model."""

    def __init__(self, tasks: dict[str, Any]) -> None:
        super().__init__(tasks)
        self.lacking = _lacking(next(iter(tasks.values())))
        self.absent = ("score", "oracle") if self.lacking else ()

    def prompt(self, task: str) -> str:
        data = self._known(task).data
        return "\n\n".join(filter(None, (data.system_prompt, data.prompt_text)))

    def hidden(self, task: str) -> dict[str, Any]:
        """Returns the task's fields with names of an answer, else all that are not in the prompt."""
        vf: Any = importlib.import_module("verifiers.v1")
        data: Any = self._known(task).data
        own = {name: value for name, value in data.model_dump().items() if name not in vf.TaskData.model_fields}
        plain = {name: spaces.plain(value) for name, value in own.items()}
        prompt = self.prompt(task)
        return sealed(plain) or {name: value for name, value in plain.items() if str(value) not in prompt}

    def oracle(self, task: str) -> list[Any] | None:
        """Returns the task's answer in the first of `FORMS` that scores best; None if no form scores above 0."""
        answers = [value for value in sealed(self.hidden(task)).values() if isinstance(value, str | int | float)]
        said = [form.format(answer) for answer in answers for form in FORMS]
        scored = [(self._scored(self._known(task), one)["score"], one) for one in said]
        best = max((score for score, _ in scored if score is not None), default=0.0)
        return [{"answer": next(one for score, one in scored if score == best)}] if best > 0 else None

    def score(self) -> dict[str, float | None] | None:
        """Returns the weighted sum of the rewards, and each of them by name; None if it is not finite."""
        found = self._scored(self._current, self._said)
        total = found["score"]
        return found if total is not None and math.isfinite(total) else None

    def _scored(self, task: Any, said: str | None) -> dict[str, float | None]:
        trace = _trace(task, said)
        try:
            loops.run(self, task.score(trace))
        except Exception as error:
            cause = error.__cause__ or error
            words = f"{type(cause).__name__}: {cause}"
            raise SubjectFailure(words, kind="verifier_error", part="V") from error
        given: dict[str, Any] = trace.rewards
        parts = {name: None if reward is None else float(reward.score) for name, reward in given.items()}
        whole = bool(given) and None not in parts.values()
        return parts | {"score": float(trace.reward) if whole else None}


def _lacking(task: Any) -> list[str]:
    found = ["a container"] if task.NEEDS_CONTAINER else []
    for reward in task.hooks("reward"):
        wanted = inspect.signature(reward).parameters.get("runtime")
        if wanted is not None and wanted.default is inspect.Parameter.empty:
            found.append(reward.__name__)
    return [*found, *(judge.reward_name for judge in task.plugged_judges())]


def _trace(task: Any, said: str | None) -> Any:
    """Returns the record of a conversation in which the agent said one thing, or nothing."""
    vf = importlib.import_module("verifiers.v1")
    node = importlib.import_module("verifiers.v1.graph").MessageNode
    states = importlib.import_module("verifiers.v1.state")
    records = importlib.import_module("verifiers.v1.trace")
    prompt = task.data.prompt
    messages: list[Any] = [vf.SystemMessage(content=task.data.system_prompt)] if task.data.system_prompt else []
    messages += [vf.UserMessage(content=prompt)] if isinstance(prompt, str) else list(prompt or ())
    trace = records.Trace(
        task=records.TraceTask(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash),
        state=states.state_cls(type(task))(),
        agent=vf.AgentInfo(config=vf.AgentConfig(), name="audit", trainable=False),
    )
    asked = len(messages)
    messages += [] if said is None else [vf.AssistantMessage(content=said)]
    for place, message in enumerate(messages):
        trace.nodes.append(node(parent=place - 1 if place else None, message=message, sampled=place >= asked))
    return trace


def _taskset(module: ModuleType, name: str, text: str) -> Any:
    taskset: Any = importlib.import_module("verifiers.v1.taskset").Taskset

    def is_class(one: Any) -> bool:
        return inspect.isclass(one) and issubclass(one, taskset) and not inspect.isabstract(one)

    there = {key: one for key, one in vars(module).items() if isinstance(one, taskset) or is_class(one)}
    own = {key: one for key, one in there.items() if getattr(one, "__module__", module.__name__) == module.__name__}
    if not name and len(own or there) != 1:
        raise UsageError(f"{text} has the tasksets {', '.join(own or there) or 'none'}; name one behind ':'")
    if name and not hasattr(module, name):
        raise UsageError(f"{text}: no taskset {name!r}; the tasksets are {', '.join(there) or 'none'}")
    found: Any = getattr(module, name) if name else next(iter((own or there).values()))
    if is_class(found):
        generic = importlib.import_module("verifiers.v1.utils.generic")
        configs = importlib.import_module("verifiers.v1.configs.taskset")
        kind = generic.concrete_type(found, configs.TasksetConfig, origin=taskset) or configs.TasksetConfig
        return found(kind())
    made = found() if callable(found) and not isinstance(found, taskset) else found
    if not isinstance(made, taskset):
        raise UsageError(f"{text} must be a Taskset or a function that makes one, it is of {type(made)}")
    return made


def _module(place: str) -> ModuleType:
    if place.endswith(".py"):
        return plugins.module(Path(place))
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{place}.".startswith(f"{error.name}."):
            raise
    try:
        found: ModuleType = importlib.import_module("verifiers.v1.utils.loaders").import_taskset(place)
    except Exception as error:
        raise UsageError(f"verifiers:{place}: no module and no installed taskset has this name: {error}") from error
    return found
