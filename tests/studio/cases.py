"""Episodes, and filters with what they leave, which the page and `--where` must read alike."""

from __future__ import annotations

from collections.abc import Callable

from quintain.trace import Trace
from tests.studio.runs import HOSTILE, failed, forged, rewritten, trace

SCORES = (0.0, 0.25, 0.75, 1.0)
TRACES = [
    *(trace(f"lend {n}", m, score=SCORES[m], turns=3 + 10 * m) for n in range(20) for m in range(4)),
    failed("broken"),
    trace(HOSTILE, say=HOSTILE * 40),
    rewritten(),
]
COUNTED = len(TRACES) + 1
"""Episodes of the run: those above, and one that no run can write."""

WHERE: list[tuple[str, Callable[[Trace], bool]]] = [
    ("score<1", lambda one: one.score is not None and one.score < 1),
    ("score=0.75 turns>=10", lambda one: one.score == 0.75 and len(one.turns) >= 10),
    ("score:none", lambda one: one.score is None),
    ("-score:none", lambda one: one.score is not None),
    ('task:"lend 1*"', lambda one: one.task.startswith("lend 1")),
    ("end:failed", lambda one: one.failure is not None),
    ("component!=S", lambda one: one.failure is None),
    ("level:hard", lambda one: one.tags["level"] == "hard"),
    ("tool:upd* member<=1", lambda one: one.member <= 1 and len(one.turns) > 1),
    ("-tool:search", lambda one: not one.turns),
    ("done>0.5", lambda one: any(r.name == "done" and (r.value or 0) > 0.5 for r in one.rewards)),
    ('"end 7"', lambda one: "end 7" in one.task),
    ('"\\"n\\": 12" score>0', lambda one: len(one.turns) > 12 and (one.score or 0) > 0),
    ('-"rows"', lambda one: not one.turns),
]
WRONG = (("score", "is not a term"), ("nothing:1", "no column nothing"), ("score<x", "is a number"))
"""Filters that are refused, and words of the reason."""
ODD = forged(task="odd", turns=[{"index": 0, "reply": {"message": {"role": "assistant", "content": 5, "calls": 7}}}])
"""Line with a trace that no run can write."""
