"""Checks judges with long answers, earlier answers, several replies, and their rubric."""

from __future__ import annotations

import re
from collections.abc import Iterator

from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe

from . import _judge_claims as claims
from ._judge_claims import MARK, RUBRIC, asked, grade, judged
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


def remembers(ctx: AuditContext, good: str, bad: str) -> Iterator[Finding | None]:
    """Answers whose grade depends on what was judged before them in the session."""
    task, stem = ctx.tasks[0], "The same beginning, and a long one. " * 12
    pairs = [(task, "It is one.", "It is two."), (task, f"{stem}One.", f"{stem}Two."), (task, "Good", "good ")]
    pairs += [(ctx.tasks[1], MARK, MARK)] if len(ctx.tasks) > 1 else []
    for other_text, first, second in pairs:
        for before, says in ((good, bad), (bad, good)):
            head = judged(task, before, first, mark="before")
            tail = Op("judge", name=other_text, value={"answer": second, "says": says}, mark="judge")
            probes = (Probe((*head, tail)), Probe((head[0], tail)))
            ctx.count_comparisons()
            if claims.sticks(ctx.play_all(probes), Evidence("")):
                yield ctx.finding(
                    "an answer is given the grade of one that was judged before it",
                    *probes,
                    relation=f"{claims.__name__}:sticks",
                    marks=("judge",),
                    minimise=0,
                    part="V",
                    expected="the grade that it has in a session of its own",
                    observed={"before": before, "reply": says, "grade": grade(ctx.play_probe(probes[0]).at("judge"))},
                    teaches="to be judged after a right answer",
                )
                return


def asks_again(ctx: AuditContext, good: str, bad: str) -> Iterator[Finding | None]:
    """Judges that ask until they hear what they want."""
    task = ctx.tasks[0]
    count = len(asked(ctx.play(*judged(task, bad)).at("judge")))
    ctx.count_comparisons()
    if count < 2:
        return
    says = [*[bad] * (count - 1), good]
    probes = (Probe(judged(task, says)), Probe(judged(task, bad)), Probe(judged(task, good)))
    if claims.asks_until(ctx.play_all(probes), Evidence("")):
        yield ctx.finding(
            "one good verdict among several bad ones is enough",
            *probes,
            relation=f"{claims.__name__}:asks_until",
            marks=("judge",),
            minimise=0,
            part="V",
            expected="a grade that the bad verdicts have a part in",
            observed={"replies": says, "grade": grade(ctx.play_probe(probes[0]).at("judge"))},
            teaches="to be lucky once: a noisy judge with enough requests passes anything",
        )


def unaware(ctx: AuditContext) -> Iterator[Finding | None]:
    """Judges that are asked without the rubric, or with a part of it."""
    probes = [Probe((Op("hidden", name=task, mark="hidden"), *judged(task, "yes"))) for task in ctx.sample_tasks(6)]
    records = ctx.play_all(probes)
    if not asked(records[0].at("judge")):
        raise ctx.not_checked("the judge asks its model nothing")
    for probe, record in zip(probes[1:], records[1:], strict=True):
        ctx.count_comparisons()
        if claims.blind([records[0], record], Evidence("")):
            yield _unaware(ctx, "the judge's model is asked the same whatever the task's rubric", [probes[0], probe])
            return
    for path, leaf in leaves(records[0].at("hidden").value):
        is_rubric = isinstance(leaf, str) and len(leaf) >= 40 and RUBRIC.search(".".join(path).lower())
        ctx.count_comparisons()
        if is_rubric and claims.cut_rubric(records[:1], Evidence("", data=leaf)):
            yield _unaware(ctx, "the judge's model is sent the beginning of the rubric alone", probes[:1], data=leaf)
            return


def _unaware(ctx: AuditContext, title: str, probes: list[Probe], *, data: str = "") -> Finding | None:
    seen = ctx.play_probe(probes[0]).at("judge")
    return ctx.finding(
        title,
        *probes,
        relation=f"{claims.__name__}:{'cut_rubric' if data else 'blind'}",
        marks=("hidden", "judge"),
        data=data,
        minimise=0,
        part="V",
        expected="the whole rubric of this task",
        observed="\n".join(asked(seen))[:600],
        teaches="what this judge likes, not what the task asks for",
    )
