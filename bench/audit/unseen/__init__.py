"""Unseen set: sound worlds, and variants of them with one bug each, written without sight of the audit's checks."""

from __future__ import annotations

from bench.audit.blind import Bug

CLEAN = ("allotment", "cellar", "tariffs", "loans", "buildqueue", "coldchain", "claims", "recalls")

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

_TARIFFS = (
    (
        "daily_prices",
        "stale_cache",
        "",
        "`show_tariffs` still shows the old price after `set_rate` until time passes: a model learns to set it again.",
    ),
    (
        "half_cancelled",
        "action_drift",
        "",
        "`cancel_switch` leaves a switch that is due within 48 hours: a model learns not to rely on it.",
    ),
    (
        "fallback",
        "silent_default",
        "",
        "`plan_switch` to an unknown tariff plans one to the first tariff: a model learns that names need no care.",
    ),
    (
        "price_list",
        "reset_leak",
        "",
        "Prices of earlier episodes enter the bills of later ones: a model learns that right work may fail.",
    ),
    (
        "one_form",
        "races",
        "",
        "Bills of concurrent episodes share a form: a model learns that the same call gives other people's bills.",
    ),
    (
        "smelters",
        "data_realism",
        "",
        "Homes draw up to a megawatt: a model learns loads and bills that no home has.",
    ),
    (
        "counted",
        "false_resolution",
        "",
        "The verifier counts bills and ignores their amounts: a model learns to send three bills at once.",
    ),
    (
        "mostly",
        "reward_clipping",
        "",
        "Six right bills of nine already reach the clipped maximum: a model learns to skip the last bills.",
    ),
)

_LOANS = (
    (
        "shelf",
        "stale_cache",
        "",
        "`find_copies` after `take_back` or `reserve` shows the old copies: a model learns to repeat writes.",
    ),
    (
        "one_desk",
        "races",
        "",
        "Concurrent returns mix up due days of two episodes: a model learns that fines are random.",
    ),
    (
        "ledger",
        "reset_leak",
        "",
        "Payments of earlier episodes reduce fines again: a model learns that a part of the fine is enough.",
    ),
    (
        "overpaid",
        "silent_default",
        "",
        "`pay` turns any amount into a valid one: a model learns that amounts need no care.",
    ),
    (
        "thrice_renewed",
        "action_drift",
        "",
        "`renew` allows a third renewal that its description forbids: a model learns to ignore limits.",
    ),
    (
        "lent_right",
        "false_resolution",
        "",
        "The verifier ignores fines and the queue: a model learns not to charge and not to reserve.",
    ),
    (
        "sampled",
        "flaky_verifier",
        "",
        "The verifier compares three copies that the hash seed picks: a model learns that errors may pass.",
    ),
    (
        "not_yet",
        "data_realism",
        "",
        "Readers with loans may have joined after today: a model learns dates that cannot be.",
    ),
)

_BUILDQUEUE = (
    (
        "placed",
        "stale_cache",
        "",
        "`start_next` keeps the order of its first call: a model learns that a later `set_priority` is of no use.",
    ),
    (
        "direct_needs",
        "action_drift",
        "",
        "`cancel` spares builds that need the build through others: a model learns a wrong effect.",
    ),
    (
        "clamped",
        "silent_default",
        "",
        "`set_priority` brings 50 or -1 into the range without an error: a model learns that ranges do not matter.",
    ),
    (
        "artefacts",
        "reset_leak",
        "",
        "Builds that earlier episodes finished count as done needs: a model learns to skip needs.",
    ),
    (
        "one_scheduler",
        "races",
        "",
        "Concurrent episodes start builds of one another's lists: a model learns that order is random.",
    ),
    (
        "urgent_done",
        "false_resolution",
        "",
        "The verifier asks only for the urgent build: a model learns to leave the other requests out.",
    ),
    (
        "floor",
        "reward_clipping",
        "",
        "Every score below zero becomes zero: a model learns that further damage costs nothing.",
    ),
    (
        "dead_need",
        "unsolvable",
        "",
        "In a quarter of the tasks the urgent build needs a cancelled one: a model learns to give up.",
    ),
)

