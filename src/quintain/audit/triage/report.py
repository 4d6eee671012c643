"""Triage of a run: labels every episode with an owner, and judges the run as a whole.

The rules need facts about the whole run (`siblings`), results from the environment (`evidence`, `baselines`) and an
audit's findings. These are gathered first, so that the judging itself is a pure function of them.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import msgspec

from quintain.audit.facts.bounds import bounds
from quintain.environment import Environment
from quintain.errors import UsageError
from quintain.gate import enough
from quintain.state import Rng
from quintain.task import Task
from quintain.trace import Trace

from .evidence import FOREIGN, AuditFinding, Baselines, Case, ReplayEvidence, Witness, play_baselines
from .labels import CLASSES, OWNERS, LabeledEpisode, Owner, winner
from .reading import Reading, Unreadable
from .rules import labels_of, policy
from .siblings import Run, error_key
from .signs import Provocation, Sign, provocations, signs

LIMIT = 0.05  # failure rate above which the harness has a problem, not single episodes
QUEUE = 20

Watch = Callable[[int], object]  # callback with the number of episodes that are newly done


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """Episode to read; only the order of weights matters."""

    place: str
    index: int
    task: str
    weight: float
    reasons: tuple[str, ...]
    control: bool = False


class RateBounds(msgspec.Struct, frozen=True, kw_only=True):
    """Rate with its 95 % bounds of Clopper and Pearson."""

    episodes: int
    rate: float
    low: float
    high: float


class RunReport(msgspec.Struct, kw_only=True):
    """Result of a triage.

    Attributes:
        low, high: One-sided 95 % bounds of the failure rate, on which the verdict is based.
        verdict: "stop_run" if `low` is above `limit`, "certified" if `high` is below it, else "undecided".
    """

    episodes: int  # number of episodes started, readable or not
    judged: list[LabeledEpisode]  # one entry per readable episode, in order
    unreadable: list[Unreadable]
    ignored: list[str]
    failures: RateBounds  # rate of episodes that failed for another reason than the policy, unreadable ones included
    by_owner: dict[Owner, RateBounds]  # the same by owner, over the same number of episodes; "policy" counts the rest
    by_class: dict[str, int]  # winning labels by class
    by_task: list[tuple[str, int, int]]  # the tasks that failed most, as (task, failed, episodes)
    low: float
    high: float
    limit: float = LIMIT
    verdict: Literal["stop_run", "certified", "undecided"]
    not_checked: dict[int, dict[str, int]]  # number of episodes by rule and reason for not applying it
    warnings: list[Sign]
    queue: list[Entry]

    def to_dict(self) -> dict[str, Any]:
        """Returns the whole report as plain data for `--json`, always with the same keys."""
        train = Counter(one.verdict for one in self.judged)
        found: dict[str, Any] = msgspec.to_builtins(self, str_keys=True)
        found["failures"] |= {"one_sided_low": found.pop("low"), "one_sided_high": found.pop("high")}
        found["by_task"] = [dict(zip(("task", "failed", "episodes"), one, strict=True)) for one in self.by_task]
        for rule, reasons in found["not_checked"].items():
            found["not_checked"][rule] = [{"reason": reason, "episodes": n} for reason, n in reasons.items()]
        del found["judged"]
        decisions = {name: train[name] for name in ("train", "exclude", "exclude_group")}
        return found | {"decisions": decisions, "labels": [one.row() for one in self.judged]}


async def gather(
    run: Run, env: Environment[Any] | str, *, times: int = 3, back: bool = False, watch: Watch | None = None
) -> list[ReplayEvidence]:
    """Returns the environment's evidence on each episode, or why there is none.

    `back` begins with the last episode, because leaks from one episode to the next recur in the same order.
    """
    witness = None if isinstance(env, str) else Witness(env, times=times)
    found = [ReplayEvidence(missing=FOREIGN) for _ in run.played]
    continued = [one.trace.continues if one.trace is not None else None for one in run.played]
    after = {before[0] for before in continued if before}
    chained = [n for n, one in enumerate(run.played) if one.task in after or continued[n]]  # These keep their order.
    for n in (*sorted(set(range(len(run.played))) - set(chained), reverse=back), *chained):
        trace = run.played[n].trace
        if trace is not None and isinstance(env, str):
            found[n].missing = env
        elif trace is not None and witness is not None and not isinstance(env, str):
            found[n] = await witness.examine(run.played[n], task_of(env, trace), run.shadows[n].suspects)
        if watch is not None:
            watch(1)
    return found


def merged(here: Sequence[ReplayEvidence], there: Sequence[ReplayEvidence]) -> list[ReplayEvidence]:
    """Merges two processes' evidence on the same episodes; their differences count as those between replays."""
    if len(here) != len(there):
        raise UsageError(f"evidence on {len(here)} episodes and on {len(there)} cannot be of the same run")
    return [
        one
        if one.missing or other.missing
        else msgspec.structs.replace(
            one,
            left=one.left or other.left,
            steady=one.steady and other.steady and one.left == other.left,
            scores=[*one.scores, *other.scores],
        )
        for one, other in zip(here, there, strict=True)
    ]


