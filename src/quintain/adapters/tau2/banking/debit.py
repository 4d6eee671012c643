"""Hidden tools for debit cards."""

from __future__ import annotations

import itertools
import json
from typing import Any, Literal

from .records import (
    TODAY,
    Cvv,
    Digits,
    Positive,
    Records,
    Refused,
    Text,
    Whole,
    days_open,
    dollars,
    hidden,
    identify,
    lookup,
)

_RENAMED = {"last_4_digits": "card_number_last_4", "issue_date": "date_issued"}
_LEAST_BALANCE = 25
_LEAST_DAYS = 60
_LIMIT_BOOST = 1.5
"""Largest temporary limit, as a multiple of the card's own."""
_ATM_LIMITS = {
    "blue account": 500,
    "green account": 600,
    "light blue account": 400,
    "green fee-free account": 500,
    "evergreen account": 750,
    "bluest account": 1500,
    "dark green account": 300,
    "gold years account": 600,
    "purple account": 1000,
}
"""Daily limits in dollars of cards whose rows have none, by the account's level."""
_DELIVERY = {"STANDARD": "7-10 business days", "EXPEDITED": "3-5 business days", "RUSH": "1-2 business days"}
_DESIGNS = ("CLASSIC", "PREMIUM", "CUSTOM")
_CLOSURES = ("lost", "stolen", "fraud_suspected", "damaged", "no_longer_needed", "account_closing")
_TOOLS = {
    "first_card": "activate_debit_card_8291",
    "new_account": "activate_debit_card_8291",
    "lost": "activate_debit_card_8292",
    "stolen": "activate_debit_card_8292",
    "fraud": "activate_debit_card_8292",
    "expired": "activate_debit_card_8293",
    "damaged": "activate_debit_card_8293",
    "upgrade": "activate_debit_card_8293",
    "bank_reissue": "activate_debit_card_8293",
}
"""Tool that activates a card, by the reason of its issue."""


_Category = Literal[
    "unauthorized_transaction",
    "atm_cash_discrepancy",
    "atm_deposit_not_credited",
    "duplicate_charge",
    "incorrect_amount",
    "goods_services_not_received",
    "recurring_charge_after_cancellation",
    "card_present_fraud",
    "card_not_present_fraud",
]
_TransactionType = Literal[
    "pin_purchase",
    "signature_purchase",
    "online_purchase",
    "atm_withdrawal",
    "atm_deposit",
    "recurring_payment",
    "person_to_person",
]
_ACTIVATIONS = {
    "8291": ("New", "DEACTIVATED", "deactivated_date", "New card activated"),
    "8292": ("Replacement", "DEACTIVATED", "deactivated_date", "Replacement card activated ({})"),
    "8293": ("Reissued", "GRACE_PERIOD", "grace_period_ends", "Reissued card activated ({})"),
}
"""Card that a tool activates, and status, field of the day and reason of the account's other active cards."""


