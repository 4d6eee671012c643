"""Banking's documents, hidden tools and records, on a bank with one customer; answers are those of stored cases."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from quintain.adapters.tau2 import load
from quintain.adapters.tau2.banking import Banking
from quintain.adapters.tau2.convention import respond
from quintain.adapters.tau2.data import Folder
from quintain.adapters.tau2.world import Ledger, World, same
from quintain.environment import Environment
from quintain.episode import Episode
from quintain.errors import UsageError
from quintain.trace import Message, Reply, ToolCall

CARD = {
    "card_id": "dbc_1",
    "account_id": "chk_1",
    "user_id": "ann",
    "cardholder_name": "ANN LEE",
    "last_4_digits": "1111",
    "cvv": "111",
    "status": "ACTIVE",
    "issue_date": "01/01/2024",
    "expiration_date": "01/31/2028",
    "issue_reason": "new_account",
    "daily_atm_limit": 500,
    "pin_locked": True,
    "velocity_blocked": True,
}
CREDIT = {"account_id": "cc_1", "user_id": "ann", "card_type": "EcoCard", "current_balance": "$75.00"}
DATABASE: dict[str, Any] = {
    "users": {"data": {"ann": {"name": "Ann Lee", "user_id": "ann", "email": "ann@example.com"}}, "notes": "People"},
    "accounts": {
        "data": {
            key: {"account_id": key, "user_id": "ann", "class": class_, "status": "OPEN", "current_holdings": "100.00"}
            for key, class_ in (("chk_1", "checking"), ("sav_1", "saving"))
        },
        "notes": "",
    },
    "debit_cards": {"data": {"dbc_1": CARD}, "notes": ""},
    "credit_card_accounts": {"data": {"cc_1": CREDIT | {"credit_limit": "$5000.00"}}, "notes": ""},
    "credit_card_transaction_history": {"data": {"txn_1": {"user_id": "ann", "rewards_earned": "1 points"}}},
}
for section in DATABASE.values():
    section.setdefault("notes", "")
DOCUMENTS = [
    {"id": "doc_1", "title": "Closing accounts", "content": "Close an account with close_bank_account_7392."},
    {"id": "doc_2", "title": "Checks", "content": "Give deposit_check_3847 to a customer who has a check."},
]
CALL = {"agent_tool_name": "freeze_debit_card_3892", "arguments": '{"card_id": "dbc_1"}'}
TASK = {
    "id": "freeze",
    "user_scenario": {"instructions": "You are Ann and cannot find your card."},
    "initial_state": {"initialization_data": {"agent_data": {"users": {"data": {"bob": {"user_id": "bob"}}}}}},
    "evaluation_criteria": {
        "actions": [
            {"name": "unlock_discoverable_agent_tool", "arguments": {"agent_tool_name": CALL["agent_tool_name"]}},
            {"name": "call_discoverable_agent_tool", "arguments": CALL},
            {"name": "request_human_agent_transfer", "arguments": {}, "requestor": "user"},
        ],
        "reward_basis": ["DB"],
    },
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as the domain's, with a bank of one customer."""
    root = tmp_path_factory.mktemp("bank")
    (root / "banking_knowledge").mkdir()
    files = {
        "db.json": json.dumps(DATABASE),
        "documents.jsonl": "\n".join(map(json.dumps, DOCUMENTS)),
        "tasks_dir.jsonl": json.dumps(TASK),
    }
    for name, text in files.items():
        (root / "banking_knowledge" / name).write_text(text)
    return root


@pytest.fixture
def world(data: Path) -> Banking:
    world = Folder("banking_knowledge", data).world()
    assert isinstance(world, Banking)
    return world


def agent(world: World, tool: str, **arguments: Any) -> str:
    return respond(world, tool, arguments)[0]


def hidden(world: World, tool: str, **arguments: Any) -> str:
    agent(world, "unlock_discoverable_agent_tool", agent_tool_name=tool)
    return agent(world, "call_discoverable_agent_tool", agent_tool_name=tool, arguments=json.dumps(arguments))


