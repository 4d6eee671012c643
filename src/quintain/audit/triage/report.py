"""Triage: every episode of a run filed by who is to blame, and what the run as a whole may still be used for.

The rules need facts about the whole run (`siblings`), what the environment says when it is asked again (`evidence`,
`probe`), and what an audit found. They are gathered first, so that the judging itself is a pure function of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from quintain.audit.bounds import bounds
from quintain.environment import Environment
from quintain.errors import UsageError
from quintain.gate import enough
from quintain.report import SOLVED
from quintain.task import Task
from quintain.trace import Trace

from .case import Case, Finding
from .evidence import Evidence, Witness
from .labels import CLASSES, OWNERS, Judged, Label, Owner, winner
from .probe import Probe, probe
from .provoked import Provocation, provocations
from .reading import Reading, Unreadable
from .review import Entry, queue
from .rules import RULES, policy
from .siblings import Run
from .signs import Sign, signs

LIMIT = 0.05
"""A failure rate above this is a problem of the harness, not of single episodes."""
QUEUE = 20

_FOREIGN = "only our own traces can be played again"

Watch = Callable[[int], object]
"""Is told that so many further episodes are done."""


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """How often something happened, with the bounds of Clopper and Pearson at 95 %."""

    episodes: int
    rate: float
    low: float
    high: float


class Report(msgspec.Struct, kw_only=True):
    """What came out.

    Attributes:
        episodes: How many were started: those that could be read, and those that could not.
        judged: One entry per readable episode, in their order.
        failures: Not the policy's: all of them, those that nobody could read included.
        by_owner: The same by owner, over the same number of episodes; "policy" counts what is left.
        by_class: Labels that won, by class.
        by_task: Failed episodes of the tasks that failed most, as (task, failed, episodes).
        low, high: One-sided 95 % bounds of the failure rate, of which the verdict speaks.
        verdict: "stop_run" when the low one is above `limit`, "certified" when the high one is below, else "undecided".
        not_checked: Rule number to reason to how many episodes it could not be applied to.
    """

    episodes: int
    judged: list[Judged]
    unreadable: list[Unreadable]
    ignored: list[str]
    failures: Rate
    by_owner: dict[Owner, Rate]
    by_class: dict[str, int]
    by_task: list[tuple[str, int, int]]
    low: float
    high: float
    limit: float = LIMIT
    verdict: Literal["stop_run", "certified", "undecided"]
    not_checked: dict[int, dict[str, int]]
    warnings: list[Sign]
    queue: list[Entry]

    def to_dict(self) -> dict[str, Any]:
        """The whole report as plain data for `--json`; the same keys always."""
        train = Counter(one.verdict for one in self.judged)
        return {
            "episodes": self.episodes,
            "verdict": self.verdict,
            "limit": self.limit,
            "failures": {**msgspec.to_builtins(self.failures), "one_sided_low": self.low, "one_sided_high": self.high},
            "by_owner": msgspec.to_builtins(self.by_owner),
            "by_class": self.by_class,
            "by_task": [{"task": task, "failed": failed, "episodes": n} for task, failed, n in self.by_task],
            "decisions": {name: train[name] for name in ("train", "exclude", "exclude_group")},
            "unreadable": msgspec.to_builtins(self.unreadable),
            "ignored": self.ignored,
            "not_checked": {
                str(rule): [{"reason": reason, "episodes": n} for reason, n in reasons.items()]
                for rule, reasons in self.not_checked.items()
            },
            "warnings": msgspec.to_builtins(self.warnings),
            "queue": msgspec.to_builtins(self.queue),
            "labels": [one.row() for one in self.judged],
        }


async def gather(
    run: Run, env: Environment[Any] | str, *, times: int = 3, back: bool = False, watch: Watch = lambda _: None
) -> list[Evidence]:
    """What an environment says about each episode when its replies are played again; or why it cannot be asked.

    Args:
        run: The episodes.
        env: What made them; a text says why it is not at hand.
        times: How often each is graded again.
        back: Begin with the last one. What an episode leaves behind for the next, outside its world, is met again
            by who plays them in the same order.
        watch: Is called after each episode.
    """
    witness = None if isinstance(env, str) else Witness(env, times=times)
    found = [Evidence(missing=_FOREIGN) for _ in run.played]
    for n in _order(run, back=back):
        one = run.played[n]
        if one.trace is not None and (witness is None or isinstance(env, str)):
            found[n].missing = str(env)
        elif one.trace is not None and witness is not None and not isinstance(env, str):
            found[n] = await witness.examine(one, task_of(env, one.trace), run.shadows[n].suspects)
        watch(1)
    return found


def _order(run: Run, *, back: bool) -> list[int]:
    """Positions in the order in which they are played; those of a day stay in theirs."""
    after = {trace.continues[0] for one in run.played if (trace := one.trace) is not None and trace.continues}
    days = [
        n for n, one in enumerate(run.played) if one.task in after or (one.trace is not None and one.trace.continues)
    ]
    alone = sorted(set(range(len(run.played))) - set(days), reverse=back)
    return [*alone, *days]


def merged(here: Sequence[Evidence], there: Sequence[Evidence]) -> list[Evidence]:
    """Two processes' evidence on the same episodes: what differs between them differs between replays.

    Raises:
        UsageError: They are of other episodes.
    """
    if len(here) != len(there):
        raise UsageError(f"evidence on {len(here)} episodes and on {len(there)} cannot be of the same run")
    found: list[Evidence] = []
    for one, other in zip(here, there, strict=True):
        if one.missing or other.missing:
            found.append(one)
            continue
        steady = one.steady and other.steady and one.left == other.left
        found.append(
            msgspec.structs.replace(
                one, left=one.left or other.left, steady=steady, scores=[*one.scores, *other.scores]
            )
        )
    return found


def task_of(env: Environment[Any], trace: Trace) -> Task[Any] | str:
    """The task that a trace is of, or why it is not there. A trace that names no split is looked for in all."""
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
    findings: Sequence[Finding] | None = None,
    evidence: Sequence[Evidence] | None = None,
    seed: int = 0,
    times: int = 3,
    length: int = QUEUE,
    watch: Watch = lambda _: None,
) -> Report:
    """File every episode.

    Args:
        reading: What was read.
        env: What made our own traces among it; a text says why it is not at hand.
        findings: Of an audit report; None where there is none.
        evidence: What `gather` found, here and perhaps elsewhere; None to gather it now.
        seed: Of the control sample and of permutations.
        times: How often each episode is graded again, 1 and up.
        length: Most entries of the queue, the control sample apart.
        watch: Is called as episodes are done.
    """
    run = Run(reading.played)
    known = await gather(run, env, times=times, watch=watch) if evidence is None else evidence
    cases = await _cases(run, env, known, findings=findings)
    judged = [judge(case) for case in cases]
    found = provocations(run.played, judged, seed=seed)
    decide(judged, found)
    return _report(reading, cases, judged, found=found, seed=seed, length=length)


async def _cases(
    run: Run, env: Environment[Any] | str, evidence: Sequence[Evidence], *, findings: Sequence[Finding] | None
) -> list[Case]:
    cases: list[Case] = []
    probes: dict[str, Probe] = {}
    given = None if findings is None else tuple(findings)
    for one, own in zip(run.played, evidence, strict=True):
        trace = one.trace
        task: Task[Any] | str = str(env) if isinstance(env, str) else "only tasks of our own traces can be probed"
        tools = one.tools
        if not isinstance(env, str) and trace is not None:
            task = task_of(env, trace)
            if trace.tools_digest == env.tools_digest:
                tools = {tool.name: tool.parameters for tool in env.tools.values()}
        key = f"{trace.split if trace is not None else ''}/{one.task}"
        if key not in probes:
            probes[key] = await _probed(env, task, seed=0 if trace is None else trace.seed)
        found = None if isinstance(task, str) else task
        cases.append(Case(one, run, own, probes[key], findings=given, known_tools=tools, task=found))
    known = [found for found in probes.values() if found.has_solution]
    n = max(1, len(known))
    solutions, freebies = sum(not one.unsolvable for one in known) / n, sum(one.trivial for one in known) / n
    done = {case.played.task for case in cases if case.played.solved and _trusted(case.evidence)}
    return [case._replace(solvable=case.played.task in done, solutions=solutions, freebies=freebies) for case in cases]


def _trusted(evidence: Evidence) -> bool:
    """Whether a success is one that a replay and another grading confirm, as far as they could be had."""
    graded = all(score is not None and score >= SOLVED for score in evidence.scores)
    return bool(evidence.missing) or (evidence.left is None and graded)


async def _probed(env: Environment[Any] | str, task: Task[Any] | str, *, seed: int) -> Probe:
    if isinstance(env, str) or isinstance(task, str):
        return Probe(missing=str(task))
    return await probe(env, task, seed=seed)


def judge(case: Case) -> Judged:
    """Ask all rules about one episode."""
    one = case.played
    not_checked: dict[int, str] = {}
    labels: list[Label] = []
    for number, rule in enumerate(RULES, 1):
        found = rule(case)
        if isinstance(found, str):
            not_checked[number] = found
        else:
            labels += found
    label = winner(labels)
    if label is None:
        label = policy(case, not_checked)
        labels.append(label)
    reward = one.reward
    return Judged(
        place=one.place,
        index=one.index,
        task=one.task,
        group=one.group,
        member=one.member,
        attempt=one.attempt,
        reward=reward,
        label=label,
        labels=labels,
        not_checked=not_checked,
    )


def decide(judged: Sequence[Judged], provoked: Sequence[Provocation]) -> None:
    """What a trainer should do with each episode.

    A fault is left out, never scored 0. One that the agent can provoke counts as the model's failure, for leaving it
    out would be a reward. A task that is broken takes all its episodes with it, and so does a group of which too few
    members are left to make a baseline.
    """
    for index in {index for one in provoked for index in one.episodes}:
        judged[index].provoked = True
    broken = {one.task for one in judged if one.owner == "task"}
    groups: dict[str, list[Judged]] = defaultdict(list)
    for one in judged:
        one.verdict = "exclude" if one.failed and not one.provoked else "train"
        groups[one.group].append(one)
    for members in groups.values():
        valid = sum(one.verdict == "train" for one in members)
        whole = valid == len(members) or enough(valid, len(members))
        for one in members:
            if one.task in broken or (not whole and len(members) > 1):
                one.verdict = "exclude_group"


def _report(
    reading: Reading,
    cases: Sequence[Case],
    judged: list[Judged],
    *,
    found: Sequence[Provocation],
    seed: int,
    length: int,
) -> Report:
    lost = sum(one.episode for one in reading.unreadable)
    episodes = len(judged) + lost
    owners = Counter(one.owner for one in judged)
    owners["unknown"] += lost
    failed = episodes - owners["policy"]
    low, high = bounds(failed, episodes, one_sided=True)
    tasks, failures = Counter(one.task for one in judged), Counter(one.task for one in judged if one.failed)
    worst = sorted(failures.items(), key=lambda item: (-item[1], item[0]))[:QUEUE]
    not_checked: dict[int, Counter[str]] = defaultdict(Counter)
    for one in judged:
        for rule, reason in one.not_checked.items():
            not_checked[rule][reason] += 1
    classes = Counter(name for one in judged if one.failed for name in one.label.classes)
    return Report(
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
        warnings=signs(cases, found),
        queue=queue(cases, judged, seed=seed, length=length),
    )


def _rate(count: int, episodes: int) -> Rate:
    low, high = bounds(count, episodes)
    return Rate(episodes=count, rate=count / episodes if episodes else 0.0, low=low, high=high)
