"""The `counter` environment on OpenEnv's own server: `python reference_openenv.py openenv PORT`.

What is asked here beside our server, is asked of the reference in its own words.
"""
# pyright: reportMissingImports=false, reportUntypedBaseClass=false, reportUnknownParameterType=false
# mypy: disable-error-code="import-not-found, misc"

from __future__ import annotations

import sys
from typing import Any

from _reference import COUNTS, Add, Submit, listen
from openenv.core.env_server import Environment, create_app
from openenv.core.env_server.mcp_types import (
    CallToolAction,
    CallToolObservation,
    ListToolsAction,
    ListToolsObservation,
    Tool,
    ToolError,
    ToolErrorType,
)
from openenv.core.env_server.types import State
from pydantic import ValidationError

TOOLS = {"add": Add, "submit": Submit}


class Counter(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._state = State(episode_id=None, step_count=0)
        self.count = 0
        self.wanted = 1

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        split: str = "test",
        index: int = 0,
        **_: Any,
    ) -> CallToolObservation:
        self._state = State(episode_id=episode_id, step_count=0)
        self.wanted = self.list_tasks(split)[index]["number"]
        self.count = 0
        return CallToolObservation(tool_name="", result=f"Count to {self.wanted}, then submit it.")

    def step(self, action: Any, timeout_s: float | None = None, **_: Any) -> Any:
        self._state.step_count += 1
        if isinstance(action, ListToolsAction):
            tools = [Tool(name=name, description="", input_schema=of.model_json_schema()) for name, of in TOOLS.items()]
            return ListToolsObservation(tools=tools)
        name = action.tool_name
        if name not in TOOLS:
            return self.failed(name, ToolErrorType.TOOL_NOT_FOUND, f"no tool {name!r}")
        try:
            given: Any = TOOLS[name].model_validate(action.arguments)
        except ValidationError as error:
            return self.failed(name, ToolErrorType.INVALID_ARGS, str(error))
        if name == "add":
            self.count += given.by
            return CallToolObservation(tool_name=name, result=f"The count is {self.count}.", reward=0.0)
        return CallToolObservation(
            tool_name=name, result="Handed in.", reward=float(given.answer == self.wanted), done=True
        )

    def failed(self, name: str, kind: Any, words: str) -> CallToolObservation:
        return CallToolObservation(tool_name=name, error=ToolError(error_type=kind, message=words), reward=0.0)

    @property
    def state(self) -> State:
        return self._state

    @classmethod
    def list_splits(cls) -> list[str]:
        return list(COUNTS)

    @classmethod
    def list_tasks(cls, split: str) -> list[dict[str, Any]]:
        if split not in COUNTS:
            raise ValueError(f"no split {split!r}")
        return [{"id": f"{split}-{number}", "number": number} for number in range(1, COUNTS[split] + 1)]


if __name__ == "__main__":
    app = create_app(Counter, CallToolAction, CallToolObservation, env_name="counter", max_concurrent_envs=100)
    listen(app, int(sys.argv[2]))