def user(world: World, tool: str, **arguments: Any) -> str:
    return respond(world, tool, arguments, requestor="user")[0]


def lent(world: World, tool: str, **arguments: Any) -> str:
    agent(world, "give_discoverable_user_tool", discoverable_tool_name=tool)
    return user(world, "call_discoverable_user_tool", discoverable_tool_name=tool, arguments=json.dumps(arguments))


def test_hidden_tool_is_called_only_after_it_was_unlocked(world: Banking) -> None:
    call = {"agent_tool_name": "close_bank_account_7392", "arguments": '{"account_id": "chk_1"}'}
    before = world.copy()
    assert respond(world, "call_discoverable_agent_tool", call) == (
        (
            "Error: Tool 'close_bank_account_7392' has not been unlocked. You must first use "
            "`unlock_discoverable_agent_tool` to unlock this tool before calling it."
        ),
        False,
    )
    described = agent(world, "unlock_discoverable_agent_tool", agent_tool_name="close_bank_account_7392")
    parameters = json.loads(described.partition("\nParameters: ")[2])
    assert parameters["required"] == ["account_id"]
    assert parameters["properties"]["waive_early_closure_fee"] == {"type": "boolean", "default": False}
    assert same(before, world)
    assert agent(world, "call_discoverable_agent_tool", **call) == (
        "Error: Account balance must be $0.00 before closing. Current balance: $100.00"
    )
    assert [row["status"] for row in world.matching("agent_discoverable_tools").values()] == ["CALLED"]


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ('{"card_id": "dbc_1"}x', "Invalid JSON in arguments: Extra data: line 1 column 21 (char 20)"),
        ("[]", "Invalid arguments: a JSON object is expected, got list"),
        (
            "{}",
            (
                "Invalid arguments: KnowledgeTools.freeze_debit_card_3892() "
                "missing 1 required positional argument: 'card_id'"
            ),
        ),
        ('{"card_id": ""}', "Invalid arguments: Expected `str` of length >= 1 - at `$.card_id`"),
        ('{"card_id": "dbc_2"}', "Debit card 'dbc_2' not found."),
    ],
)
def test_wrong_arguments_of_a_hidden_tool_are_answered(world: Banking, arguments: str, refusal: str) -> None:
    name = "freeze_debit_card_3892"
    agent(world, "unlock_discoverable_agent_tool", agent_tool_name=name)
    call = {"agent_tool_name": name, "arguments": arguments}
    assert respond(world, "call_discoverable_agent_tool", call) == (f"Error: {refusal}", False)


@pytest.mark.parametrize("name", ["nothing_1234", "adopt", "log_verification", "deposit_check_3847"])
def test_other_methods_of_the_world_cannot_be_unlocked(world: Banking, name: str) -> None:
    refusal = f"Error: Unknown agent tool '{name}'. This tool is not available."
    assert agent(world, "unlock_discoverable_agent_tool", agent_tool_name=name) == refusal
    assert agent(world, "call_discoverable_agent_tool", agent_tool_name=name) == refusal


def test_customers_tool_is_called_only_after_it_was_given(world: Banking) -> None:
    call = {"discoverable_tool_name": "deposit_check_3847", "arguments": '{"account_id": "chk_1", "check_amount": 5}'}
    assert "has not been given to you" in user(world, "call_discoverable_user_tool", **call)
    assert lent(world, "deposit_check_3847", account_id="chk_9", check_amount=5) == "Error: Account 'chk_9' not found."
    assert lent(world, "deposit_check_3847", account_id="chk_1", check_amount=5).startswith("Check deposited")
    assert world.document("accounts", "chk_1")["current_holdings"] == "$105.00"
    assert len(world.user_discoverable_tool_calls) == 2


