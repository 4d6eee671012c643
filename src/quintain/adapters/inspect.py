"""Adapter for tasks of Inspect AI: `package/task` as registered, or `path/to/file.py@task`.

The task's solvers drive the conversation, its first scorer decides. A task that needs a sandbox, or whose scorer needs
a model that the task does not name, is refused.
"""

from __future__ import annotations

import copy
import functools
import json
import re
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from quintain import codec
from quintain.config import Config
from quintain.environment import sources
from quintain.errors import EpisodeError, JudgeError, UsageError
from quintain.plugins import package
from quintain.task import Task, Tasks
from quintain.tools import Tool
from quintain.trace import Message, Reply, ToolCall

from .options import values
from .original import MAX_TURNS, Ask, Conversation, Ending, OriginalEnvironment, content, picture, tool

_SAMPLING = {"temperature": "temperature", "top_p": "top_p", "max_tokens": "max_reply_tokens"}
"""Fields of a GenerateConfig, and their names in a Config."""


def load(task: str, *, score: str = "", **options: Any) -> OriginalEnvironment:
    """Returns a task of Inspect as an environment with the split "test".

    Args:
        task: "package/task" or "path/to/file.py@task".
        score: Scorer whose value is the reward, by default the first; "scorer/key" if its value is a dict.
        options: Arguments of the task; texts that are JSON are decoded.

    Raises:
        UsageError: inspect_ai is missing, the task does not exist, or it cannot be played.
    """
    inspect_ai = package("inspect_ai", extra="inspect")
    found = _one(task, values(options))
    samples = _samples(task, found)
    scorers = _scorers(task, found)
    wanted, _, key = (score or next(iter(scorers))).partition("/")
    if wanted not in scorers:
        raise UsageError(f"{task} has no scorer {wanted!r}; it has {', '.join(scorers)}")
    given = {ours: getattr(found.config, theirs) for theirs, ours in _SAMPLING.items()}
    code = (inspect_ai.__version__, sources(_maker(found)), score, sorted(options.items()))
    return OriginalEnvironment(
        f"inspect_{re.sub(r'.*/', '', task).replace('.py@', '_')}",
        original=_Inspect(found, samples, scorers, wanted=(wanted, key)),
        tasks={"test": lambda: Tasks(len(samples), lambda index: _task(*list(samples.items())[index]))},
        tools=(),
        parts=scorers,
        code=codec.digest(codec.dumps(code)),
        config=Config(
            max_turns=MAX_TURNS,
            episode_timeout_s=found.time_limit,
            **{name: value for name, value in given.items() if value is not None},
        ),
    )


class _Run(NamedTuple):
    """Finished sample: the state that the solvers left, its target, and the model that played."""

    state: Any
    target: Any
    api: Any


class _Inspect:
    """Original of a task of Inspect."""

    def __init__(
        self, task: Any, samples: Mapping[str, Any], scorers: Mapping[str, Any], *, wanted: tuple[str, str]
    ) -> None:
        self._task = task
        self._samples = samples
        self._scorers = scorers
        self._wanted = wanted

    async def play(self, task: Task[Any], ask: Ask) -> Ending:
        """Runs the solvers on a sample, with a model that asks ours."""
        sample = copy.deepcopy(self._samples[task.id])
        api = _Api(ask)
        reason = "completed"
        state, generate = _begin(self._task, sample, api, scorers=list(self._scorers.values()))
        solver, limits = _module("solver._task_state"), _module("util._limit")
        try:
            turns = limits.turn_limit(self._task.turn_limit)
            with state._token_limit, state._cost_limit, state._message_limit, turns:
                state = await _module("_eval.task.run").resolve_plan(self._task, None)(state, generate)
        except limits.LimitExceededError as error:
            state, reason = solver.sample_state() or state, f"{error.type} limit"
        finally:
            api.ask = None
        state.completed = True
        target = _module("scorer").Target(sample.target)
        return Ending(reason, [api.message(one) for one in state.messages], _Run(state, target, api))

    async def score(self, ending: Ending) -> tuple[float, Mapping[str, float]]:
        """Returns the wanted score, and those of all scorers that give one number.

        Raises:
            EpisodeError: The wanted scorer gave no number.
        """
        run: _Run = ending.result
        found: dict[str, Any] = {}
        run.state.scores = dict(run.state.scores or {})
        for name, scorer in self._scorers.items():
            given = await scorer(run.state, run.target)
            found[name] = None if given is None else given.value
            if given is not None:
                run.state.scores[name] = given
        chosen = _chosen(*self._wanted, found)
        number = _module("scorer").value_to_float()
        flat = {one: number(given) for one, given in found.items() if isinstance(given, str | int | float)}
        return number(chosen), flat


