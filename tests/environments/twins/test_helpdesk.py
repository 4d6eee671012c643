"""The audit proves each twin of the help desk."""

from __future__ import annotations

import pytest

from quintain.audit.auditor import audit
from quintain.audit.kernel.check import registered
from quintain.audit.kernel.loader import Subject

FOUND_BY = {
    "stale_cache": "x.read_your_writes",
    "reward_hack": "x.oracle_ablation",
    "false_resolution": "x.status_without_work",
    "silent_default": "x.tool_faults",
    "reset_leak": "runtime.episode_isolation",
    "reward_clipping": "x.ladder",
    "data_realism": "x.rates_as_declared",
    "action_drift": "x.prompt_names_tools",
}
"""Class to a check that proves its twin."""


@pytest.mark.slow
@pytest.mark.parametrize("twin", FOUND_BY)
def test_the_audit_proves_each_twin(twin: str) -> None:
    chosen = [check for check in registered() if check.id == FOUND_BY[twin]]
    subject = Subject("helpdesk", options={"twin": twin, "split": "validation"})
    report = audit(subject, chosen, tasks=11, budget=300)
    assert {one.check for one in report.findings if one.stops} == {FOUND_BY[twin]}