class DebitCards(Records, kw_only=True):
    """Services for debit cards."""

    @lookup
    def get_debit_cards_by_account_id_7823(self, account_id: Text) -> str:
        """Look up the debit cards of a checking account."""
        account = self.row("accounts", account_id, f"Error: Account '{account_id}' not found.")
        if account.get("class", "").lower() not in {"checking", "business_checking"}:
            raise Refused(f"Error: Account '{account_id}' is not a checking account.")
        cards = [
            {name: value for name, value in card.items() if name not in _RENAMED}
            | {_RENAMED[name]: card[name] for name in _RENAMED}
            for card in self.matching("debit_cards", account_id=account_id).values()
        ]
        cards.sort(key=lambda card: card["date_issued"], reverse=True)
        return json.dumps(cards, indent=2) if cards else f"No debit cards found for account '{account_id}'."

    @hidden
    def order_debit_card_5739(
        self,
        *,
        account_id: Text,
        user_id: Text,
        delivery_option: Text,
        delivery_fee: float,
        card_design: Text,
        design_fee: float,
        shipping_address: Text,
        excess_replacement_fee: float | None = None,
    ) -> str:
        """Order a debit card for a checking account.

        Delivery is 'STANDARD', 'EXPEDITED' or 'RUSH', the design 'CLASSIC', 'PREMIUM' or 'CUSTOM'.
        """
        delivery_option = _chosen("delivery_option", delivery_option.upper(), tuple(_DELIVERY))
        card_design = _chosen("card_design", card_design.upper(), _DESIGNS)
        fees = {"Delivery": delivery_fee, "Design": design_fee, "Excess Replacement": excess_replacement_fee or 0.0}
        total = sum(fees.values())
        holdings = self._check_order(account_id, user_id, total)
        key = "dcord_" + identify("debit_card_order", account_id, user_id, delivery_option)
        row = {
            "order_id": key,
            "account_id": account_id,
            "user_id": user_id,
            "delivery_option": delivery_option,
            "card_design": card_design,
            "shipping_address": shipping_address,
            "delivery_fee": delivery_fee,
            "design_fee": design_fee,
            "excess_replacement_fee": fees["Excess Replacement"],
            "total_fee": total,
            "order_date": TODAY,
            "expected_delivery": _DELIVERY[delivery_option],
            "status": "PENDING",
        }
        self.add("debit_card_orders", key, row, refusal=f"Error: Order '{key}' may already exist.")
        if total > 0:
            self.change("accounts", account_id, current_holdings=f"{holdings - total:.2f}")
            self._book_fee(f"btxn_dcfee_{key[-8:]}", account_id, fees)
        card = self._issued(account_id, user_id, card_design)
        self.add("debit_cards", card["card_id"], card)
        return (
            f"Debit Card Order Confirmed\nOrder ID: {key}\nCard ID: {card['card_id']}\n"
            f"Linked Account: {account_id}\nDelivery Option: {delivery_option}\nCard Design: {card_design}\n"
            f"Shipping Address: {shipping_address}\nExpected Delivery: {_DELIVERY[delivery_option]}\n"
            f"Total Fees: ${total:.2f}"
        )

    @hidden
    def activate_debit_card_8291(
        self, *, card_id: Text, last_4_digits: Digits, expiration_date: Text, cvv: Cvv, pin: Digits
    ) -> str:
        """Activate an account's first debit card."""
        return self._activate("8291", card_id, last_4_digits=last_4_digits, pin=pin)

    @hidden
    def activate_debit_card_8292(
        self, *, card_id: Text, last_4_digits: Digits, expiration_date: Text, cvv: Cvv, pin: Digits
    ) -> str:
        """Activate a debit card that replaces a lost or stolen one, or one used fraudulently."""
        return self._activate("8292", card_id, last_4_digits=last_4_digits, pin=pin)

    @hidden
    def activate_debit_card_8293(
        self, *, card_id: Text, last_4_digits: Digits, expiration_date: Text, cvv: Cvv, pin: Digits
    ) -> str:
        """Activate a debit card that was reissued: expired, damaged, upgraded, or at the bank's initiative."""
        return self._activate("8293", card_id, last_4_digits=last_4_digits, pin=pin)

    @hidden
    def freeze_debit_card_3892(self, card_id: Text) -> str:
        """Block a debit card until it is unfrozen."""
        self._need(card_id, "ACTIVE", "frozen")
        self.change("debit_cards", card_id, status="FROZEN", frozen_date=TODAY)
        return f"Debit Card Frozen Successfully\nCard ID: {card_id}\nStatus: FROZEN\nFrozen Date: {TODAY}"

    @hidden
    def unfreeze_debit_card_3893(self, card_id: Text) -> str:
        """Make a frozen debit card usable again."""
        self._check_pending(card_id, "FROZEN", "unfrozen")
        self.change("debit_cards", card_id, status="ACTIVE", unfrozen_date=TODAY)
        return f"Debit Card Unfrozen Successfully\nCard ID: {card_id}\nStatus: ACTIVE\nUnfrozen Date: {TODAY}"

    @hidden
    def close_debit_card_4721(self, card_id: Text, reason: Text) -> str:
        """Close a debit card for good: lost, stolen, fraud_suspected, damaged, no_longer_needed or account_closing."""
        reason = _chosen("reason", reason.lower(), _CLOSURES)
        before = self._debit_card(card_id)["status"]
        if before not in {"ACTIVE", "PENDING"}:
            raise Refused(
                f"Error: Debit card '{card_id}' cannot be closed. Current status: {before}. "
                "Only ACTIVE or PENDING cards can be closed."
            )
        self.change("debit_cards", card_id, status="CLOSED", closed_date=TODAY, closure_reason=reason)
        return f"Debit Card Closed Successfully\nCard ID: {card_id}\nPrevious Status: {before}\nNew Status: CLOSED"

    @hidden
    def reset_debit_card_pin_6284(self, *, card_id: Text, last_4_digits: Digits, new_pin: Digits) -> str:
        """Set a new PIN for a customer who has forgotten it."""
        _check_pin(new_pin)
        self._check_digits(card_id, last_4_digits)
        self._need(card_id, "ACTIVE", "given a new PIN")
        self.change("debit_cards", card_id, pin_last_changed=TODAY, pin_locked=False, pin_attempts_remaining=3)
        return f"Debit Card PIN Reset Successfully\nCard ID: {card_id}\nPIN Changed: {TODAY}"

    @hidden
    def change_debit_card_pin_6285(self, *, card_id: Text, current_pin: Digits, new_pin: Digits) -> str:
        """Set a new PIN for a customer who knows the present one."""
        _check_pin(new_pin)
        if new_pin == current_pin:
            raise Refused("Error: New PIN must be different from current PIN.")
        self._need(card_id, "ACTIVE", "given a new PIN")
        self.change("debit_cards", card_id, pin_last_changed=TODAY)
        return f"Debit Card PIN Changed Successfully\nCard ID: {card_id}\nPIN Changed: {TODAY}"

    @hidden
    def set_debit_card_recurring_block_7382(self, *, card_id: Text, block_recurring: bool) -> str:
        """Decline all recurring payments with a debit card, or allow them again."""
        self._need(card_id, "ACTIVE", "given another setting")
        self.change("debit_cards", card_id, recurring_blocked=block_recurring)
        return f"Recurring payments {'' if block_recurring else 'UN'}BLOCKED for debit card {card_id}."

    @hidden
    def clear_debit_card_fraud_alert_4892(
        self, card_id: Text, reason: Literal["customer_verified", "velocity_clear"]
    ) -> str:
        """Clear a customer's own alert ('customer_verified') or a velocity block ('velocity_clear')."""
        card = self._debit_card(card_id)
        field = "velocity_blocked" if reason == "velocity_clear" else "fraud_alert_active"
        if not card.get(field):
            raise Refused(f"Error: Debit card '{card_id}' has nothing to clear for the reason '{reason}'.")
        if reason == "velocity_clear":
            self.change("debit_cards", card_id, velocity_blocked=False, velocity_cleared_date=TODAY)
        elif card.get("alert_source") == "bank_initiated":
            raise Refused(f"Error: The alert of card '{card_id}' is the bank's; only the security team can clear it.")
        else:
            cleared = {"fraud_alert_active": False, "alert_source": None, "fraud_alert_cleared_date": TODAY}
            self.change("debit_cards", card_id, **cleared)
        return f"Debit Card Alert Cleared Successfully\nCard ID: {card_id}\nReason: {reason}"

    @hidden
    def request_temporary_debit_card_limit_increase_8374(
        self, *, card_id: Text, limit_type: Literal["atm", "purchase"], new_limit: Whole
    ) -> str:
        """Raise a card's daily limit for 24 hours."""
        card = self._need(card_id, "ACTIVE", "given a new limit")
        account = self._open_account(card)
        if (days := days_open(account)) is not None and days < _LEAST_DAYS:
            raise Refused(f"Error: The account must be {_LEAST_DAYS} days old; it is {days}.")
        field = f"daily_{limit_type}_limit"
        known = card.get(field)
        if known is None and limit_type == "atm":
            known = _ATM_LIMITS.get(account.get("level", "").lower())
        if known is None or not known < new_limit <= int(_LIMIT_BOOST * known):
            raise Refused(f"Error: The new limit must be above {known}, by half at most; got ${new_limit:.0f}.")
        temporary = {f"temporary_{limit_type}_limit_increase": True, f"temporary_{limit_type}_limit_expires": TODAY}
        self.change(
            "debit_cards", card_id, **{field: int(new_limit), f"original_{limit_type}_limit": known}, **temporary
        )
        named = "ATM Withdrawal" if limit_type == "atm" else "Purchase"
        return (
            f"Temporary Daily {named} Limit Increase Granted Successfully\nCard ID: {card_id}\n"
            f"Previous Limit: ${known}\nNew Temporary Limit: ${new_limit:.0f}, for 24 hours"
        )

    @lookup
    def get_debit_dispute_status_7483(self, user_id: Text) -> str:
        """Look up a customer's debit card disputes."""
        listed = self.listed("debit_card_disputes", user_id=user_id)
        return f"Debit card dispute history retrieved successfully.\n\n{listed}"

    @hidden
    def file_debit_card_transaction_dispute_6281(
        self,
        *,
        transaction_id: Text,
        account_id: Text,
        card_id: Text,
        user_id: Text,
        dispute_category: _Category,
        transaction_date: Text,
        discovery_date: Text,
        disputed_amount: Positive,
        transaction_type: _TransactionType,
        card_in_possession: bool,
        pin_compromised: Literal["yes_shared", "yes_observed", "no", "unknown"],
        contacted_merchant: bool,
        police_report_filed: bool,
        written_statement_provided: bool,
        provisional_credit_eligible: bool,
        customer_max_liability_amount: float,
        card_action: Literal["keep_active", "freeze_pending_investigation", "close_and_reissue"],
    ) -> str:
        """File a dispute of a debit card transaction; the documents explain each argument."""
        given = {name: value for name, value in locals().items() if name != "self"}
        key = "dsp_" + identify("dispute", user_id, transaction_id)
        derived = {
            "provisional_credit_issued": provisional_credit_eligible,
            "provisional_credit_amount": disputed_amount if provisional_credit_eligible else None,
            "is_fraud_category": dispute_category.endswith("_fraud") or dispute_category == "unauthorized_transaction",
            "pin_shared_voluntarily": pin_compromised == "yes_shared",
            "submitted_at": TODAY,
            "status": "OPEN",
        }
        refusal = "Error: Dispute may have already been filed for this transaction."
        self.add("debit_card_disputes", key, {"dispute_id": key, **given, **derived}, refusal=refusal)
        return (
            f"Dispute ID: {key}\nTransaction: {transaction_id}\nAccount: {account_id}\n"
            f"Category: {dispute_category.replace('_', ' ').title()}\nDisputed Amount: ${disputed_amount:.2f}\n"
            f"Card Action: {card_action.replace('_', ' ').title()}"
        )

    def _debit_card(self, card_id: str) -> dict[str, Any]:
        return self.row("debit_cards", card_id, f"Error: Debit card '{card_id}' not found.")

    def _need(self, card_id: str, status: str, done: str) -> dict[str, Any]:
        card = self._debit_card(card_id)
        if card["status"] != status:
            raise Refused(
                f"Error: Debit card '{card_id}' cannot be {done}. Current status: {card['status']}. "
                f"The card must be {status}."
            )
        return card

    def _check_pending(self, card_id: str, status: str, done: str) -> None:
        """Raises unless a card that is not active can become so."""
        if self._debit_card(card_id)["status"] == "ACTIVE":
            raise Refused(f"Error: Debit card '{card_id}' is already active.")
        self._open_account(self._need(card_id, status, done))

    def _open_account(self, card: dict[str, Any]) -> dict[str, Any]:
        account_id = card["account_id"]
        account = self.row("accounts", account_id, f"Error: The linked account '{account_id}' was not found.")
        if account["status"] != "OPEN":
            raise Refused(f"Error: The linked account '{account_id}' is not open.")
        return account

    def _check_digits(self, card_id: str, last_4_digits: str) -> None:
        if self._debit_card(card_id)["last_4_digits"] != last_4_digits:
            raise Refused("Error: Card verification failed. The last 4 digits do not match our records.")

    def _activate(self, number: str, card_id: str, *, last_4_digits: str, pin: str) -> str:
        _check_pin(pin)
        card = self._debit_card(card_id)
        if (right := _TOOLS.get(reason := card["issue_reason"])) != f"activate_debit_card_{number}":
            raise Refused(
                f"Error: Wrong activation tool. This card has issue_reason='{reason}'. "
                f"Please use {right} instead of activate_debit_card_{number}."
            )
        self._check_pending(card_id, "PENDING", "activated")
        self._check_digits(card_id, last_4_digits)
        kind, status, day, why = _ACTIVATIONS[number]
        for other in self.matching("debit_cards", account_id=card["account_id"], status="ACTIVE"):
            old = {"status": status, day: TODAY, "deactivation_reason": why.format(reason)}
            self.change("debit_cards", other, **old)
        self.change("debit_cards", card_id, status="ACTIVE", activated_date=TODAY)
        return f"{kind} Debit Card Activation Successful\nCard ID: {card_id}\n{kind} card is now ACTIVE."

    def _check_order(self, account_id: str, user_id: str, fee: float) -> float:
        """Returns what the account holds, if a card can be ordered for it."""
        account = self.row("accounts", account_id, f"Error: Account '{account_id}' not found.")
        if (account.get("class"), account["status"], account["user_id"]) != ("checking", "OPEN", user_id):
            raise Refused(f"Error: Account '{account_id}' is not an open checking account of user '{user_id}'.")
        # Holdings that another tool wrote with a dollar sign count as nothing here, as in the reference.
        holdings = 0.0 if "$" in account["current_holdings"] else dollars(account["current_holdings"])
        if holdings < max(_LEAST_BALANCE, fee):
            raise Refused(
                f"Error: The balance of account '{account_id}' is ${holdings:.2f}; an order needs "
                f"${_LEAST_BALANCE}, and its fees are ${fee:.2f}."
            )
        if self.matching("debit_card_orders", account_id=account_id, status="PENDING"):
            raise Refused(f"Error: There is already a pending debit card order for account '{account_id}'.")
        if self.matching("debit_cards", account_id=account_id, status="ACTIVE"):
            raise Refused(
                f"Error: Account '{account_id}' already has an active debit card. Maximum 1 active card per "
                "checking account."
            )
        return holdings

    def _book_fee(self, key: str, account_id: str, fees: dict[str, float]) -> None:
        parts = [
            f"{name} ${fee:.0f}" if "Excess" in name else f"{name} ${fee}" for name, fee in fees.items() if fee > 0
        ]
        row = {
            "transaction_id": key,
            "account_id": account_id,
            "date": TODAY,
            "description": f"DEBIT CARD ORDER FEE - {', '.join(parts)}",
            "amount": -sum(fees.values()),
            "type": "debit_card_fee",
            "status": "posted",
        }
        self.add("bank_account_transaction_history", key, row)

    def _issued(self, account_id: str, user_id: str, card_design: str) -> dict[str, Any]:
        """Returns the row of a card that was ordered; one that replaces a closed card is issued for its reason."""
        key = "dbc_" + identify("debit_card", account_id, user_id, TODAY)
        owned = list(self.matching("debit_cards", account_id=account_id).values())
        closed = next((one.get("closure_reason") for one in owned if one["status"] == "CLOSED"), None)
        reasons = {"lost": "lost", "stolen": "stolen", "fraud": "fraud", "fraud_suspected": "fraud"}
        user: dict[str, Any] = self.document("users", user_id) or {}
        return {
            "card_id": key,
            "account_id": account_id,
            "user_id": user_id,
            "cardholder_name": user.get("name", "CARDHOLDER").upper(),
            "last_4_digits": _drawn(key, "last4", count=4, digits=8),
            "cvv": _drawn(key, "cvv", count=3, digits=6),
            "status": "PENDING",
            "issue_date": TODAY,
            "expiration_date": "11/30/2029",
            "card_design": card_design,
            "issue_reason": reasons.get(str(closed), "first_card" if owned else "new_account"),
        }


def _chosen(name: str, value: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise Refused(f"Error: Invalid {name}. Must be one of: {list(choices)}")
    return value


def _drawn(card_id: str, what: str, *, count: int, digits: int) -> str:
    """Returns decimal digits from the hexadecimal ones of a hash, filled up with zeros."""
    drawn = filter(str.isdecimal, identify("card_details", card_id, what, digits=digits))
    return "".join(drawn)[:count].zfill(count)


def _check_pin(pin: str) -> None:
    if {int(b) - int(a) for a, b in itertools.pairwise(pin)} in ({0}, {1}, {-1}):
        raise Refused("Error: The PIN must be 4 digits, neither all the same nor a sequence.")