def test_identifiers_and_rows_are_the_reference_s(world: Banking) -> None:
    """Identifiers of the stored cases, for the arguments of the stored cases."""
    assert "4331e92d1f21702f" in hidden(
        world,
        "open_bank_account_4821",
        user_id="mv93f8a7b2",
        account_type="checking",
        account_class="Green Fee-Free Account",
    )
    application = {"card_type": "Diamond Elite Card", "customer_name": "Yuki Nakamura", "annual_income": 95000}
    user(world, "apply_for_credit_card", **application)
    assert user(world, "apply_for_credit_card", **application) == (
        "Failed to submit application: Record ID '29d03c526e9de7a3' may already exist."
    )
    assert (
        "may already exist"
        in [
            user(world, "submit_referral", user_id="76ad9cc60e", account_type="Platinum Rewards Card") for _ in range(2)
        ].pop()
    )
    assert "fa2896839e417592" in world.referrals
    silver = "cc_890389b165_silver"
    world.adopt({"credit_card_accounts": {"data": {silver: {"account_id": silver}}}})
    assert lent(world, "get_card_last_4_digits", credit_card_account_id=silver).endswith(
        "\nLast 4 digits of card: 5320"
    )
    assert user(world, "apply_for_credit_card", **application | {"card_type": "x"}).startswith("Error: Invalid card")


def test_money_is_moved_and_written_as_the_reference_does(world: Banking) -> None:
    move = {"source_account_id": "chk_1", "destination_account_id": "sav_1"}
    transfer = "transfer_funds_between_bank_accounts_7291"
    assert hidden(world, transfer, **move, amount=150).startswith(
        "Error: Insufficient funds. Source account balance is $100.00, but transfer amount "
    )
    assert hidden(world, transfer, **move, amount=25).startswith("Transfer completed successfully!\n  - Amount: $25.00")
    hidden(world, "apply_checking_account_credit_5829", account_id="chk_1", amount=9.0, credit_type="fee_refund")
    hidden(
        world, "apply_savings_account_credit_6831", account_id="sav_1", amount=1.0, credit_type="interest_correction"
    )
    assert world.document("accounts", "chk_1")["current_holdings"] == "$84.00"
    assert world.document("accounts", "sav_1")["current_holdings"] == "126.00"
    described = [row["description"] for row in world.matching("bank_account_transaction_history").values()]
    assert described == ["FEE REFUND - CUSTOMER SERVICE", "INTEREST CORRECTION - CUSTOMER SERVICE"]
    assert "FEE REFUND" in hidden(world, "get_bank_account_transactions_9173", account_id="chk_1")
    pay = {"user_id": "ann", "checking_account_id": "chk_1", "credit_card_account_id": "cc_1"}
    assert hidden(world, "pay_credit_card_from_checking_9182", **pay, amount=80.0).startswith("Error: Payment")
    hidden(world, "pay_credit_card_from_checking_9182", **pay, amount=75.0)
    assert world.document("accounts", "chk_1")["current_holdings"] == "9.00"
    assert hidden(world, "close_credit_card_account_7834", credit_card_account_id="cc_1", user_id="ann").startswith(
        "Credit card account closed"
    )


