"""`environment.json`: criteria, tools and splits of a run's environment, for readers that cannot import it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import msgspec

from quintain import codec
from quintain.environment import Environment
from quintain.errors import QuintainError

FILE = "environment.json"
_UNDECLARED = 1e9
"""A criterion whose range reaches this far declares none."""


class DescribedCriterion(msgspec.Struct, frozen=True, kw_only=True):
    """Criterion without its scoring function."""

    name: str
    level: str
    weight: float
    low: float
    high: float
    normalize: bool
    after: str | None
    external: bool


class DescribedTool(msgspec.Struct, frozen=True, kw_only=True):
    """Tool as its actors see it."""

    name: str
    description: str
    parameters: dict[str, Any]
    roles: tuple[str, ...]


class Description(msgspec.Struct, frozen=True, kw_only=True):
    """Content of `environment.json`.

    Attributes:
        name, fingerprint: Identity of the environment.
        combine: How the verifier adds up its criteria.
        splits: Number of tasks by split; None if the tasks are at a server or cannot be made.
    """

    name: str
    fingerprint: str
    combine: str
    criteria: tuple[DescribedCriterion, ...]
    tools: tuple[DescribedTool, ...]
    splits: dict[str, int | None]

    @classmethod
    def of(cls, env: Environment[Any]) -> Self:
        """Returns the description of an environment."""
        return cls(
            name=env.name,
            fingerprint=env.fingerprint,
            combine=env.verifier.combine,
            criteria=tuple(
                DescribedCriterion(
                    level=criterion.level.value,
                    **{name: getattr(criterion, name) for name in _fields(DescribedCriterion) if name != "level"},
                )
                for criterion in env.verifier.criteria
            ),
            tools=tuple(
                DescribedTool(**{name: getattr(tool, name) for name in _fields(DescribedTool)})
                for tool in env.tools.values()
            ),
            splits={split: _size(env, split) for split in env.splits},
        )

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """Returns the description in a run folder; None if there is none.

        Raises:
            msgspec.DecodeError: The file is not a description.
        """
        path = folder / FILE
        return msgspec.json.decode(path.read_bytes(), type=cls) if path.is_file() else None

    def write(self, folder: Path) -> None:
        """Writes the description into a run folder, once; a run that is continued keeps the first one."""
        path = folder / FILE
        if not path.exists():
            made = path.with_suffix(".new")
            made.write_bytes(msgspec.json.format(codec.json(self), indent=2) + b"\n")
            made.replace(path)


def best_values(folder: Path) -> dict[str, float]:
    """Returns the best values of criteria that a run folder's description says; of all others it is 1."""
    try:
        found = Description.read(folder)
    except (OSError, ValueError, msgspec.DecodeError, RecursionError):
        return {}
    criteria = found.criteria if found else ()
    return {one.name: one.high for one in criteria if not one.normalize and one.high < _UNDECLARED}


def _fields(struct: type[msgspec.Struct]) -> tuple[str, ...]:
    return struct.__struct_fields__


def _size(env: Environment[Any], split: str) -> int | None:
    try:
        return len(env.tasks(split)) if env.remote_begin is None else None
    except QuintainError:
        return None
