"""Checks a call that is paused midway while another session goes on, at many of its lines in turn.

Threads that race meet in the wrong moment by luck; here one of them is held before a chosen line of the subject's own
code until the other has made a whole call (one preemption finds most races: Musuvathi and Qadeer, PLDI 2007). Two
sessions must each give what they give alone; two calls of one instance that threads share, what some order gives.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

import msgspec

from quintain import codec
from quintain.audit.facts.data import changes
from quintain.audit.facts.discovery import KnownCall
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, OpResult, Probe, Record, ask, masked, reset, same
from quintain.audit.kernel.registry import probe_function, relation

from ._race_last import pairs
from ._same_cache import mistold
from ._same_scripts import bare, doing, half, other_tasks
from ._same_walks import kinds

HERE = f"{__name__}:"
PLACES, PAIRS = 8, 6
"""Places at which each call is stopped; calls of one instance that are stopped."""
HELD_S = 0.03
"""Seconds that it is held when the other cannot go on, because it waits for what the first has locked."""
ENOUGH_S, CARRIED_S, WAITED_S = 0.4, 0.1, 4.0
"""Seconds of work after which no further place is tried, of a subject that has a framework around each call, and of
waiting."""
LINES = 200
"""Lines of a verdict before which it is stopped."""
TEACHES = "effects of other sessions as its own"


@relation
def meets(records: Sequence[Record], _evidence: Evidence) -> bool:
    """True if a paused call gave a result that neither a single call nor any order gives."""
    return bool(records[0].at("stopped").value)


@check("x.stopped_midway", "races", needs=("tools", "tasks"), value=27)
def stopped_midway(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that calls of other sessions are unaffected while a call is paused, and that it ends as usual."""
    if ctx.about.kind not in ("environment", "plain", "scorer"):
        raise ctx.not_checked("its code runs in another process, where it cannot be stopped")
    files = sorted({source.path for source in ctx.sources})
    if not files:
        raise ctx.not_checked("its sources are not known")
    for probe, words in _probes(ctx, files):
        ctx.count_comparisons(PLACES)
        value: Any = ctx.play_probe(probe).at("stopped").value
        if value:
            finding = ctx.finding(
                f"{value['name']} gives something else while {words}", probe, relation=f"{HERE}meets",
                marks=("stopped",), tries=2, minimise=0, part="V" if value["name"].startswith("score") else "S",
                expected=value["alone"], observed=value["beside"], teaches=TEACHES,
            )  # fmt: skip
            yield finding
            if finding is not None:
                return


def _probes(ctx: AuditContext, files: Sequence[str]) -> Iterator[tuple[Probe, str]]:
    for task in kinds(ctx, 2)[: 1 if ctx.about.kind == "environment" else None]:
        own_ops = doing(ctx, task)
        other_task, wrong = _alike(ctx, task), mistold(own_ops[-1])
        failed = (
            (*own_ops[:-1], wrong) if wrong is not None else half(own_ops)
        )  # A verdict on it is reached all the same.
        for other_name, whose in ((task, failed), (other_task, doing(ctx, other_task))):
            lanes = [_lane(task, own_ops), _lane(other_name, whose)]
            words = "a call of another session stands still in its midst, or is made meanwhile"
            yield _probe(ctx, files, lanes, name="beside"), words
    if ctx.attribute("shared") is True:
        for call, meanwhile in itertools.chain(_shared(ctx), pairs(ctx)):
            lanes = [[reset(call.task), *map(bare, call.before), bare(call.op)], [meanwhile]]
            yield _probe(ctx, files, lanes, name="shared"), f"{call.op.name} of the same instance stands still"


def _lane(task: str, acts: Sequence[Op]) -> list[Op]:
    return [reset(task), *map(bare, acts), Op("score")]


def _alike(ctx: AuditContext, task: str) -> str:
    """Another task that is solved by the same tools, where there is one."""
    names = [op.name for op in doing(ctx, task)]
    rest = [text for text in ctx.sample_tasks(12) if text != task]
    return next((text for text in rest if [op.name for op in doing(ctx, text)] == names), other_tasks(ctx, task, 1)[0])


def _shared(ctx: AuditContext) -> Iterator[tuple[KnownCall, Op]]:
    """A call that is stopped, and what others do meanwhile: look, ask for the score, do the same."""
    known: dict[str, KnownCall] = {}
    for call in sorted(ctx.discovery.calls, key=lambda call: not call.writes):
        known.setdefault(call.op.name, call)
    looks = [known_call for known_call in ctx.discovery.reads() if not known_call.before]
    readers = list({known_call.op.name: bare(known_call.op) for known_call in reversed(looks)}.values())
    for task in kinds(ctx, 1):  # What has been solved is scored while somebody only looks.
        for look in readers[:2]:
            yield KnownCall(task, tuple(map(bare, doing(ctx, task))), look, OpResult(), None), Op("score")
    for number, known_call in enumerate(list(known.values())[:PAIRS]):
        for meanwhile in (*readers[number % 3 :: 3], Op("score"), bare(known_call.op)):
            yield known_call, meanwhile


