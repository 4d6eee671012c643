"""Advisor: right proposals are proven, wrong ones prove nothing, hostile ones are refused, failures change nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from quintain.audit import advisor, claims
from quintain.audit.advisor import Advisor, Refused, accepted
from quintain.audit.auditor import Report, audit, digest_of
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.child import WorkerPool
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.loader import Subject
from quintain.audit.kernel.replay import replay_finding
from quintain.errors import ModelError
from quintain.harness import Model, Request
from quintain.trace import Reply
from tests.audit.advised import BEGIN, HOSTILE, RIGHT, SCORE, SHOP, WRONG, model, op, probe, reply

pytestmark = pytest.mark.usefixtures("no_failure_rate", "prepared_workers")
KNOWN = {"reset": {"one", "two", "none", "ask"}, "call": {"stock", "next", "buy", "gift"}}
OFFERS = {"reset", "call", "answer", "score", "state", "snapshot", "restore", "advance", "oracle"}


@check("x.lamps", "races")
def lamps(ctx: AuditContext) -> Sequence[Finding | None]:
    """Checks nothing of this subject."""
    raise ctx.not_checked("the subject sells lamps")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("advised") / "shop.py"
    path.write_text(SHOP)
    return path


Make = Callable[[str], AuditContext]


@pytest.fixture(scope="module")
def context(shop: Path) -> Iterator[Make]:
    """Makes contexts of a class of the shop; they share what is known of it."""
    made: dict[str, AuditContext] = {}

    def make(name: str) -> AuditContext:
        if name not in made:
            subject = Subject(f"{shop}:{name}")
            about, _ = digest_of(subject, ())
            made[name] = AuditContext(WorkerPool(subject), about, about.tasks, seed=0, until=None, limit=10.0)
        own = made[name].derive("x.advisor")
        own.seen_in = {}
        return own

    yield make
    for one in made.values():
        one.pool.close()


def advise(ctx: AuditContext, answers: Model) -> tuple[list[Finding], Advisor]:
    """Findings that an advisor makes of a model's answers, and the advisor."""
    asked = Advisor(answers, "m")
    ctx.check = asked.check
    return [one for one in asked.check.run(ctx) if one is not None], asked


def raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


# --- what is proven ---


@pytest.mark.slow  # The command's own test proves one of them.
def test_right_probes_prove_a_bug_of_each_claim(context: Make) -> None:
    findings, asked = advise(context("Buggy"), model(reply(*RIGHT.values())))
    assert (asked.advice.played, asked.advice.refused) == (len(RIGHT), {})
    assert [(one.class_, one.confidence, one.title) for one in findings] == [
        ("reset_leak", "proven", "gift: gift depends on another episode or session"),
        ("reset_leak", "proven", "what gift gives is not the same in two equal processes"),
        ("reset_leak", "proven", "gift: gift depends on what was done before a restore"),
        ("stale_cache", "proven", "stock does not show what buy wrote, if it was read before"),
        ("races", "proven", "buy() breaks on a call that its schema allows (KeyError)"),
        ("flaky_verifier", "proven", "the score of one end is another number each time"),
        ("reward_hack", "proven", "the score is not a finite number"),
        ("races", "likely", "buy refuses a call and has written all the same"),
        ("reward_hack", "likely", "gift changes no state and is paid like the solution"),
    ]
    assert {name.partition(" ")[0] for name in RIGHT} == set(claims.CLAIMS)
    stale, crash = findings[3:5]
    assert [one.do for one in stale.probes[0].ops] == ["reset", "call", "call", "call", "call", "state"]
    assert [one.value for one in crash.probes[0].ops] == [None, {"count": 7}]
    for one in (stale, findings[5], findings[8]):
        assert replay_finding(one, plays=1).held == 1


def test_false_claims_prove_nothing_of_a_sound_subject(context: Make) -> None:
    findings, asked = advise(context("Shop"), model(reply(*RIGHT.values(), *WRONG)))
    assert (asked.advice.played, findings) == (len(RIGHT) + len(WRONG), [])


# --- what is refused ---


@pytest.mark.parametrize(("reason", "said"), HOSTILE.items(), ids=HOSTILE)
def test_hostile_probes_are_refused(reason: str, said: object) -> None:
    with pytest.raises(Refused) as caught:
        accepted(raw(said), KNOWN, OFFERS)
    assert reason in str(caught.value)


def test_a_deep_or_huge_value_is_refused() -> None:
    deep: Any = "x"
    for _ in range(25):
        deep = [deep]
    for value in ({"code": deep}, {"code": 10**30}):
        with pytest.raises(Refused, match="value"):
            accepted(raw(probe("varies", BEGIN, op("call", "gift", value))), KNOWN, OFFERS)
    nested = b'{"relation":"varies","ops":' + b"[" * 100_000
    with pytest.raises(Refused):
        accepted(msgspec.Raw(nested), KNOWN, OFFERS)


