"""Tasks that are solved by an answer: how the right answer is submitted, and its reward."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.probe import Op, Probe, answer, number, reset, score

from ._reward_acts import submits
from ._reward_battery import gold_of
from ._reward_facts import facts


class Question(msgspec.Struct, frozen=True):
    """A task that is solved by saying something.

    Attributes:
        before: Ops that come before the words.
        say: The op that says the right ones.
        key: The argument that holds the words, where they are handed in by a call.
        own: The right answer.
        full: What it is paid.
        floor: What is paid without a word.
    """

    task: str
    prompt: str
    before: tuple[Op, ...]
    say: Op
    key: str
    own: str
    full: float
    floor: float | None

    def saying(self, text: str) -> Op:
        """The op that says something else; as a number where the right answer is handed in as one."""
        if not self.key:
            return msgspec.structs.replace(self.say, value=text)
        return msgspec.structs.replace(self.say, value=self.say.value | {self.key: text})


def asked(ctx: AuditContext, most: int) -> list[Question]:
    """Tasks in which words alone are worth what the whole solution is; of all when any of the first few is such."""
    first = ctx.sample_tasks(min(5, most))
    found = _asked(ctx, first)
    return [*found, *_asked(ctx, [task for task in ctx.sample_tasks(most) if task not in first])] if found else []


def _asked(ctx: AuditContext, tasks: Sequence[str]) -> list[Question]:
    found = [(task, *way) for task in tasks if (way := _way(ctx, task)) is not None]
    has_prompt = {"prompt"} <= ctx.offers
    probes = [
        Probe(
            (
                reset(task, on="b"),
                score(on="b", mark="floor"),
                *((Op("prompt", name=task, mark="prompt"),) if has_prompt else ()),
                reset(task, mark="first"),
                say,
                score(),
            )
        )
        for task, say, _, _ in found
    ]
    known: list[Question] = []
    for (task, say, key, own), record in zip(found, ctx.play_all(probes), strict=True):
        paid = number(record.at("score"))
        solved = facts(ctx)[task].full if ctx.oracle(task) else paid
        if paid is None or paid <= 0 or solved is None or paid < solved - 1e-9:
            continue
        first = record.at("prompt" if has_prompt else "first").value
        floor = number(record.at("floor"))
        if floor is None or floor < paid - 1e-9:
            text = first if isinstance(first, str) else ""
            known.append(Question(task, text, (), say, key, own, paid, floor))
    return known


def _way(ctx: AuditContext, task: str) -> tuple[Op, str, str] | None:
    """The op that says the answer, the argument that holds it, and the answer."""
    ops = ctx.oracle(task)
    if ops:
        last = ops[-1]
        if last.do == "answer":
            return last, "", str(last.value)
        if submits(last):
            texts = [(name, item) for name, item in last.value.items() if isinstance(item, str | int | float)]
            if len(texts) == 1:
                return last, texts[0][0], str(texts[0][1])
        return None
    if "hidden" in ctx.offers and "answer" in ctx.offers:
        seen = ctx.play(reset(task), Op("hidden", name=task, mark="hidden")).at("hidden")
        gold = gold_of(seen.value) if seen.fine else None
        return (answer(gold), "", gold) if gold else None
    return None