def _probe(ctx: AuditContext, files: Sequence[str], lanes: Sequence[Sequence[Op]], *, name: str) -> Probe:
    value = {
        "files": list(files), "lanes": msgspec.to_builtins(lanes), "volatile": list(ctx.volatile),
        "seconds": CARRIED_S if ctx.about.kind == "environment" else ENOUGH_S,
    }  # fmt: skip
    warm = [op.moved(f"warm {number}") for number, lane in enumerate(lanes) for op in lane] if name == "beside" else []
    return Probe((*warm, ask(f"{HERE}{name}", value, mark="stopped")))


# --- in the subject's process ---


class _Stop:
    """Counts the lines of these files that a thread runs, and does something before one of them."""

    def __init__(self, files: frozenset[str]) -> None:
        self._files = files
        self.lines = 0
        self.at = 0
        self.then: Any = None

    def enter(self, frame: FrameType, _event: str, _arg: object) -> Any:
        return self.line if frame.f_code.co_filename in self._files else None

    def line(self, _frame: FrameType, event: str, _arg: object) -> Any:
        if event == "line":
            self.lines += 1
            if self.lines == self.at and self.then is not None:
                then, self.then = self.then, None
                then()
        return self.line

    def do(self, player: Player, op: Op, *, at: int = 0, then: Any = None) -> OpResult:
        """Do an op; before its line `at`, or after it where it has fewer, something else."""
        self.lines, self.at, self.then = 0, at, then
        sys.settrace(self.enter)
        try:
            seen = player.do(op)
        finally:
            sys.settrace(None)
        if self.then is not None:
            then, self.then = self.then, None
            then()
        return seen


class _Other:
    """A second thread that runs ops on request and is awaited for a limited time."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self._todo: list[Op] = []
        self._begin, self._done = threading.Semaphore(0), threading.Semaphore(0)
        self._behind = 0
        self.seen: list[OpResult] = []
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            self._begin.acquire()
            self.seen.append(self._player.do(self._todo.pop(0)))
            self._done.release()

    def go(self, op: Op, patience: float = HELD_S) -> None:
        """Have it do an op, and wait for that; what waits for a lock is left to itself for now."""
        self._todo.append(op)
        self._behind += 1
        self._begin.release()
        self.wait(patience)

    def wait(self, patience: float) -> None:
        """Waits until the thread has run all requested ops."""
        until = time.monotonic() + patience
        while self._behind and self._done.acquire(timeout=max(0.0, until - time.monotonic())):
            self._behind -= 1


@probe_function
def beside(player: Player, on: str, value: Any) -> dict[str, Any] | None:
    """Two sessions step by step, each call of the first stopped until the second has made its own; at each place."""
    first_ops, second_ops = (msgspec.convert(lane, list[Op]) for lane in value["lanes"])
    both = _Both(
        player, on, (first_ops, second_ops), files=frozenset(value["files"]), volatile=tuple(value["volatile"])
    )
    found = None
    # What may be asked for again and again is stopped before each of its lines.
    for line in _while_cheap(min(both.lines[-1], LINES) if both.is_steady else 0, value["seconds"]):
        found = found or both.again(line)
    for number in _while_cheap(PLACES, value["seconds"]):
        found = found or both.walk(number)
    return found


def _while_cheap(count: int, seconds: float) -> Iterator[int]:
    """Numbers up to a count, until the process has worked so long, or has waited too long."""
    worked, begun = time.process_time() + seconds, time.monotonic() + WAITED_S
    for number in range(count):
        yield number
        if time.process_time() > worked or time.monotonic() > begun:
            return


class _Both:
    """Two sessions, and what each of them gives alone, twice."""

    def __init__(
        self, player: Player, on: str, lanes: tuple[Sequence[Op], Sequence[Op]], *, files: frozenset[str],
        volatile: tuple[str, ...],
    ) -> None:  # fmt: skip
        self._player, self._on, self._lanes, self._volatile = player, on, lanes, volatile
        self._stop, self._other = _Stop(files), _Other(player)
        self.lines: list[int] = []
        own_results: list[OpResult] = []
        for op in lanes[0]:
            own_results.append(self._stop.do(player, op.moved(f"{on} alone 0")))
            self.lines.append(self._stop.lines)
        self._alone = [own_results, self._play(1, "alone")]
        self._again = [self._play(number, "again") for number in (0, 1)]
        once_more = [player.do(lane[-1].moved(f"{on} again {number}")) for number, lane in enumerate(lanes)]
        self.is_steady = all(
            same(first[-1], second[-1], volatile) and same(first[-1], three, volatile)
            for first, second, three in zip(self._alone, self._again, once_more, strict=True)
        )

    def _play(self, number: int, name: str) -> list[OpResult]:
        return [self._player.do(op.moved(f"{self._on} {name} {number}")) for op in self._lanes[number]]

    def again(self, line: int) -> dict[str, Any] | None:
        """The last op of the first session, stopped before a line of it while that of the second is done."""
        other_thread = self._other
        other_thread.seen.clear()
        first, second = (lane[-1].moved(f"{self._on} again {number}") for number, lane in enumerate(self._lanes))
        seen = self._stop.do(self._player, first, at=line + 1, then=_all(other_thread, [second]))
        other_thread.wait(10.0)
        for op, alone, now in zip((first, second), self._alone, (seen, *other_thread.seen), strict=False):
            if not same(alone[-1], now, self._volatile):
                return _comparison(op, alone[-1], now)
        return None

    def walk(self, number: int) -> dict[str, Any] | None:
        """Both sessions from their reset on; each op of the first is stopped at one place of several."""
        other_thread = _Other(self._player)
        names = [f"{self._on} {lane} {number}" for lane in ("first", "second")]
        own_ops, other_ops = self._lanes
        seen: list[OpResult] = []
        for place, op in enumerate(own_ops):
            at = 1 + int(self.lines[place] * (number + 0.5) / PLACES)
            turn = [step.moved(names[1]) for step in _turn(other_ops, place, len(own_ops))]
            seen.append(self._stop.do(self._player, op.moved(names[0]), at=at, then=_all(other_thread, turn)))
            other_thread.wait(10.0)
        for lane, nows in enumerate((seen, other_thread.seen)):
            rows = zip(self._lanes[lane], self._alone[lane], self._again[lane], nows, strict=False)
            for op, alone, again, now in rows:
                if same(alone, again, self._volatile) and not same(alone, now, self._volatile):
                    return _comparison(op, alone, now)
        for name in names:
            self._player.adapters.pop(name, None)
        return None


def _turn(other_ops: Sequence[Op], place: int, count: int) -> Sequence[Op]:
    """Returns the second lane's ops for a step of the first: first with first, last with last, the rest between."""
    if place == count - 1:
        return other_ops[-1:]
    return other_ops[place : place + 1] if place < count - 2 and place < len(other_ops) - 1 else other_ops[place:-1]