def test_lost_debit_card_is_closed_replaced_and_activated(world: Banking) -> None:
    card = {"card_id": "dbc_1"}
    order = {
        "account_id": "chk_1",
        "user_id": "ann",
        "delivery_option": "RUSH",
        "delivery_fee": 35,
        "card_design": "CLASSIC",
        "design_fee": 0,
        "shipping_address": "1 Elm",
    }
    assert "PIN Changed: 11/14/2025" in hidden(
        world, "reset_debit_card_pin_6284", **card, last_4_digits="1111", new_pin="7294"
    )
    assert world.document("debit_cards", "dbc_1")["pin_locked"] is False
    hidden(world, "clear_debit_card_fraud_alert_4892", **card, reason="velocity_clear")
    assert world.document("debit_cards", "dbc_1")["velocity_blocked"] is False
    limit = {"limit_type": "atm", "new_limit": 750}
    assert hidden(world, "request_temporary_debit_card_limit_increase_8374", **card, **limit).startswith("Temporary")
    assert "Status: FROZEN" in hidden(world, "freeze_debit_card_3892", **card)
    assert "cannot be closed. Current status: FROZEN." in hidden(world, "close_debit_card_4721", **card, reason="lost")
    assert "Status: ACTIVE" in hidden(world, "unfreeze_debit_card_3893", **card)
    assert hidden(world, "unfreeze_debit_card_3893", **card) == "Error: Debit card 'dbc_1' is already active."
    assert "already has an active debit card" in hidden(world, "order_debit_card_5739", **order)
    assert "Previous Status: ACTIVE" in hidden(world, "close_debit_card_4721", **card, reason="lost")
    assert hidden(world, "order_debit_card_5739", **order).startswith("Debit Card Order Confirmed\nOrder ID: dcord_")
    assert "already a pending debit card order" in hidden(world, "order_debit_card_5739", **order)
    (new,) = [row for row in world.matching("debit_cards", account_id="chk_1").values() if row["status"] == "PENDING"]
    assert world.document("accounts", "chk_1")["current_holdings"] == "65.00"
    (fee,) = world.matching("bank_account_transaction_history").values()
    assert (fee["description"], fee["amount"]) == ("DEBIT CARD ORDER FEE - Delivery $35.0", -35.0)
    read = {"card_id": new["card_id"], "last_4_digits": "1234", "expiration_date": "11/29", "cvv": "001", "pin": "5739"}
    assert "Please use activate_debit_card_8292" in hidden(world, "activate_debit_card_8291", **read)
    assert "neither all the same" in hidden(world, "activate_debit_card_8292", **read | {"pin": "1234"})
    assert "do not match our records" in hidden(world, "activate_debit_card_8292", **read)
    read["last_4_digits"] = new["last_4_digits"]
    assert hidden(world, "activate_debit_card_8292", **read).startswith("Replacement Debit Card Activation Successful")
    assert "PIN Changed" in hidden(
        world, "change_debit_card_pin_6285", card_id=new["card_id"], current_pin="5739", new_pin="9175"
    )
    assert "UNBLOCKED" in hidden(
        world, "set_debit_card_recurring_block_7382", card_id=new["card_id"], block_recurring=False
    )


def test_debit_card_is_refused_where_the_reference_refuses_it(world: Banking) -> None:
    call = {"delivery_option": "rush", "delivery_fee": 0, "card_design": "x", "design_fee": 0, "shipping_address": "1"}
    order = {"account_id": "chk_1", "user_id": "ann"} | call
    assert hidden(world, "order_debit_card_5739", **order) == (
        "Error: Invalid card_design. Must be one of: ['CLASSIC', 'PREMIUM', 'CUSTOM']"
    )
    order["card_design"] = "premium"
    refusal = "Error: Account 'sav_1' is not an open checking account of user 'ann'."
    assert hidden(world, "order_debit_card_5739", **order | {"account_id": "sav_1"}) == refusal
    lent(world, "deposit_check_3847", account_id="chk_1", check_amount=5)
    assert "is $0.00; an order needs $25" in hidden(world, "order_debit_card_5739", **order)
    world.change("debit_cards", "dbc_1", fraud_alert_active=True, alert_source="bank_initiated")
    alert = {"card_id": "dbc_1", "reason": "customer_verified"}
    assert "only the security team" in hidden(world, "clear_debit_card_fraud_alert_4892", **alert)
    world.change("debit_cards", "dbc_1", alert_source="customer")
    assert "Cleared Successfully" in hidden(world, "clear_debit_card_fraud_alert_4892", **alert)
    assert "nothing to clear" in hidden(world, "clear_debit_card_fraud_alert_4892", **alert)
    world.change("accounts", "chk_1", date_opened="11/01/2025")
    limit = {"card_id": "dbc_1", "limit_type": "atm", "new_limit": 700}
    assert "must be 60 days old" in hidden(world, "request_temporary_debit_card_limit_increase_8374", **limit)
    world.change("accounts", "chk_1", date_opened="11/01/2020", status="CLOSED")
    assert "is not open" in hidden(world, "request_temporary_debit_card_limit_increase_8374", **limit)
    limit["limit_type"] = "purchase"
    world.change("accounts", "chk_1", status="OPEN")
    assert "must be above None" in hidden(world, "request_temporary_debit_card_limit_increase_8374", **limit)


