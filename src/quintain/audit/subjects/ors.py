"""Adapter for environments behind the Open Reward Standard (HTTP, and server-sent events for calls).

One session of the server is one episode. Rewards come with the answers of tools, and the standard does not define their
total: the score is their sum, 0 before the first, with the last one as "last". The protocol has no seed.
"""

from __future__ import annotations

import functools
import json
import time
import urllib.parse
from collections.abc import Callable, Iterable
from typing import Any

from quintain.audit.facts.data import is_dict, is_list
from quintain.errors import UsageError

from . import http
from .failure import SubjectFailure
from .matching import sealed

SESSION = "X-Session-ID"


def make(text: str) -> Callable[[], OrsSubject]:
    """Returns a factory of sessions; a path in the URL is the environment's name, else it is the server's first.

    Raises UsageError if the server cannot be reached, or has no such environment.
    """
    parts = http.server(text, "ors: takes http://HOST:PORT/ENVIRONMENT")
    base, wanted = f"{parts.scheme}://{parts.netloc}", parts.path.strip("/")
    with http.described(_client(base)) as client:
        names = http.answer(client, "GET", "/list_environments")
        known = list(map(str, names)) if is_list(names) else []
        env = next((name for name in known if not wanted or name.lower() == wanted.lower()), None)
        if env is None:
            raise UsageError(f"{base} has no environment {wanted!r}; it lists {names}")
        splits = http.answer(client, "GET", f"/{urllib.parse.quote(env)}/splits")
    if not is_list(splits) or not splits:
        raise UsageError(f"{env} has no splits: {splits}")
    return functools.partial(OrsSubject, base, env, http.first_split(splits))


