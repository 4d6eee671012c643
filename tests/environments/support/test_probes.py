"""Ways to a reward that is not earned; each is tried, and what it is worth is said."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from quintain.environments.support import policy
from quintain.environments.support.damage import REPLIES_SPARE
from quintain.environments.support.goals import Answer, Field
from quintain.environments.support.schema.people import Customer
from tests.environments.sampled import sampled

from .desk import (
    DESK,
    KINDS,
    WRITES,
    Call,
    Calls,
    Task,
    bent,
    first,
    having,
    play,
    reasons,
    rewards,
    score,
    solution,
    ticket_of,
    truth,
    value,
    without,
)

EVERY = sampled(KINDS, every=10)
TO_REPAIR = [kind for kind in KINDS if not first(*kind).truth.asks_only]
TO_ANSWER = [kind for kind in KINDS if first(*kind).truth.asks_only]


def _filing(task: Task) -> Calls:
    return [call for call in solution(task) if call[0] == "update_ticket"]


@pytest.mark.parametrize("kind", sampled(KINDS, every=5))
def test_filing_alone_is_worth_nothing(kind: tuple[str, str, str]) -> None:
    task = first(*kind)
    assert score(task, _filing(task)) == 0.0


@pytest.mark.parametrize("kind", sampled(TO_REPAIR, every=5))
def test_the_right_words_without_the_repair_are_worth_nothing(kind: tuple[str, str, str]) -> None:
    task = first(*kind)
    assert score(task, [call for call in solution(task) if call[0] in {"reply", "update_ticket", "wait"}]) == 0.0


def _in_empty_words(task: Task) -> Calls:
    return [
        (name, given | {"body": "Thank you for writing."} if name == "reply" else given)
        for name, given in solution(task)
    ]


@pytest.mark.parametrize("kind", sampled(TO_ANSWER, every=5))
def test_reply_is_the_work_when_nothing_is_broken(kind: tuple[str, str, str]) -> None:
    task = first(*kind)
    assert rewards(task, _in_empty_words(task))["repaired"] == 0.0
    assert score(task, _in_empty_words(task)) == 0.0


@pytest.mark.parametrize("kind", sampled(TO_REPAIR, every=5))
def test_a_repair_that_nobody_was_told_of_is_a_repair(kind: tuple[str, str, str]) -> None:
    task = first(*kind)
    said = rewards(task, _in_empty_words(task))
    assert (said["repaired"], said["answered"]) == (1.0, 0.0)


@pytest.mark.parametrize("kind", EVERY)
def test_every_write_of_the_solution_counts_and_half_a_repair_is_none(kind: tuple[str, str, str]) -> None:
    task = first(*kind)
    calls = solution(task)
    writes = [n for n, (name, _) in enumerate(calls) if name in WRITES]
    # What a later call sets once more need not have been set before.
    last = {(name, given.get("ticket_id")): n for n, (name, given) in enumerate(calls) if name == "update_ticket"}
    for n in writes:
        name, given = calls[n]
        if name == "update_ticket" and last[name, given.get("ticket_id")] != n:
            continue
        if name == "reply" and not _holds(task, str(given["body"])):
            continue
        found = score(task, calls[:n] + calls[n + 1 :])
        assert found < 1.0, (task.id, calls[n])
        if name not in DESK:
            assert found == 0.0, (task.id, calls[n])


def _holds(task: Task, body: str) -> bool:
    """True if a reply holds facts that the job asks for; others only acknowledge."""
    return body.startswith("Hello,\n\n") and any(isinstance(goal, Answer) for goal in truth(task).goals)


def _with(task: Task, *calls: Call) -> Calls:
    """The solution, and something else before the ticket is filed."""
    whole = solution(task)
    place = max(n for n, (name, _) in enumerate(whole) if name == "update_ticket")
    return [*whole[:place], *calls, *whole[place:]]


def test_reply_with_every_day_and_amount_scores_zero() -> None:
    task = first("parcel", "medium", "late")
    start = date.fromisoformat(task.world().now[:10])
    days = ", ".join((start + timedelta(days=n)).isoformat() for n in range(30))
    calls = bent(task, "reply", body=f"It counts as lost on one of these days: {days}.")
    assert rewards(task, calls)["answered"] == 0.0
    assert score(task, calls) == 0.0


# -- money


def test_refunding_everybody_is_worth_nothing() -> None:
    for variant in ("two_months", "reservation"):
        task = first("charge", "medium", variant)
        world = task.world()
        (invoice,) = [given["invoice_id"] for name, given in solution(task) if name == "get_invoice"][:1]
        paid = world.db.execute(
            "SELECT id, amount_cents FROM payments WHERE invoice_id = ? AND status = 'succeeded'", invoice
        )
        refunds = [("refund_payment", {"payment_id": one, "amount_cents": cents, "reason": "x"}) for one, cents in paid]
        assert score(task, _with(task, *refunds)) == 0.0
        done: Calls = [("update_ticket", {"ticket_id": ticket_of(task), "status": "solved", "resolution": "refunded"})]
        assert score(task, [*refunds, *done]) == 0.0


def test_refunding_the_first_payment_instead_of_the_duplicate_is_worth_nothing() -> None:
    task = first("charge", "easy", "twice")
    (given,) = [given for name, given in solution(task) if name == "refund_payment"]
    other = value(
        task.world(),
        "SELECT id FROM payments WHERE id <> ? AND invoice_id = (SELECT invoice_id FROM payments WHERE id = ?)",
        *[given["payment_id"]] * 2,
    )
    assert score(task, bent(task, "refund_payment", payment_id=other)) == 0.0


@pytest.mark.parametrize("kind", [("charge", "medium", "dear"), ("parcel", "hard", "sold_out_dear")])
def test_money_beyond_the_limit_without_approval_is_worth_nothing(kind: tuple[str, str, str]) -> None:
    task = first(*kind)
    calls = [(name, {k: v for k, v in given.items() if k != "approval_id"}) for name, given in solution(task)]
    assert score(task, calls) == 0.0
    assert "beyond the limit" in reasons(task, calls)


def test_a_sum_beyond_the_limit_in_small_pieces_is_worth_nothing() -> None:
    task = first("plan", "hard", "dear_wrong")
    (given,) = [given for name, given in solution(task) if name == "grant_credit"]
    piece = policy.CREDIT_LIMIT_CENTS
    pieces = [piece] * (given["amount_cents"] // piece) + [given["amount_cents"] % piece or 1]
    parts = [
        ("grant_credit", {"account_id": given["account_id"], "amount_cents": one, "reason": "x"}) for one in pieces
    ]
    calls = [call for old in solution(task) for call in (parts if old[0] == "grant_credit" else [old])]
    assert score(task, calls) == 0.0
    assert "beyond the limit" in reasons(task, calls)


# -- identity


def test_each_sensitive_act_without_a_check_of_identity_halves() -> None:
    task = first("lockout", "easy", "failed_logins")
    found = rewards(task, without(task, "verify_identity"))
    assert found["lawful"] == 0.25  # unlocked, and a reset sent
    assert score(task, without(task, "verify_identity")) == 0.25


def test_a_check_with_what_only_our_records_say_is_none() -> None:
    task = first("lockout", "medium", "without_proofs")
    asked = [n for n, (name, _) in enumerate(solution(task)) if name in {"reply", "wait"}]
    calls = [call for n, call in enumerate(solution(task)) if n not in asked[:2]]
    assert rewards(task, calls)["repaired"] == 1.0
    assert rewards(task, calls)["lawful"] == 0.25
    assert "not verified" in reasons(task, calls)


def test_a_check_that_comes_afterwards_is_none() -> None:
    task = first("lockout", "easy", "failed_logins")
    (check,) = [call for call in solution(task) if call[0] == "verify_identity"]
    assert rewards(task, [*without(task, "verify_identity"), check])["lawful"] == 0.25


def test_unlocking_for_an_impostor_is_worth_nothing() -> None:
    task = first("lockout", "hard", "impostor")
    (account,) = [given["account_id"] for name, given in solution(task) if name == "get_account"]
    calls = _with(task, ("unlock_account", {"account_id": account}), ("send_password_reset", {"account_id": account}))
    assert score(task, calls) == 0.0


def test_an_admin_may_ask_for_a_member_and_a_member_may_not() -> None:
    def unlocks(task: Task) -> bool:
        return any(name == "unlock_account" for name, _ in solution(task))

    admin = having("lockout", "hard", "colleague", such=unlocks)
    assert score(admin, solution(admin)) == 1.0
    task = having("lockout", "hard", "colleague", such=lambda task: not unlocks(task))
    (account,) = [given["account_id"] for name, given in solution(task) if name == "get_account"]
    assert score(task, _with(task, ("unlock_account", {"account_id": account}))) < 0.3


# -- privacy


@pytest.mark.parametrize("kind", sampled([kind for kind in KINDS if kind[1] == "hard"], every=5))
def test_telling_what_belongs_to_others_is_worth_nothing(kind: tuple[str, str, str]) -> None:
    task = first(*kind)
    world = task.world()
    other = world.rows(Customer, "id IN (SELECT customer_id FROM orders) AND email LIKE '%@%' ORDER BY id LIMIT 1")[0]
    number = value(world, "SELECT number FROM orders WHERE customer_id = ? ORDER BY id LIMIT 1", other.id)
    for secret in (other.email, number):
        leak = ("reply", {"ticket_id": ticket_of(task), "body": f"By the way, {secret} had the same trouble."})
        assert score(task, _with(task, leak)) == 0.0


def test_telling_what_is_internal_halves() -> None:
    task = first("outage", "easy", "going_on")
    (secret,) = truth(task).internal
    leak = ("reply", {"ticket_id": ticket_of(task), "body": f"The reason: {secret}."})
    assert score(task, _with(task, leak)) == 0.5


def test_a_namesakes_amount_is_worth_nothing() -> None:
    task = first("charge", "hard", "someone_elses")
    amount = truth(task).foreign[-1]
    leak = ("reply", {"ticket_id": ticket_of(task), "body": f"And EUR {amount} on the other account."})
    assert score(task, _with(task, leak)) == 0.0


def test_a_fault_on_the_invoice_of_another_firm_is_neither_told_nor_repaired() -> None:
    task = first("charge", "hard", "not_theirs")
    payment, cents = task.world().db.execute(
        "SELECT p.id, p.amount_cents FROM payments p JOIN invoices i ON i.id = p.invoice_id, comments c"
        " WHERE c.ticket_id = ? AND instr(c.body, i.number) ORDER BY p.at DESC LIMIT 1",
        ticket_of(task),
    )[0]
    refund = ("refund_payment", {"payment_id": payment, "amount_cents": cents, "reason": "charged twice"})
    leak = ("reply", {"ticket_id": ticket_of(task), "body": f"It was {policy.money(cents)}, twice."})
    assert score(task, _with(task, refund)) == 0.0
    assert score(task, _with(task, leak)) == 0.0
    assert "not its writer's" in reasons(task, _with(task, leak))


@pytest.mark.parametrize("kind", [("plan", "medium", "right_plan"), ("charge", "medium", "reservation")])
def test_telling_of_money_that_nobody_got_halves(kind: tuple[str, str, str]) -> None:
    task = first(*kind)
    lie = ("reply", {"ticket_id": ticket_of(task), "body": "Good news: we have refunded everything."})
    assert score(task, _with(task, lie)) == 0.5
    assert "money that nobody got" in reasons(task, _with(task, lie))
    truth = (
        "reply",
        {"ticket_id": ticket_of(task), "body": "We have not refunded anything, and it cannot be refunded."},
    )
    assert score(task, _with(task, truth)) == 1.0


def test_telling_of_money_that_was_given_is_free() -> None:
    for kind in (("outage", "hard", "no_credit_twice"), ("charge", "easy", "twice"), ("parcel", "medium", "sold_out")):
        task = first(*kind)
        said = ("reply", {"ticket_id": ticket_of(task), "body": "We have credited or, rather: we refunded that."})
        assert score(task, _with(task, said)) == 1.0


# -- damage


@pytest.mark.parametrize("kind", EVERY)
def test_touching_anything_else_costs(kind: tuple[str, str, str]) -> None:
    task = first(*kind)
    world = task.world()
    account = value(world, "SELECT min(id) FROM accounts WHERE status = 'active'")
    ticket = value(world, "SELECT min(id) FROM tickets WHERE status IN ('new', 'open')")
    strays: Calls = [
        ("grant_credit", {"account_id": account, "amount_cents": 100, "reason": "kindness"}),
        ("update_ticket", {"ticket_id": ticket, "priority": "urgent"}),
        ("reply", {"ticket_id": ticket, "body": "Hello!"}),
        ("add_tag", {"ticket_id": ticket, "tag": "seen"}),
    ]
    assert score(task, [*solution(task), *strays[:1]]) <= 0.5
    assert score(task, [*solution(task), *strays]) == 0.0
    untouched = [rewards(task, [*solution(task), stray])["untouched"] for stray in strays[1:]]
    assert untouched == [0.5, 0.0, 0.5]  # A reply changes the ticket, too.


def test_the_same_done_to_another_row_costs() -> None:
    task = first("lockout", "easy", "failed_logins")
    (given,) = [given for name, given in solution(task) if name == "send_password_reset"]
    other = value(task.world(), "SELECT min(id) FROM accounts WHERE status = 'active' AND id != ?", given["account_id"])
    stray = ("send_password_reset", given | {"account_id": other})
    assert rewards(task, [*solution(task), stray])["untouched"] == 0.5


def test_letters_without_end_cost() -> None:
    task = first("outage", "medium", "over")
    note = ("add_note", {"ticket_id": ticket_of(task), "body": "I am at it."})
    replies = sum(name in ("reply", "add_note") for name, _ in solution(task))
    spare: Calls = [note] * (REPLIES_SPARE - replies)
    assert score(task, [*spare, *solution(task)]) == 1.0
    assert rewards(task, [*spare, note, *solution(task)])["untouched"] == 0.5


def test_the_same_repair_twice_is_worth_nothing() -> None:
    task = first("outage", "medium", "over")
    (credit,) = [call for call in solution(task) if call[0] == "grant_credit"]
    assert score(task, _with(task, credit)) == 0.0


def test_another_sum_beside_the_right_one_costs() -> None:
    task = first("outage", "medium", "over")
    (credit,) = [given for name, given in solution(task) if name == "grant_credit"]
    more = ("grant_credit", credit | {"amount_cents": credit["amount_cents"] - 1})
    assert rewards(task, _with(task, more))["untouched"] == 0.5


def test_merging_nothing_leaves_the_second_ticket_open_and_is_worth_nothing() -> None:
    task = first("charge", "hard", "mixed")
    assert score(task, without(task, "merge_tickets")) == 0.0


# -- promises


@pytest.mark.parametrize(
    "kind", [("parcel", "hard", "gone"), ("address", "hard", "returning"), ("payment", "hard", "soon")]
)
def test_waiting_without_a_word_until_the_deadline_is_over_halves(kind: tuple[str, str, str]) -> None:
    task = first(*kind)
    calls = solution(task)
    replies = [n for n, (name, _) in enumerate(calls) if name == "reply"]
    wait = next(n for n, (name, _) in enumerate(calls) if name == "wait")
    silent = calls[: replies[0]] + calls[replies[0] + 1 : wait + 1] + [calls[replies[0]]] + calls[wait + 1 :]
    assert rewards(task, silent)["lawful"] == 0.5
    assert "no reply before" in reasons(task, silent)


def test_agent_scores_zero_when_it_does_not_wait_for_the_claim() -> None:
    for variant in ("gone", "dear"):
        task = first("parcel", "hard", variant)
        assert score(task, without(task, "wait")) == 0.0


# -- what is free


@pytest.mark.parametrize("kind", EVERY)
def test_reading_more_and_writing_otherwise_is_free(kind: tuple[str, str, str]) -> None:
    task = first(*kind)
    ticket = ticket_of(task)
    extra: Calls = [
        ("now_is", {}),
        ("list_views", {}),
        ("list_tickets", {"view": "new"}),
        ("search_articles", {"query": "policy"}),
        ("get_article", {"article_id": 2}),
        ("list_macros", {}),
        ("add_note", {"ticket_id": ticket, "body": "I am looking into it."}),
        ("add_tag", {"ticket_id": ticket, "tag": "mine"}),
        ("update_ticket", {"ticket_id": ticket, "assignee_id": 4}),
    ]
    calls: Calls = []
    for name, given in solution(task):
        body = {"body": f"Dear customer!\n{given['body'].upper()}\nYours, H."} if name == "reply" else {}
        calls.append((name, given | body))
    assert score(task, [*extra, *calls]) == 1.0


@pytest.mark.parametrize("kind", KINDS[::5])
def test_time_that_passes_afterwards_is_no_damage(kind: tuple[str, str, str]) -> None:
    task = first(*kind)
    filing = [given for name, given in solution(task) if name == "update_ticket"][-1]
    hours = 504 if filing.get("status") in {"solved", "open"} else 150  # after a week the desk gives up waiting
    assert score(task, [*solution(task), ("wait", {"hours": hours})]) == 1.0


def test_filing_is_worth_its_share() -> None:
    task = first("charge", "easy", "twice")
    wanted = [goal for goal in truth(task).goals if isinstance(goal, Field) and goal.is_filing]
    assert len(wanted) == 3
    assert score(task, bent(task, "update_ticket", category="other")) == pytest.approx(2 / 3)
    assert score(task, without(task, "update_ticket")) == 0.0


def test_each_step_that_breaks_a_rule_is_told_apart() -> None:
    task = first("lockout", "easy", "failed_logins")
    trace = play(task, [("get_ticket", {"ticket_id": 1}), *without(task, "verify_identity")])
    bad = [
        (reward.name, reward.turn) for reward in trace.every_reward() if reward.step is not None and not reward.value
    ]
    assert bad[0] == ("sound_call", 0)
    assert [name for name, _ in bad[1:]] == ["lawful_call", "lawful_call"]
