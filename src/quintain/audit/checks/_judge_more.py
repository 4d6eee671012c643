"""Checks judges with long answers, earlier answers, several replies, and their rubric."""

from __future__ import annotations

import re
from collections.abc import Iterator

from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.probe import Op

from ._leak_secrets import leaves

PARTS = ("the start of it qzx3", "the middle of it qzx5", "the end of it qzx9")
"""Words that stand in a long answer."""


def longer() -> Iterator[tuple[str, str]]:
    """Yields (description, answer that may be cut), short ones first: a very long answer may rightly be refused."""
    start, middle, end = PARTS
    yield "an answer of several lines", f"{start}\n{middle}\n\n{end}"
    yield "an answer of several sentences", f"{start}. {middle}! And {end}."
    for size in (100, 200, 400, 900, 2_000, 20_000):
        fill = "and so on, and on. " * (size // 38 + 1)
        yield f"an answer of {size:,} characters", f"{start} {fill}{middle} {fill}{end}"


def fits(prompt: str, said: str) -> bool:
    """True if a text keeps the limits of words and characters that a prompt states."""
    for number, what in re.findall(r"(\d[\d,]*) (word|char|letter|sentence|token)", prompt.lower()):
        many = {"word": len(said.split()), "token": len(said.split()), "sentence": len(re.findall(r"[.!?]", said))}
        if many.get(what, len(said)) > int(number.replace(",", "")):
            return False
    return True


def quoted(ctx: AuditContext, task: str) -> list[str]:
    """Answers that repeat what the judge goes by."""
    if "hidden" not in ctx.offers:
        return []
    seen = ctx.play(Op("hidden", name=task, mark="hidden")).at("hidden")
    texts = [str(leaf) for _, leaf in leaves(seen.value) if leaf is not None]
    return [*texts[:3], " ".join(texts)[:900]] if texts else []
