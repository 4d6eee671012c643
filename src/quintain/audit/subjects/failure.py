"""Error of adapters: a broken subject."""

from __future__ import annotations

from typing import Any

from quintain.errors import Component


class SubjectFailure(Exception):
    """Error of the environment, as opposed to a mistake of the agent.

    `kind` is one of `quintain.errors.KINDS` for this project's environments, `part` the component to blame, or "model".
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