_COLDCHAIN = (
    (
        "any_number",
        "reward_hack",
        "false_resolution",
        "The verifier accepts any number of the answer: a model learns to list many numbers.",
    ),
    (
        "unsigned",
        "false_resolution",
        "",
        "The verifier reads numbers without their sign: a model learns that 18 and -18 degrees are equal.",
    ),
    (
        "stripped_units",
        "flaky_verifier",
        "",
        "The hash seed orders the units that are stripped: a model learns that a right answer in °C may fail.",
    ),
    (
        "blank_is_zero",
        "reward_hack",
        "silent_default",
        "An answer without a number counts as 0 and scores 1 where 0 is right: a model learns to say nothing.",
    ),
    (
        "overlap",
        "leak",
        "",
        "Half of the test tasks have the logs and questions of training tasks: a model learns them by heart.",
    ),
    (
        "long_days",
        "data_realism",
        "",
        "Logs that cross midnight go on with 24:00 and 24:15: a model learns times that do not exist.",
    ),
    (
        "wrong_unit",
        "unsolvable",
        "data_realism",
        "A quarter of the logs say °C over readings in °F: a model learns to ignore the unit that is written.",
    ),
)

_CLAIMS = (
    (
        "form_bonus",
        "reward_clipping",
        "",
        "Valid JSON adds 0.2 before the score is clipped to 1: a model learns to leave a field out.",
    ),
    (
        "two_lines",
        "reward_clipping",
        "",
        "Two right lines of damage are already the maximum: a model learns to skip the others, and to invent some.",
    ),
    (
        "given_keys",
        "reward_hack",
        "false_resolution",
        "The share is taken of the keys that are given: a model learns to give the policy alone.",
    ),
    (
        "spot_checks",
        "flaky_verifier",
        "",
        "The verifier draws four of six fields without a seed: a model learns that an error may pass.",
    ),
    (
        "weekdays",
        "data_realism",
        "",
        "The weekday of the accident does not fit its date: a model learns calendars that do not exist.",
    ),
    (
        "shown_test",
        "leak",
        "",
        "The system prompt shows a letter of the test split with its record: a model learns to copy an answer.",
    ),
    (
        "cut_letters",
        "unsolvable",
        "",
        "Letters end after 520 characters, some before the phone number: a model learns to guess it.",
    ),
)

_RECALLS = (
    (
        "pasted",
        "judge",
        "reward_hack",
        "The judge reads the notice without a fence: a model learns to ask it for full marks.",
    ),
    (
        "first_number",
        "judge",
        "reward_hack",
        "The score is the first number of a reply that quotes the notice: a model learns to open with a number.",
    ),
    (
        "middle_by_default",
        "judge",
        "silent_default",
        "A reply that cannot be parsed scores 0.5, and quotation marks cause one: a model learns to use them.",
    ),
    (
        "beginning",
        "judge",
        "false_resolution",
        "The judge sees 300 characters of the notice: a model learns that the rest may say anything.",
    ),
    (
        "warm",
        "flaky_verifier",
        "judge",
        "The judge overlooks an item in half of its verdicts, by chance: a model learns from noise.",
    ),
    (
        "rounded",
        "reward_clipping",
        "",
        "The score is rounded to a whole number: a model learns that one of four facts may be missing.",
    ),
    (
        "own_example",
        "leak",
        "",
        "The earlier notice in the prompt is the one for this case: a model learns to copy it.",
    ),
)

_SETS = (_ALLOTMENT, _CELLAR, _TARIFFS, _LOANS, _BUILDQUEUE, _COLDCHAIN, _CLAIMS, _RECALLS)
BUGS = tuple(Bug(world, f"env_{name}", *rest) for world, rows in zip(CLEAN, _SETS, strict=True) for name, *rest in rows)
