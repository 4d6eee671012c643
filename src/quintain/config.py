"""Configuration (C): limits and settings of an episode, all recorded in its trace."""

from __future__ import annotations

import sys
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import msgspec
from msgspec import UNSET, Meta, UnsetType

from .errors import UsageError

MAX_FLOAT = sys.float_info.max
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Positive = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Seconds = Annotated[float, Meta(gt=0, le=MAX_FLOAT)]
Share = Annotated[float, Meta(gt=0, le=1)]
FaultKind = Literal["timeout", "unavailable", "rate_limited", "truncated", "malformed", "empty", "stale", "duplicate"]


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
        noise_weights: Weights of planned faults by kind, each in (0, 1]; "all" for eight kinds, unset for five.
        noise_budget: Most planned faults in one episode.
        gate_rate: Failure rate above which a run stops, in (0, 1]; None switches the gate off.
        gate_window: Episodes the gate looks back over.
        gate_minimum: Episodes before the gate judges.
    """

    max_turns: Positive = 50
    max_calls: Positive | None = None
    max_tokens: Positive | None = None
    context_tokens: Positive | None = None
    max_observation_bytes: Positive = 10_000_000
    arguments: Literal["strict", "lenient"] = "strict"
    temperature: Annotated[float, Meta(ge=0, le=MAX_FLOAT)] = 1.0
    top_p: Share = 1.0
    max_reply_tokens: Positive | None = None
    model_timeout_s: Seconds | None = 600.0
    tool_timeout_s: Seconds | None = 60.0
    verifier_timeout_s: Seconds | None = 300.0
    episode_timeout_s: Seconds | None = None
    concurrency: Positive = 64
    retries: Count = 4
    group_retries: Count = 2
    noise_rate: Annotated[float, Meta(ge=0, lt=1)] = 0.0
    noise_weights: Literal["all"] | Annotated[dict[FaultKind, Share], Meta(min_length=1)] | UnsetType = UNSET
    noise_budget: Count | None = None
    gate_rate: Share | None = 0.05
    gate_window: Positive = 500
    gate_minimum: Positive = 20

    def __post_init__(self) -> None:
        for name in _TYPES:  # A float has other bytes in a trace than its int.
            msgspec.structs.force_setattr(self, name, _convert(name, getattr(self, name), strict=True))

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
        return msgspec.structs.replace(self, **{name: _convert(name, texts[name], strict=False) for name in texts})


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


_TYPES = typing.get_type_hints(Config, include_extras=True)


def _convert(name: str, value: Any, *, strict: bool) -> Any:
    try:
        return value if value is UNSET else msgspec.convert(value, _TYPES[name], strict=strict)
    except msgspec.ValidationError as error:
        raise UsageError(f"{name}={value!r}: {error}") from error
