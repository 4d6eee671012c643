"""Signs over the whole run: rewards that do not separate episodes, answers that do not separate questions.

A sign proves nothing against one episode, so it is reported next to the labels.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from quintain.audit.facts.histogram import atom
from quintain.state import Rng

from .episode_log import EpisodeLog, strings
from .evidence import Case
from .labels import LabeledEpisode
from .siblings import is_telling

_FEW = 5
_ATOM = 0.95
_FLAT = 0.5
_CLUSTER = 0.02
_CLUSTERED = 0.05
_UNKNOWN = 0.01
_GOLD = 12  # least characters of a gold text that cannot match by accident


# --- failures that the agent can cause ---
#
# If a crash means "no gradient", it beats every negative reward, and a policy learns to crash. So features that the
# agent controls must not predict exclusion. Each is tried as a predictor of failure: the area under its ROC curve is
# the chance that a failed episode has more of it than a sound one (Mann and Whitney 1947, ties count half). Only "more
# of it" counts, because a failure cuts an episode short. The chance of so large an area by accident is estimated by
# permuting the failures, with the largest area over all features as the statistic (Westfall and Young 1993).

AREA = 0.65  # least area at which a feature predicts failure too well
SIGNIFICANCE = 0.01
ENOUGH_FAILED, ENOUGH_SOUND = 10, 20  # least numbers of failed and of sound episodes for a conclusion
_PERMUTATIONS = 500


class Provocation(msgspec.Struct, frozen=True, kw_only=True):
    """Feature of the agent's actions that predicts failure; failed episodes `above` count as provoked."""

    feature: str
    area: float
    p: float
    above: float
    episodes: tuple[int, ...]


