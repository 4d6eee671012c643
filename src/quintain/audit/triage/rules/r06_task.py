"""Rule 6: the task itself is known to be broken."""

from __future__ import annotations

from quintain.audit.triage.case import Case, Finding, Found
from quintain.audit.triage.labels import Confidence, Label, Owner

_OF_TASKS = ("unsolvable", "leak")
_PARTS: dict[str, Owner] = {"T": "task", "V": "verifier", "S": "env", "H": "infra", "C": "infra"}
_MAX_SHARE = 0.5


def task(case: Case) -> Found:
    """Proven findings of an audit about this task; where there is no audit, what its own solution and nothing earn."""
    labels = [label for finding in case.findings or () for label in _found(case, finding)]
    if not case.probe.missing:
        labels += _probed(case)
    elif case.findings is None:
        return f"no audit report, and the task was not probed: {case.probe.missing}"
    return labels


def _found(case: Case, finding: Finding) -> list[Label]:
    if case.played.task not in finding.tasks:
        return []
    owned = finding.class_ in _OF_TASKS or finding.part == "T"
    proven = finding.confidence == "proven" and finding.severity in ("error", "")
    why = f"an audit found {finding.check} ({finding.class_}) in this task"
    owner: Owner = "task" if owned else _PARTS.get(finding.part, "unknown")
    sure: Confidence = "proven" if owned and proven else "hint"
    return [Label(rule=6, owner=owner, classes=(finding.class_,), confidence=sure, why=why)]


def _probed(case: Case) -> list[Label]:
    probe, one = case.probe, case.played
    if probe.trivial:
        sure: Confidence = "proven" if one.solved else "hint"
        why = "an agent that does nothing earns the whole reward of this task, so that a success says nothing"
        if case.freebies > _MAX_SHARE:
            why = "an agent that does nothing earns the whole reward of most tasks: the verifier pays for nothing"
            return [Label(rule=6, owner="verifier", classes=("reward_hack",), confidence=sure, why=why)]
        return [Label(rule=6, owner="task", classes=("unsolvable",), confidence=sure, why=why)]
    if probe.free:
        why = "an agent that does nothing earns the whole reward: doing nothing is right here, or everything is"
        return [Label(rule=6, owner="task", classes=("unsolvable",), confidence="hint", why=why)]
    if not probe.unsolvable:
        return []
    said = "fails" if probe.solution is None else f"earns {probe.solution:g}"
    refused = f"; refused: {probe.refused}" if probe.refused else ""
    why = f"the task's own solution {said}{refused}"
    useless = probe.solution is None or (probe.nothing is not None and probe.solution <= probe.nothing)
    normal = case.solutions > _MAX_SHARE  # the whole reward is what solutions earn here
    # Where somebody did it, the solution is wrong, and not the task.
    sure = "proven" if not case.solvable and (useless or normal) else "hint"
    return [Label(rule=6, owner="task", classes=("unsolvable",), confidence=sure, why=why)]