def test_debit_card_dispute_records_what_follows_from_it(world: Banking) -> None:
    dispute = {
        "transaction_id": "btxn_1",
        "account_id": "chk_1",
        "card_id": "dbc_1",
        "user_id": "ann",
        "dispute_category": "card_present_fraud",
        "transaction_date": "11/01/2025",
        "discovery_date": "11/02/2025",
        "disputed_amount": 40,
        "transaction_type": "pin_purchase",
        "card_in_possession": False,
        "pin_compromised": "yes_shared",
        "contacted_merchant": False,
        "police_report_filed": False,
        "written_statement_provided": True,
        "provisional_credit_eligible": True,
        "customer_max_liability_amount": -1,
        "card_action": "close_and_reissue",
    }
    file = "file_debit_card_transaction_dispute_6281"
    assert hidden(world, file, **dispute).startswith("Dispute ID: dsp_")
    assert hidden(world, file, **dispute) == "Error: Dispute may have already been filed for this transaction."
    (row,) = world.matching("debit_card_disputes").values()
    assert (row["provisional_credit_amount"], row["is_fraud_category"], row["pin_shared_voluntarily"]) == (
        40,
        True,
        True,
    )


def test_accounts_are_opened_and_closed_under_the_banks_conditions(world: Banking) -> None:
    new = {"user_id": "ann", "account_class": "Gold Account"}
    refusal = "Error: Account eligibility requirements not met."
    for type_ in ("savings", "business_savings"):
        assert hidden(world, "open_bank_account_4821", **new, account_type=type_) == refusal
    world.change("accounts", "chk_1", date_opened="10/31/2025", level="Green Account")
    assert "opened successfully" in hidden(world, "open_bank_account_4821", **new, account_type="savings")
    assert "opened successfully" in hidden(world, "open_bank_account_4821", **new, account_type="business_checking")
    close = "close_bank_account_7392"
    world.change("accounts", "chk_1", current_holdings="5.00")
    assert hidden(world, close, account_id="chk_1") == "Error: Account unable to be closed."
    world.change("accounts", "chk_1", current_holdings="25.00")
    assert "Waived: No" in hidden(world, close, account_id="chk_1")
    assert hidden(world, "open_bank_account_4821", **new, account_type="business_checking") == refusal
    world.change("accounts", "chk_1", status="OPEN", current_holdings="0.00")
    assert "Waived: Yes" in hidden(world, close, account_id="chk_1", waive_early_closure_fee=True)
    transfer = {"source_account_id": "chk_1", "amount": 1}
    name = "transfer_funds_between_bank_accounts_7291"
    assert "cannot be the same" in hidden(world, name, **transfer, destination_account_id="chk_1")
    assert "'chk_1' is not active" in hidden(world, name, **transfer, destination_account_id="sav_1")
    credit = {"account_id": "sav_1", "amount": 1, "credit_type": "fee_refund"}
    assert "is not a checking account" in hidden(world, "apply_checking_account_credit_5829", **credit)


def test_lookups_are_recorded_only_if_the_solution_makes_them(world: Banking) -> None:
    call = {"agent_tool_name": "get_bank_account_transactions_9173", "arguments": '{"account_id": "chk_1"}'}
    hidden(world, "get_bank_account_transactions_9173", account_id="chk_1")
    assert list(world.agent_discoverable_tools) == []
    world.foresee([("call_discoverable_agent_tool", call)])
    hidden(world, "get_bank_account_transactions_9173", account_id="chk_1")
    assert len(world.agent_discoverable_tools) == 1


