"""Adapter for OpenEnv environments over their WebSocket.

One socket is one instance, which `reset` begins anew. If actions are tool calls, its tools are the tools; else there is
one, "step", with the schema of the action. The score is the sum of the rewards, with the last one as "last".
"""

from __future__ import annotations

import contextlib
import functools
import json
import urllib.parse
from collections.abc import Callable
from typing import Any, NamedTuple

from quintain.audit.facts.data import is_dict, is_list
from quintain.errors import UsageError
from quintain.plugins import package

from . import http
from .failure import SubjectFailure
from .matching import sealed

TASK = "episode"
LARGEST = 100 * 2**20  # most bytes of a message, as in the official client
AGENTS_FAULT = ("INVALID_JSON", "VALIDATION_ERROR")
THEIR_FAULT = ("transport_error", "timeout")  # tool errors that are not the agent's fault


class Facts(NamedTuple):
    """Description of a server's environment: the JSON schema of an action, and its tasks, if it has any."""

    base: str
    action: dict[str, Any]
    name: str
    split: str
    number: int

    @property
    def calls_tools(self) -> bool:
        return "tool_name" in json.dumps(self.action)


def make(text: str) -> Callable[[], OpenEnvSubject]:
    """Returns a factory of sessions, for a URL with ws, wss, http or https; raises UsageError without a server."""
    package("websockets", extra="audit-openenv")
    parts = http.server(text, "openenv: takes ws://HOST:PORT", ("ws", "wss", "http", "https"))
    scheme, path = parts.scheme.replace("ws", "http"), parts.path.rstrip("/").removesuffix("/ws")
    base = urllib.parse.urlunsplit((scheme, parts.netloc, path, "", ""))
    with http.described(http.client(base)) as client:
        schemas = http.answer(client, "GET", "/schema")
        action = http.table(schemas, "action") if is_dict(schemas) else {}
        if not action:
            raise UsageError(f"{base}/schema does not describe an OpenEnv environment: {str(schemas)[:300]}")
        return functools.partial(OpenEnvSubject, Facts(base, action, *_tasks(client)))