def _all(other_thread: _Other, ops: Sequence[Op]) -> Any:
    def go() -> None:
        for op in ops:
            other_thread.go(op)

    return go


def _comparison(op: Op, result: OpResult, now: OpResult) -> dict[str, Any]:
    alone, beside_ = (seen.value if seen.fine else f"{seen.how}: {seen.raised}" for seen in (result, now))
    return {"name": _named(op), "alone": alone, "beside": beside_}


@probe_function
def shared(player: Player, on: str, value: Any) -> dict[str, Any] | None:
    """One instance: the last op of the first lane is stopped at each place while the other op is made."""
    files, volatile = frozenset(value["files"]), tuple(value["volatile"])
    (*before, own_op), (other_op,) = (msgspec.convert(lane, list[Op]) for lane in value["lanes"])
    stop = _Stop(files)

    def begun(name: str) -> str:
        for op in before:
            player.do(op.moved(name))
        return name

    def ended(name: str, *seen: OpResult) -> list[Any]:
        world = player.do(Op("state", name)).value
        return [*(list(masked(result.content(), volatile)) for result in seen), masked(world, volatile)]

    orders: list[list[Any]] = []
    count = 0
    for name, order in (("one", (own_op, other_op)), ("two", (other_op, own_op)), ("again", (own_op, other_op))):
        begun(f"{on} {name}")
        done = {id(op): (stop.do(player, op.moved(f"{on} {name}")), stop.lines) for op in order}
        orders.append(ended(f"{on} {name}", done[id(own_op)][0], done[id(other_op)][0]))
        count = done[id(own_op)][1]  # In the end those of a call that nothing was in the way of.
    if codec.dumps(orders[0], repr) != codec.dumps(orders[2], repr):
        return None
    for number in range(PLACES // 2):
        name, other_thread = begun(f"{on} {number}"), _Other(player)
        at = 1 + int(count * (number + 0.5) / (PLACES // 2))
        first = stop.do(player, own_op.moved(name), at=at, then=_all(other_thread, [other_op.moved(name)]))
        other_thread.wait(10.0)
        if not other_thread.seen:
            return {"name": _named(other_op), "alone": "it ends", "beside": "it never comes back"}
        if any(result.how in ("", "refused") and result.is_error for result in (first, other_thread.seen[0])):
            continue  # It says that it could not: whoever reads that may try again.
        found = ended(name, first, other_thread.seen[0])
        if all(codec.dumps(found, repr) != codec.dumps(order, repr) for order in orders):
            parts = [place for place in range(3) if found[place] not in (orders[0][place], orders[1][place])] or [2]
            who = _named((own_op, other_op, other_op)[parts[0]])
            apart = changes(orders[0][parts[0]], found[parts[0]])
            alone, beside_ = ({path: both[side] for path, both in apart.items()} for side in (0, 1))
            return {"name": who, "alone": alone, "beside": beside_}
        player.adapters.pop(name, None)
    return None


def _named(op: Op) -> str:
    return f"{op.name}()" if op.do == "call" else f"{op.do}()"
