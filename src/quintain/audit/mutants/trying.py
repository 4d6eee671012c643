"""Playing of one mutant: in forks of warm processes, or in a process of its own."""

from __future__ import annotations

from typing import Any, Self

import msgspec

from quintain.audit.child import Child
from quintain.audit.context import AuditContext
from quintain.audit.data import is_dict
from quintain.audit.loader import Subject
from quintain.audit.probe import OpResult, Probe, Record, ask, reset

from . import swapping
from .battery import TaskBaseline, scores
from .loading import Mutant

_SLACK_S = 10.0
"""Extra seconds beyond four times the time without the mutant."""
_CPU_SLACK_S = 2.0
"""Extra seconds of processor time; endless loops are found soon."""


class MutantRuns:
    """Player of one mutant; it closes the process that the mutant may need for itself.

    Args:
        ctx: Context of the audit, whose processes play.
        mutant: The change to play with.
    """

    def __init__(self, ctx: AuditContext, mutant: Mutant) -> None:
        self._ctx, self._mutant = ctx, mutant
        self._own: Child | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._own is not None:
            self._own.close()

    def play(self, one: TaskBaseline, wanted: Probe) -> Record:
        """Plays a task's episodes until a score differs; the record holds only looks and scores.

        Args:
            one: The task.
            wanted: All its episodes, with further looks.

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
        """Plays a probe with the mutant in a form that can be replayed: (subject, probe, record).

        Raises:
            SubjectBroken: The process around the probe ended.
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

    def _tried(self, one: TaskBaseline, wanted: Probe, mutant: Mutant | None) -> tuple[Record, str]:
        trial = swapping.MutantRun(mutant, wanted.ops, one.scores, 4 * one.seconds + _CPU_SLACK_S)
        asked = ask(swapping.PLAY, msgspec.to_builtins(trial, builtin_types=(bytes,)))
        # The worker makes the tasks of all resets that it sees, before it forks.
        whole = Probe((msgspec.structs.replace(asked, lanes=((reset(one.task),),)),))
        limit = min(self._ctx.limit, 4 * one.seconds + _SLACK_S)
        played = self._own.play(whole, limit) if self._own is not None else self._ctx.play_probe(whole, limit)
        answer: Any = played.at("ask").value
        if played.died or not is_dict(answer):
            return Record(wanted.ops, (), played.died or played.at("ask").raised), ""
        tally = msgspec.convert(answer, swapping.SwapResult)
        return Record(wanted.ops, tuple(msgspec.convert(seen, OpResult) for seen in tally.seen)), tally.how


def differs(record: Record, one: TaskBaseline) -> bool:
    """True if an episode of a task scores differently or broke."""
    return bool(record.died) or scores(record, len(one.episodes)) != one.scores
