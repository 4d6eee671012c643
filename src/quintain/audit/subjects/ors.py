"""Adapter for environments behind the Open Reward Standard (HTTP, and server-sent events for calls).

One session of the server is one episode. Rewards come with the answers of tools, and the standard does not define their
total: the score is their sum, 0 before the first, with the last one as "last". The protocol has no seed.
"""

from __future__ import annotations

import functools
import json
import math
import os
import time
import urllib.parse
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from quintain.errors import UsageError

from . import http
from .failure import SubjectFailure
from .matching import sealed
from .shapes import is_dict, is_list, series, table

SESSION = "X-Session-ID"


def make(text: str) -> Callable[[], OrsSubject]:
    """Returns a factory of sessions.

    Args:
        text: URL of the server; its path, if any, is the environment's name, else it is the server's first.

    Raises:
        UsageError: The server cannot be reached, or has no such environment.
    """
    parts = urllib.parse.urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise UsageError(f"ors: takes http://HOST:PORT/ENVIRONMENT, not {text!r}")
    base, wanted = f"{parts.scheme}://{parts.netloc}", parts.path.strip("/")
    with _client(base) as client:
        try:
            names = http.answer(client, "GET", "/list_environments")
        except SubjectFailure as error:
            raise UsageError(f"{base}: {error}") from error
        known = list(map(str, names)) if is_list(names) else []
        env = next((name for name in known if not wanted or name.lower() == wanted.lower()), None)
        if env is None:
            raise UsageError(f"{base} has no environment {wanted!r}; it lists {names}")
        split = _split(client, env)
    return functools.partial(OrsSubject, base, env, split)


