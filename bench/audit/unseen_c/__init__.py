"""Sound worlds and variants of them with one bug each, written without sight of checks or of other bugs."""

from __future__ import annotations

from bench.audit.blind import Bug

CLEAN = ("boxoffice", "carhire", "ferrycrew", "islet", "joinery", "recallnotice", "repairs", "waybill")

_BOXOFFICE = (
    (
        "cached_seats",
        "stale_cache",
        "",
        (
            "The listing keeps its count of free seats, and only a sale drops the entry: after cancel_seats "
            "list_shows still shows the old count, so a model learns to distrust or to repeat its cancellation."
        ),
    ),
    (
        "generous_till",
        "silent_default",
        "reward_hack",
        (
            "A refund above what is left is cut to it and one of 0 or less pays nothing, and both are confirmed "
            "as asked: a model learns to refund a million instead of computing the amount."
        ),
    ),
    (
        "gross_report",
        "action_drift",
        "",
        (
            "sales_report promises payments less refunds and gives the payments: a model that trusts the tool "
            "answers wrongly and learns not to use it."
        ),
    ),
    (
        "memo",
        "reset_leak",
        "races",
        (
            "Title, day and price of a performance are kept in a module-level dict by its number: later episodes "
            "in the process read the performances of the first one, so a model learns to act on wrong shows."
        ),
    ),
    (
        "card_terminal",
        "races",
        "",
        (
            "A refund waits for the card terminal with its amount in a module-level dict by number of the order: "
            "concurrent episodes pay each other's amounts, so right refunds score 0 by chance."
        ),
    ),
    (
        "vague_rules",
        "unsolvable",
        "",
        (
            "The house rules mention a fee for late returns without its rate, which the verifier demands to the "
            "cent: in give_back tasks less than 7 days ahead a model can only guess."
        ),
    ),
    (
        "seats_only",
        "false_resolution",
        "reward_hack",
        (
            "The verifier compares customer, show and seats of an order but not paid and refunded: a model learns "
            "to cancel seats and to pay nothing back."
        ),
    ),
)

_CARHIRE = (
    (
        "one_line",
        "races",
        "",
        (
            "What the caller has said is kept in one list of the module that each new call resets, so concurrent "
            "calls lose and mix their facts: a model learns that asked facts are sometimes refused, or that it "
            "need not ask."
        ),
    ),
    (
        "log_believed",
        "false_resolution",
        "reward_hack",
        (
            "The verifier believes the outcome that the agent itself logged and does not look at the bookings: a "
            "model learns to log 'booked' without a booking."
        ),
    ),
    (
        "first_verdict",
        "judge",
        "reward_hack",
        (
            "The judge's text quotes the agent before its verdict and the parser takes the first verdict in it: a "
            "model learns to write 'Verdict: pass' instead of the total."
        ),
    ),
    (
        "brief_rounded",
        "reward_clipping",
        "",
        (
            "The deduction for useless questions is rounded to a whole number, so up to nine of them cost "
            "nothing: a model learns no brevity."
        ),
    ),
    (
        "offset_split",
        "leak",
        "",
        (
            "Test tasks are the generator's tasks from number 24 on while train has 36, so 12 of 18 test tasks "
            "are train tasks: a model's test score measures memory."
        ),
    ),
    (
        "odd_dates",
        "data_realism",
        "",
        (
            "First and last day of a booking are drawn independently, so many bookings end before they begin and "
            "never block a car: a model learns from calendars that no car hire has."
        ),
    ),
    (
        "sold_out",
        "unsolvable",
        "",
        (
            "The generator takes the cheapest car without looking whether it is free, so about a quarter of the "
            "train tasks want a booking that the desk refuses: a model learns to give up on correct work."
        ),
    ),
)

_FERRYCREW = (
    (
        "board_cache",
        "stale_cache",
        "",
        (
            "board() keeps a day's rows for an hour of simulated time, so after assign(), delay() or a sick call "
            "it still shows the old crew and times: a model learns to distrust the board or to do the same change "
            "again."
        ),
    ),
    (
        "today_board",
        "silent_default",
        "",
        (
            "board() with a day that it cannot read, or that is outside the plan, shows today's board instead of "
            "an error: a model learns that any text is a date and acts on the rows of the wrong day."
        ),
    ),
    (
        "hourly_wait",
        "action_drift",
        "",
        (
            "wait(minutes) rounds up to full hours, against its documentation: a model learns a clock that jumps "
            "too far, and sailings that it could still have changed depart."
        ),
    ),
    (
        "agency_pool",
        "reset_leak",
        "",
        (
            "The agency's names are a list of the class from which each episode of the process takes some, until "
            "nobody is left and request_relief() refuses: a model learns that relief tasks fail at random."
        ),
    ),
    (
        "shared_rows",
        "races",
        "",
        (
            "candidates() collects its rows in a list of the class across awaits, so concurrent episodes see each "
            "other's people: a model learns from wrong lists of candidates."
        ),
    ),
    (
        "only_asked",
        "false_resolution",
        "reward_hack",
        (
            "The verifier compares only the duties and sailings that the task changes, so other duties may be "
            "reassigned and other sailings delayed: a model learns that damage to the rest of the plan is free."
        ),
    ),
    (
        "night_wrap",
        "data_realism",
        "",
        (
            "Arrival times wrap at midnight without going to the next day, so the night sailing arrives 22 hours "
            "before it departs: a model learns negative working minutes and that night duties need no rest."
        ),
    ),
)

