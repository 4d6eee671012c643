"""Episodes as one HTML file to be sent: with labels, findings and changes, without what must stay here."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from quintain import codec
from quintain.errors import UsageError

from .folders import Run
from .page import page
from .player import Answer
from .replays import Replays, Unplayable
from .review_routes import said_of

PARTS = ("reasons", "prompts", "names")
"""Parts that a sent file may lack.

reasons  those of rewards and of the end, messages of failures and the words of programs: they may hold gold answers
prompts  messages of the system, and those before the first reply of each thread
names    of the run, its environment and agent, and of the reviewers
"""

MOST = 500
"""Most episodes of one file."""

_LEFT_OUT = "(left out)"


def saved(
    run: Run, numbers: Sequence[int], replays: Replays, *, without: Collection[str] = (), canary: str = ""
) -> bytes:
    """Returns the file.

    Args:
        run: The run.
        numbers: Numbers of the episodes, 1 to `MOST`.
        replays: Replays that find what steps changed; the file says so where they cannot.
        without: Names of `PARTS`.
        canary: A line of the page that is not compressed, by which collectors of training data may know it.

    Raises:
        UsageError: An episode or a part is unknown, there are too few or too many, or the front end was not built.
    """
    if unknown := sorted(set(without) - {*PARTS}):
        raise UsageError(f"one may leave out {', '.join(PARTS)}, got {unknown[0]!r}")
    if not 0 < len(numbers) <= MOST:
        raise UsageError(f"a file holds 1 to {MOST} episodes, got {len(numbers):,}")
    known, lines = run.facts(), [run.index.line(n) for n in numbers]
    facts = list[dict[str, Any]]()
    for n, answer in zip(numbers, replayed(known["run"], lines, replays), strict=True):
        changes = {} if answer is None else {"changes": answer}
        facts.append(said_of(run, n) | {"seconds": run.index.seconds(n)} | changes)
    name, environment = run.name, known["environment"]
    if without:
        lines = [_line_without(line, without) for line in lines]
        facts = _facts_without(facts, without)
    if "names" in without:
        name, environment = "episodes", environment and msgspec.structs.replace(environment, name="")
    notes = [f"Left out: {', '.join(part for part in PARTS if part in without)}." if without else "", canary]
    title, shared = f"{name}, episodes {len(lines)}", {"environment": environment, "findings": known["findings"]}
    return page(title, lines, [note for note in notes if note], run=name, facts=facts, **shared)


def replayed(run: dict[str, Any] | None, lines: Iterable[bytes], replays: Replays) -> Iterator[Answer | None]:
    """Yields what the steps of each episode changed, and None from the first on that cannot be played.

    Each try to play one may take a minute.

    Args:
        run: Content of `run.json`.
        lines: Lines of `traces.jsonl`.
        replays: Replays that find it.
    """
    playable = True
    for line in lines:
        answer = None
        if playable:
            try:
                answer = replays.changes(run, line, codec.digest(line))
            except Unplayable:
                playable = False
        yield answer


def _line_without(line: bytes, without: Collection[str]) -> bytes:
    """Returns a line without some parts. Its digest stays, which names the episode where it was played."""
    whole = msgspec.json.decode(line)
    trace, threads = whole["trace"], set[int]()
    if "names" in without:
        trace |= {"environment": "", "agent": ""}
    if "reasons" in without:
        trace["reason"] = ""
        if trace.get("failure"):
            trace["failure"]["message"] = ""
        for part in (trace, *trace["turns"]):
            for reward in part.get("rewards", ()):
                reward |= {"reason": "", "details": {}}
    for turn in trace["turns"] if "prompts" in without else ():
        begins = turn.get("thread", 0) not in threads
        threads.add(turn.get("thread", 0))
        for message in turn.get("added", ()):
            if begins or message["role"] == "system":
                message["content"] = _LEFT_OUT
    return codec.json(whole)


def _facts_without(facts: list[dict[str, Any]], without: Collection[str]) -> list[dict[str, Any]]:
    """Returns the labels of the episodes without some parts; reviewers have numbers in place of names."""
    numbers: dict[str, str] = {}
    for said in facts if "names" in without else ():
        for review in said["reviews"]:
            review["reviewer"] = numbers.setdefault(review["reviewer"], f"reviewer {len(numbers) + 1}")
    for said in facts if "reasons" in without else ():
        for label in said["labels"]:
            label["why"] = None
    return facts
