"""Adapter for Gymnasium environments, and for any object with `reset` and `step` of their shape.

There is one task ("episode") and one tool ("step"). The score is the return: the sum of the rewards since `reset`, None
before the first one. The state is the attributes of the environment and its wrappers.
"""

from __future__ import annotations

import copy
import functools
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, cast

from quintain.errors import UsageError
from quintain.plugins import package

from . import http, spaces
from .failure import SubjectFailure

TASK = "episode"
STATIC = frozenset(
    {"action_space", "observation_space", "metadata", "spec", "render_mode", "env", "unwrapped"}
    | {"_action_space", "_observation_space", "_metadata", "_cached_spec", "_saved_kwargs", "_np_random_seed"}
)
"""Attributes of environments and wrappers that describe the kind and not the state."""


def make(text: str) -> Callable[[], GymSubject]:
    """Returns a factory of sessions on a registered environment, such as "CartPole-v1"."""
    gym = package("gymnasium", extra="audit-gymnasium")
    try:
        gym.spec(text.rpartition(":")[2]) if ":" not in text else gym.make(text).close()
    except (gym.error.Error, ModuleNotFoundError) as error:
        raise UsageError(f"gymnasium:{text}: {error}") from error
    # Its own checker would warn on standard error about what the audit reports.
    return of(functools.partial(gym.make, text, disable_env_checker=True))


def of(factory: Callable[[], Any]) -> Callable[[], GymSubject]:
    """Returns a factory of sessions on the objects with `reset` and `step` that `factory()` returns.

    `step(action)` returns (observation, reward, terminated, truncated, info), or (observation, reward, done, info).
    """

    def session() -> GymSubject:
        env = factory()
        try:
            copy.deepcopy(env)
        except Exception:  # noqa: BLE001  # whatever its parts raise: it is none that can be copied
            return GymSubject(env)
        return CopyableGymSubject(env)

    return session


class GymSubject:
    """Session on an environment."""

    def __init__(self, env: Any) -> None:
        self._env = env
        self._space = getattr(env, "action_space", None)
        self._return: float | None = None
        self._over: str | None = "it has not begun: reset comes first"

    def tasks(self) -> list[str]:
        return [TASK]

    def tools(self) -> list[dict[str, Any]]:
        properties = {"action": spaces.schema(self._space)}
        parameters = {"type": "object", "properties": properties, "required": ["action"], "additionalProperties": False}
        return [{"name": "step", "description": "Take an action.", "parameters": parameters}]

    def reset(self, task: str, seed: int) -> Any:
        """Begins an episode and returns the first observation, with `info` if there is any."""
        http.only_task(task, TASK)
        taken = inspect.signature(self._env.reset).parameters.values()
        takes_seed = any(one.name == "seed" or one.kind is one.VAR_KEYWORD for one in taken)
        first = self._env.reset(seed=seed) if takes_seed else self._env.reset()
        self._return, self._over = None, None
        parts = _parts(first)
        has_info = len(parts) == 2 and isinstance(parts[1], dict)
        return spaces.plain(dict(zip(("observation", "info"), parts if has_info else (first,), strict=False)))

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Takes an action and returns the results of `step` by name; an action outside the space is an error."""
        if name != "step":
            return {"error": f"unknown tool {name!r}"}
        if set(arguments) != {"action"}:
            return {"error": f"step takes one argument, action, not {', '.join(arguments) or 'none'}"}
        if self._over is not None:
            return {"error": f"no step is possible: {self._over}"}
        try:
            action = spaces.value(self._space, arguments["action"])
        except ValueError as error:
            return {"error": str(error)}
        return self._seen(self._env.step(action))

    def score(self) -> float | None:
        """Returns the sum of the rewards since `reset`; None before the first, and if one was not finite."""
        return self._return if self._return is not None and math.isfinite(self._return) else None

    def state(self) -> dict[str, Any]:
        """Returns the attributes of the environment, and of its wrappers as "TimeLimit._elapsed_steps"."""
        found: dict[str, Any] = {}
        layer = self._env
        while layer is not None:
            inner = getattr(layer, "env", None)
            prefix = "" if inner is None else f"{type(layer).__name__}."
            held = cast(Mapping[str, Any], getattr(layer, "__dict__", {}))
            found |= {prefix + name: spaces.plain(value) for name, value in held.items() if name not in STATIC}
            layer = inner
        return found

    def close(self) -> None:
        if callable(getattr(self._env, "close", None)):
            self._env.close()

    def _seen(self, result: Any) -> dict[str, Any]:
        parts = _parts(result)
        if len(parts) not in (4, 5):
            raise SubjectFailure(f"step returned {len(parts)} values, not 5 (observation, reward, terminated, ...)")
        (observation, reward, terminated), info = parts[:3], parts[-1]
        cut = parts[3] if len(parts) == 5 else hasattr(info, "get") and info.get("TimeLimit.truncated")
        plain = spaces.plain(reward)
        self._return = (self._return or 0.0) + (float(plain) if isinstance(plain, int | float) else math.nan)
        if terminated or cut:
            self._over = "the episode was truncated" if cut else "the episode has ended"
        seen = {"observation": spaces.plain(observation), "reward": plain, "terminated": bool(terminated)}
        return seen | {"truncated": bool(cut), "info": spaces.plain(info)}


class CopyableGymSubject(GymSubject):
    """Session on an environment that can be copied."""

    def snapshot(self) -> object:
        return copy.deepcopy(self._env), self._return, self._over

    def restore(self, moment: object) -> None:
        env, self._return, self._over = cast(tuple[Any, float | None, str | None], moment)
        self._env = copy.deepcopy(env)


def _parts(result: Any) -> tuple[Any, ...]:
    parts: Any = result
    return parts if isinstance(result, tuple) else (result,)