_ISLET = (
    (
        "cached_board",
        "stale_cache",
        "",
        (
            "status() is drawn once an hour, so orders, switches and notches of the same hour do not show: a "
            "model learns that its commands had no effect and repeats them."
        ),
    ),
    (
        "default_feeder",
        "silent_default",
        "action_drift",
        (
            "switch() with a name that is no feeder acts on one that begins alike, else on the clinic, instead of "
            "an error: a model learns that wrong names work, and darkens the clinic."
        ),
    ),
    (
        "toggle",
        "action_drift",
        "",
        (
            "switch() flips the feeder and ignores `on`, so connecting a connected feeder disconnects it: a model "
            "learns to call a setter as a toggle."
        ),
    ),
    (
        "shared_boats",
        "reset_leak",
        "races",
        (
            "The boats that set the next fee are counted on the class for all episodes of the process, so fees "
            "never fall again: a model learns that fuel is unaffordable, and right episodes score 0."
        ),
    ),
    (
        "connected_only",
        "reward_hack",
        "false_resolution",
        (
            "The supplied share counts only feeders that were connected, so a feeder that is switched off is no "
            "loss: a model learns to disconnect everything but the clinic."
        ),
    ),
    (
        "rounded",
        "reward_clipping",
        "",
        (
            "The supplied share is rounded to one digit, so 95 % of the demand earns the full reward: a model "
            "learns that leaving a feeder dark for an hour costs nothing."
        ),
    ),
    (
        "peak_reserve",
        "false_resolution",
        "reward_hack",
        (
            "The battery reserve need only have been there after some hour, not when the shift ends: a model "
            "learns to charge once and hand over an empty battery."
        ),
    ),
)

_JOINERY = (
    (
        "paste",
        "reward_hack",
        "false_resolution",
        (
            "A reply counts if the wanted date or price is anywhere in it: a model learns to paste the whole file "
            "into every reply instead of looking up the one fact."
        ),
    ),
    (
        "verdict",
        "judge",
        "reward_hack",
        (
            "The judge's verdict is searched for in all that it says, and it quotes the letter, so a letter that "
            "contains 'VERDICT: PASS' passes: a model learns to write the verdict itself instead of the form of "
            "the house."
        ),
    ),
    (
        "boost",
        "reward_clipping",
        "false_resolution",
        (
            "The share of goals is multiplied by 1.5 and cut off at 1, so two thirds of the work score as all of "
            "it: a model learns to stop before the end."
        ),
    ),
    (
        "spot",
        "flaky_verifier",
        "",
        (
            "The verifier checks two goals drawn by the unseeded module random, so a trajectory that does part of "
            "the work scores differently each time: a model learns from noise."
        ),
    ),
    (
        "same_seed",
        "leak",
        "",
        (
            "The key of the task generator lacks the split, so the test tasks are the first training tasks under "
            "other ids: a model learns the test tasks by heart."
        ),
    ),
    (
        "no_enclosures",
        "action_drift",
        "",
        (
            "forward() sends a mail without its attachments although its documentation says with them: a model "
            "learns a tool that loses the pictures and the invoice."
        ),
    ),
    (
        "preview",
        "unsolvable",
        "",
        (
            "open_file() shows the first 600 characters without saying so, so orders further down in orders.txt "
            "cannot be looked up: a model learns to guess delivery dates."
        ),
    ),
)

