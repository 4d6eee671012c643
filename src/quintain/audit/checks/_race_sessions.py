"""Checks concurrent sessions against each alone, and one instance in many threads, where allowed.

A concurrent history is right when some serial order of the same calls explains it (Herlihy and Wing, TOPLAS 1990). The
subject is its own model: the serial orders are played on fresh instances. Calls that are all equal have one order only,
so a great many of them can be checked; of different calls a few are, in every order (Wing and Gong, JPDC 1993).
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

import msgspec

from quintain import codec
from quintain.audit.facts.data import is_dict
from quintain.audit.facts.discovery import KnownCall
from quintain.audit.facts.load import script
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, OpResult, Probe, Record, ask, call, masked, reset, same, together
from quintain.audit.kernel.registry import probe_function, relation

from ._same_walks import kinds

HERE = f"{__name__}:"
TEACHES = "effects of other sessions as its own"
MANY = ((2, False), (8, False), (8, True), (32, False))
"""Sessions at the same time, and whether each has been played before in the process: libraries that prepare themselves
at their first use are not the subject's, so threads are hurried inside of them only then."""
IN_STEP = 3
"""Kinds of tasks that two sessions do in step."""
SLOW_S = 1.0
THREADS, EACH, ROUNDS = 6, 6, 30
ORDERS = 24
"""Serial orders that are played at most."""
SHARE = 0.05
"""Share of lines before which a thread yields."""
LINES = 30_000
"""Lines after which no thread gives way any more, so that a large subject ends in time."""
ENOUGH_S = 1.5
"""After so many seconds no further round begins."""


# --- independent sessions ---


@relation
def disturbs(records: Sequence[Record], evidence: Evidence) -> bool:
    """Some session gives in company what it does not give alone, both times."""
    return bool(disturbed(records, evidence.volatile))


def disturbed(records: Sequence[Record], volatile: Sequence[str]) -> list[tuple[int, int]]:
    """Lane and place of each answer that is another one in company."""
    crowd, alone, again = records
    if crowd.died:
        # What is slow alone may be too slow in company, and a library that two threads prepare at once may end the
        # process at its first use (msgspec 0.22 does); neither is a race of the subject's.
        is_slow = bool(alone.died) or sum(seen.seconds for seen in alone.seen) > SLOW_S
        is_cold = "killed by" in crowd.died and all(op.do != "reset" for op in crowd.ops)
        return [] if is_slow or is_cold else [(-1, 0)]
    places = [op.mark for op in alone.ops]
    found: list[tuple[int, int]] = []
    for number in range(len(crowd.at("together").value or ())):
        for place, seen in enumerate(crowd.lane("together", number)):
            mark = f"{number} {place}"
            if mark in places and same(alone.at(mark), again.at(mark), volatile):
                found += [] if same(seen, alone.at(mark), volatile) else [(number, place)]
    return found