def provocations(played: Sequence[EpisodeLog], judged: Sequence[LabeledEpisode], *, seed: int) -> list[Provocation]:
    """Returns the features that predict exclusion, the strongest first."""
    failed = [n for n, one in enumerate(judged) if one.failed and one.owner != "task"]
    sound = sorted(set(range(len(judged))) - set(failed))
    if len(failed) < ENOUGH_FAILED or len(sound) < ENOUGH_SOUND:
        return []
    rows = [features(one) for one in played]
    columns = {name: [row.get(name, 0.0) for row in rows] for name in sorted({name for row in rows for name in row})}
    ranks = {name: _ranks(values) for name, values in columns.items()}
    areas = {name: _area(own, failed) for name, own in ranks.items()}
    if not any(area > AREA for area in areas.values()):
        return []
    rng = Rng(key=hashlib.blake2b(f"provoked/{seed}".encode(), digest_size=16).digest())
    draws = (rng.sample(list(range(len(judged))), len(failed)) for _ in range(_PERMUTATIONS))
    largest = [max(_area(own, drawn) for own in ranks.values()) for drawn in draws]
    found: list[Provocation] = []
    for name, values in columns.items():
        area, above = areas[name], sorted(values[n] for n in sound)[len(sound) // 2]
        p = (1 + sum(other >= area for other in largest)) / (1 + len(largest))
        if area > AREA and p <= SIGNIFICANCE:
            episodes = tuple(n for n in failed if values[n] > above)
            found.append(Provocation(feature=name, area=area, p=p, above=above, episodes=episodes))
    return sorted(found, key=lambda one: (-one.area, one.feature))


def _ranks(values: list[float]) -> list[float]:
    """Returns the rank of each value, ties at their mean."""
    order = sorted(values)
    return [(bisect_left(order, value) + bisect_right(order, value) + 1) / 2 for value in values]


def features(one: EpisodeLog) -> dict[str, float]:
    """Returns features of the agent's actions that do not depend on an episode's length."""
    calls = [call for call in one.calls if call.role == "agent"]
    n = max(1, len(calls))
    tools = Counter(call.name for call in calls)
    found = {f"share of calls of {name}": count / n for name, count in tools.items()}
    # The last call may be the failure itself.
    found["share of refused calls"] = sum(call.is_error for call in calls[:-1]) / n
    found["longest arguments"] = float(max((len(call.raw) for call in calls), default=0))
    found["longest text"] = float(max((len(said.text) for said in one.said if said.role == "agent"), default=0))
    found["share of repeated calls"] = 1 - len({call.key for call in calls}) / n if calls else 0.0
    return found


def _area(ranks: list[float], failed: Sequence[int]) -> float:
    k, n = len(failed), len(ranks)
    return (sum(ranks[place] for place in failed) - k * (k + 1) / 2) / (k * (n - k))


# --- signs ---


class Sign(msgspec.Struct, frozen=True, kw_only=True):
    """Warning about the run, with the places of at most five episodes that show it."""

    class_: str = msgspec.field(name="class")
    what: str
    why: str
    episodes: tuple[str, ...] = ()


def signs(cases: Sequence[Case], provoked: Sequence[Provocation]) -> list[Sign]:
    """Returns all signs, the most harmful first."""
    played = [case.played for case in cases]
    first = (_missing(played), _consensus(played), _gold(cases), _flat(played), _atoms(played))
    rest = (_same_answers(played), _clustered(played), _tools(cases))
    return list(itertools.chain(_provoked(played, provoked), *first, *rest))


def _sign(class_: str, what: str, why: str, *, of: Sequence[EpisodeLog] = ()) -> Sign:
    return Sign(class_=class_, what=what, why=why, episodes=tuple(one.place for one in of[:_FEW]))


def _provoked(played: Sequence[EpisodeLog], found: Sequence[Provocation]) -> Iterator[Sign]:
    for one in found:
        how = f"{one.feature} predicts which episodes fail (area {one.area:.2f}, p {one.p:.3f})"
        scored = f"{len(one.episodes)} episodes are to be scored as the model's failures, and the fault to be mended"
        why = f"{how}: an agent may learn to fail. {scored}"
        yield _sign("reward_hack", "provoked", why, of=[played[n] for n in one.episodes])


def _missing(played: Sequence[EpisodeLog]) -> Iterator[Sign]:
    """Yields a sign for groups with missing members, such as killed processes."""
    members: dict[str, set[int]] = defaultdict(set)
    for one in played:
        members[one.group].add(one.member)
    size = max((max(found) + 1 for found in members.values()), default=0)
    attempts = {one.group: one for one in played}
    short = {group: size - len(found) for group, found in members.items() if len(found) < size}
    if short and size > 1:
        why = f"{sum(short.values())} members of {len(short)} groups left no record, as what is killed does"
        yield _sign("silent_default", "missing_members", why, of=[attempts[group] for group in short])


def _consensus(played: Sequence[EpisodeLog]) -> Iterator[Sign]:
    """Yields a sign for an unsolved task whose episodes mostly end in one and the same changed world."""
    by_task: dict[str, list[EpisodeLog]] = defaultdict(list)
    for one in played:
        if one.digests and one.broken is None:
            by_task[one.task].append(one)
    for task, own in by_task.items():
        changed = {one.digests[-1] for one in own if len(set(one.digests)) > 1}  # so it is not the world as it began
        ends = Counter(one.digests[-1] for one in own if one.digests[-1] in changed)
        end, count = ends.most_common(1)[0] if ends else ("", 0)
        ways = {tuple(call.key for call in one.calls) for one in own if one.digests[-1] == end}
        if count >= 3 and 2 * count > len(own) and len(ways) > 1 and not any(one.solved for one in own):
            ends_in = f"yet {count} of {len(own)} episodes end in one world, on {len(ways)} ways"
            why = f"no episode solves {task!r}, {ends_in}"
            yield _sign("unsolvable", "consensus", why, of=[one for one in own if one.digests[-1] == end])


def _gold(cases: Sequence[Case]) -> Iterator[Sign]:
    """Yields a sign if the agent wrote a sealed value before reading it."""
    found: list[EpisodeLog] = []
    for case in cases:
        sealed = case.played.gold if case.task is None else case.task.truth
        gold = [text for text in strings(sealed) if len(text) >= _GOLD]
        found += [case.played] if gold and _early(case.played, gold) else []
    if found:
        why = f"in {len(found)} episodes the agent wrote a sealed text before it could have read it"
        yield _sign("leak", "gold_before_sight", why, of=found)


def _early(one: EpisodeLog, gold: list[str]) -> bool:
    read = one.prompt
    for said in one.said:
        calls = one.calls_of(said.turn)
        if said.role == "agent":
            read += "\n".join(said.heard)
            wrote = "\n".join([said.text, *(call.raw for call in calls)])
            if any(text in wrote and text not in read for text in gold):
                return True
        read += "\n".join([said.text, *(call.observation for call in calls)])
    return False


def _flat(played: Sequence[EpisodeLog]) -> Iterator[Sign]:
    groups: dict[str, list[EpisodeLog]] = defaultdict(list)
    for one in played:
        if one.reward is not None:
            groups[one.group].append(one)
    several = [own for own in groups.values() if len(own) > 1]
    flat = [own for own in several if len({one.reward for one in own}) == 1]
    if len(several) >= _FEW and len(flat) > _FLAT * len(several):
        why = f"{len(flat)} of {len(several)} groups earned one and the same reward: they carry no gradient"
        yield _sign("reward_clipping", "zero_variance", why, of=[own[0] for own in flat])


def _atoms(played: Sequence[EpisodeLog]) -> Iterator[Sign]:
    """Yields a sign if rewards pile up at one value or one bound while the criteria's scores differ."""
    rewards = [one.reward for one in played if one.reward is not None and math.isfinite(one.reward)]
    if len(rewards) < 4 * _FEW:
        return
    often, count = Counter(rewards).most_common(1)[0]
    most = count > _ATOM * len(rewards)
    value = often if most else atom(rewards)
    there = [one for one in played if value is not None and one.reward == value]
    verdicts = {tuple(sorted(one.components.items(), key=str)) for one in there}
    if len(verdicts) > _FEW:
        where = f"{len(there)} of {len(rewards)} rewards are {value:g}, "
        often_ = f"{where}though criteria gave {len(verdicts)} sets of verdicts"
        piled = f"{where}hardly any are near it, and criteria gave {len(verdicts)} sets of verdicts there"
        yield _sign("reward_clipping", *(("reward_atom", often_) if most else ("reward_pile", piled)), of=there)


def _same_answers(played: Sequence[EpisodeLog]) -> Iterator[Sign]:
    """Yields a sign for a tool that gives the same answer to all arguments."""
    answers: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for one in played:
        for call in one.calls:
            wrote = 0 < call.turn < len(one.digests) and one.digests[call.turn] != one.digests[call.turn - 1]
            if not call.is_error and call.fault is None and call.arguments and not wrote:
                answers[call.name][call.observation].add(call.key)
    for name, given in sorted(answers.items()):
        asked = {key for keys in given.values() for key in keys}
        text, keys = max(given.items(), key=lambda item: (len(item[1]), item[0]))
        if len(asked) >= 4 * _FEW and is_telling(text) and len(keys) > _FLAT * len(asked):
            why = f"{name} gave one answer to {len(keys)} of {len(asked)} different calls: {text[:60]!r}"
            yield _sign("silent_default", "same_answer", why)


def _clustered(played: Sequence[EpisodeLog]) -> Iterator[Sign]:
    """Yields a sign if many durations are at one high value, as a time limit causes."""
    single = sorted(call.seconds for one in played for call in one.calls if call.seconds is not None)
    spent = single or sorted(one.seconds["tool_s"] for one in played if one.seconds.get("tool_s"))
    if len(spent) < 4 * _FEW:
        return
    top = [value for value in spent if value >= spent[-1] * (1 - _CLUSTER)]
    middle = spent[len(spent) // 2]
    if len(top) >= max(3, _CLUSTERED * len(spent)) and top[0] > 1 and top[0] > 10 * middle:
        why = f"{len(top)} of {len(spent)} durations lie at {top[-1]:.1f} s, the median at {middle:.2f} s: a limit"
        yield _sign("silent_default", "durations_at_a_limit", why)


def _tools(cases: Sequence[Case]) -> Iterator[Sign]:
    offered = {name for case in cases for name in case.known_tools or {}}
    pairs = [(call.name, case.known_tools) for case in cases if case.known_tools for call in case.played.calls]
    unknown, calls = Counter(name for name, known in pairs if name not in known), len(pairs)
    if unknown.total() > _UNKNOWN * calls and unknown.total() >= _FEW:
        often = ", ".join(name for name, _ in unknown.most_common(3))
        why = f"{unknown.total()} of {calls} calls are of tools that are not advertised, such as {often}"
        yield _sign("action_drift", "unknown_tools", why)
    idle = sorted(offered - {name for name, _ in pairs})
    if idle and calls >= 100 * _FEW:
        yield _sign("action_drift", "unused_tools", f"{len(idle)} tools were never called: {', '.join(idle[:8])}")
