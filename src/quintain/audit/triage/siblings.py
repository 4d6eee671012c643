"""Consistency between the episodes of a run: equal causes must have equal effects.

The record has the world's digest before each turn. So two equal calls in equal worlds must get equal answers, and two
episodes that are equal word for word must earn the same reward. And a read must show the last write. A violation needs
no replay.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from .episode_log import Call, EpisodeLog, loaded, mapping, sequence, strings

_PARTICULARS = re.compile(r"\d+|'[^']*'|\"[^\"]*\"")
_REPEATS = 3
_TELLING = 20  # least characters of a repeated answer that carries information


# --- shadow of the world: reads against earlier writes ---
#
# Reads show entities (JSON objects with an `id`, or the answer to a call that names one) and their fields. A call that
# names an entity and gives a field another value is a write if the world's digest, or the tool's name, says so. A later
# read with the old value is a suspect. The mapping of arguments to fields is learned from the run: reads that show the
# new value confirm it.

_WRITES = re.compile(
    r"(^|_)(update|set|create|add|edit|change|write|put|post|patch|delete|remove|cancel|book|assign|mark|modify|move|"
    r"merge|decide|close|open|reset|rename|transfer|pay|refund|enable|disable)(_|$)"
)


class Suspect(NamedTuple):
    """Read, in a turn and step, of a value that `tool` had overwritten."""

    key: str
    field: str
    old: Any
    new: Any
    tool: str
    turn: int
    step: int

    @property
    def mapping(self) -> tuple[str, str]:
        """Returns (tool, argument), which is taken for (tool, field)."""
        return self.tool, self.field


class Shadow(NamedTuple):
    """Result of comparing one episode's reads with its writes."""

    suspects: list[Suspect]
    confirmed: list[tuple[str, str]]


def shadow(one: EpisodeLog) -> Shadow:
    found = Shadow([], [])
    values: dict[tuple[str, str], Any] = {}
    written: dict[tuple[str, str], tuple[Any, Any, str]] = {}  # old value, new value and tool, by key and field
    for call in one.calls:
        if call.is_error or call.fault is not None or not call.answered:
            continue
        if _is_write(one, call):
            _note_write(call, values, written)
        for key, entity in entities(call):
            for field, value in entity.items():
                old, new, tool = written.pop((key, field), (None, None, ""))
                if tool and value == old:
                    found.suspects.append(Suspect(key, field, old, new, tool, call.turn, call.step))
                elif tool and value == new:
                    found.confirmed.append((tool, field))
                values[key, field] = value
    return found


def _note_write(
    call: Call, values: dict[tuple[str, str], Any], written: dict[tuple[str, str], tuple[Any, Any, str]]
) -> None:
    arguments, known = call.arguments or {}, {key for key, _ in values}
    for key in [value for value in arguments.values() if isinstance(value, str) and value in known]:
        for place in [place for place in written if place[0] == key]:
            del written[place]  # somebody else's write to the same entity may put the old value back
        for field, value in arguments.items():
            old = values.get((key, field))
            if value != key and isinstance(value, str | int | float) and old is not None and old != value:
                written[key, field] = (old, value, call.name)


def _is_write(one: EpisodeLog, call: Call) -> bool:
    """True if the world changed in the turn of this call; without digests, if the tool's name means a write."""
    if not one.digests:
        return _WRITES.search(call.name) is not None
    changed = 0 < call.turn < len(one.digests) and one.digests[call.turn] != one.digests[call.turn - 1]
    return changed and len(one.calls_of(call.turn)) == 1


def entities(call: Call) -> Iterator[tuple[str, dict[str, Any]]]:
    value = loaded(call.observation)
    shown = mapping(value)
    if shown is not None and "id" not in shown:
        named = [text for text in (call.arguments or {}).values() if isinstance(text, str)]
        if len(named) == 1 and not _WRITES.search(call.name):
            yield named[0], shown
    yield from _with_id(value)


def _with_id(value: object) -> Iterator[tuple[str, dict[str, Any]]]:
    shown = mapping(value)
    if shown is not None and isinstance(shown.get("id"), str):
        yield shown["id"], shown
    for item in shown.values() if shown is not None else sequence(value) or ():
        yield from _with_id(item)


# --- all episodes of a run ---


