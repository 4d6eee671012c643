"""A counter behind OpenEnv's own server, by its own means; argument: port. One WebSocket is one session."""

from __future__ import annotations

import sys

import uvicorn
from openenv.core.env_server import Environment, create_app
from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation
from openenv.core.env_server.types import State


class Counter(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        super().__init__()
        self._state = State(episode_id="none", step_count=0)

    def reset(self, seed=None, episode_id=None, **kwargs):
        self._state = State(episode_id=episode_id or "none", step_count=0)
        return CallToolObservation(tool_name="", result="Count up.")

    def step(self, action, timeout_s=None, **kwargs):
        self._state.step_count += 1
        return CallToolObservation(tool_name=action.tool_name, result=self._state.step_count, reward=0.0)

    @property
    def state(self):
        return self._state


if __name__ == "__main__":
    app = create_app(Counter, CallToolAction, CallToolObservation, env_name="counter", max_concurrent_envs=1000)
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=False, log_level="warning")
