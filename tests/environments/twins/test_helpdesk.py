"""The audit proves twins of the help desk."""

from __future__ import annotations

import pytest

from quintain.audit.auditor import audit
from quintain.audit.kernel.check import registered
from quintain.audit.kernel.loader import Subject

FOUND_BY = {
    "stale_cache": "x.read_your_writes",
    "silent_default": "x.tool_faults",
    "data_realism": "x.rates_as_declared",
    "action_drift": "x.prompt_names_tools",
}
"""Class to a check that proves its twin. The audit reports three of the others as likely."""


@pytest.mark.slow
@pytest.mark.parametrize("twin", FOUND_BY)
def test_the_audit_proves_twins(twin: str) -> None:
    chosen = [check for check in registered() if check.id == FOUND_BY[twin]]
    subject = Subject("helpdesk", options={"twin": twin, "split": "validation"})
    report = audit(subject, chosen, tasks=11, budget=300)
    assert {one.check for one in report.findings if one.stops} == {FOUND_BY[twin]}
