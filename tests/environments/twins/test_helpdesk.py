"""The audit proves twins of the help desk."""

from __future__ import annotations

import pytest

from quintain.audit.auditor import audit
from quintain.audit.kernel.check import registered
from quintain.audit.kernel.loader import Subject
from quintain.harness import ToolLoop

from .playing import made

FOUND_BY = {
    "stale_cache": ("x.read_your_writes", 11),
    "silent_default": ("x.tool_faults", 11),
    "data_realism": ("x.rates_as_declared", 11),
    "action_drift": ("x.prompt_names_tools", 11),
    "reward_hack": ("x.oracle_ablation", 33),
    "false_resolution": ("x.status_without_work", 33),
    "reset_leak": ("runtime.episode_isolation", 4),
    "reward_clipping": ("x.ladder", 33),
}
"""Class to a check that proves its twin, and tasks in which it does."""


@pytest.mark.slow
@pytest.mark.parametrize("twin", FOUND_BY)
def test_the_audit_proves_twins(twin: str) -> None:
    name, tasks = FOUND_BY[twin]
    chosen = [check for check in registered() if check.id == name]
    subject = Subject("helpdesk", options={"twin": twin, "split": "validation"})
    report = audit(subject, chosen, tasks=tasks, budget=900)
    assert {one.check for one in report.findings if one.stops} == {name}


@pytest.mark.slow
def test_the_same_checks_prove_nothing_in_the_sound_help_desk() -> None:
    chosen = [check for check in registered() if check.id in {name for name, _ in FOUND_BY.values()}]
    report = audit(Subject("helpdesk", options={"split": "validation"}), chosen, tasks=33, budget=1800)
    assert [one.title for one in report.findings if one.stops] == []


def test_the_introduction_of_action_drift_differs_by_one_name() -> None:
    sound, twin = (made("helpdesk", name).harness for name in ("", "action_drift"))
    assert isinstance(sound, ToolLoop)
    assert isinstance(twin, ToolLoop)
    assert "search_articles" in sound.system
    assert twin.system == sound.system.replace("search_articles", "find_articles")