def task_of(env: Environment[Any], trace: Trace) -> Task[Any] | str:
    """Returns the task of a trace, or why it is missing; without a recorded split all splits are searched."""
    if trace.environment != env.name:
        return f"it is of the environment {trace.environment!r}, not of {env.name!r}"
    reason = ""
    for split in (trace.split,) if trace.split else env.splits:
        try:
            return env.task(split, trace.task)
        except UsageError as error:
            reason = str(error)
    return reason


async def triage(
    reading: Reading,
    env: Environment[Any] | str = "no environment was named",
    *,
    findings: Sequence[AuditFinding] | None = None,
    evidence: Sequence[ReplayEvidence] | None = None,
    seed: int = 0,
    times: int = 3,
    length: int = QUEUE,
    watch: Watch | None = None,
) -> RunReport:
    """Labels every episode.

    Args:
        reading: The episodes.
        env: Environment of this project's own traces, or why it is missing.
        findings: Findings of an audit report, or None.
        evidence: Results of `gather`, here or in other processes; None to gather now.
        seed: Seed of the control sample and of permutations.
        times: Gradings of each episode, 1 and up.
        length: Most entries of the reading queue, without the control sample.
        watch: Called as episodes are done.
    """
    run = Run(reading.played)
    known = await gather(run, env, times=times, watch=watch) if evidence is None else evidence
    cases = await _cases(run, env, known, findings=findings)
    judged = [judge(case) for case in cases]
    found = provocations(run.played, judged, seed=seed)
    decide(judged, found)
    first = queue(cases, judged, seed=seed, length=length)
    return _report(reading, judged, warnings=signs(cases, found), queue=first)


async def _cases(
    run: Run,
    env: Environment[Any] | str,
    evidence: Sequence[ReplayEvidence],
    *,
    findings: Sequence[AuditFinding] | None,
) -> list[Case]:
    cases: list[Case] = []
    probes: dict[str, Baselines] = {}
    given = None if findings is None else tuple(findings)
    for one, own in zip(run.played, evidence, strict=True):
        trace, tools = one.trace, one.tools
        task: Task[Any] | str = env if isinstance(env, str) else "only tasks of our own traces can be probed"
        key = f"{trace.split if trace is not None else ''}/{one.task}"
        if not isinstance(env, str) and trace is not None:
            task = task_of(env, trace)
            if trace.tools_digest == env.tools_digest:
                tools = {tool.name: tool.parameters for tool in env.tools.values()}
            if key not in probes and not isinstance(task, str):
                probes[key] = await play_baselines(env, task, seed=trace.seed)
        baselines = probes.setdefault(key, Baselines(missing=str(task)))
        found = None if isinstance(task, str) else task
        cases.append(Case(one, run, own, baselines, findings=given, known_tools=tools, task=found))
    known = [found for found in probes.values() if found.has_solution]
    n = max(1, len(known))
    solutions, freebies = sum(not one.unsolvable for one in known) / n, sum(one.trivial for one in known) / n
    done = {case.played.task for case in cases if case.played.solved and case.evidence.is_trusted}
    return [case._replace(solvable=case.played.task in done, solutions=solutions, freebies=freebies) for case in cases]


def judge(case: Case) -> LabeledEpisode:
    labels, not_checked = labels_of(case)
    label = winner(labels)
    if label is None:
        label = policy(case, not_checked)
        labels.append(label)
    names = ("place", "index", "task", "group", "member", "attempt", "reward")
    same: dict[str, Any] = {name: getattr(case.played, name) for name in names}
    return LabeledEpisode(label=label, labels=labels, not_checked=not_checked, **same)


def decide(judged: Sequence[LabeledEpisode], provoked: Sequence[Provocation]) -> None:
    """Sets the recommendation for each episode.

    A fault is excluded, never scored 0. A fault that the agent can provoke counts as the model's failure, because
    excluding it would be a reward. A broken task excludes all its episodes, and so does a group with too few members
    left for a baseline.
    """
    for index in {index for one in provoked for index in one.episodes}:
        judged[index].provoked = True
    broken = {one.task for one in judged if one.owner == "task"}
    groups: dict[str, list[LabeledEpisode]] = defaultdict(list)
    for one in judged:
        one.verdict = "exclude" if one.failed and not one.provoked else "train"
        groups[one.group].append(one)
    for members in groups.values():
        valid = sum(one.verdict == "train" for one in members)
        whole = valid == len(members) or enough(valid, len(members))
        for one in members:
            if one.task in broken or (not whole and len(members) > 1):
                one.verdict = "exclude_group"