class OrsSubject:
    """Session with a server; `reset` opens the next one."""

    def __init__(self, base: str, env: str, split: str) -> None:
        self._client = _client(base)
        self._env, self._name, self._split = urllib.parse.quote(env), env, split
        self._session: str | None = None
        self._rewards: list[float] = []
        self._terminal: dict[str, Any] = http.table(self._listed("tools"), "terminal_tool")
        self.absent = () if self._terminal else ("answer",)

    def tasks(self) -> list[str]:
        counted = self._asked_about("num_tasks")
        count = counted["num_tasks"] if counted else len(http.series(self._known("tasks"), "tasks"))
        return [f"{self._split}/{index}" for index in range(count)]

    def tools(self) -> list[dict[str, Any]]:
        """Returns the task's tools; before the first reset, the tools that all tasks share."""
        listed = self._listed("task_tools" if self._session else "tools")
        return [http.tool(tool) for tool in http.series(listed, "tools")]

    def hidden(self, task: str) -> dict[str, Any]:
        """Returns the fields of the task whose names are those of an answer."""
        return sealed(http.table(self._known("task", index=http.index(task, self._split)), "task"))

    def reset(self, task: str, seed: int) -> Any:
        """Opens a session on a task and returns its prompt."""
        index = http.index(task, self._split)
        self._leave()
        self._rewards = []
        answer = self._streamed("/create_session", None)
        # The standard's own page answers in JSON, its software with an event that holds the id.
        session = json.loads(answer).get("sid") if answer.startswith("{") else answer
        if not isinstance(session, str) or not session:
            raise SubjectFailure(f"/create_session gave no session: {answer!r}", kind="quintain:reset_failed")
        self._session = session
        self._good("POST", "/create", json={"env_name": self._name, "split": self._split, "index": index})
        return http.said(self._good("GET", f"/{self._env}/prompt"))

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Calls a tool and returns its text, or its blocks if some are not text."""
        path = f"/{self._env}/call"
        text = self._streamed(path, {"name": name, "input": arguments})
        try:
            answer: Any = json.loads(text)
        except ValueError as error:
            raise SubjectFailure(f"{path}: the events make no JSON: {error}: {text[:500]!r}") from error
        if not is_dict(answer) or answer.get("ok") is not True:
            return {"error": answer.get("error", answer) if is_dict(answer) else answer}
        output = http.table(answer, "output")
        if output.get("reward") is not None:
            self._rewards.append(float(output["reward"]))
        return http.said(http.series(output, "blocks"))

    def answer(self, text: str) -> Any:
        """Passes the last words to the environment's terminal tool."""
        name, argument = self._terminal["name"], self._terminal.get("arg")
        return self.call(name, {argument: text} if argument else {})

    def score(self) -> dict[str, float | None] | None:
        return http.total(self._rewards)

    def close(self) -> None:
        self._leave()
        self._client.close()

    # -- inside

    def _listed(self, what: str) -> dict[str, Any]:
        return http.table({what: self._good("GET", f"/{self._env}/{what}")}, what)

    def _asked_about(self, what: str, **more: Any) -> dict[str, Any] | None:
        """Returns the server's answer about its tasks; None if it has no such endpoint."""
        found = http.answer(self._client, "POST", f"/{self._env}/{what}", json={"split": self._split, **more})
        return None if http.refused(found) else found

    def _known(self, what: str, **more: Any) -> dict[str, Any]:
        found = self._asked_about(what, **more)
        if found is None:
            raise SubjectFailure(f"the server does not answer {what} for {self._split} {more}", part="T")
        return found

    def _headers(self) -> dict[str, str]:
        return {SESSION: self._session} if self._session else {}

    def _good(self, method: str, path: str, **fields: Any) -> Any:
        """Returns an answer; repeats the request while the environment is starting (503), up to the timeout."""
        end = time.monotonic() + http.TIMEOUT_S
        while True:
            response = http.sent(self._client, method, path, headers=self._headers(), **fields)
            if response.status_code != 503 or time.monotonic() > end:
                break
            time.sleep(min(float(response.headers.get("Retry-After", "1")), 1.0))
        answer = http.read(response)
        if http.refused(answer):
            words = f"{path} answered {answer['status']}: {answer['error']}"
            raise SubjectFailure(words, kind="quintain:reset_failed")
        return answer

    def _leave(self) -> None:
        for path in ("/delete", "/delete_session") if self._session is not None else ():
            http.sent(self._client, "POST", path, headers=self._headers())
        self._session = None

    def _streamed(self, path: str, body: Any) -> str:
        """Returns the joined events of an answer; without chunks, the id of the first event."""
        import httpx

        headers = {"Accept": "text/event-stream", "Content-Type": "application/json", **self._headers()}
        try:
            with self._client.stream("POST", path, headers=headers, content=json.dumps(body or {})) as response:
                if response.status_code == 200 and "event-stream" in response.headers.get("content-type", ""):
                    return _joined(response.iter_lines(), path)
                response.read()
        except httpx.HTTPError as error:
            raise http.unreachable(error, f"POST {path}") from error
        answer = http.read(response)
        if response.status_code in {404, 410}:
            raise SubjectFailure(f"{path} answered {response.status_code}: {answer}", kind="session_lost")
        return json.dumps(answer)


def _joined(lines: Iterable[str], path: str) -> str:
    """Returns the chunks of a stream up to its end; without chunks, the id that it gives."""
    first, parts = "", list[str]()
    name, data = "message", list[str]()
    for line in lines:
        field, _, value = line.partition(":")
        if field == "event":
            name = value.removeprefix(" ")
        elif field == "data":
            data.append(value.removeprefix(" "))
        elif not line:
            whole = "\n".join(data)
            if data and name == "error":
                raise SubjectFailure(f"{path}: {whole}")
            first = whole if data and name == "task_id" else first
            parts += [whole] if data and name in {"chunk", "end"} else []
            if data and name == "end":
                return "".join(parts) or first
            name, data = "message", []
    if path != "/create_session":
        raise SubjectFailure(f"{path}: the answer broke off", kind="transport_peer_drop")
    return "".join(parts) or first


def _client(base: str) -> Any:
    return http.client(base, header="X-API-Key", variable="ORS_API_KEY")
