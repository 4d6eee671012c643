"""Language model as judge of one episode: a score on a scale, or a checklist with a quote for each item that is met."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

import msgspec

from quintain.errors import DefinitionError, JudgeError, short
from quintain.verifier import Criterion, EpisodeView, Score, reward

from .chat import Judge, answer, filled, question

T = TypeVar("T")
Show = Callable[[EpisodeView[Any]], str]
"""Function from the view to the text that is judged: `answer`, `transcript`, or the author's own."""

SCALE = """Task that the agent was given:
{task}

What it did:
{text}

Give a score from 0 (worst) to {scale} (best) for this criterion only: {criterion}"""

ITEMS = """Task that the agent was given:
{task}

What it did:
{text}

Say for each item whether it is met. For each that is met, quote the words of the text that show it, exactly.
{items}"""


class Item(NamedTuple):
    """One item of a checklist: a statement about the text, and its weight; below 0 for a mistake."""

    name: str
    statement: str
    weight: float = 1.0


class _Met(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    met: bool
    quote: str


class _Items(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    items: list[_Met]


class Scored(msgspec.Struct, Generic[T], frozen=True, forbid_unknown_fields=True):
    """Reply of a judge that gives a score."""

    reason: str
    score: T


def score_type(scale: int) -> type[Scored[int]]:
    """Returns the type of a judge's reply with a whole number from 0 to `scale`.

    Raises:
        DefinitionError: The scale is below 1.
    """
    if scale < 1:
        raise DefinitionError(f"scale must be at least 1, got {scale}")
    return Scored[Annotated[int, msgspec.Meta(ge=0, le=scale)]]


def llm_judge(
    judge: Judge, criterion: str, *, scale: int = 10, show: Show = answer, template: str = SCALE
) -> Criterion[Any]:
    """Returns a criterion with the mean of a judge's votes / scale, from 0 to 1.

    Args:
        judge: The judge.
        criterion: What is judged, in words.
        scale: Highest score, 1 and up; the judge gives a whole number from 0.
        show: What the judge sees of the episode.
        template: Prompt, with {task}, {text}, {criterion} and {scale}.

    Raises:
        DefinitionError: The scale is below 1, or the template lacks a name.
    """
    kind = score_type(scale)
    filled(template, {"task": "", "text": ""}, criterion="", scale="")

    @reward(external=True)
    async def llm_judge(view: EpisodeView[Any]) -> Score:
        texts = {"task": question(view), "text": show(view)}
        prompt = filled(template, texts, criterion=criterion, scale=str(scale))
        said = await judge.ask(prompt, kind, trace=view.trace)
        votes: list[dict[str, Any]] = [msgspec.to_builtins(vote) for vote in said.votes]
        value = math.fsum(vote["score"] for vote in votes) / len(votes) / scale
        return Score(value, votes[0]["reason"], {**said.details, "votes": votes})

    return llm_judge


def checklist(judge: Judge, items: Iterable[Item], *, show: Show = answer, template: str = ITEMS) -> Criterion[Any]:
    """Returns a criterion with the weights of the items that are met / the sum of the weights above 0.

    Its range is from (sum of the weights below 0) / (sum of those above 0) to 1. An item counts as met if the judge
    says so and quotes words that occur in the text; spaces and line breaks are not compared. Of several votes it is the
    mean.

    Args:
        judge: The judge.
        items: Items with distinct names; at least one has a weight above 0.
        show: What the judge sees of the episode.
        template: Prompt, with {task}, {text} and {items}.

    Raises:
        DefinitionError: No weight is above 0, one is 0 or not finite, names repeat, or the template lacks a name.
    """
    known = {item.name: item for item in items}
    every = [item.weight for item in known.values()]
    positive = math.fsum(weight for weight in every if weight > 0)
    if not (positive and all(weight and math.isfinite(weight) for weight in every)):
        raise DefinitionError(f"a checklist needs finite weights, none 0 and one above 0, got {every}")
    listed = "\n".join(f"- {item.name}: {item.statement}" for item in known.values())
    filled(template, {"task": "", "text": ""}, items="")
    low = math.fsum(weight for weight in every if weight < 0) / positive

    @reward(external=True, low=low)
    async def checklist(view: EpisodeView[Any]) -> Score:
        text = show(view)
        prompt = filled(template, {"task": question(view), "text": text}, items=listed)
        said = await judge.ask(prompt, _Items, trace=view.trace)
        votes = [_checked(vote, known, text=text) for vote in said.votes]
        share = {name: sum(vote[name].met for vote in votes) / len(votes) for name in known}
        value = math.fsum(known[name].weight * met for name, met in share.items()) / positive
        met = [name for name, part in share.items() if part]
        details = {**said.details, "votes": msgspec.to_builtins(votes)}
        return Score(max(low, min(1.0, value)), f"met: {', '.join(met) or 'nothing'}", details)

    return checklist


def _checked(vote: _Items, known: dict[str, Item], *, text: str) -> dict[str, _Met]:
    """Returns the verdicts by name.

    Raises:
        JudgeError: `judge_unparseable`: the names are others, or a quote does not occur in the text.
    """
    names = [one.name for one in vote.items]
    if sorted(names) != sorted(known):
        message = f"the judge named the items {short(names)}, the checklist has {short(sorted(known))}"
        raise JudgeError(message, kind="judge_unparseable")
    flat = " ".join(text.split())
    for one in vote.items:
        quote = " ".join(one.quote.split())
        if one.met and not (quote and quote in flat):
            message = f"item {one.name!r}: the quote {short(one.quote)} does not occur in the text"
            raise JudgeError(message, kind="judge_unparseable")
    return {one.name: one for one in vote.items}
