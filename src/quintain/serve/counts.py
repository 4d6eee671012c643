"""What a server counts about its episodes, the failures that it says on its error stream, and the records it keeps."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Any, get_args

from quintain.episode import Episode
from quintain.errors import KINDS, Failure, Part
from quintain.trace import Timing, Trace

from .episodes.archive import Archive
from .tally import Tally

LONGEST = 300
"""Characters of a failure's message that are said; the record has all of it."""
VALIDITIES = ("valid", "invalid", "unknown")
"""Of a Trace."""

_PARTS: tuple[str, ...] = get_args(Part)
_log = logging.getLogger(__name__)


class Counts:
    """Since the server began, by environment: what one process has counted stays when it dies.

    Args:
        environments: Their names.
        tally: Where the numbers are, with room for `slots` names; None for a place of its own.
        archive: Where records of ended episodes are kept; None where they go with their episodes.
    """

    def __init__(
        self, environments: Collection[str], tally: Tally | None = None, archive: Archive | None = None
    ) -> None:
        self._archive = archive
        self._environments = environments
        self._tally = tally or Tally(slots=slots(len(environments)))

    def begin(self, env: str) -> None:
        """An episode has begun."""
        self._tally.add(_begun(env), 1)

    def end(self, id: str, trace: Trace) -> None:
        """An episode has ended, and is judged."""
        env = trace.environment
        self._tally.add(_ended(env, trace.validity), 1)
        self._tally.add(_turns(env), len(trace.turns))
        self._tally.add(_scores(env), trace.score or 0.0)
        if trace.failure is not None:
            self._fail(id, trace, trace.failure)

    @property
    def keeps(self) -> bool:
        """Whether records outlive their episodes."""
        return self._archive is not None

    def wants(self, trace: Trace) -> bool:
        """Whether the record of an episode that is closed is kept, and lacks an end or a verdict.

        One in which nobody did anything is none.
        """
        return self.keeps and bool(trace.turns) and not trace.criteria

    def member(self, env: str, task: str, wanted: int | None) -> int:
        """Which member of its task's group a new episode is, among those that are kept."""
        return (wanted or 0) if self._archive is None else self._archive.member(env, task, wanted)

    async def keep(self, id: str, trace: Trace, episode: Episode[Any] | None) -> None:
        """Have the record of an ended episode kept, before anybody is told of the end."""
        if self._archive is not None:
            await self._archive.add(id, trace, episode.timing if episode is not None else Timing())

    def _fail(self, id: str, trace: Trace, failure: Failure) -> None:
        count = int(self._tally.add(_failed(trace.environment, failure.part, failure.kind), 1))
        if count & (count - 1) == 0:  # The 1st, 2nd, 4th, 8th, ...: many alike say no more than a few.
            _log.warning(
                "episode %r of %s, task %r, is void: %s %s: %s: %r (%d such so far)",
                id,
                trace.environment,
                trace.task,
                failure.part,
                failure.kind,
                failure.type,
                failure.message[:LONGEST],
                count,
            )

    @property
    def begun(self) -> Mapping[str, float]:
        """Episodes, by environment."""
        return self._tally.sums({_begun(env): env for env in self._environments})

    @property
    def ended(self) -> Mapping[tuple[str, str], float]:
        """Episodes, by environment and validity."""
        return self._tally.sums({_ended(env, how): (env, how) for env in self._environments for how in VALIDITIES})

    @property
    def failed(self) -> Mapping[tuple[str, str, str], float]:
        """Episodes, by environment and by part and kind of their failure; those of which there are any."""
        names = {
            _failed(env, part, kind): (env, part, kind)
            for env in self._environments
            for part in _PARTS
            for kind in KINDS
        }
        return {name: number for name, number in self._tally.sums(names).items() if number}

    @property
    def turns(self) -> Mapping[str, float]:
        """Turns of ended episodes, of all roles, by environment."""
        return self._tally.sums({_turns(env): env for env in self._environments})

    @property
    def scores(self) -> Mapping[str, float]:
        """Sum of the scores of valid episodes, by environment."""
        return self._tally.sums({_scores(env): env for env in self._environments})


def slots(environments: int) -> int:
    """Names that are counted for so many environments."""
    return environments * (3 + len(VALIDITIES) + len(_PARTS) * len(KINDS))


def _begun(env: str) -> str:
    return f"begun/{env}"


def _ended(env: str, validity: str) -> str:
    return f"ended/{validity}/{env}"


def _failed(env: str, part: str, kind: str) -> str:
    return f"failed/{part}/{kind}/{env}"


def _turns(env: str) -> str:
    return f"turns/{env}"


def _scores(env: str) -> str:
    return f"scores/{env}"