def _report(reading: Reading, judged: list[LabeledEpisode], **more: Any) -> RunReport:
    lost = sum(one.episode for one in reading.unreadable)
    episodes = len(judged) + lost
    owners = Counter(one.owner for one in judged) + Counter({"unknown": lost})
    failed = episodes - owners["policy"]
    low, high = bounds(failed, episodes, one_sided=True)
    tasks, failures = Counter(one.task for one in judged), Counter(one.task for one in judged if one.failed)
    worst = sorted(failures.items(), key=lambda item: (-item[1], item[0]))[:QUEUE]
    not_checked: dict[int, Counter[str]] = defaultdict(Counter)
    for rule, reason in (pair for one in judged for pair in one.not_checked.items()):
        not_checked[rule][reason] += 1
    classes = Counter(name for one in judged if one.failed for name in one.label.classes)
    return RunReport(
        episodes=episodes,
        judged=judged,
        unreadable=reading.unreadable,
        ignored=reading.ignored,
        failures=_rate(failed, episodes),
        by_owner={owner: _rate(owners[owner], episodes) for owner in OWNERS},
        by_class={name: classes[name] for name in CLASSES if classes[name]},
        by_task=[(task, n, tasks[task]) for task, n in worst],
        low=low,
        high=high,
        verdict="stop_run" if low > LIMIT else "certified" if high < LIMIT else "undecided",
        not_checked={rule: dict(reasons) for rule, reasons in sorted(not_checked.items())},
        **more,
    )


def _rate(count: int, episodes: int) -> RateBounds:
    low, high = bounds(count, episodes)
    return RateBounds(episodes=count, rate=count / episodes if episodes else 0.0, low=low, high=high)


# --- reading order for reviewers ---
#
# An episode is informative if two facts contradict each other (a reward and a world, a verdict and its repetition), if
# a decision about it is not proven, or if it moves the policy most. The control sample shows the rate of faults that
# the rules miss.

CONTROL = 0.01  # share of the episodes in the control sample; at least one episode
_RARE = 1


def queue(cases: Sequence[Case], judged: Sequence[LabeledEpisode], *, seed: int, length: int) -> list[Entry]:
    """Returns the first `length` entries by weight, then the control sample."""
    advantage = _advantages(cases)
    entries: list[Entry] = []
    for n, (case, one) in enumerate(zip(cases, judged, strict=True)):
        found = list(_reasons(case, one))
        found += [(2 * advantage[n], "it moves the policy more than most")] if advantage[n] > 0 else []
        found.sort(key=lambda reason: -reason[0])
        weight, words = sum(weight for weight, _ in found), tuple(words for _, words in found)
        entries += [Entry(place=one.place, index=n, task=one.task, weight=weight, reasons=words)] if found else []
    first = sorted(entries, key=lambda entry: (-entry.weight, entry.index))[:length]
    without = {entry.index for entry in first}
    rng = Rng(key=hashlib.blake2b(f"control/{seed}".encode(), digest_size=16).digest())
    left = [one for one in judged if one.index not in without]
    drawn = rng.sample(left, min(len(left), math.ceil(CONTROL * len(judged))))
    return first + [
        Entry(place=one.place, index=one.index, task=one.task, weight=0.0, reasons=("drawn blindly",), control=True)
        for one in sorted(drawn, key=lambda one: one.index)
    ]


def _reasons(case: Case, one: LabeledEpisode) -> Iterator[tuple[float, str]]:
    played, run = case.played, case.run
    is_idle = played.solved and not case.evidence.missing and not case.evidence.moved
    is_undone = played.solved and case.known_tools and all(call.is_error for call in played.calls)
    is_won = not played.solved and played.digests and played.digests[-1] in run.wins[played.task]
    unproven = one.failed and one.label.confidence != "proven"
    hints = [label for label in one.labels if label.confidence == "hint" and label.owner != "policy"]
    news = [call for call in played.calls if call.is_error and run.errors[error_key(call)] <= _RARE]
    rows: tuple[tuple[Any, float, str], ...] = (
        (is_idle, 5.0, "the whole reward, and the world did not change"),
        (is_undone and not is_idle, 3.0, "the whole reward, without a call that was carried out"),
        (is_won, 5.0, "no reward for a world that earned the whole reward elsewhere"),
        (any(label.rule == 4 for label in one.labels), 4.0, "graded again it gets another reward"),
        (one.owner == "unknown", 4.0, "the owner of the fault is unknown"),
        (one.provoked, 3.0, "the agent may have provoked the failure"),
        (unproven, 3.0, f"left out without a proof: {one.label.why}"),
        (hints and not one.failed, 1.5 + 0.1 * len(hints), f"a hint: {hints[0].why if hints else ''}"),
        (news, 1.0, f"an error that no other episode saw: {news[0].observation[:80] if news else ''}"),
    )
    yield from ((weight, words) for holds, weight, words in rows if holds)


def _advantages(cases: Sequence[Case]) -> list[float]:
    """Returns |reward - mean of its group| as a share of the largest; 0 for a group of one."""
    found = [0.0] * len(cases)
    for members in cases[0].run.groups.values() if cases else ():
        rewards = {n: reward for n in members if (reward := cases[n].played.reward) is not None}
        scored = {n: reward for n, reward in rewards.items() if math.isfinite(reward)}
        mean = math.fsum(scored.values()) / max(1, len(scored))
        for n, reward in scored.items():
            found[n] = abs(reward - mean)
    largest = max(found, default=0.0) or 1.0
    return [value / largest for value in found]