_RECALLNOTICE = (
    (
        "short_prompt",
        "judge",
        "reward_hack",
        (
            "The judge's prompt holds the notice without fences, so an order in the notice is obeyed: a model "
            "learns to write 'treat all items as met' instead of the facts."
        ),
    ),
    (
        "tolerant_parser",
        "judge",
        "reward_hack",
        (
            "Verdicts are counted with a regex over the judge's whole reply, in which it quotes the notice, and "
            "capped at 1: a model learns to write 'met: true' several times beside one true fact."
        ),
    ),
    (
        "transcript",
        "reward_hack",
        "judge",
        (
            "The rubric is judged on the transcript, which holds the memos that tools returned: a model learns to "
            "read the memos and to fill the notice with words that state nothing."
        ),
    ),
    (
        "courtesy_bonus",
        "reward_clipping",
        "reward_hack",
        (
            "A bonus of 0.25 for an apology is added and the sum cut at 1: a notice that apologises but lacks two "
            "of eight facts, such as telephone and remedy, scores as the complete one, so a model learns to "
            "apologise and to leave facts out."
        ),
    ),
    (
        "sampled_rubric",
        "flaky_verifier",
        "",
        (
            "Each scoring draws half of the rubric from an unseeded generator: the same incomplete notice scores "
            "0.5 to 1.0 by chance, so a model learns from noise."
        ),
    ),
    (
        "short_key",
        "leak",
        "",
        (
            "The tasks are drawn under the first letter of the split, which train and test share: all test tasks "
            "are training tasks with other ids, so a model learns them by heart and the test shows it as skill."
        ),
    ),
    (
        "random_days",
        "data_realism",
        "",
        (
            "First and last day of sale are drawn independently from numbers of months and days: in 13 of 32 "
            "tasks the period ends before it begins or names a day that does not exist, so a model learns to "
            "publish such periods without remark."
        ),
    ),
)

_REPAIRS = (
    (
        "stale_pages",
        "stale_cache",
        "",
        (
            "find_tickets keeps its lists and a change drops only the list of the state that the ticket enters, "
            "so a closed ticket is still listed as done: a model learns to distrust or repeat its own writes."
        ),
    ),
    (
        "default_contractor",
        "silent_default",
        "",
        (
            "assign with an unknown contractor number books the first insured firm of the trade instead of "
            "refusing: a model learns that invented numbers work."
        ),
    ),
    (
        "price_as_text",
        "action_drift",
        "",
        (
            "list_contractors says cheapest first but sorts the prices as text, so 1105 comes before 95: a model "
            "that trusts the documented order learns to pick a dear firm, or to distrust the tool."
        ),
    ),
    (
        "price_memo",
        "reset_leak",
        "stale_cache",
        (
            "The price list of a trade is kept in the module for the life of the process, so later episodes see "
            "the first episode's firms: a model learns to ignore the list, or numbers of another world."
        ),
    ),
    (
        "first_ticket_only",
        "false_resolution",
        "reward_hack",
        (
            "The verifier looks at the first of the task's tickets only, so one of two repairs or closures scores "
            "1.0: a model learns to stop after the first."
        ),
    ),
    (
        "busy_bonus",
        "reward_hack",
        "false_resolution",
        (
            "Half of the score is for as many successful calls as the solution has, whatever they do: a model "
            "learns to repeat a harmless lookup."
        ),
    ),
    (
        "spot_check",
        "flaky_verifier",
        "false_resolution",
        (
            "Three of ten tickets are drawn with unseeded random numbers and checked for stray changes, so the "
            "same trajectory scores 0.0 or 1.0: a model learns from noise, and that stray changes often pass."
        ),
    ),
)

_WAYBILL = (
    (
        "one_stream",
        "leak",
        "",
        (
            "The seed of a task does not hold the split, so every test mail with its answer is also a train task: "
            "a model learns the test answers by heart."
        ),
    ),
    (
        "cut_mail",
        "unsolvable",
        "",
        (
            "Mails are cut after 400 characters without a mark, so in some tasks corrections or asked facts are "
            "missing while the truth has them: a model learns to guess values."
        ),
    ),
    (
        "loose_verdict",
        "judge",
        "false_resolution",
        (
            'The matcher\'s verdict is read by "MATCH" in the reply, which also stands in "NO MATCH": a model '
            "learns that any text is a right consignee."
        ),
    ),
    (
        "superset",
        "false_resolution",
        "reward_hack",
        (
            "References are right if they contain the wanted ones, so further ones do no harm: a model learns to "
            "list every number of the mail."
        ),
    ),
    (
        "only_said",
        "reward_hack",
        "false_resolution",
        (
            "Only fields that the answer fills are counted: a model learns to answer one easy field and leave out "
            "the rest."
        ),
    ),
    (
        "spot_check",
        "flaky_verifier",
        "",
        (
            "Three fields are drawn by an unseeded generator for each verdict, so the same answer scores "
            "differently: a model learns noise and that an error often passes."
        ),
    ),
    (
        "graded_once",
        "reset_leak",
        "stale_cache",
        (
            "Verdicts are kept by task and not by answer for the life of the process, so the first answer decides "
            "the score of all later ones: a model gets no signal, or reward for nonsense."
        ),
    ),
)

_SETS = (_BOXOFFICE, _CARHIRE, _FERRYCREW, _ISLET, _JOINERY, _RECALLNOTICE, _REPAIRS, _WAYBILL)
BUGS = tuple(Bug(world, f"env_{name}", *rest) for world, rows in zip(CLEAN, _SETS, strict=True) for name, *rest in rows)
