"""`environment.json`: criteria, tools and splits of a run's environment, for readers that cannot import it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from quintain import codec
from quintain.environment import Environment
from quintain.errors import QuintainError

FILE = "environment.json"


def describe(env: Environment[Any]) -> dict[str, Any]:
    """Returns the description of an environment as JSON types; the size of a split that cannot be made is None."""
    names = ("name", "level", "weight", "low", "high", "normalize", "after", "external")
    return {
        "name": env.name,
        "fingerprint": env.fingerprint,
        "combine": env.verifier.combine,
        "criteria": [
            msgspec.to_builtins({name: getattr(criterion, name) for name in names})
            for criterion in env.verifier.criteria
        ],
        "tools": [
            {name: getattr(tool, name) for name in ("name", "description", "parameters", "roles")}
            for tool in env.tools.values()
        ],
        "splits": {split: _size(env, split) for split in env.splits},
    }


def write(folder: Path, env: Environment[Any]) -> None:
    """Writes the description into a run folder, once; a run that is continued keeps the first one."""
    path = folder / FILE
    if not path.exists():
        made = path.with_suffix(".new")
        made.write_bytes(msgspec.json.format(codec.json(describe(env)), indent=2) + b"\n")
        made.replace(path)


def _size(env: Environment[Any], split: str) -> int | None:
    try:
        return len(env.tasks(split))
    except QuintainError:
        return None
