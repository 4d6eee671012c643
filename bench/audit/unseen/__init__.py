"""Unseen set: sound worlds, and variants of them with one bug each, written without sight of the audit's checks."""

from __future__ import annotations

from bench.audit.blind import Bug

CLEAN = ("allotment", "cellar")

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

_CELLAR = (
    (
        "pockets",
        "reset_leak",
        "",
        "Keys taken in earlier episodes open the chest: a model learns that the key is sometimes not needed.",
    ),
    (
        "any_key",
        "action_drift",
        "",
        "`unlock` accepts a key of any colour: a model learns to take the first key.",
    ),
    (
        "announced",
        "reward_hack",
        "",
        "The answer `the chest is open` scores 1 without any call: a model learns to claim success.",
    ),
    (
        "hurried",
        "unsolvable",
        "",
        "At most six turns are allowed, and most solutions take more: a model learns to give up.",
    ),
)

_SETS = (_ALLOTMENT, _CELLAR)
BUGS = tuple(Bug(world, f"env_{name}", *rest) for world, rows in zip(CLEAN, _SETS, strict=True) for name, *rest in rows)