class _Api:
    """Model of one sample, which asks a model of ours.

    Attributes:
        ask: Asks it; None once the solvers are done.
    """

    def __init__(self, ask: Ask) -> None:
        self.ask: Ask | None = ask
        self._said: dict[str, Message] = {}

    def model(self, config: Any) -> Any:
        """Returns the model as Inspect wants it."""
        made = _api_type()("quintain")
        made.sample = self
        return _module("model").Model(made, config)

    async def generate(self, messages: Sequence[Any], tools: Sequence[Any]) -> Any:
        if self.ask is None:
            message = "a scorer asks the model that is judged; give the task a model for its role, such as grader"
            raise JudgeError(message, kind="quintain:judge_missing")
        offered = [_tool(one) for one in tools]
        reply = await self.ask([self.message(one) for one in messages], offered)
        if reply is None:
            raise _module("util._limit").LimitExceededError("custom", value=1, limit=1, message="the episode has ended")
        return self._output(reply, tools)

    def _output(self, reply: Reply, tools: Sequence[Any]) -> Any:
        models, parse = _module("model"), _module("model._call_tools").parse_tool_call
        said, used = reply.message, reply.usage
        text: Any = said.text
        if said.reasoning:
            text = [models.ContentReasoning(reasoning=said.reasoning), models.ContentText(text=said.text)]
        message = models.ChatMessageAssistant(
            content=text,
            tool_calls=[parse(call.id, call.name, call.arguments, list(tools)) for call in said.calls] or None,
            source="generate",
            model="quintain",
        )
        self._said[message.id] = said
        stop = "max_tokens" if reply.finish_reason == "length" else "tool_calls" if said.calls else "stop"
        return models.ModelOutput(
            model="quintain",
            choices=[models.ChatCompletionChoice(message=message, stop_reason=stop)],
            usage=models.ModelUsage(
                input_tokens=used.prompt, output_tokens=used.completion, total_tokens=used.prompt + used.completion
            ),
        )

    def message(self, one: Any) -> Message:
        """Returns a message of Inspect as ours; of a reply, the very message that our model said."""
        if one.id in self._said:
            return self._said[one.id]
        calls = getattr(one, "tool_calls", None) or ()
        error = getattr(one, "error", None)
        return Message(
            one.role,
            f"Error: {error.message}" if error else _content(one.content),
            tuple(ToolCall(call.id, call.function, json.dumps(call.arguments)) for call in calls),
            getattr(one, "tool_call_id", None),
        )


def _chosen(name: str, key: str, found: Mapping[str, Any]) -> Any:
    """Returns the value of a scorer, or the one under a key of it.

    Raises:
        EpisodeError: It has no such value, or the value is not one number.
    """
    value = found[name]
    values = cast(dict[str, Any], value) if isinstance(value, dict) else {"": value}
    if key not in values:
        names = ", ".join(f"{name}/{one}" if one else name for one in values)
        message = f"scorer {name!r} has no value {key!r}; choose one: score={names}"
        raise EpisodeError(message, component="V", kind="verifier_error")
    if values[key] is None or isinstance(values[key], list):
        message = f"scorer {name!r} gave {values[key]!r}, not a number"
        raise EpisodeError(message, component="V", kind="verifier_error")
    return values[key]


@functools.cache
def _api_type() -> Any:
    """Returns the class of Inspect's models that pass their questions to a `_Api`."""
    models = _module("model")

    async def generate(self: Any, *, input: Any, tools: Any, **_: Any) -> Any:
        return await self.sample.generate(input, tools)

    kind = types.new_class("QuintainAPI", (models.ModelAPI,), exec_body=lambda body: body.update(generate=generate))
    return models.modelapi("quintain")(kind)