class Run:
    """Facts over all episodes.

    Attributes:
        shadows: Result of the shadow, by episode.
        confirmed: How often a read showed the written value, by tool and argument.
        errors: Number of episodes with an error, by its text without numbers.
        groups: Positions of the episodes of each group.
        has_components: Share of the scored episodes that record scores of single criteria.
        wins: Digests of the final worlds of solved episodes, by task.
    """

    def __init__(self, played: Sequence[EpisodeLog]) -> None:
        self.played = played
        self.shadows: list[Shadow] = [shadow(one) for one in played]
        self.confirmed = Counter(mapping for one in self.shadows for mapping in one.confirmed)
        self.errors: Counter[str] = Counter()
        self.groups: dict[str, list[int]] = defaultdict(list)
        self.wins: dict[str, set[str]] = defaultdict(set)
        self._answers: dict[str, Counter[str]] = defaultdict(Counter)
        self._earned: dict[str, Counter[float | None]] = defaultdict(Counter)
        for n, one in enumerate(played):
            self.groups[one.group].append(n)
            self.wins[one.task].update(one.digests[-1:] if one.solved else ())
            self.errors.update({error_key(call) for call in one.calls if call.is_error})
            for key, call in placed(one):
                self._answers[key][call.observation] += 1
            if one.broken is None:
                self._earned[whole(one)][one.reward] += 1
        scored = [one for one in played if one.reward is not None]
        self.has_components = sum(bool(one.components) for one in scored) / len(scored) if scored else 0.0

    def odd_answers(self, one: EpisodeLog) -> Iterator[tuple[Call, int, int]]:
        """Yields (call, count of equal answers, count of others) for calls answered differently elsewhere."""
        for key, call in placed(one):
            answers = self._answers[key]
            if len(answers) > 1:
                same = answers[call.observation]
                yield call, same, answers.total() - same

    def other_rewards(self, one: EpisodeLog) -> tuple[int, int]:
        """Returns how many equal episodes earned the same reward, this one included, and how many did not."""
        earned = self._earned[whole(one)]
        return earned[one.reward], earned.total() - earned[one.reward]


def placed(one: EpisodeLog) -> Iterator[tuple[str, Call]]:
    """Yields the first call of each turn with a known world, with an identity of world and call."""
    trace = one.trace
    began = "" if trace is None or trace.continues else f"{trace.task_digest}/{trace.seed}"
    for turn, said in enumerate(one.said if trace is not None else ()):
        world = one.digests[turn - 1] if turn else began
        first = next((call for call in one.calls_of(turn) if call.step == 0), None)
        hurt = one.broken is not None and turn >= one.broken.turn - 1
        if trace and world and first is not None and first.fault is None and first.answered and not hurt:
            yield f"{trace.environment} {trace.fingerprint} {said.role} {world} {first.key}", first


def whole(one: EpisodeLog) -> str:
    said = [(said.role, said.text) for said in one.said]
    calls = [(call.key, call.observation) for call in one.calls]
    return hashlib.blake2b(repr((one.group, one.digests, said, calls, one.end)).encode(), digest_size=16).hexdigest()


def error_key(call: Call) -> str:
    """Returns the text of an error without its particulars, so that the same complaint counts once."""
    return _PARTICULARS.sub("…", call.observation)[:200]


def repeated(one: EpisodeLog) -> Iterator[tuple[Call, int]]:
    """Yields (last call, count) for a tool that gave one informative answer to unrelated arguments."""
    given: dict[tuple[str, str], dict[str, Call]] = defaultdict(dict)
    for call in one.calls:
        asked = [str(value) for value in (call.arguments or {}).values() if isinstance(value, str | int)]
        is_of_it = any(len(text) > 1 and text in call.observation for text in asked)  # it speaks of what was asked
        if not (call.is_error or call.fault is not None or is_of_it) and is_telling(call.observation):
            calls = given[call.name, call.observation]
            calls.setdefault(call.key, call)
            if len(calls) == _REPEATS:
                yield call, len(calls)


def is_telling(answer: str) -> bool:
    """True if an answer carries information: a text of some length, or JSON with a word in it."""
    value = loaded(answer)
    return len(answer) >= _TELLING and (value is None or any(len(text) > 1 for text in strings(value)))
