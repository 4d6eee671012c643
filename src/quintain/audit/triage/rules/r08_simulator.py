"""Rule 8: the simulated user contradicts its script."""

from __future__ import annotations

import re

from quintain.audit.triage.case import Case, RuleResult
from quintain.audit.triage.episode_log import EpisodeLog, Utterance, known
from quintain.audit.triage.labels import Confidence, Label
from quintain.audit.triage.plain import strings
from quintain.trace import plain

_FACT = re.compile(r"[\w.+-]+@[\w.-]+\w|#?\b[A-Za-z]*-?\d[\w-]*\b|\"[^\"\n]{3,60}\"")
_LONG = 6
"""Least characters of a fact that cannot match by accident."""


def simulator(case: Case) -> RuleResult:
    """Labels a user who is silent, stops too early, repeats the agent, or reveals a sealed value."""
    one = case.played
    users = [said for said in one.said if said.role != "agent"]
    if not users:
        return []
    return [*_silent(one, users), *_stopped(case, users), *_echo(one), *_revealed(case, users)]


def _label(said: Utterance, why: str, *, sure: Confidence = "proven", classes: tuple[str, ...] = ()) -> Label:
    return Label(rule=8, owner="simulator", classes=classes, confidence=sure, why=why, turn=said.turn)


def _silent(one: EpisodeLog, users: list[Utterance]) -> list[Label]:
    if one.form != "quintain" and all(not said.text.strip() for said in users):
        return []  # a log that leaves the user's words out
    for said in users:
        if not said.text.strip() and not said.calls:
            return [_label(said, "the simulated user said nothing")]
        if said.finish == "length":
            return [_label(said, "the simulated user was cut off in the middle of a reply", sure="likely")]
    return []


def _stopped(case: Case, users: list[Utterance]) -> list[Label]:
    """Labels a user who ended the conversation before its goal was possible."""
    one = case.played
    if one.trace is None or one.said[-1].role == "agent" or one.end != "terminated" or one.solved:
        return []
    heard = [said for said in one.said if said.role == "agent" and (said.text.strip() or said.calls)]
    if not heard:
        return [_label(users[-1], "the simulated user ended the conversation before the agent had said a word")]
    unsaid = _unsaid(case, users)
    last = next(said for said in reversed(one.said) if said.role == "agent")
    if unsaid and last.text.rstrip().endswith("?"):
        why = f"the simulated user left a question unanswered and ended, without having said {_named(unsaid)}"
        return [_label(users[-1], why)]
    if unsaid:
        return [_label(users[-1], f"the simulated user ended without having said {_named(unsaid)}", sure="hint")]
    return []


def _unsaid(case: Case, users: list[Utterance]) -> list[str]:
    """Returns facts of the user's script that no message or prompt contains."""
    scripts = case.task.roles.values() if case.task is not None else ()
    facts = [fact.strip('"') for script in scripts for fact in _FACT.findall(script)]
    prompt = plain(case.task.prompt) if case.task is not None else ""
    spoken = " ".join([prompt, *(said.text for said in users)]).lower()
    return [fact for fact in dict.fromkeys(facts) if fact.lower() not in spoken]


def _echo(one: EpisodeLog) -> list[Label]:
    before = ""
    for said in one.said:
        if said.role == "agent":
            before = said.text.strip()
        elif len(before) > 40 and said.text.strip() == before:
            return [_label(said, "the simulated user repeats the agent's own words", sure="likely")]
    return []


def _revealed(case: Case, users: list[Utterance]) -> list[Label]:
    """Labels a user who says a value that only the verifier should have."""
    one, task = case.played, case.task
    if task is None:
        return []
    script = " ".join([*task.roles.values(), plain(task.prompt)])
    hidden = [text for text in strings(known(task)["truth"]) if len(text) >= _LONG and text not in script]
    for said in users:
        seen = [call.observation for call in one.calls if call.turn < said.turn]
        seen += [other.text for other in one.said if other.turn < said.turn]
        for text in hidden:
            if text in said.text and not any(text in words for words in seen):
                return [
                    _label(
                        said, f"the simulated user said what is sealed: {text[:60]!r}", sure="likely", classes=("leak",)
                    )
                ]
    return []


def _named(facts: list[str]) -> str:
    return ", ".join(repr(fact) for fact in facts[:3])