class OrsSubject:
    """Session with a server; `reset` opens the next one.

    Attributes:
        absent: "answer" if the environment has no tool for the last words.
    """

    def __init__(self, base: str, env: str, split: str) -> None:
        self._client = _client(base)
        self._env = urllib.parse.quote(env)
        self._name = env
        self._split = split
        self._session: str | None = None
        self._rewards: list[float] = []
        self._terminal: dict[str, Any] = table(self._listed("tools"), "terminal_tool")
        self.absent = () if self._terminal else ("answer",)

    def tasks(self) -> list[str]:
        """Returns names such as "test/0" of the split "test", else of the first one."""
        counted = self._discovered("num_tasks")
        count: int = counted["num_tasks"] if counted else len(series(self._known("tasks"), "tasks"))
        return [f"{self._split}/{index}" for index in range(count)]

    def tools(self) -> list[dict[str, Any]]:
        """Returns the task's tools; before the first reset, the tools that all tasks share."""
        listed = self._listed("task_tools" if self._session else "tools")
        return [
            {
                "name": tool["name"],
                "description": tool.get("description") or "",
                "parameters": tool.get("input_schema") or {"type": "object", "properties": {}},
            }
            for tool in series(listed, "tools")
        ]

    def hidden(self, task: str) -> dict[str, Any]:
        """Returns the fields of the task whose names are those of an answer."""
        return sealed(table(self._known("task", index=self._index(task)), "task"))

    def reset(self, task: str, seed: int) -> Any:
        """Opens a session on a task and returns its prompt.

        Raises:
            UsageError: The task is unknown.
            SubjectFailure: The session cannot be opened.
        """
        index = self._index(task)
        self._leave()
        self._rewards = []
        self._session = self._opened()
        body = {"env_name": self._name, "split": self._split, "index": index}
        self._good(self._asked("POST", "/create", json=body), "/create")
        return _said(self._good(self._asked("GET", f"/{self._env}/prompt"), "/prompt"))

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Calls a tool and returns its text, or its blocks if some are not text.

        Raises:
            SubjectFailure: The tool broke, the session is lost, or no answer comes.
        """
        answer = self._streamed(f"/{self._env}/call", {"name": name, "input": arguments})
        if answer.get("ok") is not True:
            return {"error": answer.get("error", answer)}
        output = table(answer, "output")
        reward = output.get("reward")
        if reward is not None:
            self._rewards.append(float(reward))
        return _said(series(output, "blocks"))

    def answer(self, text: str) -> Any:
        """Passes the last words to the environment's terminal tool."""
        name, argument = self._terminal["name"], self._terminal.get("arg")
        return self.call(name, {argument: text} if argument else {})

    def score(self) -> dict[str, float | None] | None:
        """Returns the sum of the rewards and the last one; None if one was not finite."""
        if not all(map(math.isfinite, self._rewards)):
            return None
        return {"score": math.fsum(self._rewards), "last": self._rewards[-1] if self._rewards else None}

    def close(self) -> None:
        """Deletes the session and closes the connections."""
        self._leave()
        self._client.close()

    # -- inside

    def _index(self, task: str) -> int:
        split, _, index = task.rpartition("/")
        if split != self._split or not index.isdecimal():
            raise UsageError(f"a task is called {self._split}/0, {self._split}/1 and so on, not {task!r}")
        return int(index)

    def _listed(self, what: str) -> dict[str, Any]:
        return table({what: self._good(self._asked("GET", f"/{self._env}/{what}"), what)}, what)

    def _discovered(self, what: str, **more: Any) -> dict[str, Any] | None:
        """Returns the server's answer about its tasks; None if it has no such endpoint."""
        found = http.answer(self._client, "POST", f"/{self._env}/{what}", json={"split": self._split, **more})
        return None if is_dict(found) and "status" in found and "error" in found else found

    def _known(self, what: str, **more: Any) -> dict[str, Any]:
        found = self._discovered(what, **more)
        if found is None:
            raise SubjectFailure(f"the server does not answer {what} for {self._split} {more}", part="T")
        return found

    def _headers(self) -> dict[str, str]:
        return {SESSION: self._session} if self._session else {}

    def _asked(self, method: str, path: str, **fields: Any) -> Any:
        """Returns an answer; repeats the request while the environment is starting (503), up to the timeout."""
        end = time.monotonic() + http.TIMEOUT_S
        while True:
            response = http.sent(self._client, method, path, headers=self._headers(), **fields)
            if response.status_code != 503 or time.monotonic() > end:
                return http.read(response)
            time.sleep(min(float(response.headers.get("Retry-After", "1")), 1.0))

    def _good(self, answer: Any, where: str) -> Any:
        if is_dict(answer) and "error" in answer and "status" in answer:
            raise SubjectFailure(
                f"{where} answered {answer['status']}: {answer['error']}", kind="quintain:reset_failed"
            )
        return answer

    def _opened(self) -> str:
        answer = self._streamed_text("/create_session", None)
        # The standard's own page answers in JSON, its software with an event that holds the id.
        session = json.loads(answer).get("sid") if answer.startswith("{") else answer
        if not isinstance(session, str) or not session:
            raise SubjectFailure(f"/create_session gave no session: {answer!r}", kind="quintain:reset_failed")
        return session

    def _leave(self) -> None:
        if self._session is not None:
            for path in ("/delete", "/delete_session"):
                http.sent(self._client, "POST", path, headers=self._headers())
            self._session = None

    def _streamed(self, path: str, body: Any) -> dict[str, Any]:
        text = self._streamed_text(path, body)
        try:
            answer: Any = json.loads(text)
        except ValueError as error:
            raise SubjectFailure(f"{path}: the events make no JSON: {error}: {text[:500]!r}") from error
        return answer if is_dict(answer) else {"error": answer}

    def _streamed_text(self, path: str, body: Any) -> str:
        """Returns the joined events of an answer; without chunks, the id of the first event."""
        import httpx

        headers = {"Accept": "text/event-stream", "Content-Type": "application/json", **self._headers()}
        try:
            with self._client.stream("POST", path, headers=headers, content=json.dumps(body or {})) as response:
                if response.status_code == 200 and "event-stream" in response.headers.get("content-type", ""):
                    return _joined(_events(response.iter_lines()), path)
                response.read()
                return self._unstreamed(response, path)
        except httpx.HTTPError as error:
            raise http.unreachable(error, f"POST {path}") from error

    def _unstreamed(self, response: Any, path: str) -> str:
        answer = http.read(response)
        if response.status_code in {404, 410}:
            raise SubjectFailure(f"{path} answered {response.status_code}: {answer}", kind="session_lost")
        return json.dumps(answer)


def _events(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yields name and data of each event."""
    name, data = "message", list[str]()
    for line in lines:
        if not line:
            if data:
                yield name, "\n".join(data)
            name, data = "message", []
        elif not line.startswith(":"):
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "event":
                name = value
            elif field == "data":
                data.append(value)


def _joined(events: Iterator[tuple[str, str]], path: str) -> str:
    first, parts = "", list[str]()
    for name, data in events:
        if name == "task_id":
            first = data
        elif name == "error":
            raise SubjectFailure(f"{path}: {data}")
        elif name in {"chunk", "end"}:
            parts.append(data)
        if name == "end":
            break
    else:
        if path != "/create_session":
            raise SubjectFailure(f"{path}: the answer broke off", kind="transport_peer_drop")
    return "".join(parts) or first


def _said(blocks: Any) -> Any:
    """Returns the text of blocks, or the blocks if some are not text."""
    parts: list[dict[str, Any]] = blocks
    if all(block.get("type") == "text" for block in parts):
        return "\n".join(str(block.get("text", "")) for block in parts)
    return parts


def _split(client: Any, env: str) -> str:
    found: Any = http.answer(client, "GET", f"/{urllib.parse.quote(env)}/splits")
    if not is_list(found) or not found:
        raise UsageError(f"{env} has no splits: {found}")
    names = [str(one["name"]) if is_dict(one) else str(one) for one in found]
    return "test" if "test" in names else names[0]


def _client(base: str) -> Any:
    key = os.environ.get("ORS_API_KEY")
    return http.client(base, **({"X-API-Key": key} if key else {}))
