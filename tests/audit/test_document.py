"""Reports, findings and certificates as files in the documented form, and read back unchanged."""

from __future__ import annotations

import datetime as dt
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintain.audit.auditor import Report, _distinct
from quintain.audit.facts.bounds import bounds
from quintain.audit.facts.failure_rate import ENOUGH, LINE, Rate, failed
from quintain.audit.kernel.check import Check, NotChecked, check, checks_of, chosen, ordered
from quintain.audit.kernel.child import WorkerPool
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import CLASSES, CheckResult, Evidence, Finding, shortened
from quintain.audit.kernel.loader import About, Source, Subject, spread
from quintain.audit.kernel.probe import OpResult, Probe, Record, call, reset, score
from quintain.audit.report import certificate, document
from quintain.audit.report.certificate import Certificate
from quintain.cli.audit_accepted import Acceptance, accept
from quintain.errors import DefinitionError, UsageError

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "audit-report.md").read_text()
ODD = {"more": [float("inf"), b"\xff"], "nan": float("nan"), "text": "x"}


def finding(**more: Any) -> Finding:
    """Returns a finding that can be replayed, with values that JSON has no form for."""
    made: dict[str, Any] = {
        "check": "x.one", "class_": "races", "part": "S", "severity": "error", "confidence": "proven",
        "title": "it breaks", "tasks": ("a",),
        "probes": (Probe((reset("a"), call("f", ODD, mark="f"))),), "subject": Subject("f.py:F"),
        "evidence": Evidence("shows", ("f",), {"f": {"value": {3: ODD}}}), "observed": ODD,
    }  # fmt: skip
    return Finding(**{**made, **more})


def checked(class_: str, **more: Any) -> CheckResult:
    made: dict[str, Any] = {"check": f"x.{class_}", "class_": class_, "status": "checked"}
    return CheckResult(**{**made, **more})


def report(*findings: Finding, **more: Any) -> Report:
    about = About("plain", ("a", "b"), 2, (), frozenset({"reset"}), {}, ())
    made: dict[str, Any] = {
        "subject": Subject("f.py:F", {"twin": "x"}), "kind": "plain", "digest": "d", "about": about,
        "checks": (checked("races"), checked("judge", status="not_checked", reason="no judge")), "findings": findings,
        "tasks": (1, 2), "failures": Rate(0, 59, *bounds(0, 59, one_sided=True)), "seed": 0, "seconds": 1.0,
    }  # fmt: skip
    return Report(**{**made, **more})


# --- documents ---


def test_every_field_is_documented() -> None:
    names = set(document.document(report()))
    for struct in (Finding, CheckResult, Rate, Certificate):
        names |= {field.encode_name for field in msgspec.structs.fields(struct)}
    assert not {name for name in names if f"`{name}`" not in PAGE}


def test_a_finding_comes_back_from_its_file_as_it_was(tmp_path: Path) -> None:
    saved = document.save(report(finding(), finding(title="it breaks, too")), tmp_path / "new" / "folder")
    folder = tmp_path / "new" / "folder"
    for number, one in enumerate(saved.findings, 1):
        assert one.replay == f"quintain replay-finding {folder}/finding-{number}.json"
        for again in (document.load(folder / f"finding-{number}.json"), document.load(folder / "report.json", number)):
            assert repr(again) == repr(one)
    assert document.known_before(folder / "report.json") == {one.name for one in saved.findings}
    written = json.loads((folder / "finding-1.json").read_text())
    assert written["probes"][0]["ops"][1]["value"]["nan"] == {"$float": "nan"}


def test_a_name_does_not_depend_on_numbers_task_or_trajectory() -> None:
    one = finding(title="8 of 59 letters at 0x7f3a are lost in box b1")
    assert re.fullmatch(r"x\.one-[0-9a-f]{8}", one.name)
    assert finding(title="9 of 1,200 letters at 0x11 are lost in box b1", tasks=("b",), probes=()).name == one.name
    others = (finding(title="8 of 59 letters at 0x7f3a are lost in box b2"), finding(title=one.title, class_="judge"))
    assert one.name not in {other.name for other in others}


