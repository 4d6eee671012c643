"""What the episodes of a run say about one another: equal causes must have equal effects.

The record names the world before each turn. So two calls that are equal, in worlds that are equal, must be answered
equally, and two episodes that are equal word for word must earn the same. A world or a verifier that breaks this needs
no replay to be found.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from .plain import loaded, strings
from .played import Call, Played
from .shadow import Shadow, shadow

_PARTICULARS = re.compile(r"\d+|'[^']*'|\"[^\"]*\"")
_REPEATS = 3
_TELLING = 20
"""Characters from which an answer that is given again and again says something."""


class Run:
    """Facts over all episodes.

    Attributes:
        shadows: By position of the episode, what its reads said of its writes.
        confirmed: How often a read showed what a call had written, by tool and argument.
        errors: How many episodes saw an error, by its text without numbers.
        groups: Positions of the episodes of each group.
        has_components: Share of the scored episodes that record the verdicts of single criteria.
        wins: Digests of the worlds that solved episodes left, by task.
    """

    def __init__(self, played: Sequence[Played]) -> None:
        self.played = played
        self.shadows: list[Shadow] = [shadow(one) for one in played]
        self.confirmed = Counter(mapping for one in self.shadows for mapping in one.confirmed)
        self.errors: Counter[str] = Counter()
        self.groups: dict[str, list[int]] = defaultdict(list)
        self.wins: dict[str, set[str]] = defaultdict(set)
        self._answers: dict[str, Counter[str]] = defaultdict(Counter)
        self._earned: dict[str, Counter[float | None]] = defaultdict(Counter)
        for n, one in enumerate(played):
            self._add(n, one)
        scored = [one for one in played if one.reward is not None]
        self.has_components = sum(bool(one.components) for one in scored) / len(scored) if scored else 0.0

    def _add(self, n: int, one: Played) -> None:
        self.groups[one.group].append(n)
        if one.solved:
            self.wins[one.task].update(one.digests[-1:])
        self.errors.update({error_key(call) for call in one.calls if call.is_error})
        for key, call in placed(one):
            self._answers[key][call.observation] += 1
        if one.broken is None:
            self._earned[whole(one)][one.reward] += 1

    def odd_answers(self, one: Played) -> Iterator[tuple[Call, int, int]]:
        """(call, how many agree with its answer, how many do not) for calls answered otherwise elsewhere."""
        for key, call in placed(one):
            answers = self._answers[key]
            if len(answers) > 1:
                same = answers[call.observation]
                yield call, same, answers.total() - same

    def other_rewards(self, one: Played) -> tuple[int, int]:
        """How many equal episodes earned what this one did, itself included, and how many did not."""
        earned = self._earned[whole(one)]
        return earned[one.reward], earned.total() - earned[one.reward]


def placed(one: Played) -> Iterator[tuple[str, Call]]:
    """The calls whose world before is known, the first of each turn, with a name for world and call together."""
    trace = one.trace
    if trace is None:
        return
    began = "" if trace.continues else f"{trace.task_digest}/{trace.seed}"
    for turn, said in enumerate(one.said):
        world = one.digests[turn - 1] if turn else began
        first = next((call for call in one.calls_of(turn) if call.step == 0), None)
        hurt = one.broken is not None and turn >= one.broken.turn - 1
        if world and first is not None and first.fault is None and first.answered and not hurt:
            yield f"{trace.environment} {trace.fingerprint} {said.role} {world} {first.key}", first


def whole(one: Played) -> str:
    """Names everything that was said, called and seen, the task and its seed."""
    said = [(said.role, said.text) for said in one.said]
    calls = [(call.key, call.observation) for call in one.calls]
    return hashlib.blake2b(repr((one.group, one.digests, said, calls, one.end)).encode(), digest_size=16).hexdigest()


def error_key(call: Call) -> str:
    """The text of an error without its particulars, so that the same complaint counts as one."""
    return _PARTICULARS.sub("…", call.observation)[:200]


def repeated(one: Played) -> Iterator[tuple[Call, int]]:
    """(the call that tipped it, how many) where one tool gave one telling answer to unrelated arguments."""
    given: dict[tuple[str, str], dict[str, Call]] = defaultdict(dict)
    for call in one.calls:
        if call.is_error or call.fault is not None or not is_telling(call.observation):
            continue
        if any(text in call.observation for text in _texts(call)):
            continue  # it speaks of what was asked
        calls = given[call.name, call.observation]
        calls.setdefault(call.key, call)
        if len(calls) == _REPEATS:
            yield call, len(calls)


def is_telling(answer: str) -> bool:
    """Whether an answer says something: a text of some length, or JSON with a word in it. Empty results say nothing."""
    if len(answer) < _TELLING:
        return False
    value = loaded(answer)
    return value is None or any(len(text) > 1 for text in strings(value))


def _texts(call: Call) -> list[str]:
    values = (call.arguments or {}).values()
    return [str(value) for value in values if isinstance(value, str | int) and len(str(value)) > 1]
