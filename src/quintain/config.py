"""Configuration (C): limits and settings of an episode, all recorded in its trace."""

from __future__ import annotations

import math
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

import msgspec

from .errors import UsageError


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything a curriculum may turn without touching the environment's code. None means no limit.

    Attributes:
        max_turns: Replies of all actors together, 1 and up; reaching it truncates the episode.
        max_calls: Tool calls of all turns together.
        max_tokens: Prompt and completion tokens of all turns together, where the endpoint reports them.
        context_tokens: Longest context, in tokens, where the endpoint reports them; longer truncates the episode.
        max_observation_bytes: Longest observation; a tool that returns more is broken (a Failure of S).
        arguments: "strict" refuses "5" where an integer is declared, "lenient" converts it and drops unknown names.
        temperature: Softmax temperature, 0 and up.
        top_p: Nucleus, in (0, 1].
        max_reply_tokens: Completion tokens of one reply.
        model_timeout_s: Seconds one reply may take, retries included.
        tool_timeout_s: Seconds one tool call may take.
        verifier_timeout_s: Seconds one criterion may take.
        episode_timeout_s: Seconds from the first request to the last reply.
        concurrency: Episodes in play at once.
        retries: Times a request is sent again after 429, 5xx or a transport error.
        group_retries: Times a group with too few valid episodes is played again with the same seeds.
        noise_rate: Share of tool calls that meet a planned fault, in [0, 1); the same calls for all of a group.
        noise_budget: Most planned faults in one episode.
        gate_rate: Failure rate above which a run stops, in (0, 1]; None switches the gate off.
        gate_window: Episodes the gate looks back over.
        gate_minimum: Episodes before the gate judges.
    """

    max_turns: int = 50
    max_calls: int | None = None
    max_tokens: int | None = None
    context_tokens: int | None = None
    max_observation_bytes: int = 10_000_000
    arguments: Literal["strict", "lenient"] = "strict"
    temperature: float = 1.0
    top_p: float = 1.0
    max_reply_tokens: int | None = None
    model_timeout_s: float | None = 600.0
    tool_timeout_s: float | None = 60.0
    verifier_timeout_s: float | None = 300.0
    episode_timeout_s: float | None = None
    concurrency: int = 64
    retries: int = 4
    group_retries: int = 2
    noise_rate: float = 0.0
    noise_budget: int | None = None
    gate_rate: float | None = 0.05
    gate_window: int = 500
    gate_minimum: int = 20

    def __post_init__(self) -> None:
        for name, declared in _TYPES.items():
            try:
                value = msgspec.convert(getattr(self, name), declared)
            except msgspec.ValidationError as error:
                raise UsageError(f"{name}: {error}") from error
            msgspec.structs.force_setattr(self, name, value)  # A float has other bytes in a trace than its int.
        for name, low in AT_LEAST.items():
            value = getattr(self, name)
            if value is not None and not low <= value < 2**63:
                raise UsageError(f"{name} must be {f'>= {low}' if value < low else '< 2**63'}, got {value}")
        for name, (low, high, edges) in WITHIN.items():
            value = getattr(self, name)
            if value is None:
                continue
            if not (low < value < high or (value == low and edges[0] == "[") or (value == high and edges[1] == "]")):
                raise UsageError(f"{name} must be in {edges[0]}{low}, {high}{edges[1]}, got {value}")

    @classmethod
    def load(cls, path: str | Path, overrides: Mapping[str, str] | None = None) -> Self:
        """Read a TOML file of fields; `overrides` are texts as a command line gives them and win.

        Raises:
            UsageError: No such file, no TOML, an unknown field, or a value of another type or range.
        """
        return cls().override(read(path)).override(overrides or {})

    def override(self, fields: Mapping[str, Any]) -> Self:
        """Returns the configuration with other values; texts are converted to the field's type, "none" to None.

        Raises:
            UsageError: An unknown field, with the nearest known one, or a value of another type or range.
        """
        known = self.__struct_fields__
        for name in fields:
            if name not in known:
                import difflib  # 5 ms that `import quintain` need not take

                near = difflib.get_close_matches(name, known, n=1)
                hint = f"did you mean {near[0]!r}? " if near else ""
                raise UsageError(f"unknown config field {name!r}; {hint}known: {', '.join(known)}")
        texts = {name: None if value == "none" else value for name, value in fields.items()}
        try:
            return msgspec.convert(msgspec.structs.asdict(self) | texts, type(self), strict=False)
        except msgspec.ValidationError as error:
            raise UsageError(f"config: {error}") from error


def read(path: str | Path) -> dict[str, Any]:
    """The fields in a TOML file, not checked yet.

    Raises:
        UsageError: No such file, or no TOML in UTF-8.
    """
    import tomllib  # 10 ms that `import quintain` need not take

    try:
        return tomllib.loads(Path(path).read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot read the configuration {str(path)!r}: {error}") from error


_TYPES = typing.get_type_hints(Config)

AT_LEAST: dict[str, float] = {
    "max_turns": 1,
    "max_calls": 1,
    "max_tokens": 1,
    "context_tokens": 1,
    "max_observation_bytes": 1,
    "max_reply_tokens": 1,
    "concurrency": 1,
    "retries": 0,
    "group_retries": 0,
    "noise_budget": 0,
    "gate_window": 1,
    "gate_minimum": 1,
}
"""The smallest value of a field; the largest is 2**63 - 1."""

WITHIN: dict[str, tuple[float, float, str]] = {
    "temperature": (0, math.inf, "[)"),
    "top_p": (0, 1, "(]"),
    "noise_rate": (0, 1, "[)"),
    "gate_rate": (0, 1, "(]"),
    "model_timeout_s": (0, math.inf, "()"),
    "tool_timeout_s": (0, math.inf, "()"),
    "verifier_timeout_s": (0, math.inf, "()"),
    "episode_timeout_s": (0, math.inf, "()"),
}
"""The values between which a field lies; a square bracket takes the bound in."""
