"""Errors of adapters: a broken subject, and a missing package."""

from __future__ import annotations

import importlib
from typing import Any

from quintain.errors import Component, UsageError


class SubjectFailure(Exception):
    """Error of the environment, as opposed to a mistake of the agent.

    Attributes:
        kind: Kind of the failure; for this project's environments one of `quintain.errors.KINDS`.
        part: Component to blame, or "model".
        is_failure: Always True.
    """

    is_failure = True

    def __init__(self, message: str, *, kind: str = "quintain:tool_bug", part: Component = "S") -> None:
        super().__init__(message)
        self.kind = kind
        self.part: Component = part

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (str(self), self.kind, self.part)


def _again(message: str, kind: str, part: Component) -> SubjectFailure:
    return SubjectFailure(message, kind=kind, part=part)


def package(name: str, *, extra: str) -> Any:
    """Returns an optional third-party module.

    Raises:
        UsageError: The module is not installed; the message is the line that installs it.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0]:
            raise
        raise UsageError(f"this needs {error.name}: pip install 'quintain[{extra}]'") from error