def _begin(task: Any, sample: Any, api: _Api, *, scorers: list[Any]) -> tuple[Any, Callable[..., Any]]:
    """Sets the context variables of a sample as `eval` does; returns its state and the solvers' `generate`."""
    scoring, solver, running = _module("scorer"), _module("solver._task_state"), _module("_eval.task.generate")
    model = api.model(task.config)
    state = solver.TaskState(
        sample_id=sample.id or 0,
        epoch=1,
        model=_module("model").ModelName(model),
        input=sample.input,
        target=scoring.Target(sample.target),
        choices=sample.choices,
        messages=_module("_eval.task.util").sample_messages(sample),
        message_limit=task.message_limit,
        token_limit=task.token_limit,
        token_limit_type=task.token_limit_type or "all",
        cost_limit=task.cost_limit,
        completed=False,
        metadata=sample.metadata or {},
    )

    async def generate(state: Any, tool_calls: str = "loop", **config: Any) -> Any:
        off = _module("_util.notgiven").NOT_GIVEN  # A cache would hide replies from the record.
        return await running.task_generate(model, state, tool_calls, off, task.config.merge(config))

    _module("_eval.context").init_task_context(model, task.model_roles, task.config)
    _module("model._model").init_sample_model_data()
    _module("model._assistant_internal").init_sample_assistant_internal()
    _module("log._transcript").init_transcript(_module("log._transcript").Transcript())
    _module("util._store").init_subtask_store(state.store)
    _module("scorer._score").init_scoring_context(scorers, state.target)
    _module("solver._fork").set_task_generate(generate)
    solver.set_sample_state(state)
    return state, generate


def _one(task: str, options: dict[str, Any]) -> Any:
    loader, context = _module("_eval.loader"), _module("_eval.context")
    context.init_runtime_context()
    try:
        found = loader.load_tasks([task], options)
    except Exception as error:
        raise UsageError(f"inspect:{task} cannot be made: {type(error).__name__}: {error}") from error
    if len(found) != 1:
        names = ", ".join(one.name for one in found) or "none"
        raise UsageError(f"inspect:{task} must name one task, as package/task or path/to/file.py@task; found: {names}")
    (one,) = found
    refused = {
        "a sandbox": one.sandbox,
        "tool approval": one.approval,
        "tool review": one.review,
        "a cleanup": one.cleanup,
    }
    for what, given in refused.items():
        if given is not None:
            raise UsageError(f"inspect:{task} needs {what} ({given}), which is not run here")
    return one


def _samples(task: str, found: Any) -> dict[str, Any]:
    """Returns the samples by id.

    Raises:
        UsageError: They are made while the task runs, or one needs a sandbox.
    """
    if not hasattr(found.dataset, "__getitem__"):
        raise UsageError(f"inspect:{task} makes its samples while it runs, which is not played here")
    samples: dict[str, Any] = {}
    for number, sample in enumerate(found.dataset, 1):
        if sample.sandbox is not None or sample.files or sample.setup:
            raise UsageError(f"inspect:{task}: sample {sample.id or number} needs a sandbox, which is not run here")
        samples[str(sample.id or number)] = sample
    return samples


def _scorers(task: str, found: Any) -> dict[str, Any]:
    """Returns the scorers by the names that Inspect gives them.

    Raises:
        UsageError: There are none, or one grades by a model that the task does not name.
    """
    registry, scoring = _module("_util.registry"), _module("scorer._scorer")
    scorers: dict[str, Any] = {}
    for scorer in found.scorer or ():
        name = scoring.unique_scorer_name(scorer, list(scorers))
        given = registry.registry_params(scorer)
        role = given.get("model_role", "grader")
        if name.startswith("model_graded") and not (given.get("model") or role in (found.model_roles or {})):
            raise UsageError(f"inspect:{task}: scorer {name!r} needs a model; give the task one for the role {role!r}")
        scorers[name] = scorer
    if not scorers:
        raise UsageError(f"inspect:{task} has no scorer")
    return scorers


def _task(id: str, sample: Any) -> Task[Conversation]:
    asked: Any = sample.input
    if not isinstance(asked, str):
        asked = next((one.content for one in reversed(asked) if one.role == "user"), "")
    truth = sample.model_dump(mode="json", exclude_none=True, fallback=str)
    return Task(id=id, prompt=_content(asked), start=Conversation(), truth=truth)


def _content(given: Any) -> Any:
    if isinstance(given, str):
        return given
    return tuple(picture(one.image) if one.type == "image" else content([one.model_dump()])[0] for one in given)


def _tool(one: Any) -> Tool:
    return tool(one.name, one.description, one.parameters.model_dump(exclude_none=True))


def _maker(task: Any) -> Any:
    """Returns the function that made a task, for its source code."""
    registry = _module("_util.registry")
    return registry.registry_lookup("task", registry.registry_info(task).name)


def _module(name: str) -> Any:
    return package(f"inspect_ai.{name}", extra="inspect")
