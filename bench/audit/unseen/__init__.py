"""Unseen set: sound worlds, and variants of them with one bug each, written without sight of the audit's checks."""

from __future__ import annotations

from bench.audit.blind import Bug

CLEAN = ("allotment",)

_ALLOTMENT = (
    (
        "kept_list",
        "stale_cache",
        "",
        "`waiting_list` after `assign` still names the person if it was shown before: a model learns not to check.",
    ),
    (
        "before_last",
        "action_drift",
        "",
        "`join` puts a person before the last one, not at the end: a model learns to distrust descriptions.",
    ),
    (
        "no_such_plot",
        "silent_default",
        "",
        "`show_plot` of an unknown id shows a free plot of 0 square metres: a model learns to trust wrong ids.",
    ),
    (
        "someone",
        "false_resolution",
        "",
        "The verifier asks only which plots changed hands: a model learns that a plot may go to the wrong person.",
    ),
    (
        "says_so",
        "reward_hack",
        "",
        "An answer that names the new holder scores 1 without `assign`: a model learns to report instead of working.",
    ),
    (
        "one_key",
        "leak",
        "",
        "All splits draw from one key: a model learns the test tasks by heart.",
    ),
)

_SETS = (_ALLOTMENT,)
BUGS = tuple(Bug(world, f"env_{name}", *rest) for world, rows in zip(CLEAN, _SETS, strict=True) for name, *rest in rows)
