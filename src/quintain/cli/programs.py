"""Option `--harness command:CMD`: an agent program as the harness."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from quintain.errors import UsageError

if TYPE_CHECKING:
    from quintain.environment import Environment

_PREFIX = "command:"


def wanted(spec: str | None, *, tools: Sequence[str], passed: Sequence[str], bound: bool) -> dict[str, Any]:
    """Returns the harness fields for the manifest; empty without `--harness`.

    Words that name existing files become absolute paths, because the program starts in a folder of its own.

    Raises:
        UsageError: The harness is unknown, its command is empty, or a dependent option was given without it.
    """
    if spec is None:
        if tools or passed or not bound:
            raise UsageError("--allow-tool, --pass-env and --any-process need --harness command:CMD")
        return {}
    if not spec.startswith(_PREFIX):
        raise UsageError(f"--harness takes 'command:CMD', as in 'command:python agent.py', got {spec!r}")
    from quintain.serve.model.command import split

    words = split(spec.removeprefix(_PREFIX))
    command = shlex.join([_anchored(word, first=not place) for place, word in enumerate(words)])
    return {"command": command, "tools": list(tools), "passed": list(passed), "bound": bound}


def played_by(env: Environment[Any], program: dict[str, Any]) -> Environment[Any]:
    """Returns the environment with a program as its harness; unchanged if `program` is empty.

    Raises:
        UsageError: The manifest says what no harness is; or the environment's worlds are at a server.
    """
    if not program:
        return env
    if env.remote_begin is not None:
        raise UsageError(
            f"a program plays beside its world, and {env.name} is at a server: run it there, beside its code; "
            "or give it the address of an episode, which speaks MCP (see the page on serving over MCP)"
        )
    from quintain.serve.model import CommandHarness

    try:
        settings = msgspec.convert(program, _Settings)
    except msgspec.ValidationError as error:
        raise UsageError(f"the manifest's harness cannot be understood: {error}") from error
    return env.replace(harness=CommandHarness(own=env.harness, **msgspec.structs.asdict(settings)))


class _Settings(msgspec.Struct, forbid_unknown_fields=True):
    command: str
    tools: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()
    bound: bool = True


def _anchored(word: str, *, first: bool) -> str:
    """Makes a word that names a file absolute; a first word without a slash is left to PATH."""
    is_file = Path(word).is_file() and ("/" in word or not first)
    return str(Path(word).absolute()) if is_file else word
