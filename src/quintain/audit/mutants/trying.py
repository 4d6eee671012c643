"""The auditor's side of one mutant: episodes are played with it in forks of warm processes, or in one of its own."""

from __future__ import annotations

from typing import Any, Self

import msgspec

from quintain.audit.child import Child
from quintain.audit.context import AuditContext
from quintain.audit.data import is_dict
from quintain.audit.loader import Subject
from quintain.audit.probe import OpResult, Probe, Record, ask, reset

from . import swapping
from .battery import Tried, scores
from .loading import Mutant

_SLACK_S = 10.0
"""A mutant may take so much longer than four times what was needed without it: a machine has other work."""
_CPU_SLACK_S = 2.0
"""The same, of processor time: what loops for ever is known soon."""


class MutantRuns:
    """A mutant that is tried; closes the process that it may need for itself.

    Args:
        ctx: The lab; its processes play.
        mutant: What is tried.
    """

    def __init__(self, ctx: AuditContext, mutant: Mutant) -> None:
        self._ctx, self._mutant = ctx, mutant
        self._own: Child | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._own is not None:
            self._own.close()

    def play(self, one: Tried, wanted: Probe) -> Record:
        """Play episodes of a task until one is paid otherwise than it was; only looks and scores are in the record.

        Args:
            one: The task.
            wanted: All its episodes, with what is to be looked at beside the scores.

        Raises:
            SubjectBroken: The subject does not load with the mutant.
            OutOfTime: The budget is spent.
        """
        if self._own is None:
            record, how = self._tried(one, wanted, self._mutant)
            if how != swapping.UNFIT:
                return record
            self._own = Child(self._subject)
        return self._tried(one, wanted, None)[0]

    def shown(self, wanted: Probe) -> tuple[Subject, Probe, Record]:
        """Play a probe with the mutant as anybody can play it again: the subject to open, what is played, its record.

        Raises:
            SubjectBroken: The process around the probe was ended.
            OutOfTime: The budget is spent.
        """
        if self._own is not None:
            return self._subject, wanted, self._own.play(wanted, self._ctx.limit)
        put = ask(swapping.SWAP, msgspec.to_builtins(self._mutant), mark="mutant")
        whole = msgspec.structs.replace(wanted, ops=(put, *wanted.ops))
        return self._ctx.subject, whole, self._ctx.play_probe(whole)

    @property
    def _subject(self) -> Subject:
        return msgspec.structs.replace(self._ctx.subject, mutant=self._mutant)

    def _tried(self, one: Tried, wanted: Probe, mutant: Mutant | None) -> tuple[Record, str]:
        trial = swapping.Variation(mutant, wanted.ops, one.scores, 4 * one.seconds + _CPU_SLACK_S)
        asked = ask(swapping.PLAY, msgspec.to_builtins(trial, builtin_types=(bytes,)))
        # The worker makes the tasks of all resets that it sees, before it forks.
        whole = Probe((msgspec.structs.replace(asked, lanes=((reset(one.task),),)),))
        limit = min(self._ctx.limit, 4 * one.seconds + _SLACK_S)
        played = self._own.play(whole, limit) if self._own is not None else self._ctx.play_probe(whole, limit)
        told: Any = played.at("ask").value
        if played.died or not is_dict(told):
            return Record(wanted.ops, (), played.died or played.at("ask").raised), ""
        tally = msgspec.convert(told, swapping.Tally)
        return Record(wanted.ops, tuple(msgspec.convert(seen, OpResult) for seen in tally.seen)), tally.how


def differs(record: Record, one: Tried) -> bool:
    """Whether an episode of a task is paid otherwise, or broke."""
    return bool(record.died) or scores(record, len(one.episodes)) != one.scores
