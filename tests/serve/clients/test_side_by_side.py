"""Wrong requests, sent to our server and to the references: what is answered is alike, or otherwise on purpose.

Alike are the status, the shape of the error, the places that it names, the methods that are allowed, and the events,
codes and closings. Words are ours. Where we answer otherwise on purpose the request is named with the reason, and has
to be answered otherwise: should it ever be alike, the reason is gone.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.serve.clients import wrong
from tests.serve.clients.venvs import OPENENV, OPENREWARD, ORS, Venv
from tests.serve.clients.wrong import FRAMES, FRAMES_OTHERWISE, OPENENV_OTHERWISE, ORS_OTHERWISE, TASK, Asked
from tests.serve.ors.wire import frames
from tests.serve.serving import Served

pytestmark = pytest.mark.slow

Install = Callable[[Sequence[Sequence[str]]], Venv]
Shape = tuple[Any, ...]


def shapes(url: str, requests: Mapping[str, Asked]) -> dict[str, Shape]:
    with httpx.Client(base_url=url, timeout=30, follow_redirects=True, trust_env=False) as http:
        return {name: shape(answered(http, asked)) for name, asked in requests.items()}


def answered(http: httpx.Client, asked: Asked) -> httpx.Response:
    headers = {**asked.headers, "Connection": "close"}  # The references close theirs after a failure, unannounced.
    if asked.session is not None:
        headers["X-Session-ID"] = uuid.uuid4().hex if asked.session in {"open", "new"} else asked.session
        if asked.session == "open":
            http.post("/create", json=TASK, headers=headers).raise_for_status()
    if asked.type is not None and asked.body is not None:
        headers["Content-Type"] = asked.type
    return http.request(asked.method, asked.path, content=asked.body, headers=headers)


def shape(answer: httpx.Response) -> Shape:
    if answer.headers.get("content-type", "").startswith("text/event-stream"):
        return (answer.status_code, *events(answer.content))
    allowed = answer.headers.get("allow") if answer.status_code == 405 else None
    try:
        said = answer.json()
    except ValueError:
        return (answer.status_code, allowed)
    if isinstance(said, dict) and "jsonrpc" in said:
        return (answer.status_code, sorted(said), said.get("error", {}).get("code"))
    detail = said.get("detail") if isinstance(said, dict) else None
    if isinstance(detail, list):
        return (answer.status_code, "problems", {tuple(map(str, place(one))) for one in detail})
    return (answer.status_code, type(detail).__name__, allowed)


def place(problem: dict[str, Any]) -> list[str]:
    """Returns the field of a problem, without the containers and the offset at which JSON ends."""
    return [part for part in problem["loc"] if isinstance(part, str) and part not in {"body", "action"}][:1]


def events(stream: bytes) -> Iterator[Any]:
    for frame in frames(stream):
        if frame.event == "end" and frame.data:
            said = json.loads(frame.data)
            yield "end", said["ok"], said.get("error", "").partition(":")[0]
        elif frame.event:
            yield frame.event, frame.data if frame.event == "error" else ""


def alike(ours: Shape, theirs: Shape) -> bool:
    if "problems" in ours and "problems" in theirs:  # We name the first, or the whole of it; they name all.
        return ours[:-1] == theirs[:-1] and ours[-1] <= {*theirs[-1], ()}
    return ours == theirs


def check(ours: dict[str, Shape], references: Sequence[dict[str, Shape]], otherwise: dict[str, str]) -> None:
    """Each request is answered as by one of the references, but those that are named."""
    apart = {name for name in ours if not any(alike(ours[name], theirs[name]) for theirs in references)}
    named = {name for name in ours if any(re.fullmatch(pattern, name) for pattern in otherwise)}
    differing = {name: (ours[name], *(theirs[name] for theirs in references)) for name in apart ^ named}
    assert apart == named, "\n".join(f"{name}: {answers}" for name, answers in differing.items())
    stale = [pattern for pattern in otherwise if not any(re.fullmatch(pattern, name) for name in ours)]
    assert not stale


def test_wrong_requests_of_the_open_reward_standard(installed: Install, served: Served) -> None:
    ours = shapes(served.url, wrong.ORS)
    theirs: list[dict[str, Shape]] = []
    for steps, sdk in ((ORS, "ors"), (OPENREWARD, "openreward")):
        with installed(steps).reference(sdk) as url:
            theirs.append(shapes(url, wrong.ORS))
    check(ours, theirs, ORS_OTHERWISE)
    assert not [name for name, answer in ours.items() if answer[0] >= 500]


def test_wrong_requests_of_openenv(installed: Install, served: Served) -> None:
    ours = shapes(f"{served.url}/openenv/counter", wrong.OPENENV)
    with installed(OPENENV).reference("openenv") as url:
        check(ours, [shapes(url, wrong.OPENENV)], OPENENV_OTHERWISE)
    assert not [name for name, answer in ours.items() if answer[0] >= 500]


def test_wrong_frames_of_openenv(installed: Install, served: Served) -> None:
    def frames(url: str) -> dict[str, Shape]:
        return {name: frame_shape(url, frame) for name, frame in FRAMES.items()}

    ours = frames(f"{served.url}/openenv/counter")
    with installed(OPENENV).reference("openenv") as url:
        check(ours, [frames(url)], FRAMES_OTHERWISE)
    assert {answer[-1] for answer in ours.values()} == {"open"}


def frame_shape(url: str, frame: str | bytes) -> Shape:
    """Returns the answer to a frame in an episode, and True if the socket stays open."""
    with connect(f"{url.replace('http', 'ws', 1)}/ws", proxy=None, max_size=None) as socket:
        socket.send(json.dumps({"type": "reset", "data": TASK}))
        assert json.loads(socket.recv(timeout=30))["type"] == "observation"
        socket.send(frame)
        answer = json.loads(socket.recv(timeout=30))
        about = answer["data"].get("code") if answer["type"] == "error" else answer["data"].get("error", {}).get("code")
        try:
            socket.send('{"type": "state"}')
            socket.recv(timeout=30)
        except ConnectionClosed:
            return answer["type"], about, "closed"
        return answer["type"], about, "open"