def test_customer_gets_only_arguments_that_a_tool_has(world: Banking) -> None:
    given = {"discoverable_tool_name": "deposit_check_3847"}
    assert agent(world, "give_discoverable_user_tool", **given, arguments='{"x": 1}') == (
        "Error: Unexpected parameter: x"
    )
    assert "Tool given" in agent(world, "give_discoverable_user_tool", **given, arguments='{"check_amount": 1}')
    assert lent(world, "get_referral_link", user_id="ann", card_name="EcoCard").startswith("Referral link: https://")
    assert lent(world, "submit_cash_back_dispute_0589", user_id="ann", transaction_id="txn_1").endswith("SUBMITTED")
    pay = {"user_id": "ann", "merchant_name": "Airline", "amount": 12.5, "category": "Travel"}
    assert user(world, "submit_transaction", **pay, credit_card_type="x").startswith("Error: Unknown credit card type")
    user(world, "submit_transaction", **pay, credit_card_type="Silver Rewards Card")
    rewards = [row["rewards_earned"] for row in world.matching("credit_card_transaction_history").values()]
    assert rewards == ["1 points", "50 points"]


def test_credit_card_requests_are_recorded_once(world: Banking) -> None:
    card = {"credit_card_account_id": "cc_1", "user_id": "ann"}
    once: list[tuple[str, dict[str, Any], str]] = [
        (
            "submit_credit_limit_increase_request_7392",
            {"requested_increase_amount": 9},
            "Error: A similar request may already exist.",
        ),
        (
            "order_replacement_credit_card_7291",
            {"shipping_address": "1 Elm", "reason": "lost"},
            "Error: Order may have already been placed for this card replacement.",
        ),
        ("apply_statement_credit_8472", {"amount": 5.0, "reason": "other"}, "Error: Failed to apply statement credit."),
        (
            "apply_credit_card_account_flag_6147",
            {"flag_type": "other", "expiration_date": "11/14/2026", "reason": "other"},
            "Error: Failed to apply account flag.",
        ),
    ]
    for name, arguments, refusal in once:
        assert not hidden(world, name, **card, **arguments).startswith("Error")
        assert hidden(world, name, **card, **arguments).startswith(refusal)
    assert world.document("credit_card_accounts", "cc_1")["status"] == "CLOSED"
    hidden(world, "deny_credit_limit_increase_5848", **card, denial_reason="other")
    hidden(world, "approve_credit_limit_increase_5847", **card, new_credit_limit=7500)
    assert world.document("credit_card_accounts", "cc_1")["credit_limit"] == "$7500.00"
    statuses = [row["status"] for row in world.matching("credit_limit_increase_requests").values()]
    assert statuses == ["PENDING", "DENIED", "APPROVED"]
    hidden(world, "update_transaction_rewards_3847", transaction_id="txn_1", new_rewards_earned="7 points")
    assert world.document("credit_card_transaction_history", "txn_1")["rewards_earned"] == "7 points"


def test_lookups_list_records_as_recorded(world: Banking) -> None:
    assert agent(world, "get_credit_card_accounts_by_user", user_id="ann") == (
        "Found 1 record(s) in 'credit_card_accounts':\n\n1. Record ID: cc_1\n   account_id: cc_1\n   user_id: ann\n"
        "   card_type: EcoCard\n   current_balance: $75.00\n   credit_limit: $5000.00\n"
    )
    assert "ann@example.com" in agent(world, "get_user_information_by_name", customer_name="Ann Lee")
    assert "Record ID: ann" in agent(world, "get_user_information_by_email", email="ann@example.com")
    assert respond(world, "get_user_information_by_id", {"user_id": "x"}) == (
        "Error: no customer has the user_id 'x'; ask the customer for another detail",
        True,
    )
    assert agent(world, "get_cash_back_disputes_by_user", user_id="ann") == "No records found in 'cash_back_disputes'."
    assert agent(world, "get_referrals_by_user", user_id="ann") == "No records found in 'referrals'."
    (card,) = json.loads(hidden(world, "get_debit_cards_by_account_id_7823", account_id="chk_1"))
    renamed = {"card_number_last_4": CARD["last_4_digits"], "date_issued": CARD["issue_date"]}
    assert card.items() - renamed.items() == CARD.items() - {("last_4_digits", "1111"), ("issue_date", "01/01/2024")}
    assert "not a checking account" in hidden(world, "get_debit_cards_by_account_id_7823", account_id="sav_1")


