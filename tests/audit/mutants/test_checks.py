"""Survivors are unchecked requirements, each with the state that shows it; a strict verifier leaves none."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from quintain import codec
from quintain.audit.auditor import Report, audit
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.loader import Subject
from quintain.audit.kernel.replay import replay_finding
from quintain.audit.mutants.checks import CHECKS, mutant_tool, mutant_verifier

from ._shop import BLIND, STRICT, VACUOUS, at, shop

pytestmark = pytest.mark.usefixtures("no_failure_rate", "prepared_workers")


@pytest.fixture(scope="module")
def blind(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Report]:
    path = shop(tmp_path_factory.mktemp("blind"), BLIND)
    return path, audit(Subject(f"{path}:Shop"), CHECKS, tasks=1)


def of(report: Report, check: str) -> list[Finding]:
    return [one for one in report.findings if one.check == check]


@pytest.mark.slow
def test_an_unchecked_effect_is_found(blind: tuple[Path, Report]) -> None:
    path, report = blind
    found = {one.where: one for one in of(report, "x.mutant_tool")}
    ledger = found[at(path, 'ledger"].append')]
    assert (ledger.class_, ledger.part) == ("false_resolution", "V")
    assert (ledger.severity, ledger.confidence) == ("warning", "likely")
    assert "ledger" in str(ledger.observed["as it should be and as it is"])
    assert ledger.observed["score"] == 1.0
    back = found[at(path, 'order["back"] =')]
    assert "orders/" in str(back.observed["as it should be and as it is"])
    assert at(path, 'order["status"] =') not in found


@pytest.mark.slow
def test_a_finding_is_played_again_with_its_mutant(blind: tuple[Path, Report]) -> None:
    one = of(blind[1], "x.mutant_tool")[0]
    again = msgspec.json.decode(codec.json(one), type=Finding)
    assert again.subject is not None
    assert again.subject.mutant is not None
    assert replay_finding(again).held == 2
    healed = msgspec.structs.replace(again, subject=msgspec.structs.replace(again.subject, mutant=None))
    assert replay_finding(healed).held == 0


def test_a_solution_with_another_amount_is_found(blind: tuple[Path, Report]) -> None:
    found = of(blind[1], "x.mutant_oracle")
    assert any("refund(amount=" in one.title for one in found)
    assert {one.confidence for one in found} == {"likely"}
    assert replay_finding(found[0]).held == 2


@pytest.mark.slow
def test_a_strict_verifier_leaves_no_survivor(tmp_path: Path) -> None:
    report = audit(Subject(f"{shop(tmp_path, STRICT)}:Shop"), CHECKS, tasks=1)
    assert [one.status for one in report.checks] == ["checked"] * 3
    assert report.findings == ()


@pytest.mark.slow
def test_a_condition_that_decides_nothing_is_a_note(tmp_path: Path) -> None:
    path = shop(tmp_path, VACUOUS)
    report = audit(Subject(f"{path}:Shop"), [mutant_verifier], tasks=1)
    found = {one.where: one for one in report.findings}
    assert {one.severity for one in report.findings} == {"note"}
    assert at(path, "missing = [") in found
    assert at(path, 'order["paid"] > 1000') not in found  # It never was another value.
    assert replay_finding(report.findings[0]).held == 2


@pytest.mark.slow
def test_two_audits_say_the_same(blind: tuple[Path, Report]) -> None:
    path, report = blind
    again = audit(Subject(f"{path}:Shop"), [mutant_tool], tasks=1)
    assert [one.key for one in again.findings] == [one.key for one in of(report, "x.mutant_tool")]


def test_without_a_solution_nothing_is_said(tmp_path: Path) -> None:
    path = shop(tmp_path, BLIND)
    path.write_text(path.read_text().replace("return [[", "return None and [["))
    report = audit(Subject(f"{path}:Shop"), CHECKS, tasks=1)
    assert {(one.status, one.reason) for one in report.checks} == {("not_checked", "no solution is known")}


def test_the_budget_ends_the_checks(tmp_path: Path) -> None:
    report = audit(Subject(f"{shop(tmp_path, BLIND)}:Shop"), [mutant_tool], budget=0.0)
    assert [(one.status, one.reason) for one in report.checks] == [("not_checked", "the budget was spent before it")]


@pytest.mark.slow
def test_a_native_environment_is_mutated() -> None:
    report = audit(Subject("sales"), [mutant_tool], tasks=4)
    assert [one.status for one in report.checks] == ["checked"]
    assert all(one.where.partition(":")[0].endswith(".py") and not one.stops for one in report.findings)