class OpenEnvSubject:
    """Session with a server; `volatile` names fields with random ids of episodes."""

    volatile = ("episode_id", "dev.quintain/episode")

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._socket: Any = None
        self._held = contextlib.ExitStack()
        self._rewards: list[float | None] = []
        self.absent = () if facts.number else ("hidden",)

    def tasks(self) -> list[str]:
        return [f"{self._facts.split}/{index}" for index in range(self._facts.number)] or [TASK]

    def tools(self) -> list[dict[str, Any]]:
        if not self._facts.calls_tools:
            return [{"name": "step", "description": "Take an action.", "parameters": self._facts.action}]
        answer = self._asked("mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}})
        listed = http.series(http.table(answer, "result"), "tools")
        listed = listed or http.series(http.table(self._asked("step", {"type": "list_tools"}), "observation"), "tools")
        return [http.tool(tool) for tool in listed]

    def hidden(self, task: str) -> dict[str, Any]:
        """Returns the fields of the task whose names are those of an answer."""
        if not self._facts.number:
            raise UsageError(f"the server has no tasks to choose from, so none is called {task!r}")
        with http.client(self._facts.base) as client:
            found = http.answer(client, "POST", f"/{self._facts.name}/task", json=self._chosen(task))
        return sealed(http.table(found, "task"))

    def reset(self, task: str, seed: int) -> Any:
        """Begins an episode and returns the first observation."""
        chosen = self._chosen(task)
        self._rewards = []
        answer = self._asked("reset", {"seed": seed} | chosen)
        if "error" in answer:
            raise SubjectFailure(f"reset was refused: {answer['error']}", kind="quintain:reset_failed")
        return self._seen(answer)

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Takes an action or calls a tool, and returns the observation."""
        if not self._facts.calls_tools and name != "step":
            return {"error": f"unknown tool {name!r}"}
        called = {"type": "call_tool", "tool_name": name, "arguments": arguments}
        answer = self._asked("step", called if self._facts.calls_tools else arguments)
        if "error" in answer:
            return answer
        reward = answer.get("reward")
        self._rewards.append(None if reward is None else float(reward))
        return self._seen(answer)

    def score(self) -> dict[str, float | None] | None:
        """Returns the sum of the rewards and the last one; None without a reward, or if one was not finite."""
        given = [reward for reward in self._rewards if reward is not None]
        return None if self._rewards and not given else http.total(given)

    def state(self) -> dict[str, Any]:
        return self._asked("state", None)

    def close(self) -> None:
        if self._socket is not None:
            self._held.close()
            # Where the server hung up, the library does not wait for its own threads to end.
            self._socket.recv_events_thread.join()
            self._socket.keepalive_thread.join()
            self._socket = None

    # -- inside

    def _chosen(self, task: str) -> dict[str, Any]:
        if not self._facts.number:
            http.only_task(task, TASK)
            return {}
        return {"split": self._facts.split, "index": http.index(task, self._facts.split)}

    def _seen(self, answer: dict[str, Any]) -> Any:
        observation = http.table(answer, "observation")
        if not self._facts.calls_tools:
            return {"observation": observation, "reward": answer.get("reward"), "done": answer.get("done")}
        error = observation.get("error")
        if not is_dict(error):
            return observation.get("result", observation)
        if error.get("error_type") in THEIR_FAULT:
            raise SubjectFailure(f"{error['error_type']}: {error.get('message')}", kind="transport_unreachable")
        return {"error": error.get("message"), "error_type": error.get("error_type")}

    def _asked(self, kind: str, data: Any) -> dict[str, Any]:
        """Returns the data of an answer; `{"error": ...}` for the agent's own errors."""
        import websockets

        try:
            socket = self._connected()
            with contextlib.suppress(websockets.exceptions.ConnectionClosed):
                # A server that has closed may have said why; then that is what is received.
                socket.send(json.dumps({"type": kind} if data is None else {"type": kind, "data": data}))
            received = socket.recv(timeout=http.TIMEOUT_S)
        except TimeoutError as error:
            self.close()  # A late answer would be taken for that of the next question.
            raise SubjectFailure(f"{kind}: no answer in {http.TIMEOUT_S:g} s", kind="transport_timeout") from error
        except (OSError, websockets.exceptions.WebSocketException) as error:
            self.close()
            raise SubjectFailure(f"{kind}: {type(error).__name__}: {error}", kind="transport_peer_drop") from error
        try:
            answer: Any = json.loads(received)
        except ValueError as error:
            raise SubjectFailure(f"{kind}: the answer is not JSON: {received[:500]!r}") from error
        if not is_dict(answer):
            raise SubjectFailure(f"{kind}: the answer is not an object: {received[:500]!r}")
        found = http.table(answer, "data")
        if answer.get("type") != "error":
            return found
        words = f"{found.get('code')}: {found.get('message')}"
        if found.get("code") in AGENTS_FAULT:
            return {"error": words, **({"errors": found["errors"]} if "errors" in found else {})}
        is_full = found.get("code") == "CAPACITY_REACHED"
        raise SubjectFailure(f"{kind}: {words}", kind="provider_quota_exhausted" if is_full else "quintain:tool_bug")

    def _connected(self) -> Any:
        if self._socket is None:
            from websockets.sync.client import connect

            url = self._facts.base.replace("http", "ws", 1) + "/ws"
            self._socket = self._held.enter_context(connect(url, max_size=LARGEST, open_timeout=http.TIMEOUT_S))
        return self._socket


def _tasks(client: Any) -> tuple[str, str, int]:
    """Returns environment, split, and number of tasks; ("", "", 0) if the server has no tasks to choose from."""
    names = _if_there(client, "GET", "/list_environments")
    name = str(names[0]) if is_list(names) and names else ""
    splits = _if_there(client, "GET", f"/{name}/splits") if name else None
    if not is_list(splits) or not splits:
        return "", "", 0
    split = http.first_split(splits)
    counted = _if_there(client, "POST", f"/{name}/num_tasks", json={"split": split})
    count = counted.get("num_tasks") if is_dict(counted) else None
    return (name, split, count) if isinstance(count, int) else ("", "", 0)


def _if_there(client: Any, method: str, path: str, **fields: Any) -> Any:
    """Returns a page's content; None if the server does not have it (404, 405, 501)."""
    response = http.sent(client, method, path, **fields)
    return None if response.status_code in {404, 405, 501} else http.read(response)
