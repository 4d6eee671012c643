"""kill -9 while a simulated user is asked: what he has said he is not asked again, and the record is the same."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.serve.control.conftest import TALK
from tests.serve.operation.again import DYING, Mortal, mortal
from tests.serve.serving import until

USER = Path(__file__).with_name("user.py")
STEPS = (
    ("", {"environment": "talk", "split": "train", "index": 3, "seed": 4}),
    ("answer", {"text": "What is it?"}),
    ("calls", {"name": "write", "arguments": {"number": 3}}),
    ("answer", {"text": "Done."}),
)


class Talk:
    """Episode whose requests are sent again until they are answered."""

    def __init__(self, server: Mortal, name: str, task: int = 3) -> None:
        self.server = server
        self.name = name
        self.task = task
        self.path = "/v1/episodes"

    def ask(self, number: int) -> dict[str, Any]:
        """Make a step, once."""
        what, body = STEPS[number]
        body = body if number else {**body, "index": self.task}
        headers = {"idempotency-key": f"{self.name}/{number}".replace(" ", "-")}
        path = f"{self.path}/{what}" if what else self.path
        status, _, said = self.server.ask("POST", path, body=body, headers=headers)
        assert status in {200, 201}, said
        detail: dict[str, Any] = json.loads(said)
        self.path = self.path if number else f"/v1/episodes/{detail['id']}"
        return detail

    def step(self, number: int) -> dict[str, Any]:
        """Make a step, again where the server died over it."""
        try:
            return self.ask(number)
        except (OSError, http.client.HTTPException):
            assert not self.server.wishes
            self.server.start()
            return self.ask(number)

    def trace(self) -> bytes:
        return self.server.ask("GET", f"{self.path}/trace")[2]


def asked(server: Mortal) -> Counter[str]:
    log = server.folder / "log"
    return Counter(log.read_text().split()) if log.exists() else Counter()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mortal]:
    folder = tmp_path_factory.mktemp("users")
    with mortal(folder, f"{TALK}:talk", options=("--user", f"{USER}:user"), before=DYING) as served:
        yield served


@pytest.fixture(scope="module")
def quiet(server: Mortal) -> bytes:
    """The record of a run in which nothing happens."""
    talk = Talk(server, "quiet")
    results = [talk.step(number) for number in range(4)]
    assert results[-1]["status"]["score"] == 1.0
    assert asked(server) == {f"user-{number}": 1 for number in range(4)}
    return talk.trace()


@pytest.mark.parametrize("moment", ["before Said", "after Said", "after Acted", "before Done", "after Done"])
@pytest.mark.slow
def test_user_model_is_asked_once_for_each_reply(server: Mortal, quiet: bytes, moment: str) -> None:
    before = asked(server)
    talk = Talk(server, moment)
    deaths = 0
    for number in range(4):
        server.wish(moment)
        talk.step(number)
        deaths += not server.wishes
    assert deaths >= 3
    assert talk.trace() == quiet
    extra = {"before Said": (1, 1, 0, 1)}.get(moment, (0, 0, 0, 0))  # Who was not heard must be asked again.
    assert asked(server) - before == {f"user-{number}": 1 + extra[number] for number in range(4)}
    server.again()
    assert talk.trace() == quiet


@pytest.mark.parametrize(
    ("step", "time"),
    [(0, 0), (1, 1), pytest.param(1, 2, marks=pytest.mark.slow), pytest.param(3, 3, marks=pytest.mark.slow)],
)
def test_killed_while_he_thinks(server: Mortal, quiet: bytes, step: int, time: int) -> None:
    before = asked(server)
    talk = Talk(server, f"thinks {time}")
    for number in range(step):
        talk.step(number)
    silent = server.folder / "silent"
    silent.write_text(str(time))

    def lost() -> None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            talk.ask(step)

    asking = threading.Thread(target=lost)
    asking.start()
    until(lambda: asked(server)[f"user-{time}"] > before[f"user-{time}"])
    server.kill()
    silent.unlink()
    asking.join()
    server.start()
    for number in range(step, 4):
        talk.step(number)
    assert talk.trace() == quiet
    assert asked(server) - before == {f"user-{number}": 1 + (number == time) for number in range(4)}


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before Settled", "after Settled", "after Done"])
def test_user_model_that_failed_is_not_asked_after_the_end(server: Mortal, moment: str) -> None:
    """Only if the server died before it logged the failure is the user model asked again."""
    before = asked(server)
    talk = Talk(server, f"leaves {moment}", task=4)
    talk.step(0)
    server.wish(moment)
    result = talk.step(1)
    assert not server.wishes
    assert (result["status"]["failure"]["kind"], result["status"]["validity"]) == ("agent_request_failed", "invalid")
    trace = talk.trace()
    server.again()
    assert talk.step(1)["status"] == result["status"]
    assert talk.trace() == trace
    assert asked(server) - before == {"user-0": 1, "user-1": 1, "user-2": 1 + (moment == "before Settled")}
