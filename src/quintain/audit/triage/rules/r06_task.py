"""Rule 6: the task itself is known to be broken."""

from __future__ import annotations

from quintain.audit.triage.case import AuditFinding, Case, RuleResult
from quintain.audit.triage.labels import Confidence, Label, Owner

_OF_TASKS = ("unsolvable", "leak")
_PARTS: dict[str, Owner] = {"T": "task", "V": "verifier", "S": "env", "H": "infra", "C": "infra"}
_MAX_SHARE = 0.5


def task(case: Case) -> RuleResult:
    """Labels proven findings of an audit about this task; without an audit, the task's baselines."""
    labels = [label for finding in case.findings or () for label in _found(case, finding)]
    if not case.baselines.missing:
        labels += _probed(case)
    elif case.findings is None:
        return f"no audit report, and the task was not probed: {case.baselines.missing}"
    return labels


def _found(case: Case, finding: AuditFinding) -> list[Label]:
    if case.played.task not in finding.tasks:
        return []
    owned = finding.class_ in _OF_TASKS or finding.part == "T"
    proven = finding.confidence == "proven" and finding.severity in ("error", "")
    why = f"an audit found {finding.check} ({finding.class_}) in this task"
    owner: Owner = "task" if owned else _PARTS.get(finding.part, "unknown")
    sure: Confidence = "proven" if owned and proven else "hint"
    return [Label(rule=6, owner=owner, classes=(finding.class_,), confidence=sure, why=why)]


def _probed(case: Case) -> list[Label]:
    baselines, one = case.baselines, case.played
    if baselines.trivial:
        sure: Confidence = "proven" if one.solved else "hint"
        why = "an agent that does nothing earns the whole reward of this task, so that a success says nothing"
        if case.freebies > _MAX_SHARE:
            why = "an agent that does nothing earns the whole reward of most tasks: the verifier pays for nothing"
            return [Label(rule=6, owner="verifier", classes=("reward_hack",), confidence=sure, why=why)]
        return [Label(rule=6, owner="task", classes=("unsolvable",), confidence=sure, why=why)]
    if baselines.free:
        why = "an agent that does nothing earns the whole reward: doing nothing is right here, or everything is"
        return [Label(rule=6, owner="task", classes=("unsolvable",), confidence="hint", why=why)]
    if not baselines.unsolvable:
        return []
    said = "fails" if baselines.solution is None else f"earns {baselines.solution:g}"
    refused = f"; refused: {baselines.refused}" if baselines.refused else ""
    why = f"the task's own solution {said}{refused}"
    useless = baselines.solution is None or (baselines.nothing is not None and baselines.solution <= baselines.nothing)
    normal = case.solutions > _MAX_SHARE  # the whole reward is what solutions earn here
    # Where somebody did it, the solution is wrong, and not the task.
    sure = "proven" if not case.solvable and (useless or normal) else "hint"
    return [Label(rule=6, owner="task", classes=("unsolvable",), confidence=sure, why=why)]
