"""Context of a check: the subject's description, playing of probes, and proof of findings."""

from __future__ import annotations

import copy
import functools
import itertools
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from quintain.audit.facts.data import is_dict
from quintain.contract import NOTHING, Contract

from .check import Check, NotChecked
from .child import WORKERS, SubjectBroken, WorkerPool
from .finding import Confidence, Evidence, Finding, trajectory
from .loader import About, Source, Subject, spread
from .player import TASKS_AT
from .probe import HOME, OVERDUE, Op, OpResult, Probe, ProcessContext, Record, ask, number, reset, same, score, turns
from .registry import find_relation

if TYPE_CHECKING:
    from quintain.audit.facts.discovery import Discovery
    from quintain.audit.facts.variations import Variations


T = TypeVar("T")
COLD = frozenset({"races", "reset_leak", "stale_cache"})
"""Classes of bugs that the first episode of a process may show and later ones not."""
_PROOF = -1  # rank of probes that prove an error, which is told at once
_IN_ONE = 8  # most probes that share a fork
_OF_THE_PROCESS = frozenset({"ask", "inject", "resources", "together", "wait"})
_CONFIDENCES: tuple[Confidence, ...] = ("hint", "likely", "proven")  # from the lowest to the highest


class OutOfTime(Exception):
    """Signal that the audit's budget is spent or the audit was stopped."""


