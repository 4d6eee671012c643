"""A request with an Idempotency-Key that comes again after a crash: the same answer, and nothing is done twice."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.serve.control.conftest import TALK
from tests.serve.operation.again import DYING, Mortal, mortal

KINDS = ("Created", "Acted", "Done", "Settled")
MOMENTS = [*(f"{when} {kind}" for kind in KINDS for when in ("before", "after")), "before the answer"]


class Step(NamedTuple):
    """A request; in `what` and in a body, "{0}" is the id of the first episode that was made, and so on."""

    what: str
    body: Any = None
    method: str = "POST"


def say(words: str, role: str = "assistant") -> dict[str, Any]:
    return {"role": role, "content": words}


def call(name: str, arguments: str = "{}") -> dict[str, Any]:
    return {"message": {"role": "assistant", "calls": [{"id": "c", "name": name, "arguments": arguments}]}}


TASK = {"environment": "talk", "split": "train", "index": 3, "seed": 4}
END = [{"type": "terminate", "reason": "over"}]
HERE = (
    Step("", {**TASK, "harness": "client"}),
    Step("/{0}/join", {"role": "user", "messages": [say("Begin.", "user")]}),
    Step("/{0}/step", {"reply": call("look"), "thread": 1}),
    Step("/{0}/changes", [{"type": "tell", "thread": 0, "messages": [say("Hello!", "user")]}]),
    Step("/{0}/step", {"reply": {"message": say("What is it?")}, "before": [{"type": "join", "role": "user"}]}),
    Step("/{0}/join", {"role": "user"}),
    Step("/{0}/fork"),
    Step("/{1}/changes", END),
    Step("/{1}/verify", {}),
    Step("/{0}/snapshot"),
    Step("/restore?harness=client", b"the snapshot"),
    Step("/{2}/step", {"reply": call("write", '{"number": 3}'), "thread": 0}),
    Step("/{0}/terminate", {"reason": "enough"}),
    Step("/{0}/verify", {}),
    Step("", {**TASK, "harness": "client", "after": "{0}"}),
    Step("/{3}/verify", {"before": END}),
    *(Step(f"/{{{number}}}/trace", method="GET") for number in range(4)),
)
THERE = (
    Step("", {**TASK, "everyone": True}),
    Step("/{0}/replies", {"reply": {"message": say("Hello!")}}),
    Step("/{0}/answer", {"text": "What is it?"}),  # After it the user is asked, and no longer the agent.
    Step("/{0}/replies", {"reply": call("look")}),
    Step("/{0}/fork"),
    Step("/{0}/replies", {"reply": {"message": say("It is 3.")}}),
    Step("/{0}/calls", {"name": "write", "arguments": {"number": 3}}),
    Step("/{0}/answer", {"text": "Done."}),
    Step("/{0}/replies", {"reply": {"message": say("###STOP###")}}),
    Step("/{0}/replay"),
    Step("/{1}/replies", {"reply": {"message": say("It is 3.")}}),
    Step("/{1}/calls", {"name": "drop"}),  # Over which the episode breaks.
    Step("/{1}/verify", {}),
    *(Step(f"/{{{number}}}/trace", method="GET") for number in range(2)),
)


class Client:
    """Makes the steps, one after the other, each again until it is answered.

    Args:
        server: Which is started again when it has died.
        name: What its keys begin with.
        shift: The first step's moment of death among all; None where it lives.

    Attributes:
        died: Steps and moments at which it did.
    """

    def __init__(self, server: Mortal, name: str, shift: int | None = None) -> None:
        self.server = server
        self.name = name
        self.shift = shift
        self.died: set[tuple[str, str]] = set()
        self._ids: list[str] = []
        self._snapshot = b""
        self._asked: dict[str, list[Any]] = {}

    def play(self, steps: Sequence[Step]) -> list[Any]:
        """Returns the result of each step."""
        return [self._answer(step, number) for number, step in enumerate(steps)]

    def _answer(self, step: Step, number: int) -> Any:
        moment = "" if self.shift is None else MOMENTS[(number + self.shift) % len(MOMENTS)]
        if step.method == "POST":
            self.server.wish(moment)
        try:
            status, _, said = self._ask(step, number)
        except (OSError, http.client.HTTPException):
            assert not self.server.wishes
            self.died.add((step.what, moment))
            self.server.start()
            status, _, said = self._ask(step, number)
        (self.server.folder / "wish").unlink(missing_ok=True)
        if step.what.endswith("snapshot"):
            self._snapshot = said
            return status, len(said)
        found = json.loads(said)
        if status == 201:
            self._ids.append(found["id"])
        text = json.dumps(self._whole(found))
        for place, name in enumerate(self._ids):
            text = text.replace(name, f"<{place}>")
        return status, json.loads(re.sub(r"/e/[\w-]+/mcp", "/e/token/mcp", text))

    def _ask(self, step: Step, number: int) -> tuple[int, dict[str, str], bytes]:
        raw = isinstance(step.body, bytes)
        headers = {"idempotency-key": f"{self.name}/{number}"} if step.method == "POST" else {}
        headers |= {"content-type": "application/octet-stream"} if raw else {}
        body = self._snapshot if raw else json.loads(self._named(json.dumps(step.body)))
        return self.server.ask(step.method, self._named(f"/v1/episodes{step.what}"), body=body, headers=headers)

    def _named(self, text: str) -> str:
        return re.sub(r"\{(\d)\}", lambda found: self._ids[int(found[1])], text)

    def _whole(self, answer: Any) -> Any:
        """The answer with the whole question: what a server leaves out depends on what it remembers having said."""
        question = answer.get("question") if isinstance(answer, dict) else None
        if not question:
            return answer
        known = self._asked.setdefault(question["role"], [])
        known[:] = [*known[: question["keep"]], *question["added"]]
        return answer | {"question": {**question, "keep": 0, "added": known}}


def check(folder: Path, steps: Sequence[Step], shifts: Sequence[int]) -> set[tuple[str, str]]:
    died: set[tuple[str, str]] = set()
    with mortal(folder, f"{TALK}:talk", before=DYING) as server:
        quiet = Client(server, "quiet").play(steps)
        assert {status for status, _ in quiet} <= {200, 201}, quiet
        for shift in shifts:
            client = Client(server, f"shift-{shift}", shift)
            answers = client.play(steps)
            for step, one, other in zip(steps, answers, quiet, strict=True):
                assert one == other, (shift, step, client.died)
            died |= client.died
    return died


def test_a_join_that_comes_again_is_one(tmp_path: Path) -> None:
    died = check(tmp_path, HERE[:2], [len(MOMENTS) - 2])
    assert died == {("/{0}/join", "before the answer")}


def test_a_key_outlives_its_process_with_the_request_that_it_is_of(tmp_path: Path) -> None:
    """The same request under a key gets the same answer, and another request is refused."""
    path = "/v1/episodes/{0}"
    asked = (
        ("", {"environment": "counter"}, {"environment": "counter", "seed": 1}),
        (f"{path}/fork", None, {"fork": "me"}),
        (f"{path}/calls", {"name": "add", "arguments": {"by": 2}}, {"name": "add", "arguments": {"by": 1}}),
        (f"{path}/replies", {"reply": call("add", '{"by": 1}')}, {"reply": call("add", '{"by": 2}')}),
        (f"{path}/terminate", {"reason": "enough"}, {"reason": "too much"}),
    )
    with mortal(tmp_path, "counter") as server:
        names: list[str] = []

        def ask(number: int, body: Any) -> tuple[int, Any]:
            what = asked[number][0].format(*names) or "/v1/episodes"
            status, _, said = server.ask("POST", what, body=body, headers={"idempotency-key": f"key-{number}"})
            return status, json.loads(said)

        answers: list[Any] = []
        for number, (_, first, _) in enumerate(asked):
            answers.append(ask(number, first))
            assert answers[-1][0] in {200, 201}, answers
            names += [answers[0][1]["id"]] if not names else []
        before = server.trace(names[0])
        for _ in range(2):
            for number, (_, first, other) in enumerate(asked):
                status, said = ask(number, other)
                assert (status, said["detail"]) == (409, "this Idempotency-Key was used for another request"), number
                assert ask(number, first)[0] == answers[number][0]
            assert server.trace(names[0]) == before
            assert len(json.loads(server.ask("GET", "/v1/episodes")[2])["episodes"]) == 2
            server.again()


@pytest.mark.slow
@pytest.mark.parametrize("steps", [HERE, THERE], ids=["here", "there"])
def test_keyed_requests_are_done_once_whenever_the_server_dies(tmp_path: Path, steps: Sequence[Step]) -> None:
    died = check(tmp_path, steps, range(len(MOMENTS)))
    posts = [step.what for step in steps if step.method == "POST"]
    assert {what for what, moment in died if moment == "before the answer"} == set(posts)
    assert {moment for _, moment in died} == set(MOMENTS)