def test_a_claim_that_the_subject_cannot_be_asked_for_is_refused() -> None:
    said = RIGHT["restores_wrongly"]
    accepted(raw(said), KNOWN, OFFERS)
    with pytest.raises(Refused, match="the subject has no snapshot, no restore, which restores_wrongly needs"):
        accepted(raw(said), KNOWN, OFFERS - {"snapshot", "restore"})


def test_probes_beyond_the_limit_are_counted_and_not_played(context: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advisor, "MAX_PROBES", 1)
    _, asked = advise(context("Shop"), model(reply(probe("score_varies", BEGIN, SCORE), "junk", RIGHT["leaks"])))
    assert (asked.advice.proposed, asked.advice.played) == (3, 1)
    assert asked.advice.refused == {"1 probes were played before it": 2}


# --- suspicions ---


def test_suspicions_are_hints_that_name_the_model(shop: Path, context: Make) -> None:
    said = [
        {"class": "leak", "sentence": "The code\nis readable.", "place": "shop.py:79"},
        {"class": "judge", "sentence": "No line.", "place": "/etc/passwd:1"},
        {"class": "nonsense", "sentence": "x"},
        {"class": "leak", "sentence": "x", "probes": []},
    ]
    findings, asked = advise(context("Buggy"), model(reply(suspicions=said)))
    assert [(one.class_, one.confidence, one.severity, one.where) for one in findings] == [
        ("leak", "hint", "note", f"{shop}:79"),
        ("judge", "hint", "note", ""),
    ]
    assert findings[0].title == "the model m suspects, and nothing has proven: The code is readable."
    assert findings[0].replay == f"quintain audit {shop}:Buggy --advisor m"
    assert sum(asked.advice.refused.values()) == 2
    assert not any(one.stops for one in findings)


# --- failures ---


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (ModelError("status 500: out of order", kind="provider_unavailable"), "did not answer: status 500"),
        ("I cannot help with that.", "replied 'I cannot help with that.', not one JSON object as asked"),
        ('{"suspicions": 1}', "not one JSON object as asked: Expected `array`"),
        ('{"probes": ' + "[" * 5000 + "}", "not one JSON object as asked"),
        ('{"probes": ["' + "x" * 200_000 + '"]}', "the reply has 200,016 characters, and 200,000 are allowed"),
        (reply(), "0 of 0 proposed probes were played"),
        (reply(HOSTILE["unknown relation 'os:system'"]), "refused: 1 x unknown relation 'os:system'"),
    ],
    ids=["status 500", "prose", "another form", "nested", "too long", "nothing", "only refused"],
)
def test_a_useless_reply_is_the_reason_that_nothing_was_checked(
    context: Make, said: str | Exception, reason: str
) -> None:
    with pytest.raises(NotChecked) as caught:
        advise(context("Buggy"), model(said))
    assert reason in str(caught.value)


def test_a_slow_model_ends_the_stage(context: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    async def sleeps(_request: Request) -> Reply:
        await asyncio.sleep(60)
        raise AssertionError("it was not cancelled")

    monkeypatch.setattr(advisor, "REPLY_S", 0.1)
    with pytest.raises(NotChecked, match="the advisor m did not answer: no reply within 0 s"):
        advise(context("Shop"), sleeps)


@pytest.mark.slow  # The command's own test shows it.
def test_an_advisor_changes_no_other_result(shop: Path) -> None:
    reports: list[Report] = []
    for said in (None, "I cannot help with that.", reply(probe("score_varies", BEGIN, SCORE))):
        stage = None if said is None else Advisor(model(said), "m").check
        reports.append(audit(Subject(f"{shop}:Shop"), [lamps], stage=stage))
    usual, prose, advised = reports
    for report, status in ((prose, "not_checked"), (advised, "checked")):
        *others, last = report.checks
        assert (last.check, last.class_, last.status, last.unfinished) == ("x.advisor", "advisor", status, False)
        assert [(one.check, one.status) for one in others] == [("x.lamps", "not_checked")]
        assert (report.coverage, report.too_little, report.findings) == (usual.coverage, usual.too_little, ())
    assert usual.too_little == "0 of 0 applicable checks were finished"


# --- the request ---


def test_a_request_shows_the_subject_within_its_bounds(
    shop: Path, context: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def listens(request: Request) -> Reply:
        asked.append(request.messages[-1].text)
        return await model(reply(probe("score_varies", BEGIN, SCORE)))(request)

    _, whole = advise(context("Shop"), listens)
    for words in ("4\timport itertools", "Buy lamps.", "Buy ask.", '["answer","8"]', "has: answer, restore"):
        assert words in asked[0], words
    assert whole.advice.cut == []
    monkeypatch.setattr(advisor, "SOURCE_CHARS", 500)
    _, some = advise(context("Shop"), listens)
    assert len(asked[1]) < len(asked[0]) - 2000
    (cut,) = some.advice.cut
    assert cut.startswith(f"{shop.parent.name}/shop.py: 500 of ")
    assert some.advice.prompt != whole.advice.prompt
