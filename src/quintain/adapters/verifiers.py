"""Adapter for environments of `verifiers`: a module whose `load_environment(**args)` returns a vf.Environment.

`env.rollout` drives the conversation, `env.rubric` decides. Environments whose rubric compares the rollouts of a group
are refused.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import signal
import types
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from quintain import codec
from quintain.config import Config
from quintain.environment import sources
from quintain.errors import EpisodeError, UsageError
from quintain.plugins import attribute, package
from quintain.resource import settle
from quintain.task import Task, Tasks
from quintain.trace import Message, Reply, ToolCall

from .options import values
from .original import MAX_TURNS, Ask, Conversation, Ending, OriginalEnvironment, content, tool

_raised: ContextVar[list[Exception]] = ContextVar("_raised")
"""Exceptions of the reward functions of one scoring; a rubric takes each for a reward of 0."""
_SAMPLING = {"temperature": "temperature", "top_p": "top_p", "max_tokens": "max_reply_tokens"}
"""Sampling arguments of `verifiers`, and their names in a Config."""


def load(module: str, **options: Any) -> OriginalEnvironment:
    """Returns an environment of `verifiers`, with the splits "train" and "test", its evaluation set.

    Args:
        module: "package.module", "path/to/file.py", or the name of an environment package such as "reverse-text".
        options: Arguments of `load_environment`; texts that are JSON are decoded.

    Raises:
        UsageError: verifiers is missing or too new, the module has no `load_environment`, or its environment cannot
            be played.
    """
    vf = package("verifiers", extra="verifiers")
    if not hasattr(vf, "MultiTurnEnv"):
        message = f"verifiers {vf.__version__} has no vf.Environment, which verifiers<0.4 has"
        raise UsageError(f"{message}: pip install 'quintain[verifiers]'")
    place = module if module.endswith(".py") else module.rpartition("/")[2].replace("-", "_")
    make = attribute(f"{place}:load_environment")
    with _signals_kept():
        env = make(**values(options))
    if not isinstance(env, vf.Environment):
        raise UsageError(f"load_environment of {module} must return a vf.Environment, it returned a {type(env)}")
    if env.rubric.has_group_rewards:
        raise UsageError(f"the rubric of {module} compares the rollouts of a group; only single ones are scored here")
    played = list(_played(env))
    turns = [int(getattr(one, "max_turns", -1)) for one in played]
    limit_s = getattr(env, "timeout_seconds", None)
    for one in played:
        one.timeout_seconds = None  # Its clock would cut a rollout between two replies; the Config's is in the record.
    functions = [_watch(rubric, index) for rubric in _rubrics(env) for index in range(len(rubric.funcs))]
    given = {ours: env.sampling_args.get(theirs) for theirs, ours in _SAMPLING.items()}
    return OriginalEnvironment(
        f"verifiers_{Path(place).stem if place.endswith('.py') else place}",
        original=_Verifiers(vf, env),
        tasks=_splits(env),
        tools=[_tool(schema) for one in played for schema in one.tool_defs or ()],
        parts=[getattr(function, "__name__", repr(function)) for function in functions],
        code=codec.digest(codec.dumps((vf.__version__, sources(make), sorted(options.items())))),
        config=Config(
            max_turns=max(turns) if min(turns) > 0 else MAX_TURNS,
            episode_timeout_s=limit_s,
            **{name: value for name, value in given.items() if value is not None},
        ),
    )


class _Verifiers:
    """Original of an environment of `verifiers`."""

    def __init__(self, vf: Any, env: Any) -> None:
        self._vf = vf
        self._env = env

    async def play(self, task: Task[Any], ask: Ask) -> Ending:
        """Runs `rollout` on a row, with a client that asks our model."""
        client = _client_type(self._vf)(ask)
        state = await self._env.rollout(copy.deepcopy(task.truth), client, "quintain", {})
        error = state.get("error")
        # An environment that stops at a call that it cannot parse judges the model by that.
        if error is not None and not isinstance(error, self._vf.ToolParseError):
            cause = error.__cause__ or error
            message = f"{type(error).__name__}: {type(cause).__name__}: {cause}"
            raise EpisodeError(message, component="S", kind="quintain:tool_bug") from error
        messages = [_message(one) for one in (*state["prompt"], *(state["completion"] or ()))]
        return Ending(state.get("stop_condition") or "completed", messages, state)

    async def score(self, ending: Ending) -> tuple[float, Mapping[str, float]]:
        """Returns the reward and the metrics of the rubric.

        Raises:
            EpisodeError: A reward function raised.
        """
        raised: list[Exception] = []
        token = _raised.set(raised)
        try:
            await self._env.rubric.score_rollout(ending.result)
            await self._env.rubric.cleanup(ending.result)
        finally:
            _raised.reset(token)
        if raised:
            message = f"a reward function raised {type(raised[0]).__name__}: {raised[0]}; verifiers would count it as 0"
            raise EpisodeError(message, component="V", kind="verifier_error") from raised[0]
        return float(ending.result["reward"]), {name: float(v) for name, v in ending.result["metrics"].items()}


@functools.cache
def _client_type(vf: Any) -> Any:
    """Returns a class of clients that ask a model of ours."""
    kinds = package("verifiers.types", extra="verifiers")

    async def get_response(self: Any, prompt: Any, *_: Any, tools: Any = None, **__: Any) -> Any:
        reply: Reply | None = await self.client([_message(one) for one in prompt], [_tool(one) for one in tools or ()])
        if reply is None:
            raise vf.OverlongPromptError("the episode has ended")  # The one error that ends a rollout without blame.
        said, used = reply.message, reply.usage
        message = kinds.ResponseMessage(
            content=said.text or (None if said.calls else ""),
            reasoning_content=said.reasoning or None,
            tool_calls=[kinds.ToolCall(id=c.id, name=c.name, arguments=c.arguments) for c in said.calls] or None,
            finish_reason="length" if reply.finish_reason == "length" else "tool_calls" if said.calls else "stop",
            is_truncated=reply.finish_reason == "length",
        )
        usage = kinds.Usage(
            prompt_tokens=used.prompt,
            reasoning_tokens=0,
            completion_tokens=used.completion,
            total_tokens=used.prompt + used.completion,
        )
        return kinds.Response(id="", created=0, model="quintain", usage=usage, message=message)

    made = types.new_class(
        "QuintainClient", (vf.Client,), exec_body=lambda body: body.update(get_response=get_response)
    )
    made.__abstractmethods__ = frozenset()  # type: ignore[attr-defined]  # the others serve `get_response` alone
    return made


def _splits(env: Any) -> dict[str, Callable[[], Sequence[Task[Conversation]]]]:
    def rows(split: str, get: Callable[[], Any]) -> Sequence[Task[Conversation]]:
        found = get()
        return Tasks(len(found), lambda index: _task(f"{split}-{index}", found[index]))

    train = {"train": functools.partial(rows, "train", env.get_dataset)} if env.dataset_source or env.dataset else {}
    return {**train, "test": functools.partial(rows, "test", env.get_eval_dataset)}


def _task(id: str, row: dict[str, Any]) -> Task[Conversation]:
    asked = [one["content"] for one in row["prompt"] if one["role"] == "user"]
    return Task(id=id, prompt=content(asked[-1]) if asked else "", start=Conversation(), truth=row)


def _tool(one: Any) -> Any:
    return tool(one.name, one.description, one.parameters)


def _message(one: Any) -> Message:
    calls = tuple(ToolCall(call.id, call.name, call.arguments) for call in getattr(one, "tool_calls", None) or ())
    return Message(
        "user" if one.role == "text" else one.role,
        content(one.content),
        calls,
        getattr(one, "tool_call_id", None),
        getattr(one, "reasoning_content", None) or "",
    )


def _played(env: Any) -> Iterator[Any]:
    """Yields the environments of a group, or the environment itself."""
    if not hasattr(env, "envs"):
        yield env
    for one in getattr(env, "envs", ()):
        yield from _played(one)


def _rubrics(env: Any) -> Iterator[Any]:
    """Yields the rubrics that hold reward functions."""
    todo = [one.rubric for one in _played(env)]
    while todo:
        rubric = todo.pop(0)
        yield rubric
        todo += getattr(rubric, "rubrics", ())


def _watch(rubric: Any, index: int) -> Callable[..., Any]:
    """Lets a reward function note what it raises; returns it."""
    function: Callable[..., Any] = rubric.funcs[index]

    @functools.wraps(function)
    async def watched(*args: Any, **objects: Any) -> float:
        try:
            return float(await settle(function(*args, **objects)))
        except Exception as error:
            _raised.get().append(error)
            raise

    rubric.funcs[index] = watched
    return function


@contextlib.contextmanager
def _signals_kept() -> Generator[None]:
    """Gives back the signals that each environment of `verifiers` takes."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
