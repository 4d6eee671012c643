"""`quintain audit` and `quintain replay-finding`: what they print, write, and end with; and what cannot hurt them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import tempfile
from pathlib import Path
from typing import Any

import pytest

from quintain.audit import auditor
from quintain.audit.kernel import child
from quintain.audit.kernel.child import SubjectBroken
from quintain.audit.kernel.finding import CLASSES
from quintain.audit.report.document import load
from quintain.cli import main
from tests.audit.templates import PreparedWorkers
from tests.cli.audited import CHECK, DESK
from tests.cli.conftest import Call


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with subjects and a check in it, and a folder for what is temporary."""
    (tmp_path / "desks.py").write_text(DESK)
    (tmp_path / "mine.py").write_text(CHECK)
    (tmp_path / "temp").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temp"))
    return tmp_path


def audited(call: Call, name: str, *more: object) -> tuple[int, dict[str, Any]]:
    """Status and report of an audit by the check x.idle."""
    ended = call("audit", f"desks.py:{name}", "--plugin", "mine.py", "--check", "x.idle", "--json", *more)
    assert ended.status in (0, 1, 5), ended.err
    found: dict[str, Any] = json.loads(ended.out)
    return ended.status, found


def no_files_left(folder: Path) -> bool:
    """True if no file and no process uses the temporary folder."""
    temp = folder / "temp"
    variable = f"TMPDIR={temp}".encode()
    environments = [path for path in Path("/proc").glob("[0-9]*/environ") if path.parent.name != str(os.getpid())]
    return not list(temp.iterdir()) and not any(variable in _read(path) for path in environments)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it is gone, or somebody else's
        return b""


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory, templates: PreparedWorkers) -> Path:
    """A folder with audits of the generous desk, in `there`, and of the sound one, in `sound`."""
    folder = tmp_path_factory.mktemp("known")
    (folder / "desks.py").write_text(DESK)
    (folder / "mine.py").write_text(CHECK)
    for name, out in (("Generous", "there"), ("Desk", "sound")):
        with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit):
            patch.setattr(child, "subprocess", templates)
            main(["audit", f"desks.py:{name}", "--plugin", "mine.py", "--check", "x.idle", "--out", out])
    return folder


