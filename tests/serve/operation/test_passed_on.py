"""Requests that one process of several is given by another, under whose keys they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quintain.serve import passed
from quintain.serve.journal.database import Journal
from quintain.serve.shard import Shard
from tests.serve.operation.again import mortal


def test_a_key_is_of_one_request_though_another_process_than_its_own_makes_what_it_asks_for(tmp_path: Path) -> None:
    """As where it begins after an episode that is there. It holds after all of them were killed, too."""
    with mortal(tmp_path, "counter", options=("--workers", "2")) as server:

        def ask(key: str, **more: Any) -> tuple[int, Any]:
            body = {"environment": "counter", **more}
            status, _, said = server.ask("POST", "/v1/episodes", body=body, headers={"Idempotency-Key": key})
            told = json.loads(said)
            return status, told["id"] if status == 201 else told["detail"]

        here, *keys = (name for name in map(str, range(100)) if Shard(0, 2).owns(name))
        there = next(name for name in map(str, range(100)) if Shard(1, 2).owns(name))
        begun, gone = ask(there)[1], Shard(1, 2).new_id()
        assert server.ask("POST", f"/v1/episodes/{begun}/answer", body={"text": "Done."})[0] == 200
        assert [ask(keys[0], after=gone)[0], ask(keys[0], after=gone)[0], ask(keys[0])[0]] == [404, 404, 201]
        (status, made), (_, alone) = ask(here, after=begun), ask(keys[1])
        assert status == 201
        for _ in range(2):
            for key, more in ((here, {}), (here, {"after": gone}), (keys[0], {"after": begun}), (keys[1], {"seed": 1})):
                assert ask(key, **more) == (409, "this Idempotency-Key was used for another request"), (key, more)
            assert (ask(here, after=begun), ask(keys[1])) == ((201, made), (201, alone))
            assert json.loads(server.ask("GET", "/v1/episodes")[2])["count"] == 4
            server.again()


def test_they_outlive_the_process_but_for_those_refused_and_the_oldest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passed, "MOST", 2)
    for known, more in (([], "abc"), (["c"], ""), (["c"], "de"), (["d", "e"], "")):
        journal = Journal(tmp_path)
        here = passed.PassedOn(journal)
        assert list(journal.passed) == known
        for name in more:
            here.add(name, f"request of {name}")
            here.add(name, "which is its first")
            assert here.request(name) == f"request of {name}"
        here.drop("b")
        assert here.request("b") is None
        journal._press()
        journal.close()