@check("x.concurrent_sessions", "races", needs=("tasks",), value=10)
def concurrent_sessions(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that two sessions in step, and 2, 8 and 32 at the same time, give what each gives alone."""
    met = next(_in_step(ctx), None)
    if met is not None:
        yield met
        return
    for count, is_warm in MANY:
        lanes = list(_lanes(ctx, count))
        records = ctx.play_all(_company(ctx, lanes, is_warm=is_warm))
        ctx.count_comparisons(sum(map(len, lanes)))
        where = disturbed(records, ctx.volatile)
        if where:
            yield _disturbed(ctx, lanes, where[0], records=records, is_warm=is_warm)
            return


def _lanes(ctx: AuditContext, count: int) -> Iterator[tuple[Op, ...]]:
    tasks = ctx.sample_tasks(count)
    look = next((Op(name) for name in ("digest", "state") if name in ctx.offers), None)
    scripts = {task: (*script(ctx, task), *((look,) if look else ())) for task in tasks}
    for number in range(count):
        ops = scripts[tasks[number % len(tasks)]]
        short = (*ops[:6], *ops[-2:]) if count > 8 and len(ops) > 8 else ops
        yield tuple(op.moved(f"s{number}") for op in short)


def _company(ctx: AuditContext, lanes: Sequence[Sequence[Op]], *, is_warm: bool) -> tuple[Probe, Probe, Probe]:
    alone = Probe(
        tuple(op.marked(f"{number} {place}") for number, lane in enumerate(lanes) for place, op in enumerate(lane))
    )
    before = [op.moved(f"warm {op.on}") for lane in lanes for op in lane] if is_warm else []
    hurried = ask(f"{HERE}hurry", {"files": _files(ctx), "fast": is_warm}, mark="hurry")
    return Probe((*before, hurried, together(*lanes))), alone, alone


def _files(ctx: AuditContext) -> list[str]:
    return sorted({source.path for source in ctx.sources})


def _disturbed(
    ctx: AuditContext, lanes: Sequence[Sequence[Op]], where: tuple[int, int], *, records: Sequence[Record],
    is_warm: bool,
) -> Finding | None:  # fmt: skip
    number, place = where
    if number < 0:
        expected, observed = "every session ends", records[0].died
        name = "calls get no answer any more"
    else:
        op = lanes[number][place]
        name, expected = f"{op.name or op.do} gives something else", _shown(records[1].at(f"{number} {place}"))
        observed = _shown(records[0].lane("together", number)[place])
    return ctx.finding(
        f"{name} when {len(lanes)} sessions run at the same time", *_company(ctx, lanes, is_warm=is_warm),
        relation=f"{HERE}disturbs", marks=("together",), tries=3, minimise=0, expected=expected, observed=observed,
        teaches=TEACHES,
        where=next((seen.where for seen in records[0].lane("together", max(number, 0)) if seen.where), ""),
    )  # fmt: skip


# --- in step ---


@relation
def meets_in_step(records: Sequence[Record], evidence: Evidence) -> bool:
    """Some answer of two sessions that take turns is another one than alone, both times."""
    return _met(records, evidence.volatile) is not None


def _met(records: Sequence[Record], volatile: Sequence[str]) -> str | None:
    """The mark of the first such answer."""
    both, alone, again = records
    for mark in (op.mark for op in both.ops):
        own = mark.partition(" ")[2]
        if same(alone.at(own), again.at(own), volatile) and not same(both.at(mark), alone.at(own), volatile):
            return mark
    return None


def _in_step(ctx: AuditContext) -> Iterator[Finding]:
    """Two sessions do one task by turns: what the first has begun and not yet ended is there at each step."""
    look = [Op(name) for name in ("digest", "state") if name in ctx.offers][:1]
    for task in kinds(ctx, IN_STEP):
        ops = [op.marked(str(place)) for place, op in enumerate((*script(ctx, task), *look))]
        turns = [op.moved(on).marked(f"{on} {op.mark}") for op in ops for on in ("first", "second")]
        probes = (Probe(tuple(turns)), Probe(tuple(ops)), Probe(tuple(ops)))
        records = ctx.play_all(probes)
        ctx.count_comparisons(len(turns))
        mark = _met(records, ctx.volatile)
        if mark is None:
            continue
        op = next(op for op in turns if op.mark == mark)
        finding = ctx.finding(
            f"{op.name or op.do} gives something else when another session does the same task in step", *probes,
            relation=f"{HERE}meets_in_step", marks=(mark,), minimise=0,
            expected=_shown(records[1].at(mark.partition(" ")[2])), observed=_shown(records[0].at(mark)),
            teaches=TEACHES,
        )  # fmt: skip
        if finding is not None:
            yield finding


def _shown(seen: OpResult) -> Any:
    return seen.value if seen.fine else f"{seen.how}: {seen.raised}"


# --- one instance for many threads ---


@relation
def unserial(records: Sequence[Record], _evidence: Evidence) -> bool:
    """True if no serial order of the concurrent calls gives their outcome, or they never ended."""
    seen = records[0].at("history")
    return bool(records[0].died) or (is_dict(seen.value) and "concurrent" in seen.value)


@check("x.linearizable", "races", needs=("tools", "tasks"), value=95)
def linearizable(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that concurrent calls on one shared instance have the outcome of some serial order."""
    if ctx.attribute("shared") is not True:
        raise NotChecked("the subject does not say that an instance is `shared` by threads")
    reported: set[str] = set()
    for names, task, before, lanes in _histories(ctx):
        if reported & set(names) or len(reported) >= 6:
            continue
        probe = _hammer(ctx, task, before=before, lanes=lanes)
        record = ctx.play_probe(probe, limit=10.0)
        ctx.count_comparisons(ROUNDS)
        if unserial([record], Evidence("")):
            value: Any = record.at("history").value
            finding = ctx.finding(
                f"calls of {' and '.join(names)} at the same time end as no order of them does", probe,
                relation=f"{HERE}unserial", marks=("history",), tries=4, minimise=0,
                expected=value.get("serial") if is_dict(value) else "all calls come back",
                observed=value.get("concurrent") if is_dict(value) else record.died,
                teaches="that its actions may have no effect",
            )  # fmt: skip
            reported |= set(names) if finding is not None else set()
            yield finding


def _hammer(ctx: AuditContext, task: str, *, before: Sequence[Op], lanes: Sequence[Sequence[Op]]) -> Probe:
    asked = {
        "task": task, "before": msgspec.to_builtins(before), "lanes": msgspec.to_builtins(lanes), "rounds": ROUNDS,
        "volatile": list(ctx.volatile), "files": _files(ctx),
    }  # fmt: skip
    return Probe((reset(task, on="warm"), ask(f"{HERE}hammer", asked, mark="history")))


def _histories(ctx: AuditContext) -> Iterator[tuple[tuple[str, ...], str, tuple[Op, ...], list[list[Op]]]]:
    """Many equal calls of each tool that may write; then different calls of the same task, one per thread."""
    known: dict[str, KnownCall] = {}
    readers = set(ctx.discovery.readers) if "state" in ctx.offers else set[str]()
    for known_call in ctx.discovery.calls:
        if known_call.op.name not in readers:
            known.setdefault(known_call.op.name, known_call)
    for base_call in list(known.values())[:12]:
        op = call(base_call.op.name, base_call.op.value)
        yield (base_call.op.name,), base_call.task, base_call.before, [[op] * EACH] * THREADS
    mixed = [item for item in known.values() if not item.before]
    reads = [read for read in ctx.discovery.reads() if not read.before]
    for place, item in enumerate(mixed[:6]):
        other_call = mixed[(place + 1) % len(mixed)]
        three = [item, other_call, *[read for read in reads if read.task == item.task][:1]]
        yield (
            tuple(dict.fromkeys(x.op.name for x in three)), item.task, (),
            [[call(x.op.name, x.op.value)] for x in three],
        )  # fmt: skip


# --- inside the subject's process ---


@probe_function
def hurry(_player: Player, _on: str, value: Any) -> str:
    """Let threads take turns anywhere in the subject's own code, and if wanted as often as the interpreter can.

    Args:
        value: {"files": of the subject, "fast": whether also inside of libraries}. The process ends with the probe, so
            nothing is put back.
    """
    if value["fast"]:
        sys.setswitchinterval(1e-6)
    threading.settrace(_Turns(frozenset(value["files"])))
    return "threads take turns anywhere"


class _Turns:
    """Gives way to other threads before a line of these files, now and then (as ConTest: Edelstein et al. 2002)."""

    def __init__(self, files: frozenset[str]) -> None:
        self._files = files
        self._lines = 0

    def __call__(self, frame: FrameType, _event: str, _arg: object) -> Callable[..., Any] | None:
        if frame.f_code.co_filename not in self._files or self._lines > LINES:
            return None
        self.turn(frame, "call", None)
        return self.turn

    def turn(self, _frame: FrameType, _event: str, _arg: object) -> Callable[..., Any]:
        # Numbers spread evenly over [0, 1), so that no line is always the one (Weyl's sequence of the golden ratio).
        self._lines += 1
        if self._lines <= LINES and self._lines * 0.6180339887498949 % 1 < SHARE:
            time.sleep(1e-5)
        return self.turn


@probe_function
def hammer(player: Player, on: str, value: Any) -> dict[str, Any]:
    """Call one instance from several threads, until what came of it is what no serial order gives.

    Args:
        player: Makes the instances.
        on: Begin of their names.
        value: {"task", "before": ops, "lanes": a list of ops per thread, "rounds", "volatile", "files"}.

    Returns:
        "serial" and "concurrent", what came of it, when there was such a round; else only "rounds".
    """
    hurry(player, on, {"files": value["files"], "fast": True})
    until = time.monotonic() + ENOUGH_S
    before = [reset(value["task"]), *(msgspec.convert(op, Op) for op in value["before"])]
    lanes = [[msgspec.convert(op, Op) for op in lane] for lane in value["lanes"]]
    history = _History(player, before, lanes, volatile=tuple(value["volatile"]))
    orders = [history.serial(f"{on} serial {n}", order) for n, order in enumerate(_orders(lanes))]
    if history.serial(f"{on} serial again", _orders(lanes)[0]) != orders[0]:
        return {"rounds": 0, "unsteady": True}
    for number in range(value["rounds"]):
        found = history.concurrent(f"{on} round {number}")
        if found not in orders:
            read = [msgspec.msgpack.decode(item) for item in (orders[0], found)]
            return {"rounds": number + 1, "serial": _short(read[0], read[1]), "concurrent": _short(read[1], read[0])}
        if time.monotonic() > until:
            return {"rounds": number + 1}
    return {"rounds": value["rounds"]}


def _short(first: Any, second: Any) -> Any:
    """The parts of an outcome that are not the same in the other."""
    return {name: first[name] for name in first if first[name] != second[name]}


def _orders(lanes: Sequence[Sequence[Op]]) -> list[tuple[int, ...]]:
    """Orders in which the lanes may take turns; one where all calls are equal."""
    turns = [number for number, lane in enumerate(lanes) for _ in lane]
    if len({codec.dumps((op.do, op.name, op.value), repr) for lane in lanes for op in lane}) == 1:
        return [tuple(turns)]
    return list(dict.fromkeys(itertools.islice(itertools.permutations(turns), 10 * ORDERS)))[:ORDERS]


class _History:
    """Calls of one instance by several threads."""

    def __init__(
        self, player: Player, before: Sequence[Op], lanes: Sequence[Sequence[Op]], *, volatile: tuple[str, ...]
    ) -> None:
        self._player, self._before, self._lanes, self._volatile = player, before, lanes, volatile
        self._are_equal = len(_orders(lanes)) == 1

    def serial(self, on: str, order: Sequence[int]) -> bytes:
        """Returns the outcome of the calls in one serial order."""
        self._begin(on)
        seen: list[list[OpResult]] = [[] for _ in self._lanes]
        for number in order:
            seen[number].append(self._player.do(self._lanes[number][len(seen[number])].moved(on)))
        return self._outcome(on, seen)

    def concurrent(self, on: str) -> bytes:
        """Returns the outcome when all threads start at once."""
        self._begin(on)
        seen: list[list[OpResult]] = [[] for _ in self._lanes]
        gate = threading.Barrier(len(self._lanes))

        def run(number: int) -> None:
            gate.wait()
            for op in self._lanes[number]:
                seen[number].append(self._player.do(op.moved(on)))

        threads = [threading.Thread(target=run, args=(number,)) for number in range(len(self._lanes))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self._outcome(on, seen)

    def _begin(self, on: str) -> None:
        for op in self._before:
            self._player.do(op.moved(on))

    def _outcome(self, on: str, seen: Sequence[Sequence[OpResult]]) -> bytes:
        results: list[Any] = [[list(masked(result.content(), self._volatile)) for result in lane] for lane in seen]
        if self._are_equal:  # Then it does not matter which thread was given which answer.
            results = sorted((item for lane in results for item in lane), key=lambda value: codec.dumps(value, repr))
        state = self._player.do(Op("state", on))
        return codec.dumps({"answers": results, "world": masked(state.value, self._volatile)}, repr)
