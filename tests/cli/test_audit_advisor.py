"""`quintain audit --advisor`: a model behind HTTP advises, and the command line says what became of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quintain import codec
from quintain.audit import advisor
from tests.audit.advised import BEGIN, HOSTILE, RIGHT, SCORE, SHOP, endpoint, gift, probe, reply
from tests.cli.conftest import Call
from tests.models.server import KEY, Action, answer, completion, hang

pytestmark = pytest.mark.usefixtures("few_episodes", "forked_workers")
GREETED = answer(completion("{}"))
AUDIT = ("audit", "shop.py:Buggy", "--check", "x.unknown_tasks", "--tasks", "2", "--json", "--out", "out")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the shop in it, and a key for the endpoint."""
    (tmp_path / "shop.py").write_text(SHOP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def advised(call: Call, *actions: Action, usual: bool = False) -> tuple[int, dict[str, Any], list[dict[str, Any]]]:
    """Status and report of an audit with an advisor behind these actions, and what the endpoint was sent."""
    with endpoint(GREETED, *actions) as server:
        more = () if usual else ("--advisor", "openai:gpt-x", "--base-url", server.url)
        ended = call(*AUDIT, *more)
        assert ended.status in (0, 1), ended.err
        assert all(sent["authorization"] == f"Bearer {KEY}" for sent in server.headers)
        return ended.status, json.loads(ended.out), server.requests


def test_an_advised_probe_proves_a_bug_that_no_chosen_check_finds(here: Path, call: Call) -> None:
    status, report, _ = advised(call, usual=True)
    assert status == 0
    assert "advisor" not in report
    said = reply(RIGHT["stale_read"], suspicions=[{"class": "leak", "sentence": "Codes are in the code."}])
    status, report, sent = advised(call, answer(completion(said)))
    assert status == 1
    found = [one for one in report["findings"] if one["check"] == "x.advisor"]
    assert [(one["class"], one["confidence"]) for one in found] == [("stale_cache", "proven"), ("leak", "hint")]
    assert found[1]["replay"] == f"quintain audit {here}/shop.py:Buggy --advisor openai:gpt-x"
    assert call("replay-finding", "out/finding-1.json").status == 1
    greeting, asked = sent
    assert greeting["model"] == asked["model"] == "gpt-x"
    system, user = (message["content"] for message in asked["messages"])
    assert report["advisor"] | {"endpoint": ""} == {
        "model": "openai:gpt-x", "endpoint": "", "prompt": codec.digest(codec.dumps((system, user))), "cut": [],
        "proposed": 1, "played": 1, "refused": {},
    }  # fmt: skip
    assert report["advisor"]["endpoint"].startswith("http://127.0.0.1:")
    assert KEY not in (here / "out/report.json").read_text()


def test_hostile_probes_are_counted_and_execute_nothing(here: Path, call: Call) -> None:
    said = reply(*HOSTILE.values(), probe("score_varies", BEGIN, SCORE))
    status, report, _ = advised(call, answer(completion(said)))
    assert status == 0
    assert not list(here.rglob("hacked"))
    assert (report["advisor"]["proposed"], report["advisor"]["played"]) == (len(HOSTILE) + 1, 1)
    assert sum(report["advisor"]["refused"].values()) == len(HOSTILE)
    assert report["advisor"]["refused"]["unknown relation 'os:system'"] == 1
    assert report["checks"][-1]["status"] == "checked"


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        pytest.param(answer(b"out of order", 500), "did not answer: http://127.0.0.1", marks=pytest.mark.slow),
        pytest.param(
            answer(completion("It looks fine to me.")),
            "replied 'It looks fine to me.', not one JSON object",
            marks=pytest.mark.slow,
        ),
        (hang, "did not answer: no reply within 1 s"),
    ],
    ids=["status 500", "prose", "silence"],
)
def test_a_failing_endpoint_changes_no_other_result(
    here: Path, call: Call, monkeypatch: pytest.MonkeyPatch, action: Action, reason: str
) -> None:
    monkeypatch.setattr(advisor, "REPLY_S", 1.0)
    _, usual, _ = advised(call, usual=True)
    status, report, _ = advised(call, action)
    last = report["checks"].pop()
    assert (status, last["check"], last["status"]) == (0, "x.advisor", "not_checked")
    assert reason in last["reason"]
    assert report.pop("advisor")["played"] == 0
    for one in (usual, report):
        one["properties"] = one["properties"][:1]
        for place, name in ((one, "seconds"), (one, "shared_probes"), (one["checks"][0], "seconds")):
            place.pop(name)
    assert report == usual


def test_the_summary_names_the_model_and_what_was_refused(here: Path, call: Call) -> None:
    said = reply(probe("score_varies", BEGIN, gift("A"), SCORE), "junk")
    with endpoint(GREETED, answer(completion(said))) as server:
        more = ("--advisor", "openai:gpt-x", "--base-url", server.url)
        ended = call(*[one for one in AUDIT if one != "--json"], *more)
    words = " ".join(ended.out.split())
    assert "Advisor openai:gpt-x: 1 of 2 proposed probes were played; refused: 1 x proposal of another form:" in words


# --- the caller's mistakes ---


@pytest.mark.parametrize("status", [401, 404])
def test_a_refused_name_or_key_is_a_usage_error_before_the_audit(here: Path, call: Call, status: int) -> None:
    with endpoint(answer(b"no such model or key", status)) as server:
        ended = call(*AUDIT, "--advisor", "openai:gpt-x", "--base-url", server.url)
    assert ended.status == 2
    assert f"status {status}: no such model or key" in ended.err
    assert "check the model's name, --base-url and OPENAI_API_KEY" in ended.err
    assert KEY not in ended.err
    assert not (here / "out").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--advisor", "openai:x", "--base-url", "http://127.0.0.1:9/v1"), "ConnectError"),
        (("--advisor", "openai:x", "--base-url", "ftp://host/v1"), "base_url must be like http://localhost:8000/v1"),
        (("--advisor", "gpt-x"), "for a model of an endpoint write openai:NAME"),
        (("--base-url", "http://127.0.0.1:9/v1"), "give --advisor openai:NAME, too"),
    ],
    ids=["nothing listens", "no URL", "no agent", "no advisor"],
)
def test_a_wrong_advisor_is_a_usage_error(here: Path, call: Call, given: tuple[str, ...], said: str) -> None:
    ended = call(*AUDIT, *given)
    assert ended.status == 2
    assert said in ended.err
    assert not (here / "out").exists()


def test_an_advisor_on_traces_is_a_usage_error(here: Path, call: Call) -> None:
    (here / "traces").mkdir()
    ended = call("audit", "traces", "--advisor", "openai:gpt-x")
    assert (ended.status, "ENV is a folder of traces" in ended.err) == (2, True)


def test_a_slow_greeting_lets_the_audit_begin_and_ends_the_stage(
    here: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advisor, "GREETING_S", 0.3)
    with endpoint(hang) as server:
        ended = call(*AUDIT, "--advisor", "openai:gpt-x", "--base-url", server.url)
        assert len(server.requests) == 1
    assert ended.status == 0
    last = json.loads(ended.out)["checks"][-1]
    assert (last["status"], last["reason"]) == (
        "not_checked", "the advisor openai:gpt-x did not answer: no reply within 0 s",
    )  # fmt: skip
