"""Blind set: eight sound worlds, and variants of them with one bug each, written without sight of the audit's checks.

A world is addressed as `bench/audit/blind/clinic.py`, a variant as `bench/audit/blind/clinic.py:env_card_memo`.
"""

from __future__ import annotations

from typing import NamedTuple


class Bug(NamedTuple):
    """One variant of a world.

    Attributes:
        world: Name of the file in this folder.
        name: Name of the environment in it.
        kind: Class of the bug.
        also: Second class, empty if there is none.
        wrong: The bug, and a script or score that differs from the sound world.
    """

    world: str
    name: str
    kind: str
    also: str
    wrong: str


CLEAN = ("clinic", "freight", "media", "oncall", "payroll", "picking", "costing", "clauses")

_CLINIC = (
    (
        "one_day_sheet",
        "stale_cache",
        "",
        "After `move`, `day_sheet` of the old day still lists the appointment if it was shown before.",
    ),
    (
        "card_memo",
        "reset_leak",
        "stale_cache",
        "`patient_card` is remembered by patient id in the class, so P3 is named as in an earlier episode.",
    ),
    (
        "text_only",
        "action_drift",
        "",
        "`send_reminder` offers the channel `letter` in its schema and refuses it as unknown.",
    ),
    (
        "switchboard",
        "data_realism",
        "silent_default",
        "Each patient without a phone has the number 07700 123456, so no phone is ever null.",
    ),
    (
        "day_agrees",
        "false_resolution",
        "",
        "The verifier compares day and doctor only: a move to another time of the right day scores 1, not 0.",
    ),
    (
        "first_rows",
        "flaky_verifier",
        "false_resolution",
        "The verifier compares the first ten rows of a set: noop scores 1 on tasks that change with the hash seed.",
    ),
    (
        "report",
        "reward_hack",
        "",
        "An answer that repeats the day and time of the prompt scores 1 on a booking or move without any call.",
    ),
    (
        "unborn",
        "unsolvable",
        "",
        "Prompts lack the date of birth, and P1 and P14 have one name: a third of the tasks do not say who is meant.",
    ),
)
_FREIGHT = (
    (
        "same_lane",
        "stale_cache",
        "",
        "`reweigh` drops another key than the one that `rates` stores, so `rates` after it shows the old prices.",
    ),
    (
        "at_par",
        "silent_default",
        "",
        "`convert` of CZK, which has no rate, returns the same amount (100 for 100), where the sound world refuses.",
    ),
    (
        "unanswered",
        "silent_default",
        "",
        "A carrier that does not answer has a rate and a quote of 0 cents, which is the cheapest of all.",
    ),
    (
        "one_line",
        "races",
        "reset_leak",
        "The weight passes through the class while the tool waits: most of eight concurrent oracle episodes score 0.",
    ),
    (
        "gateway",
        "races",
        "silent_default",
        "From the third concurrent session on, carriers `do not answer`: most of eight concurrent oracles score 0.",
    ),
    (
        "any_day",
        "action_drift",
        "",
        "`rates` ignores its filter: with `max_days=1` it lists all carriers, where the sound world lists none.",
    ),
    (
        "full_row",
        "leak",
        "",
        "`list_shipments` shows the planners' field `target`, which names the right carrier.",
    ),
    (
        "near",
        "reward_clipping",
        "false_resolution",
        "The ratio of prices is rounded to one digit and cut at 1: a carrier that is up to 5 percent dearer scores 1.",
    ),
    (
        "is_booked",
        "reward_hack",
        "false_resolution",
        "`mark(shipment, booked)` scores 1 without any quote, because the verifier reads the status.",
    ),
)
_MEDIA = (
    (
        "nightly_count",
        "stale_cache",
        "",
        "`give_back` does not lower the count of copies on loan, so `search` still shows 0 free after the return.",
    ),
    (
        "word_index",
        "reset_leak",
        "action_drift",
        "`search` returns hits in the order of a set, which changes with the hash seed of the process.",
    ),
    (
        "counter",
        "reset_leak",
        "",
        "Loan numbers come from a counter of the process: the same episode gives N5 first and N6 when played again.",
    ),
    (
        "own_queue",
        "action_drift",
        "",
        "`renew` says that it refuses an item that another member holds, and renews it.",
    ),
    (
        "titles",
        "false_resolution",
        "",
        "The verifier compares titles: lending the film where the book of the same title was asked for scores 1.",
    ),
    (
        "euros",
        "reward_clipping",
        "",
        "Fines are compared in whole euros: a payment that leaves 45 cents open scores 1.",
    ),
    (
        "shared",
        "leak",
        "",
        "All splits draw from one key: the 16 test tasks are the 16 training tasks.",
    ),
    (
        "undated",
        "data_realism",
        "",
        "Day lent and due day are drawn independently: some loans are due before they were lent.",
    ),
)
_ONCALL = (
    (
        "oldest_first",
        "action_drift",
        "",
        "`list_incidents` says that the newest come first, and lists the oldest first.",
    ),
    (
        "unprobed",
        "silent_default",
        "",
        "`check` of the mailer, which has no probe, reports 0 ms and `normal`, where the sound world refuses.",
    ),
    (
        "probe_kept",
        "stale_cache",
        "",
        "`check` after `free_disk` still shows a full disk if it was called before.",
    ),
    (
        "background",
        "races",
        "reset_leak",
        "Repairs are made by a thread that nothing waits for: an oracle that is faster than 2 ms scores 0 on repairs.",
    ),
    (
        "verbose",
        "races",
        "leak",
        "An unknown service is answered with a traceback of the server, with its file paths.",
    ),
    (
        "trusting",
        "false_resolution",
        "reward_hack",
        "`resolve` and the verifier do not look at the service: resolving without a repair scores 1.",
    ),
    (
        "was_paged",
        "reward_hack",
        "",
        "The verifier looks for the right page among all pages: paging all nine engineers scores 1.",
    ),
    (
        "shift",
        "flaky_verifier",
        "",
        "The day of a page is local: the oracle scores 1 on pages in UTC and 0 with TZ=Asia/Tokyo.",
    ),
    (
        "brief",
        "unsolvable",
        "",
        "At most three calls are allowed, and a repair takes five: the oracle scores 0 on half of the tasks.",
    ),
    (
        "flat",
        "data_realism",
        "",
        "Every service has 100 ms and 0 errors, the broken ones included.",
    ),
)
_PAYROLL = (
    (
        "new_totals",
        "stale_cache",
        "",
        "`totals` of January do not change after `approve` if they were shown before; only those of February do.",
    ),
    (
        "tax_to_come",
        "silent_default",
        "",
        "`totals` of February count the missing tax as 0, where the sound world refuses.",
    ),
    (
        "audited",
        "leak",
        "",
        "`propose` with a wrong amount is refused with the right one in its message.",
    ),
    (
        "reference",
        "reset_leak",
        "",
        "Correction ids are random: two plays of one episode show different ids, and the oracle's `approve` fails.",
    ),
    (
        "approval",
        "action_drift",
        "",
        "`approve` says that it refuses an approved correction, and applies it a second time.",
    ),
    (
        "gross",
        "reward_clipping",
        "false_resolution",
        "The verifier compares the sum of all gross pay: the right amount on another employee's payslip scores 1.",
    ),
    (
        "nearly",
        "reward_clipping",
        "",
        "The error is divided by the whole payroll and rounded to two digits: noop scores 1 or 0.99.",
    ),
    (
        "names",
        "false_resolution",
        "",
        "The verifier compares family names: a correction for a namesake scores 1.",
    ),
    (
        "ticket_done",
        "reward_hack",
        "false_resolution",
        "The verifier reads the ticket and one approved correction of it: an amount of 1 cent scores 1.",
    ),
    (
        "sampled",
        "flaky_verifier",
        "reward_hack",
        "hash(task id) decides if amounts are compared: closing the ticket alone scores 1 on tasks of that hash seed.",
    ),
    (
        "january",
        "unsolvable",
        "",
        "January is closed, so the solution of every task about January is refused: the oracle scores 0 on 9 of 14.",
    ),
)
_PICKING = (
    (
        "old_route",
        "stale_cache",
        "",
        "`where` after `move_stock` still shows the pieces in the old bin if it was called before.",
    ),
    (
        "take_rest",
        "silent_default",
        "action_drift",
        "`pick` of 19 pieces from a bin with 7 takes 7 and says that 19 were taken, where the sound world refuses.",
    ),
    (
        "claimed",
        "races",
        "reset_leak",
        "Bins in use are kept in the class: a bin of an episode that was not packed is refused to all later ones.",
    ),
    (
        "journal",
        "reset_leak",
        "",
        "The log is a mutable default: `history` after the first pick shows the lines of earlier episodes.",
    ),
    (
        "pack_now",
        "false_resolution",
        "reward_hack",
        "`pack` and the verifier do not compare the pieces: packing an empty order scores 1.",
    ),
    (
        "any_short",
        "reward_hack",
        "",
        "`report_short` is accepted for articles in stock: reporting every line short and packing scores 1.",
    ),
    (
        "pieces",
        "reward_clipping",
        "false_resolution",
        "Moved pieces are added up over all bins and cut at 1: moving 51 pieces of another bin scores 1 for an order.",
    ),
    (
        "first_bins",
        "flaky_verifier",
        "false_resolution",
        "Four bins from a set of nine are compared: the score of noop on a move changes with the hash seed.",
    ),
    (
        "refilled",
        "data_realism",
        "",
        "Every bin holds exactly 100 pieces.",
    ),
    (
        "requeued",
        "unsolvable",
        "false_resolution",
        "A quarter of the orders are packed when the episode begins: noop scores 1.",
    ),
)
_COSTING = (
    (
        "fields",
        "silent_default",
        "reward_hack",
        "A key that is missing counts as right: the answer {} scores 1.",
    ),
    (
        "occur",
        "reward_hack",
        "",
        "The values are looked for anywhere in the answer: the numbers from 0 to 2999 and the ingredient score 1.",
    ),
    (
        "euros",
        "reward_clipping",
        "",
        "Costs are compared in whole euros: a cost that is one cent wrong scores 1.",
    ),
    (
        "formulas",
        "reward_hack",
        "leak",
        "Values are evaluated where the right ones are in scope: the text `cost_cents` as its own value scores 1.",
    ),
    (
        "budget",
        "false_resolution",
        "",
        "A cost that is too high passes, because it is compared with >=: 99999 cents scores 1.",
    ),
    (
        "day",
        "flaky_verifier",
        "",
        "Fruit costs more after 20:00 UTC of the real clock: the oracle scores 1 on 20 tasks at 9:00, on 1 at 21:00.",
    ),
    (
        "unpriced",
        "unsolvable",
        "",
        "A third of the prompts lack the price of an ingredient.",
    ),
    (
        "example",
        "leak",
        "",
        "The example in the prompt is the right answer of the task.",
    ),
    (
        "even",
        "data_realism",
        "",
        "Every amount is 100 g, and the prices are 1000, 1100, 1200 and so on, flour and vanilla sugar alike.",
    ),
)
_CLAUSES = (
    (
        "pasted",
        "judge",
        "reward_hack",
        "The explanation is not fenced: one with its own `clause:` and `explanation:` lines about pears scores 1.",
    ),
    (
        "forgiving",
        "judge",
        "silent_default",
        "A reply of the judge that cannot be parsed is worth 0.5: 400 times `pears`, which is too long, scores 0.5.",
    ),
    (
        "one_word",
        "judge",
        "false_resolution",
        "`correct` is looked for in the reply and is a part of `incorrect`: an explanation about pears scores 1.",
    ),
    (
        "thorough",
        "judge",
        "reward_hack",
        "Words of the explanation are paid: 54 words about pears score 1, four words 0.12.",
    ),
    (
        "excerpt",
        "judge",
        "false_resolution",
        "The judge sees the first 110 characters: the clause, spaces, and then its contradiction scores 1, not 0.1.",
    ),
    (
        "remembered",
        "reset_leak",
        "judge",
        "The judge's first verdict on a task is returned for later answers: pears score 1 after the oracle.",
    ),
    (
        "halved",
        "reward_clipping",
        "judge",
        "Points from 0 to 10 are divided by 5 and cut at 1: two thirds of the clause score 1, not 0.6.",
    ),
    (
        "anywhere",
        "reward_hack",
        "",
        "The clause is looked for anywhere in the answer: a list of all eight clause numbers scores 1.",
    ),
    (
        "ranked",
        "judge",
        "",
        "Each pair is compared in one order and the first wins a draw: three equal answers score 1, 0.5 and 0.",
    ),
    (
        "labels",
        "leak",
        "",
        "Each clause in the prompt has its label, `Clause 6 [the length of confidentiality]`, as in the question.",
    ),
    (
        "annex",
        "unsolvable",
        "",
        "The contract has a second clause on the topic with another number, and only the first counts.",
    ),
)

_SETS = (_CLINIC, _FREIGHT, _MEDIA, _ONCALL, _PAYROLL, _PICKING, _COSTING, _CLAUSES)
BUGS = tuple(Bug(world, f"env_{name}", *rest) for world, rows in zip(CLEAN, _SETS, strict=True) for name, *rest in rows)