def test_a_report_made_with_a_baseline_is_a_baseline(tmp_path: Path) -> None:
    first = document.save(report(finding(), finding(title="it leaks")), tmp_path / "one")
    before = document.known_before(tmp_path / "one" / "report.json")
    assert before == {one.name for one in first.findings}
    document.save(report(finding(title="new"), known=tuple(before)), tmp_path / "two")
    assert document.known_before(tmp_path / "two" / "report.json") == before | {finding(title="new").name}


def test_a_static_finding_gets_an_audit_command(tmp_path: Path) -> None:
    saved = document.save(report(finding(probes=(), evidence=None)), tmp_path)
    assert saved.findings[0].replay == "quintain audit f.py:F --check x.one"


def test_a_folder_that_is_not_writable_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write the report into"):
        document.save(report(), tmp_path / "file" / "folder")


def test_a_report_without_the_numbered_finding_is_a_usage_error(tmp_path: Path) -> None:
    document.save(report(finding()), tmp_path)
    for number in (None, 0, 2):
        with pytest.raises(UsageError, match="is a report with findings 1 to 1; say which: --number N"):
            document.load(tmp_path / "report.json", number)


def test_properties_are_those_of_the_checks() -> None:
    made = document.document(report(finding(check="x.races", replay="again")))
    assert made["properties"] == [
        {"id": "x.races", "status": "fail", "severity": "error", "message": "it breaks", "evidence": ["again"]},
        {"id": "x.judge", "status": "skip", "severity": None, "message": "no judge", "evidence": []},
    ]
    assert set(made["coverage"]) == set(CLASSES)
    assert (made["coverage"]["races"], made["coverage"]["judge"]) == ("checked", "not_checked: no judge")


@given(st.text())
def test_a_long_value_is_shortened_and_says_so(text: str) -> None:
    assert shortened(text) == text
    assert shortened(text + "x" * 2000).endswith(f"... ({len(text) + 2000:,} characters)")


# --- reports ---


def test_a_proven_error_alone_stops_a_run() -> None:
    assert report(finding()).stops
    assert not report(finding(severity="warning"), finding(confidence="likely")).stops


def test_enough_is_checked_from_half_of_the_applicable_checks_on() -> None:
    ended = checked("races", status="not_checked", unfinished=True)
    assert report(checks=(checked("races"), ended)).too_little == ""
    assert report(checks=(checked("races"), ended, ended)).too_little == "1 of 3 applicable checks were finished"
    assert report(checks=(checked("judge", status="not_checked"),)).too_little.startswith("0 of 0 applicable checks")
    assert report(failures=Rate(8, 8)).too_little == "none of 8 episodes reached a verdict"
    assert report(failures=Rate()).too_little == "none of 0 episodes reached a verdict"


def test_findings_are_merged_over_tasks_with_the_worst_first() -> None:
    pool = WorkerPool(Subject("f.py:F"))
    ctx = AuditContext(pool, report().about, ("a", "b"), seed=0, until=None, limit=1.0)
    pool.close()
    ctx.seen_in["x.one", "it breaks"] = {"a": None, "b": None}
    hint, likely = finding(severity="note", confidence="hint", title="n"), finding(confidence="likely", title="l")
    found = _distinct([hint, likely, finding(), finding()], ctx)
    assert [(one.title, one.tasks) for one in found] == [("it breaks", ("a", "b")), ("l", ("a",)), ("n", ("a",))]


@given(st.lists(st.text(), unique=True), st.integers(1, 50))
def test_tasks_are_spread_from_the_first_to_the_last(tasks: list[str], count: int) -> None:
    found = spread(tasks, count)
    assert len(found) == min(count, len(tasks))
    assert len(set(found)) == len(found)
    assert [tasks.index(one) for one in found] == sorted(tasks.index(one) for one in found)
    if count > 1 and tasks:
        assert (found[0], found[-1]) == (tasks[0], tasks[-1])


def test_a_finding_needs_a_known_class() -> None:
    with pytest.raises(UsageError, match=r"a finding is of one of the classes stale_cache, .*, got 'none'"):
        finding(class_="none")


# --- the failure rate ---


def test_episodes_are_enough_from_fifty_nine() -> None:
    assert ENOUGH == 59
    assert Rate(0, 59, *bounds(0, 59, one_sided=True)).high < LINE
    assert Rate(0, 58, *bounds(0, 58, one_sided=True)).high > LINE
    assert not Rate().is_low


