"""Advisor of `quintain audit --advisor`: made from the option, and recorded in the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quintain.errors import UsageError

if TYPE_CHECKING:
    from quintain.audit.advisor import Advisor
    from quintain.audit.auditor import Report

_OPTIONS: dict[str, Any] = {"retries": 1, "timeout_s": 120.0, "tokens": False, "max_reply_bytes": 2_000_000}
"""Options of the endpoint: an advisor may fail, so it is asked twice at most."""


def made(spec: str | None, base_url: str | None, *, is_traces: bool) -> Advisor | None:
    """Returns the advisor that a spec names, after a first request to its endpoint; None without a spec.

    Raises:
        UsageError: The spec names no model, the endpoint refuses it, or ENV is a folder of traces.
    """
    if spec is None:
        if base_url is not None:
            raise UsageError(f"--base-url {base_url} is the endpoint of an advisor: give --advisor openai:NAME, too")
        return None
    if is_traces:
        raise UsageError(f"--advisor {spec} reads an environment, and ENV is a folder of traces: leave it out")
    from quintain import plugins
    from quintain.audit.advisor import Advisor
    from quintain.state import State
    from quintain.task import Task

    endpoint = _OPTIONS | ({} if base_url is None else {"base_url": base_url})
    agent = plugins.agent(spec, **(endpoint if spec.startswith("openai:") else {}))
    advisor = Advisor(agent.model(Task(id="advisor", prompt="", start=State), 0), agent.name)
    advisor.greet()
    return advisor


def recorded(report: Report, advisor: Advisor | None) -> Report:
    """Returns the report with the record of its advisor, and what became of the proposals as its check's reason."""
    import msgspec

    if advisor is None:
        return report
    *others, last = report.checks
    last = msgspec.structs.replace(last, reason=last.reason or advisor.summary)
    return msgspec.structs.replace(report, checks=(*others, last), advisor=msgspec.to_builtins(advisor.advice))
