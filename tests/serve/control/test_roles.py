"""Who may what, with the keys of a real file."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import pytest

import quintain as qn
from quintain.errors import UsageError
from quintain.models import Scripted
from quintain.serve.http.keys import Role, add
from quintain.trace import Message, Reply
from tests.serve.control.conftest import TALK
from tests.serve.control.test_api import begun, post, refused
from tests.serve.serving import serve


class Guarded(NamedTuple):
    """A server with keys, and a client for each."""

    url: str
    keys: dict[str, str]

    def as_(self, name: str) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {self.keys[name]}"})


WHO: dict[str, Role] = {"agent": "agent", "trainer": "trainer", "rival": "trainer", "admin": "admin"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    file = folder / "keys"
    keys = {name: add(file, name, role) for name, role in WHO.items()}
    options = (f"{TALK}:talk", "--keys", str(file), "--user", f"{TALK}:client")
    with serve("counter", folder=folder, options=options) as server:
        yield Guarded(server.url, keys)


def test_without_a_key_there_is_nothing_but_probes_and_the_document(guarded: Guarded) -> None:
    with httpx.Client(base_url=guarded.url) as nobody:
        for path in ("/v1/environments", "/v1/episodes", "/metrics"):
            answer = nobody.get(path)
            assert refused(answer, 401)
            assert answer.headers["www-authenticate"].startswith("Bearer")
        assert refused(nobody.get("/v1/episodes", headers={"X-API-Key": "qn_nothing"}), 401)
        assert nobody.get("/healthz").status_code == nobody.get("/readyz").status_code == 200
        told = nobody.get("/v1/openapi.json").json()
    assert told["components"]["securitySchemes"].keys() == {"bearer", "header"}
    assert told["paths"]["/v1/episodes"]["get"]["security"]
    assert not told["paths"]["/healthz"]["get"]["security"]


def test_an_agent_plays_and_reads_no_more_than_it_plays(guarded: Guarded) -> None:
    with guarded.as_("agent") as api:
        everything = api.get("/v1/environments").text
        assert '"look"' not in everything
        wishes: list[dict[str, Any]] = [{"harness": "client"}, {"everyone": True}, {"config": {}}, {"after": "x"}]
        for more in wishes:
            assert "'trainer'" in refused(api.post("/v1/episodes", json={"environment": "talk", **more}), 403)
        episode = begun(api, "talk", index=3)
        path = f"/v1/episodes/{episode['id']}"
        played = post(api, episode, "answer", text="What is your number?")
        assert played["question"]["role"] == "agent"
        assert {turn.get("role", "agent") for turn in played["turns"]} == {"agent"}
        written = post(api, episode, "calls", name="write", arguments={"number": 3})
        assert written["observation"] == "written"
        assert "rewards" not in written["turns"][0]
        open_ = api.get(path).json()
        assert not open_["rewards"]
        for what in ("trace", "journal", "digest"):
            assert "'trainer'" in refused(api.get(f"{path}/{what}"), 403)
        for what in ("snapshot", "fork", "replay", "join", "step", "changes"):
            assert "'trainer'" in refused(api.post(f"{path}/{what}", json={}), 403)
        assert "'trainer'" in refused(api.post(f"{path}/verify", json={"now": True}), 403)
        assert refused(api.post(f"{path}/terminate", json={"failure": FAILURE}), 403)
        ended = post(api, episode, "terminate")
        assert (ended["score"], len(ended["rewards"])) == (1.0, 2)
        assert "Your number" not in everything + json.dumps([episode, played, open_, ended["question"]])
        assert "'admin'" in refused(api.get("/metrics"), 403)


FAILURE = {"part": "model", "kind": "cancelled", "stage": "agent", "type": "", "message": "", "turn": 0}


@pytest.mark.parametrize(
    "body",
    [
        {"before": [{"type": "fail", "failure": FAILURE}]},
        {"before": [{"type": "fail", "failure": FAILURE}], "now": True},
        {"before": [{"type": "terminate", "reason": "over"}], "now": True},
    ],
)
def test_an_agent_cannot_void_its_episode_by_asking_for_a_verdict(guarded: Guarded, body: dict[str, Any]) -> None:
    with guarded.as_("agent") as api:
        path = f"/v1/episodes/{begun(api)['id']}"
        assert "'trainer'" in refused(api.post(f"{path}/verify", json=body), 403)
        told = api.get(path).json()
        assert (told["status"], told["end"], told["validity"]) == ("open", None, "unknown")
        over = {"before": [{"type": "terminate", "reason": "over"}]}
        assert api.post(f"{path}/verify", json=over).json()["score"] == 0


def test_episodes_of_other_keys_are_unknown(guarded: Guarded) -> None:
    with guarded.as_("trainer") as trainer, guarded.as_("rival") as rival, guarded.as_("admin") as admin:
        headers = {"Idempotency-Key": "same-for-both"}
        bodies = [one.post("/v1/episodes", json={}, headers=headers).json() for one in (trainer, rival)]
        assert bodies[0]["id"] != bodies[1]["id"]
        path = f"/v1/episodes/{bodies[0]['id']}"
        assert trainer.get(f"{path}/trace").status_code == 200
        for answer in (
            rival.get(path),
            rival.get(f"{path}/trace"),
            rival.post(f"{path}/calls", json={"name": "peek"}),
            rival.post("/v1/episodes", json={"after": bodies[0]["id"]}),
            rival.delete(path),
        ):
            assert refused(answer, 404) == "there is no such episode"
        assert bodies[0]["id"] not in rival.get("/v1/episodes").text
        assert admin.get(f"{path}/trace").status_code == 200
        assert bodies[0]["id"] in admin.get("/v1/episodes").text
        assert admin.get("/metrics").status_code == 200
        assert refused(trainer.get("/metrics"), 403)
        assert admin.delete(path).status_code == 204


def test_the_client_brings_its_key(guarded: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(key: str | None) -> Any:
        async with qn.connect(guarded.url, key) as server:
            counter = await server.environment("counter")
            words = Scripted([Reply(Message("assistant", "no"))])
            return (await qn.rollout(counter, counter.tasks("test")[0], words, split="test")).trace.score

    monkeypatch.setenv("QUINTAIN_KEY", guarded.keys["trainer"])
    assert asyncio.run(play(None)) == 0.0
    assert asyncio.run(play(guarded.keys["rival"])) == 0.0
    with pytest.raises(UsageError, match=r"401: a valid key is wanted.*QUINTAIN_KEY"):
        asyncio.run(play("qn_wrong"))
    with pytest.raises(UsageError, match="printable"):
        qn.connect(guarded.url, "two words")