class _AuditState:
    """State that all contexts of one audit share."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.locks: defaultdict[tuple[str, ...], threading.Lock] = defaultdict(threading.Lock)
        self.known: dict[tuple[str, ...], Any] = {}
        self.is_over, self.probes = False, 0
        self.walked: tuple[Op, ...] = ()  # what a process plays once before it plays probes, unless they are cold


class AuditContext:
    """Subject under audit, as one check sees it.

    Attributes:
        tasks: Tasks to audit.
        until: End of the budget on the monotonic clock; None for no limit.
        limit: Seconds that one probe may take.
        check: The check that uses this context, if any.
        cold: Its probes are played in processes that have played no episode: see `COLD`.
        rank: Its probes get a core before those of a higher one; proofs before all.
        heavy: Number of tasks that were left out because they take too long to make or to read.
        rng: Random source of this context.
        saw: Is called with each finding of a check as soon as it is made.
        seen_in: Tasks in which a finding was seen, by check and title.
    """

    def __init__(
        self, pool: WorkerPool, about: About, tasks: Sequence[str], *, seed: int, until: float | None, limit: float
    ) -> None:
        self.pool, self.about, self.tasks = pool, about, tuple(tasks)
        self.seed, self.until, self.limit = seed, until, limit
        self.digest = about.fingerprint
        self.check: Check | None = None
        self.probes = self.comparisons = 0
        self.cold, self.heavy, self.rank = False, 0, 0
        self.rng = random.Random(seed)  # noqa: S311 (draws of probes, no secrets)
        self.saw: Callable[[Finding], None] = lambda finding: None
        self.seen_in: dict[tuple[str, str], dict[str, None]] = {}
        self._lock = threading.Lock()
        self._shared = _AuditState()

    def derive(self, name: str, check: Check | None = None) -> AuditContext:
        """Returns a context with own counts and draws, seeded by `name`, that shares everything else."""
        own = copy.copy(self)
        own.check, own.probes, own.comparisons = check, 0, 0
        own.cold = check is not None and check.class_ in COLD
        own.rng = random.Random(f"{self.seed}/{name}")  # noqa: S311 (draws of probes, no secrets)
        own._lock = threading.Lock()
        return own

    def once(self, key: tuple[str, ...], find: Callable[[AuditContext], T]) -> T:
        """Returns a value that checks share; the first caller computes it while the others wait.

        The key is the value's name and seeds the draws of `find`, which therefore do not depend on the caller.
        """
        with self._shared.lock:
            lock = self._shared.locks[key]
        with lock:
            if key not in self._shared.known:
                own = self.derive("/".join(key), self.check)
                own.cold = False
                self._shared.known[key] = find(own)
                with self._shared.lock:
                    self._shared.probes += own.probes
            found: T = self._shared.known[key]
            return found

    @property
    def shared_probes(self) -> int:
        """Returns the number of probes for shared values; they count for no check, since any may be the first."""
        return self._shared.probes

    def stop(self) -> None:
        """Stops all checks: each meets `OutOfTime` at its next probe."""
        self._shared.is_over = True

    # --- what is known of the subject ---

    @property
    def subject(self) -> Subject:
        return self.pool.subject

    @property
    def offers(self) -> frozenset[str]:
        """Returns the subject's methods; with "sources", "tools" and "tasks" if it has any."""
        more = {"sources": self.about.sources, "tools": self.about.tools, "tasks": self.tasks}
        return (self.about.offers - {"tools", "tasks"}) | {name for name, there in more.items() if there}

    @property
    def sources(self) -> tuple[Source, ...]:
        return self.about.sources

    def attribute(self, name: str, default: Any = None) -> Any:
        """Returns the value of one of `adapter.ATTRIBUTES`."""
        return self.about.attributes.get(name, default)

    @property
    def volatile(self) -> tuple[str, ...]:
        """Returns the fields that the author declares to differ between equal runs."""
        return tuple(self.attribute("volatile", ()))

    def contract(self, tool: str) -> Contract:
        """Returns what the author declares of a tool."""
        return self.about.contracts.get(tool, NOTHING)

    @property
    def declared(self) -> dict[str, bool]:
        """Returns whether a tool writes, for each tool whose author declares it."""
        contracts = self.about.contracts.items()
        return {tool: bool(contract.writes) for tool, contract in contracts if contract.writes is not None}

    def oracle(self, task: str) -> tuple[Op, ...] | None:
        """Returns the ops that solve a task; None without an oracle, or if it fails (`unsolvable` reports that)."""

        def find(ctx: AuditContext) -> tuple[Op, ...] | None:
            return _solution(ctx.play(Op("oracle", name=task, mark="oracle")).at("oracle"))

        return self.once(("oracle", task), find) if "oracle" in self.offers else None

    def oracles(self, tasks: Sequence[str]) -> dict[str, tuple[Op, ...] | None]:
        """Returns the oracle of each task; those of an environment are read in one process."""
        new = [task for task in tasks if ("oracle", task) not in self._shared.known]
        if self.about.kind == "environment" and "oracle" in self.offers:
            record = self.play(*(Op("oracle", name=task) for task in new))
            for task, seen in zip(new, record.seen, strict=False):
                self.once(("oracle", task), functools.partial(_solution, seen))
        return {task: self.oracle(task) for task in tasks}

    def solution_score(self, task: str) -> float | None:
        """Returns the score of the oracle's solution; None without a solution or a score."""

        def find(ctx: AuditContext) -> float | None:
            ops = ctx.oracle(task)
            return None if ops is None else paid(ctx.play_probe(solves(task, ops)))

        return self.once(("solved", task), find)

    @property
    def discovery(self) -> Discovery:
        """Returns the calls that are known to work, the tools that read and the tools that write."""
        from quintain.audit.facts.discovery import discover

        return self.once(("survey",), discover)

    @property
    def variations(self) -> Variations:
        """Returns calls that vary a working call, with their effects."""
        from quintain.audit.facts.variations import vary

        return self.once(("trials",), vary)

    def sample_tasks(self, count: int) -> tuple[str, ...]:
        """Returns `count` of the audited tasks, spread evenly."""
        return spread(self.tasks, count)

    def not_sampled(self, count: int) -> list[int]:
        """Returns the indices of the tasks that are not in `sample_tasks(count)`, of heavy worlds only audited ones."""
        index = dict(zip(self.about.tasks, self.about.indices or range(self.about.count), strict=True))
        chosen = {index[name] for name in self.sample_tasks(count)}
        places = [index[name] for name in self.tasks] if self.heavy else range(self.about.count)
        return [place for place in places if place not in chosen]

    def tasks_at(self, indices: Sequence[int]) -> list[str]:
        """Returns the tasks at some indices; an environment makes those whose names are unknown."""
        if self.about.kind != "environment":
            return [self.about.tasks[index] for index in indices]
        known = {index: name for name, index in self.subject.index.items()}
        if missing := [index for index in indices if index not in known]:
            seen = self.play(ask(TASKS_AT, missing)).at("ask")
            if not seen.fine:
                raise SubjectBroken(f"a task cannot be made: {seen.raised}")
            known |= zip(missing, seen.value, strict=True)
            self.subject.index.update({known[index]: index for index in missing})
        return [known[index] for index in indices]

    def walk(self) -> None:
        """Makes each process of the pool play some solutions before its probes, if no later episode can tell.

        A probe then takes a third of the CPU. Solutions that leave a thread or process are not played so.
        """
        if self.about.kind != "environment" or "oracle" not in self.offers:
            return
        known = self.oracles(self.sample_tasks(12))
        solved = {task: solves(task, (*(ops or ()), Op("digest"))) for task, ops in known.items()}
        walked: list[Op] = []
        for probe in solved.values():
            if {op.name for op in probe.ops if op.do == "call"} - {op.name for op in walked}:
                walked += probe.ops
        record = self.play(Op("resources", mark="before"), *walked, Op("resources", mark="after"))
        before, after = (record.at(mark).value for mark in ("before", "after"))
        is_broken = record.died or record.broken or record.left
        if is_broken or any(before[name] != after[name] for name in ("threads", "processes")):
            return
        tried = [solved[task] for task in self.sample_tasks(2)]
        pairs = [[self._in_time(probe, None, ops) for ops in ((), tuple(walked))] for probe in tried]
        if all(len(a.seen) == len(b.seen) and all(map(same, a.seen, b.seen)) for a, b in pairs):
            self._shared.walked = tuple(walked)

    # --- playing ---

    def play(self, *ops: Op, context: ProcessContext = HOME, limit: float | None = None) -> Record:
        """Plays ops in a fork of a warm process; raises OutOfTime, which a check lets through, after the budget."""
        return self.play_probe(Probe(ops, context), limit)

    def play_probe(self, probe: Probe, limit: float | None = None) -> Record:
        self._count(1)
        return self._in_time(probe, limit, self._walked)

    def play_all(self, probes: Sequence[Probe], limit: float | None = None) -> list[Record]:
        """Plays many probes, on all cores."""
        found: list[Record] = []
        for start in range(0, len(probes), 32):
            part = probes[start : start + 32]
            self._count(len(part))
            found += self._each(part, limit)
        return found

    def _each(self, probes: Sequence[Probe], limit: float | None = None) -> list[Record]:
        def play(part: Sequence[Probe]) -> list[Record]:
            return self._whole(
                lambda seconds: self.pool.play_in_one(part, seconds, self._walked, rank=self.rank), limit
            )

        return list(itertools.chain.from_iterable(self.pool.each(play, self._parts(probes))))

    def _parts(self, probes: Sequence[Probe]) -> list[list[Probe]]:
        """Returns probes in parts that share a fork: where no later episode can tell, it saves 8 ms of CPU a probe."""
        size = min(_IN_ONE, -(-len(probes) // WORKERS)) if self._walked else 1
        parts: list[list[Probe]] = []
        for probe in probes:
            if parts and len(parts[-1]) < size and _is_alike(probe) and _is_alike(parts[-1][-1]):
                parts[-1].append(probe)
            else:
                parts.append([probe])
        return parts

    @property
    def _walked(self) -> tuple[Op, ...]:
        return () if self.cold else self._shared.walked

    def _in_time(self, probe: Probe, limit: float | None, walked: tuple[Op, ...]) -> Record:
        return self._whole(lambda seconds: [self.pool.play(probe, seconds, walked, rank=self.rank)], limit)[0]

    def _whole(self, play: Callable[[float], list[Record]], limit: float | None = None) -> list[Record]:
        """Plays probes; raises OutOfTime if the budget is spent, or ended one of them instead of its limit."""
        if self.seconds_left() > 0:
            records = play(min(self.limit if limit is None else limit, max(1.0, self.seconds_left())))
            if self.seconds_left() > 0 or not any(record.died.startswith(OVERDUE) for record in records):
                return records
        raise OutOfTime("the budget is spent")

    def _fresh(self, probes: Sequence[Probe], plays: int = 1) -> list[Record]:
        """Plays probes several times, in processes that have played nothing before.

        Those of one play of an environment share a process, in which each is a fork, unless they are equal: what
        differs from process to process must not hide.
        """
        size, shares = len(probes), self.about.kind == "environment"
        every, groups = [*probes] * plays, dict[Any, list[int]]()
        for place, probe in enumerate(every):
            at = place % size
            key = (place // size, probe.context, probes[:at].count(probe) if shares else at)
            groups.setdefault(key, []).append(place)

        def play(places: list[int]) -> list[Record]:
            return self._whole(
                lambda seconds: self.pool.fresh([every[place] for place in places], seconds, rank=_PROOF)
            )

        played = zip(groups.values(), self.pool.each(play, list(groups.values())), strict=True)
        found = {place: record for places, records in played for place, record in zip(places, records, strict=True)}
        return [found[place] for place in range(len(every))]

    def count_comparisons(self, count: int = 1) -> None:
        """Adds to the number of comparisons; a check that makes none is `not_checked`."""
        with self._lock:
            self.comparisons += count

    def seconds_left(self) -> float:
        if self._shared.is_over:
            return 0.0
        return float("inf") if self.until is None else max(0.0, self.until - time.monotonic())

    def _count(self, probes: int) -> None:
        if self.seconds_left() <= 0:
            raise OutOfTime("the budget is spent")
        with self._lock:
            self.probes += probes

    def not_checked(self, reason: str) -> NotChecked:
        """Returns the exception of a check without a result: `raise ctx.not_checked("no tool writes")`."""
        return NotChecked(reason)

    # --- finding ---

    def finding(
        self,
        title: str,
        *probes: Probe,
        relation: str = "shows",
        marks: Sequence[str] = (),
        data: Any = None,
        tries: int = 1,
        minimise: int = 40,
        **fields: Any,
    ) -> Finding | None:
        """Minimises and proves a claim; returns the finding, or None if no replay shows the claim again.

        Args:
            title: The claim in one sentence.
            probes: Probes that show the claim; none for a static finding, which is at most likely.
            relation: Id of a registered relation; "shows" without `data` expects the present result.
            marks: Ops that the relation reads.
            data: Further plain data for the relation.
            tries: Number of plays of which one must show the claim, for chance and threads.
            minimise: Number of candidate probes that minimising may play.
            fields: Fields of Finding: part, tasks, expected, observed, teaches, where, severity; and `at_most`, the
                highest confidence.
        """
        assert self.check is not None, "findings are made while a check runs"
        tasks = fields["tasks"] = tuple(fields.get("tasks", ())) or tasks_of(probes)
        further = self.seen_in.setdefault((self.check.id, title), {})
        if further:  # One proof is enough; where else it is, is worth knowing.
            further.update(dict.fromkeys(tasks))
            return None
        at_most = lowest(fields.pop("at_most", "proven"), self.check.at_most)
        shown: dict[str, Any] | None = {"confidence": lowest("likely", at_most)}
        if probes:
            evidence = Evidence(relation, tuple(marks), data, self.volatile, tries)
            shown = self._shown(probes, evidence, at_most, minimise=minimise)
        if shown is None:
            return None
        further.update(dict.fromkeys(tasks if probes else tasks or ("",)))
        own: dict[str, Any] = {"severity": self.check.severity, "part": "S", "class_": self.check.class_}
        same: dict[str, Any] = {"seed": self.seed, "digest": self.digest, "subject": self.subject}
        return Finding(check=self.check.id, title=title, **shown, **same, **(own | fields))

    def _shown(
        self, probes: tuple[Probe, ...], evidence: Evidence, at_most: Confidence, *, minimise: int
    ) -> dict[str, Any] | None:
        """Returns what a finding shows of a claim, minimised and proven; None if no replay shows the claim again."""
        if evidence.relation == "shows" and evidence.data is None:
            record = self.play_probe(probes[0])
            seen = {mark: msgspec.structs.replace(record.at(mark), seconds=0.0) for mark in evidence.marks}
            evidence = msgspec.structs.replace(evidence, data=msgspec.to_builtins(seen, builtin_types=(bytes,)))
        if minimise > 0 and self.holds(probes, evidence):
            first = smaller(probes[0], lambda one: self.holds((one, *probes[1:]), evidence), minimise)
            probes = (first, *probes[1:])
        needed, most = max(turns(probes[0].ops).values(), default=0), self.attribute("budget")
        if isinstance(most, int) and needed > most:
            at_most = lowest(at_most, "likely")  # no episode gets so far
        proven, records = self._proved(probes, evidence, at_most)
        if proven is None:
            return None
        beside = zip(probes[1:], records[1:], strict=True)
        return {
            "confidence": lowest(proven, at_most),
            "trajectory": trajectory(records[0]),
            "beside": [{"context": msgspec.to_builtins(p.context), "trajectory": trajectory(r)} for p, r in beside],
            "probes": probes,
            "evidence": evidence,
        }

    def holds(self, probes: Sequence[Probe], evidence: Evidence, *, fresh: bool = False) -> bool:
        """True if a claim holds in one of its tries."""
        return self._records(probes, evidence, fresh=fresh) is not None

    def _records(self, probes: Sequence[Probe], evidence: Evidence, *, fresh: bool) -> list[Record] | None:
        holds = find_relation(evidence.relation)
        for _ in range(evidence.tries):
            self._count(len(probes))
            if holds(records := self._fresh(probes) if fresh else self._each(probes), evidence):
                return records
        return None

    def _proved(
        self, probes: tuple[Probe, ...], evidence: Evidence, at_most: Confidence
    ) -> tuple[Confidence | None, list[Record]]:
        """Returns "proven" if two fresh processes show the claim, "likely" if one does, else None."""
        if at_most != "proven":
            shown = self._records(probes, evidence, fresh=False)
            return (at_most, shown) if shown is not None else (None, [])
        if evidence.tries == 1:  # Both at once.
            self._count(2 * len(probes))
            records = self._fresh(probes, 2)
            holds, plays = find_relation(evidence.relation), (records[: len(probes)], records[len(probes) :])
            held = [play for play in plays if holds(play, evidence)]
        else:
            tried = [self._records(probes, evidence, fresh=True) for _ in range(2)]
            held = [play for play in tried if play is not None]
        return ("proven" if len(held) == 2 else "likely" if held else None), held[0] if held else []


def _solution(seen: OpResult, _ctx: AuditContext | None = None) -> tuple[Op, ...] | None:
    known = seen.fine and seen.value is not None
    return tuple(msgspec.convert(op, Op) for op in seen.value or ()) if known else None


def _is_alike(probe: Probe) -> bool:
    """True if a probe can share a fork: it asks nothing of the process and leaves nothing there."""
    return probe.context == HOME and not {op.do for op in probe.ops} & _OF_THE_PROCESS


def lowest(*some: Confidence) -> Confidence:
    return min(some, key=_CONFIDENCES.index)


def tasks_of(probes: Sequence[Probe]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(op.name for probe in probes for op in probe.ops if op.do == "reset"))


def solves(task: str, ops: Sequence[Op], *, mark: str = "score") -> Probe:
    return Probe((reset(task), *ops, score(mark=mark)))


def paid(record: Record) -> float | None:
    return number(record.at("score"))


# --- delta debugging (Zeller and Hildebrandt, TSE 2002, "ddmin") ---
#
# First over ops, in halves, quarters, eighths..., then over the arguments of the remaining calls. Marked ops, which the
# claim reads, and resets stay.


def smaller(probe: Probe, holds: Callable[[Probe], bool], most: int) -> Probe:
    """Returns a smaller probe for which the claim holds, by `most` plays at most."""
    left = itertools.count(most, -1)

    def trial(candidate: Probe) -> bool:
        return next(left) > 0 and holds(candidate)

    parts, place = 1, 0
    while places := [place for place, op in enumerate(probe.ops) if not op.mark and op.do != "reset"]:
        size = max(1, len(places) // parts)
        some = (probe.without(places[start : start + size]) for start in range(0, len(places), size))
        if (found := next(filter(trial, some), None)) is not None:
            probe, parts = found, max(1, parts - 1)
        elif size == 1:
            break
        else:
            parts *= 2
    while place < len(probe.ops):
        before, op, after = probe.ops[:place], probe.ops[place], probe.ops[place + 1 :]
        some = (Probe((*before, one, *after), probe.context) for one in _simpler(op))
        if (found := next(filter(trial, some), None)) is not None:
            probe = found
        else:
            place += 1
    return probe


def _simpler(op: Op) -> Iterator[Op]:
    arguments: Any = op.value
    if op.do != "call" or not is_dict(arguments):
        return
    if len(arguments) > 1:
        yield msgspec.structs.replace(op, value={})
    for name, value in arguments.items():
        yield msgspec.structs.replace(op, value={key: one for key, one in arguments.items() if key != name})
        if isinstance(value, str) and len(value) > 40:
            yield msgspec.structs.replace(op, value=arguments | {name: value[:8]})
