"""Adapter for environments behind `quintain serve`, over its control plane.

The environment's own harness runs on the server; calls and last words are the auditor's. Hidden data stays on the
server, so checks that need an oracle or the whole state are not available: audit the environment where its code is.
"""

from __future__ import annotations

import functools
import json
import urllib.parse
from collections.abc import Callable
from typing import Any

from quintain.audit.facts.data import is_dict
from quintain.errors import UsageError

from . import http
from .failure import SubjectFailure

PAGE = 1000


def make(url: str) -> Callable[[], RemoteSubject]:
    """Returns a factory of sessions, for a URL and the environment's name after it.

    The name is by default the server's first one. "?split=" chooses the tasks, by default "test", else the last split.
    A trainer's key is read from QUINTAIN_KEY.
    """
    parts = http.server(url, "a served environment is named like http://localhost:8080/sales")
    base = f"{parts.scheme}://{parts.netloc}"
    with http.described(_client(base)) as client:
        about = http.answer(client, "GET", f"/v1/environments/{urllib.parse.quote(parts.path.strip('/') or '-')}")
    if "error" in about:
        raise UsageError(f"{url}: {_words(about)}")
    splits: list[str] = about["splits"]
    wanted = urllib.parse.parse_qs(parts.query).get("split")
    chosen = wanted[0] if wanted else "test" if "test" in splits else splits[-1]
    if chosen not in splits:
        raise UsageError(f"{about['name']} has no split {chosen!r}; it has {', '.join(splits)}")
    return functools.partial(RemoteSubject, base, about, chosen)


class RemoteSubject:
    """Session with one episode at a time on the server; its methods are those of `native.NativeSubject`."""

    def __init__(self, base: str, about: dict[str, Any], split: str) -> None:
        self._client = _client(base)
        self._about, self._split, self._path = about, split, ""
        self._moments: list[str] = []
        turns, calls = about["config"]["max_turns"], about["config"]["max_calls"]
        self.budget: int = turns if calls is None else min(turns, calls)

    def tasks(self) -> list[str]:
        names: list[str] = []
        while True:
            path = f"/v1/environments/{self._about['name']}/tasks"
            page = self._asked(path, split=self._split, offset=len(names), limit=PAGE)
            names += [task["id"] for task in page["tasks"]]
            if len(names) >= page["count"] or not page["tasks"]:
                return names

    def tools(self) -> list[dict[str, Any]]:
        names = ("name", "description", "parameters")
        return [{name: tool[name] for name in names} for tool in self._about["tools"] if "agent" in tool["roles"]]

    def prompt(self, task: str) -> str:
        path, prompt = self._begun(task, 0)
        self._forget(path)
        return prompt

    def reset(self, task: str, seed: int) -> str:
        self._forget(self._path)
        self._path, prompt = self._begun(task, seed)
        return prompt

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        return self._played("calls", {"name": name, "arguments": arguments})

    def answer(self, text: str) -> Any:
        said = self._played("answer", {"text": text.encode(errors="replace").decode()})
        if is_dict(said) and "error" in said:
            return said
        self._sent(f"{self._path}/terminate", {"reason": "the agent answered"})
        return None

    def score(self) -> dict[str, float | None] | None:
        verdict = self._sent(f"{self._path}/verify", {"now": True})
        rewards = (reward for reward in verdict["rewards"] if reward["level"] == "trajectory")
        score = {reward["name"]: reward["value"] for reward in rewards} | {"score": verdict["score"]}
        return None if verdict["score"] is None else score

    def explain(self) -> list[dict[str, Any]]:
        verdict = self._sent(f"{self._path}/verify", {"now": True})
        return [*verdict["rewards"], verdict["failure"]] if verdict["failure"] else verdict["rewards"]

    def digest(self) -> str:
        digest: str = self._asked(f"{self._path}/digest")["state_digest"]
        return digest

    def snapshot(self) -> str:
        """Returns a snapshot for `restore` on this session: an idle copy on the server."""
        self._moments.append(self._forked(self._path))
        return self._moments[-1]

    def restore(self, moment: str) -> None:
        before, self._path = self._path, self._forked(moment)
        self._forget(before)

    def close(self) -> None:
        for path in (self._path, *self._moments):
            self._forget(path)
        self._path, self._moments = "", []
        self._client.close()

    # -- inside

    def _begun(self, task: str, seed: int) -> tuple[str, str]:
        """Returns (path, prompt) of a new episode at the point where its harness first requests the agent."""
        wanted = {"environment": self._about["name"], "split": self._split, "task": task, "seed": seed}
        episode = self._sent("/v1/episodes", wanted | {"agent": "audit", "everyone": True})
        path = f"/v1/episodes/{episode['id']}"
        while episode["status"] == "starting":
            episode = self._asked(path, wait=20)
        while episode["question"] is not None and episode["question"]["role"] != "agent":
            # Another actor, such as a simulated user, says what the task tells it.
            script = [one["content"] for one in episode["question"]["added"] if one["role"] == "system"]
            reply = {"message": {"role": "assistant", "content": script[-1] if script else ""}}
            self._sent(f"{path}/replies", {"reply": reply})
            episode = self._asked(path)
        _check(episode)
        question: dict[str, Any] = episode["question"] or {"added": []}
        asked: list[Any] = [one["content"] for one in question["added"]]
        blocks = ([{"text": content}] if isinstance(content, str) else content for content in asked)
        return path, "\n\n".join("\n".join(str(block.get("text", "")) for block in content) for content in blocks)

    def _played(self, what: str, body: dict[str, Any]) -> Any:
        if not self._path:
            raise UsageError("no episode has begun: call reset(task, seed) first")
        played = self._posted(f"{self._path}/{what}", body)
        if "error" in played:
            return {"error": _words(played)}
        _check(played["status"])
        return {"error": played["observation"]} if played["is_error"] else played["observation"]

    def _forked(self, path: str) -> str:
        return f"/v1/episodes/{self._sent(f'{path}/fork', {})['id']}"

    def _forget(self, path: str) -> None:
        if path:
            http.sent(self._client, "DELETE", path)

    def _posted(self, path: str, body: dict[str, Any]) -> Any:
        # Not by httpx: what JSON cannot say is the server's to refuse.
        headers = {"Content-Type": "application/json"}
        return http.answer(self._client, "POST", path, content=json.dumps(body).encode(), headers=headers)

    def _sent(self, path: str, body: dict[str, Any]) -> Any:
        return _good(self._posted(path, body), path)

    def _asked(self, path: str, **query: Any) -> Any:
        return _good(http.answer(self._client, "GET", path, params=query), path)


def _good(answer: Any, where: str) -> Any:
    if http.refused(answer):
        raise SubjectFailure(f"{where} answered {answer['status']}: {_words(answer)}", kind="session_lost")
    return answer


def _check(status: dict[str, Any]) -> None:
    if (broken := status["failure"]) is not None:
        raise SubjectFailure(f"{broken['type']}: {broken['message']}", kind=broken["kind"], part=broken["part"])


def _words(refusal: dict[str, Any]) -> str:
    body = refusal["error"]
    return str(body.get("detail", body)) if is_dict(body) else str(body)


def _client(base: str) -> Any:
    return http.client(base, header="Authorization", form="Bearer {}", variable="QUINTAIN_KEY")