def test_verification_and_transfers_are_recorded(world: Banking) -> None:
    fields = ("name", "user_id", "address", "email", "phone_number", "date_of_birth")
    said = dict.fromkeys(fields, "x") | {"time_verified": "2025-11-14 03:40:00 EST"}
    assert agent(world, "log_verification", **said) == (
        "Verification logged successfully.\n  - User: x (ID: x)\n  - Verified at: 2025-11-14 03:40:00 EST"
    )
    assert list(world.verification_history) == ["x_20251114_034000_EST"]
    assert user(world, "request_human_agent_transfer").startswith("Transfer request #1 submitted.")
    assert agent(world, "transfer_to_human_agents", summary="") == (
        "Transfer successful (reason: other). A human agent will assist you shortly."
    )
    assert agent(world, "transfer_to_human_agents", summary="", reason="x").startswith(
        "Error: Invalid transfer reason 'x'"
    )


def test_documents_are_searched_and_read(world: Banking) -> None:
    pytest.importorskip("bm25s")
    assert world.web_search("deposit a check")[0].url == "doc_2"
    assert "close_bank_account_7392" in world.web_fetch("doc_1")


def test_digest_covers_rows_and_notes(world: Banking) -> None:
    ledger = Ledger(world.copy())
    empty = {"data": {}, "notes": ""}
    whole = {name: DATABASE.get(name, empty) for name in Banking.sections}
    whole["users"] = {"data": DATABASE["users"]["data"] | {"ann": DATABASE["users"]["data"]["ann"] | {"email": "é"}}}
    whole["users"]["notes"] = "People"
    agent(world, "change_user_email", user_id="ann", new_email="é")
    expected = hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()
    assert ledger.digest(world) == ledger.user_digest(world) == expected


def test_task_begins_with_rows_of_its_own_and_is_solved(data: Path) -> None:
    env: Environment[World] = load("banking_knowledge", data=data)
    task = env.task("base", "freeze")
    assert task.world().document("users", "bob") == {"user_id": "bob"}
    assert "web_search" in str(getattr(env.harness, "system"))  # noqa: B009 (the protocol has none)

    async def score(*, solved: bool) -> float | None:
        episode = await Episode[World].begin(env, task)
        for number, (name, arguments) in enumerate(task.solution or () if solved else ()):
            call = ToolCall(str(number), name, json.dumps(arguments))
            await episode.session.step(Reply(Message("assistant", calls=(call,))))
        episode.terminate("the agent answered")
        return await episode.verify()

    assert asyncio.run(score(solved=True)) == 1.0
    assert asyncio.run(score(solved=False)) == 0.0
    assert load("banking_knowledge", data=data, customer="simulated").task("base", "freeze").solution is None


def test_broken_documents_are_named(data: Path, tmp_path: Path) -> None:
    (tmp_path / "banking_knowledge").mkdir()
    for file in (data / "banking_knowledge").iterdir():
        (tmp_path / "banking_knowledge" / file.name).write_text(file.read_text()[:-1])
    with pytest.raises(UsageError, match=r"tasks_dir\.jsonl of tau2's banking_knowledge"):
        load("banking_knowledge", data=tmp_path)