@pytest.mark.parametrize(
    ("record", "wanted"),
    [
        (Record((score(),), (OpResult({"score": 1.0}),)), False), (Record((score(),), (OpResult(None),)), True),
        (Record((score(),), (), died="killed"), True), (Record((score(),), (OpResult(how="crashed"),)), True),
        (Record((call("f"), score()), (OpResult(how="refused"), OpResult({"score": 0.0}))), False),
        (Record((call("f"), score()), (OpResult(how="crashed"), OpResult({"score": 0.0}))), True),
    ],
)  # fmt: skip
def test_an_episode_fails_by_crash_hang_or_missing_verdict(record: Record, wanted: bool) -> None:
    assert failed(record) is wanted


# --- certificates ---


def test_a_certificate_says_what_was_checked_and_holds_without_proven_errors(tmp_path: Path) -> None:
    made = certificate.certificate(report(finding(confidence="likely")))
    assert made.holds
    assert (made.checked, made.not_checked) == (["x.races"], {"x.judge": "no judge"})
    certificate.save(made, tmp_path / "c.json")
    assert certificate.load(tmp_path / "c.json") == made
    assert certificate.void(made, made.digests) == []


def test_a_certificate_names_what_is_accepted() -> None:
    row = Acceptance(finding().name, "as in production", dt.date(2026, 1, 2))
    made = certificate.certificate(accept(report(finding()), [row]))
    assert (made.holds, made.accepted) == (True, ["it breaks: as in production (2026-01-02)"])


def test_a_certificate_says_why_it_does_not_hold() -> None:
    rate = Rate(2, 59, *bounds(2, 59, one_sided=True))
    made = certificate.certificate(report(finding(), failures=rate))
    assert made.holds is False
    assert made.why_not == ["proven: it breaks", "2 of 59 episodes failed: the rate may be 10.3%"]


def test_any_digest_that_differs_voids(tmp_path: Path) -> None:
    source = tmp_path / "env.py"
    source.write_text("one")
    about = About("plain", ("a",), 1, (), frozenset(), {}, (Source(str(source), "S"),))
    made = certificate.certificate(report(about=about))
    source.write_text("two")
    assert [line.partition(":")[0] for line in certificate.void(made, certificate.digests(about, "d"))] == [str(source)]
    differing = certificate.void(made, {})
    assert len(differing) == len(made.digests) == 5
    assert all(line.endswith("now it is gone") for line in differing)


@pytest.mark.parametrize("text", ["", "[]", '{"holds": true}'])
def test_a_file_that_is_not_a_certificate_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.json").write_text(text)
    with pytest.raises(UsageError, match="is not a certificate"):
        certificate.load(tmp_path / "c.json")


# --- checks ---


def test_a_check_needs_a_docstring_and_a_known_class() -> None:
    def asks(ctx: Any) -> tuple[()]:
        """Is it so?

        More words.
        """
        return ()

    made = check("x.q", "judge", needs=("state|digest", "oracle"), value=3)(asks)
    assert (made.about, made.class_, made.value) == ("Is it so?", "judge", 3)
    assert made.missing(frozenset({"digest"})) == ["oracle"]
    assert made.missing(frozenset({"oracle"})) == ["state|digest"]
    with pytest.raises(DefinitionError, match=r"check 'x\.q': no class 'none'; there are stale_cache"):
        check("x.q", "none")
    with pytest.raises(DefinitionError, match=r"check 'x\.q' needs a docstring"):
        check("x.q", "judge")(lambda ctx: ())


def test_checks_by_value_and_each_id_once() -> None:
    one, two = (Check(id=name, class_="judge", run=lambda ctx: (), value=value) for name, value in (("a", 1), ("b", 2)))
    assert ordered([one, two, one]) == [two, one]
    assert checks_of(one) == [one]
    assert chosen([one, two], ["a"], []) == [one]
    assert chosen([one, two], [], ["races"]) == []
    assert chosen([one, two], [], []) == [one, two]
    with pytest.raises(UsageError, match="two checks are called 'a'"):
        ordered([one, Check(id="a", class_="races", run=one.run)])
    with pytest.raises(UsageError, match="unknown check 'z'; close ids: none; --list shows all 2"):
        chosen([one, two], ["z"], [])
    with pytest.raises(UsageError, match=re.escape("is neither a check nor a module with checks in it")):
        checks_of(3)
    assert str(NotChecked("why")) == "why"
