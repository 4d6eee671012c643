"""V: the root causes are named, the right repair is made, and nothing else has changed. Each is 0 or 1."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import quintain as qn
from quintain.authoring import per_task, sound_call
from quintain.environments.faults import reach
from quintain.trace import plain

from .description import columns, tables
from .draft import Part, Truth, played
from .goals import Verdict, changes, compare, content
from .state import Production


@per_task(content)
def verdict(task: qn.Task[Any], world: Production) -> Verdict:
    """Returns the comparison of a world with the one that the right repair leads to."""
    start = task.world()
    return compare(_wanted(task, start), changes(start, world))


@per_task(lambda _: 0)
def _wanted(task: qn.Task[Any], start: Production) -> dict[Any, Any]:
    return changes(start, played(start, task.truth.repair))


def right(truth: Truth, world: Production) -> int:
    """Returns how many root causes are reported."""
    return len({_named(one) for one in world.findings} & {_named(one) for one in truth.findings})


def _named(finding: Any) -> tuple[str, str, str]:
    return finding.cause, finding.service.strip().casefold(), finding.culprit.strip().casefold()


def holds(text: str, fact: str) -> bool:
    """Returns whether a text has a fact as words of its own, or a time after a date; case and spaces do not count."""
    words = r"\s+".join(map(re.escape, fact.casefold().split()))
    return re.search(rf"((?<![\w.-])|(?<=\dt)){words}(?![\w-]|\.\w)", text.casefold()) is not None


def share(text: str, part: Part, task: qn.Task[Any]) -> float:
    """Returns the share of the facts of a part that a report holds; each other value that could be meant takes one off.

    Values that the question or the right report has do not count, and neither does a fact that the text denies.
    """
    given = f"{task.prompt}\n{part.ask}\n{part.say}"
    denied = "|".join(map(re.escape, (part.say.rstrip("."), *part.facts, *part.wrong)))
    text = re.sub(rf"\b(not|no longer) ({denied})", "", text, flags=re.IGNORECASE)
    others = {*part.wrong, *(other for fact in part.facts for other in _others(task.world(), fact, text))}
    wrong = [other for other in others if holds(text, other) and not holds(given, other)]
    right = sum(holds(text, fact) for fact in part.facts)
    return max(0, right - len(wrong)) / len(part.facts)


def _others(start: Production, fact: str, text: str) -> Iterator[str]:
    """Yields what could be meant instead of a fact: keys of its table, values of its column, numbers of its form.

    Plain words count only beside a key that is one, such as the name of a service.
    """
    for name in tables():
        rows = start.table(name)
        own = [column.name for column in columns(name).values() if column.kind == "text" and not column.target]
        if fact in rows:
            yield from (key for key in rows if fact.isalpha() or not key.isalpha())
        for column in own:
            values = {getattr(row, column) for row in rows.values()}
            yield from (value for value in values if fact in values and not value.isalpha())
    pattern = r"\d+".join(map(re.escape, re.split(r"\d+", fact)))
    yield from re.findall(pattern, text) if pattern != re.escape(fact) else ()


@qn.reward(level="turn", low=-1.0, high=1.0)
def progress(turn: qn.TurnView[Production]) -> qn.Score:
    """Share of the wanted changes and findings that a turn reached, less those that it undid."""
    if content(turn.before) == content(turn.after):
        return qn.Score(0.0)
    before, after = verdict(turn.task, turn.before), verdict(turn.task, turn.after)
    truth: Truth = turn.task.truth
    reached = len(before.missing) - len(after.missing) + right(truth, turn.after) - right(truth, turn.before)
    return qn.Score(reached / (after.total + len(truth.findings) or 1))


@qn.phase()
def located(turn: qn.TurnView[Production]) -> bool:
    """A call has shown a culprit."""
    truth: Truth = turn.task.truth
    texts = [plain(step.observation) for step in turn.turn.steps if not step.is_error]
    return any(holds(text, culprit) for text in texts for culprit in truth.culprits)


@qn.phase(after="located")
def repaired_it(turn: qn.TurnView[Production]) -> bool:
    """All wanted changes are made."""
    return not verdict(turn.task, turn.after).missing


@qn.phase(after="repaired_it")
def reported_it(turn: qn.TurnView[Production]) -> bool:
    """All root causes are reported as well."""
    truth: Truth = turn.task.truth
    return right(truth, turn.after) == len(truth.findings)


@qn.reward
def diagnosed(outcome: qn.EpisodeView[Production]) -> qn.Score:
    """Scores 1 when exactly the root causes are reported, each with its service and culprit."""
    truth: Truth = outcome.task.truth
    wrong = len(outcome.state.findings) - right(truth, outcome.state)
    lacking = len(truth.findings) - right(truth, outcome.state)
    reason = "" if not (wrong or lacking) else f"{lacking} root causes are not reported, {wrong} wrong ones are"
    return qn.Score(float(not reason), reason)


@qn.reward
def repaired(outcome: qn.EpisodeView[Production]) -> qn.Score:
    """Scores 1 when all changes of the right repair are made."""
    reach(outcome.state)
    missing = verdict(outcome.task, outcome.state).missing
    return qn.Score(float(not missing), "; ".join(missing))


@qn.reward
def untouched(outcome: qn.EpisodeView[Production]) -> qn.Score:
    """Scores 1 when nothing else has changed."""
    stray = verdict(outcome.task, outcome.state).stray
    return qn.Score(float(not stray), "; ".join(stray))


verifier = qn.Verifier(
    sound_call, progress, located, repaired_it, reported_it, diagnosed, repaired, untouched, combine="product"
)
