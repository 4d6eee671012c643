"""Does the adapter do what the reference did? Plays stored cases and compares everything they recorded."""

from __future__ import annotations

import gzip
import hashlib
import inspect
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from quintain.environment import Environment
from quintain.episode import blank
from quintain.errors import UsageError
from quintain.task import Task
from quintain.trace import End, Message, Reply, Reward, ToolCall, Trace, Turn
from quintain.verifier import EpisodeView

from .convention import respond
from .environment import load
from .scoring import actions_done, assertions_held, infos_said
from .world import Ledger, World

_SHOWN = 3


class CaseStep(msgspec.Struct, frozen=True):
    """One call and what the reference answered."""

    name: str
    arguments: dict[str, Any]
    error: bool
    result_sha256: str
    result_head: str = ""
    requestor: str = "assistant"


class Case(msgspec.Struct, frozen=True):
    """One conversation as the reference played and scored it."""

    domain: str
    task: str
    variant: str
    final_text: str
    steps: list[CaseStep]
    final_db_sha256: str | None
    """None where it was not recorded."""
    reward: float | None = None
    breakdown: dict[str, float] | None = None
    final_user_db_sha256: str | None = None
    action_checks: list[bool] | None = None
    communicate: list[bool] | None = None
    env_assertions: list[bool] | None = None


class Mismatch(msgspec.Struct, frozen=True):
    """One disagreement. `step` is None where it is about the whole case."""

    task: str
    variant: str
    step: int | None
    expected: Any
    found: Any


class Count(msgspec.Struct):
    """Number of disagreements in a field, and the first three of them."""

    count: int = 0
    first: list[Mismatch] = []


class Report(msgspec.Struct):
    """Result of a comparison.

    Attributes:
        cases: Number of cases played.
        agree: Cases that agree in everything.
        steps: Calls of all cases.
        mismatches: By field: result, error, db, user_db, a component's name, reward.
    """

    cases: int = 0
    agree: int = 0
    steps: int = 0
    mismatches: dict[str, Count] = {}

    def add(self, case: Case, found: list[tuple[str, int | None, Any, Any]]) -> None:
        """Counts a finished case."""
        self.cases += 1
        self.steps += len(case.steps)
        self.agree += not found
        for field, step, expected, got in found:
            count = self.mismatches.setdefault(field, Count())
            count.count += 1
            if count.count <= _SHOWN:
                count.first.append(Mismatch(case.task, case.variant, step, expected, got))


def conform(domain: str, data: str | Path, cases: str | Path, *, live: int = 1, seed: int = 0) -> Report:
    """Plays the cases of a file, NL assertions assumed true as when they were made.

    Args:
        domain: "retail", "airline", "telecom" or "banking_knowledge".
        data: As for `load`.
        cases: JSON lines, plain or gzipped.
        live: How many conversations to keep going at once.
        seed: Of the random order in which those make their steps.

    Raises:
        UsageError: Data or cases are missing, or cases are of another domain.
    """
    env = load(domain, data=data, nl_assertions="assume-true")
    tasks = {task.id: task for split in env.splits for task in env.tasks(split)}
    ledger = Ledger(next(iter(tasks.values())).world())
    order = random.Random(seed)  # noqa: S311 (an order, not a secret)
    report = Report()
    waiting = iter(_cases(domain, cases))
    playing: list[Player] = []
    while True:
        while len(playing) < live and (case := next(waiting, None)) is not None:
            if case.task not in tasks:
                raise UsageError(f"case {case.variant!r} is of task {case.task!r}, which {domain} doesn't have")
            playing.append(Player(env, tasks[case.task], case))
        if not playing:
            return report
        player = order.choice(playing)
        if not player.step():
            playing.remove(player)
            report.add(player.case, player.verdict(ledger))


class Player:
    """One case being played."""

    def __init__(self, env: Environment[World], task: Task[World], case: Case) -> None:
        self.case = case
        self._env = env
        self._task = task
        self._world = task.world().copy()
        self._turns: list[Turn] = []
        self._found: list[tuple[str, int | None, Any, Any]] = []

    def step(self) -> bool:
        """Plays the next call; False when there is none."""
        number = len(self._turns)
        if number == len(self.case.steps):
            return False
        call = self.case.steps[number]
        text, is_error = respond(self._world, call.name, call.arguments, requestor=call.requestor)
        made = ToolCall(str(number), call.name, json.dumps(call.arguments))
        role = "agent" if call.requestor == "assistant" else call.requestor
        self._turns.append(Turn(index=number, role=role, reply=Reply(Message("assistant", calls=(made,)))))
        if (found := hashlib.sha256(text.encode()).hexdigest()) != call.result_sha256:
            self._found.append(("result", number, f"{call.result_sha256} {call.result_head}", f"{found} {text[:80]}"))
        self._compare("error", call.error, is_error, step=number)
        return True

    def verdict(self, ledger: Ledger) -> list[tuple[str, int | None, Any, Any]]:
        """Everything that differs, as (field, step, expected, found)."""
        case = self.case
        self._turns.append(Turn(index=len(self._turns), reply=Reply(Message("assistant", case.final_text))))
        trace = blank(self._env, self._task)
        trace = msgspec.structs.replace(trace, turns=self._turns, end=End.TERMINATED)
        if case.final_db_sha256 is not None:
            self._compare("db", case.final_db_sha256, ledger.digest(self._world))
            self._compare("user_db", case.final_user_db_sha256, ledger.user_digest(self._world))
        components, score = self._score(trace)
        for name, value in components.items():
            self._compare(name, (case.breakdown or {}).get(name), value)
        done = [done for _, done in actions_done(self._task.truth, trace)]
        said = [said for _, said in infos_said(self._task.truth, trace)]
        held = [held for _, held in assertions_held(self._task.truth, self._world)]
        self._compare("env_assertions", case.env_assertions or [], held)
        self._compare("ACTION", case.action_checks or [], done)
        self._compare("COMMUNICATE", case.communicate or [], said)
        self._compare("reward", case.reward, score)
        return self._found

    def _score(self, trace: Trace) -> tuple[dict[str, float | None], float | None]:
        verifier = self._env.verifier
        rewards: list[Reward] = []
        for criterion in verifier.criteria:
            said = criterion.fn(EpisodeView(self._task, self._task.world(), self._world.copy(), trace))
            rewards.append(criterion.reward(_now(said) if inspect.iscoroutine(said) else said))
        return {reward.name: reward.value for reward in rewards}, verifier.total(rewards)

    def _compare(self, field: str, expected: object, found: object, *, step: int | None = None) -> None:
        if expected != found:
            self._found.append((field, step, expected, found))


def _now(judging: Any) -> Any:
    """The verdict of a criterion that may wait, but has nothing to wait for here."""
    try:
        judging.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("a criterion waited")


def _cases(domain: str, path: str | Path) -> Iterator[Case]:
    try:
        content = Path(path).read_bytes()
        if str(path).endswith(".gz"):
            content = gzip.decompress(content)
        for line in content.splitlines():
            case = msgspec.json.decode(line, type=Case)
            if case.domain != domain:
                raise UsageError(f"{path}: a case of {case.domain!r}, not of {domain!r}")
            yield case
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError(f"cannot read the cases {str(path)!r}: {error}") from error