@pytest.fixture
def there(known: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of subjects, as the working directory."""
    monkeypatch.chdir(known)
    return known


def report_in(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return found


# --- what it says ---


def test_a_proven_error_has_the_documented_form(there: Path) -> None:
    report = report_in(there / "there")
    assert {"subject", "digest", "coverage", "findings", "seconds"} <= set(report)
    assert report["subject"] == f"{there}/desks.py:Generous"
    assert set(report["coverage"]) == set(CLASSES)
    assert report["coverage"]["reward_hack"] == "checked"
    assert report["coverage"]["judge"] == "not_checked: no check of this class was asked for"
    (finding,) = report["findings"]
    assert {name: finding[name] for name in ("check", "class", "part", "severity", "confidence", "tasks")} == {
        "check": "x.idle", "class": "reward_hack", "part": "V", "severity": "error", "confidence": "proven",
        "tasks": ["ann", "bob"],
    }  # fmt: skip
    assert [line["do"] for line in finding["trajectory"]] == ["reset", "score"]
    assert (finding["expected"], finding["observed"]) == (0.0, 1.0)
    assert finding["replay"] == "quintain replay-finding there/finding-1.json"
    assert finding["details"]["changes"] == [None, None]
    assert report["failure_rate"]["scores"] == {"1": 59}
    assert {one["id"]: one["status"] for one in report["properties"]} == {"x.idle": "fail"}
    assert {one["check"]: one["class"] for one in report["checks"]} == {"x.idle": "reward_hack"}


def test_a_sound_subject_is_certified(there: Path) -> None:
    report = report_in(there / "sound")
    assert report["findings"] == []
    assert report["failure_rate"] == {
        "failures": 0, "episodes": 59, "low": 0.0, "high": pytest.approx(0.0495, abs=1e-4), "scores": {"1": 59},
    }  # fmt: skip
    assert json.loads((there / "sound/certificate.json").read_text())["holds"] is True


def test_the_folder_holds_report_page_findings_and_certificate(there: Path) -> None:
    assert sorted(path.name for path in (there / "there").iterdir()) == [
        "certificate.json", "finding-1.json", "report.html", "report.json",
    ]  # fmt: skip
    assert "a letter to nobody is paid" in (there / "there/report.html").read_text()
    assert load(there / "there/finding-1.json") == load(there / "there/report.json", 1)


def test_audit_with_findings_exits_1_repeatably_and_leaves_no_files(
    there: Path, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temp"))
    before = report_in(there / "there")
    status, report = audited(call, "Generous", "--out", "there", "--baseline", "sound/report.json")
    assert status == 1
    assert report == report_in(there / "there")
    for one in (before, report):
        one.pop("seconds")
        for check in one["checks"]:
            check.pop("seconds")
    assert report == before
    assert no_files_left(tmp_path)


@pytest.mark.usefixtures("forked_workers")
def test_folders_are_numbered(here: Path, call: Call) -> None:
    for _ in range(2):
        audited(call, "Desk", "--budget", "0")
    assert sorted(path.name for path in (here / "audits").iterdir()) == ["desks.py-Desk-1", "desks.py-Desk-2"]


@pytest.mark.usefixtures("few_episodes", "forked_workers")
def test_report_gives_a_reason_for_each_skipped_check(here: Path, call: Call) -> None:
    ended = call("audit", "desks.py:Generous", "--plugin", "mine.py", "--seed", "5", "--tasks", "1")
    assert ended.status == 1
    assert re.search(r"^proven after \d+ s: a letter to nobody is paid$", ended.err, re.MULTILINE)
    for words in (
        "1. error, proven", "a letter to nobody is paid", "reset ann", "expected: 0.0", "1 proven error: do not train",
        "the subject has no judge", "there was nothing to compare", "ZeroDivisionError: mine",
        "0 of 9 episodes broke", "1 of 2 tasks",
    ):  # fmt: skip
        assert words in " ".join(ended.out.split()), words
    report = report_in(here / "audits/desks.py-Generous-1")
    assert report["tasks"] == {"looked_at": 1, "there_are": 2, "left_out": 0}
    assert (report["seed"], report["findings"][0]["seed"]) == (5, 5)
    said = {one["check"]: (one["status"], one["reason"]) for one in report["checks"]}
    assert said["x.idle"] == ("checked", "")
    assert said["x.shy"] == ("not_checked", "the subject has no judge")
    assert said["x.lazy"] == ("not_checked", "there was nothing to compare")
    assert said["x.bad"][0] == "not_checked"
    assert said["x.bad"][1].startswith("the check itself broke: ZeroDivisionError: mine (")
    assert report["coverage"]["leak"].startswith("not_checked: the check itself broke")


@pytest.mark.usefixtures("forked_workers")
def test_a_budget_leaves_out_with_reasons(here: Path, call: Call) -> None:
    status, report = audited(call, "Generous", "--budget", "0")
    assert (status, report["findings"]) == (5, [])
    assert report["too_little"] == "0 of 1 applicable checks were finished"
    assert report["checks"][0]["unfinished"]
    assert report["coverage"]["reward_hack"] == "not_checked: the budget was spent before it"
    assert report["failure_rate"]["episodes"] == 0


@pytest.mark.parametrize(("given", "wanted"), [([], 60.0), (["--budget", "9"], 9.0), (["--thorough"], None)], ids=str)
def test_an_audit_takes_a_minute_unless_told_otherwise(
    there: Path, call: Call, monkeypatch: pytest.MonkeyPatch, given: list[str], wanted: float | None
) -> None:
    seen: list[float | None] = []

    def audit(*_: object, budget: float | None, **__: object) -> None:
        seen.append(budget)
        raise SubjectBroken("it is enough")

    monkeypatch.setattr(auditor, "audit", audit)
    assert call("audit", "desks.py:Desk", "--plugin", "mine.py", "--check", "x.idle", *given).status == 4
    assert seen == [wanted]


@pytest.mark.usefixtures("forked_workers")
def test_audit_names_the_checks_that_did_not_fit_into_the_time(here: Path, call: Call) -> None:
    ended = call("audit", "desks.py:Desk", "--plugin", "mine.py", "--budget", "0")
    said = " ".join(ended.out.split())
    assert "3 checks did not fit into the time: x.idle, x.lazy, x.bad." in said
    assert f"To run all, or some: quintain audit {here}/desks.py:Desk --thorough, or --budget SECONDS" in said


def test_a_list_runs_nothing(here: Path, call: Call) -> None:
    ended = call("audit", "desks.py:Gone", "--plugin", "mine.py", "--list", "--json")
    assert ended.status == 0
    listed = {one["id"]: one for one in json.loads(ended.out)}
    assert list(listed) == ["x.idle", "x.shy", "x.lazy", "x.bad"]
    assert listed["x.shy"] == {
        "id": "x.shy", "class": "judge", "level": "dynamic", "needs": ["judge"], "severity": "error",
        "about": "Whether the judge can be shouted down.",
    }  # fmt: skip
    assert "Whether the judge can be shouted down." in call("audit", "x", "--plugin", "mine.py", "--list").out


@pytest.mark.usefixtures("forked_workers")
def test_audit_exits_5_when_no_check_is_applicable(here: Path, call: Call) -> None:
    ended = call("audit", "desks.py:Desk", "--plugin", "mine.py", "--check", "x.shy")
    assert ended.status == 5
    assert "Nothing is proven, but too little was checked: 0 of 0 applicable checks were finished." in ended.out
    certificate = json.loads((here / "audits/desks.py-Desk-1/certificate.json").read_text())
    assert certificate["why_not"] == ["too little was checked: 0 of 0 applicable checks were finished"]


# --- wrong usage ---


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["desks.py:Desk", "--check", "x.none"], "unknown check 'x.none'; close ids: "),
        (["desks.py:Desk", "--class", "none"], "unknown class 'none'; the classes are stale_cache, reward_hack"),
        (["desks.py:Desk", "--plugin", "none.py"], "none.py"),
        (["desks.py:Desk", "--plugin", "desks.py"], "is neither a check nor a module with checks in it"),
        (["desks.py:Desk", "--certificate", "none.json"], "cannot read 'none.json'"),
        (["desks.py:Desk", "--accepted", "none.toml"], "cannot read 'none.toml'"),
        (["desks.py:Desk", "--accepted", "mine.py"], "must have rows [[accepted]] with finding, reason and date"),
        (["desks.py:Desk", "--cases", "none.jsonl"], "file of cases 'none.jsonl' does not exist"),
        (["desks.py:Nobody"], "Nobody"),
        (["nobody"], "nobody"),
        (["desks.py:Halved"], "a subject needs the methods tasks, reset, score; Halved has no score"),
        (["desks.py:Desk", "--tasks", "0"], "--tasks"),
        (["desks.py:Desk", "--thorough", "--budget", "9"], "give it or --budget, not both"),
    ],
)
@pytest.mark.usefixtures("few_episodes")
def test_wrong_usage_ends_with_2(here: Path, call: Call, arguments: list[str], said: str) -> None:
    plugin = [] if "--plugin" in arguments else ["--plugin", "mine.py"]
    wanted = [] if {"--check", "--class", "--plugin"} & set(arguments) else ["--check", "x.idle"]
    ended = call("audit", *arguments, *plugin, *wanted, "--json")
    assert ended.status == 2
    assert said in ended.err
    assert ended.out == ""
    assert no_files_left(here)


def test_a_class_chooses_its_checks(here: Path, call: Call) -> None:
    ended = call("audit", "desks.py:Desk", "--plugin", "mine.py", "--class", "judge", "--list", "--json")
    listed = json.loads(ended.out)
    assert "x.shy" in [one["id"] for one in listed]
    assert {one["class"] for one in listed} == {"judge"}


# --- a baseline, a certificate, a replay ---


@pytest.mark.usefixtures("few_episodes", "forked_workers")
def test_a_baseline_leaves_only_what_is_new(there: Path, call: Call, tmp_path: Path) -> None:
    for baseline in ("there", tmp_path / "out"):
        more = ("--out", tmp_path / "out", "--baseline", f"{baseline}/report.json")
        status, report = audited(call, "Generous", *more)
        assert (status, report["findings"], len(report["known"])) == (0, [], 1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("--baseline none.json", "cannot read 'none.json'"),
        ("--baseline mine.py", "is not a JSON object"),
        ("--baseline empty.json", "no findings"),
        ("--accepted mine.py", "must have rows [[accepted]]"),
    ],
)
def test_wrong_list_of_known_findings_is_refused_before_the_audit(
    here: Path, call: Call, monkeypatch: pytest.MonkeyPatch, given: str, said: str
) -> None:
    (here / "empty.json").write_text("{}")
    monkeypatch.setattr(auditor, "audit", lambda *_, **__: pytest.fail("the audit ran"))
    ended = call("audit", "desks.py:Desk", *given.split())
    assert (ended.status, ended.out) == (2, "")
    assert said in ended.err
    assert not (here / "audits").exists()


ROW = """[[accepted]]
finding = "{}"
reason = "letters are free"
date = 2026-01-02
"""


@pytest.mark.usefixtures("few_episodes", "forked_workers")
def test_accepted_findings_are_listed_and_do_not_fail_the_audit(here: Path, call: Call) -> None:
    status, report = audited(call, "Generous", "--out", "first")
    name = report["findings"][0]["name"]
    assert status == 1
    (here / "accepted.toml").write_text(ROW.format(name) + ROW.format("x.idle-00000000"))
    ended = call("audit", "desks.py:Generous", "--plugin", "mine.py", "--check", "x.idle", "--out", "second")
    assert ended.status == 0
    assert "Warning: accepted.toml accepts x.idle-00000000, but no finding has this name\n" in ended.err
    said = " ".join(ended.out.split())
    assert f"1 accepted: - {name}, error, proven: a letter" in said
    assert "accepted: letters are free (2026-01-02)" in said
    assert "No proven error in what was checked, 1 accepted." in said
    assert report_in(here / "second")["findings"][0]["accepted"] == "letters are free (2026-01-02)"
    assert "The author accepts 1 finding." in (here / "second/report.html").read_text()


@pytest.mark.usefixtures("forked_workers")
def test_rows_for_checks_that_did_not_run_are_no_warning(here: Path, call: Call) -> None:
    (here / "mine.toml").write_text(ROW.format("x.idle-00000000") + ROW.format("x.other-00000000"))
    ended = call(
        "audit", "desks.py:Desk", "--plugin", "mine.py", "--check", "x.idle", "--accepted", "mine.toml", "--budget", "0"
    )
    assert "Warning" not in ended.err


@pytest.mark.usefixtures("forked_workers")
def test_a_certificate_holds_until_anything_differs(there: Path, call: Call) -> None:
    ask = ("audit", "desks.py:Desk", "--certificate", "sound/certificate.json")
    ended = call(*ask, "--json")
    assert (ended.status, json.loads(ended.out)) == (0, {"holds": True, "void": [], "why_not": []})
    assert call(*ask).out == "The certificate holds.\n"
    (there / "desks.py").write_text(DESK.replace("Send a letter.", "Send one letter."))
    ended, table = call(*ask, "--json"), call(*ask)
    (there / "desks.py").write_text(DESK)
    void = json.loads(ended.out)["void"]
    assert ended.status == 1
    assert [line.partition(": it was made for ")[0] for line in void] == [str(there / "desks.py"), "subject", "tools"]
    assert "The certificate does not hold." in table.out


@pytest.mark.usefixtures("forked_workers")
def test_a_certificate_of_a_proven_error_does_not_hold(there: Path, call: Call) -> None:
    ended = call("audit", "desks.py:Generous", "--certificate", "there/certificate.json", "--json")
    assert ended.status == 1
    assert json.loads(ended.out)["why_not"] == ["proven: a letter to nobody is paid"]


@pytest.mark.usefixtures("forked_workers")
def test_a_finding_that_is_still_there_ends_with_1(there: Path, call: Call) -> None:
    ended = call("replay-finding", "there/report.json", "--number", 1)
    assert ended.status == 1
    assert "It is still there: shown in 2 of 2 fresh plays." in ended.out


@pytest.mark.usefixtures("forked_workers")
def test_a_finding_that_is_gone_ends_with_0(there: Path, call: Call) -> None:
    (there / "desks.py").write_text(DESK.replace("return 1.0", "return super().score()"))
    ended = call("replay-finding", "there/finding-1.json", "--json")
    (there / "desks.py").write_text(DESK)
    found = json.loads(ended.out)
    assert (ended.status, found["holds"], found["held"], found["plays"]) == (0, False, 0, 2)
    assert found["trajectories"][0][-1]["observed"] == {"score": 0.0}


def test_a_finding_whose_subject_is_gone_ends_with_4(there: Path, call: Call) -> None:
    (there / "desks.py").write_text("import os\nos._exit(3)\n")
    ended = call("replay-finding", "there/finding-1.json")
    (there / "desks.py").write_text(DESK)
    assert ended.status == 4
    assert "the subject could not be run" in ended.err


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("there/report.json", "is a report with findings 1 to 1; say which: --number N"),
        ("there/certificate.json", "holds no finding of this version"),
        ("mine.py", "is not a JSON object"),
        ("none.json", "cannot read 'none.json'"),
    ],
)
def test_replay_finding_exits_2_for_an_invalid_file(there: Path, call: Call, path: str, said: str) -> None:
    ended = call("replay-finding", path)
    assert ended.status == 2
    assert said in ended.err


@pytest.mark.usefixtures("forked_workers")
def test_a_subject_reads_only_the_variables_that_the_user_names(
    here: Path, call: Call, few_episodes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("DESK_KEY", "k"), ("DESK_SECRET", "s"), ("TZ", "Mars")):
        monkeypatch.setenv(name, value)
    assert call("audit", "desks.py:Keyed", "--plugin", "mine.py", "--check", "x.idle").status == 4
    status, report = audited(call, "Keyed", "--env", "DESK_KEY", "--env", "TZ", "--out", "out")
    assert (status, report["failure_rate"]["scores"]) == (1, {"1": few_episodes})
    assert report["findings"][0]["subject"]["env"] == ["DESK_KEY", "TZ"]
    assert call("replay-finding", "out/finding-1.json").status == 1
    monkeypatch.setenv("DESK_KEY", "other")
    assert call("replay-finding", "out/finding-1.json").status == 0
    monkeypatch.delenv("DESK_KEY")
    ended = call("audit", "desks.py:Keyed", "--env", "DESK_KEY")
    assert (ended.status, "--env DESK_KEY: no environment variable of this name is set" in ended.err) == (2, True)


# --- what cannot hurt it ---


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Gone", "the subject ended the process that loaded it"),
        ("Quits", "no licence"),
        ("Broken", "the desk has no drawers"),
        ("Refuses", "no task can be begun; task 'bob': RuntimeError: not today"),
        ("Listless", "the subject did not load within 2 s"),
    ],
)
def test_audit_exits_4_when_the_subject_cannot_run(
    here: Path, call: Call, name: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "LOAD_S", 2.0)
    ended = call("audit", f"desks.py:{name}", "--plugin", "mine.py", "--check", "x.idle", "--json")
    assert ended.status == 4
    assert f"Error: desks.py:{name} could not be run: " in ended.err
    assert said in ended.err
    assert ended.out == ""
    assert no_files_left(here)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "failures", "episodes"),
    [("Hangs", 8, 8), ("Crashes", 8, 8), ("Hungry", 8, 8), ("Prints", 0, 59), ("Threads", 0, 59)],
)
def test_a_subject_that_breaks_is_a_rate_of_failures(
    here: Path, call: Call, name: str, failures: int, episodes: int
) -> None:
    status, report = audited(call, name, "--limit", "1")
    assert status == (5 if failures else 0)
    rate = report["failure_rate"]
    assert (rate["failures"], rate["episodes"]) == (failures, episodes)
    certificate = json.loads(next((here / "audits").glob("*/certificate.json")).read_text())
    assert certificate["holds"] == (not failures)
    assert no_files_left(here)


def test_processes_and_ports_do_not_outlive_their_probe(here: Path, call: Call, few_episodes: int) -> None:
    assert audited(call, "Forks")[0] == 0
    assert no_files_left(here)
    ports = [int(line) for line in (here / "ports").read_text().split()]
    assert len(ports) >= few_episodes
    for port in ports:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))


@pytest.mark.usefixtures("few_episodes", "forked_workers")
def test_values_that_are_no_data_are_put_into_words(here: Path, call: Call) -> None:
    status, report = audited(call, "Strange")
    assert (status, report["failure_rate"]["failures"]) == (0, 0)


@pytest.mark.usefixtures("few_episodes")
def test_a_schema_that_shifts_does_not_break_the_audit(here: Path, call: Call) -> None:
    assert audited(call, "Shifting")[0] == 0
    assert no_files_left(here)
