"""Replay of a finding: plays its probes in fresh processes and evaluates its claim."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import msgspec

from quintain.errors import UsageError

from .child import WorkerPool
from .finding import Finding, trajectory
from .probe import Record
from .registry import check_probes, find_relation


class Replay(msgspec.Struct, frozen=True):
    """Result of a replay: in how many plays the claim held, and the trajectories of the last play."""

    held: int
    plays: int
    trajectories: list[list[dict[str, Any]]]


def replay_finding(finding: Finding, *, plays: int = 2, limit: float = 60.0) -> Replay:
    """Plays a finding's probes in fresh processes, each for `limit` seconds at most.

    Raises UsageError if the finding is static, its relation is not registered, or its subject is gone.
    """
    if finding.subject is None or finding.evidence is None or not finding.probes:
        raise UsageError(f"this finding was read, not played: look with `{finding.replay or 'quintain audit'}`")
    holds = find_relation(finding.evidence.relation)
    check_probes(finding.probes)
    held = 0
    records: Sequence[Record] = ()
    with contextlib.closing(WorkerPool(finding.subject)) as pool:
        for _ in range(plays):
            for _ in range(finding.evidence.tries):
                records = pool.each(lambda probe: pool.fresh([probe], limit)[0], finding.probes)
                if holds(records, finding.evidence):
                    held += 1
                    break
    return Replay(held, plays, [trajectory(record) for record in records])
