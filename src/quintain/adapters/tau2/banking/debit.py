"""Hidden tools for debit cards."""

from __future__ import annotations

import itertools
import json
from typing import Any

from .records import TODAY, Records, Refused, dollars, hidden, identify

_LIMIT_BOOST = 1.5
"""Largest temporary limit, as a multiple of the card's own."""
_DELIVERY = {"STANDARD": "7-10 business days", "EXPEDITED": "3-5 business days", "RUSH": "1-2 business days"}
_DESIGNS = ("CLASSIC", "PREMIUM", "CUSTOM")
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


class DebitCards(Records, kw_only=True):
    """Services for debit cards."""

    @hidden
    def get_debit_cards_by_account_id_7823(self, account_id: str) -> str:
        """Look up the debit cards of a checking account."""
        return json.dumps(list(self.matching("debit_cards", account_id=account_id).values()), indent=2)

    @hidden
    def order_debit_card_5739(
        self,
        *,
        account_id: str,
        user_id: str,
        delivery_option: str,
        delivery_fee: float,
        card_design: str,
        design_fee: float,
        shipping_address: str,
    ) -> str:
        """Order a debit card for a checking account.

        Delivery is 'STANDARD', 'EXPEDITED' or 'RUSH', the design 'CLASSIC', 'PREMIUM' or 'CUSTOM'.
        """
        account = self.row("accounts", account_id, f"Error: Account '{account_id}' not found.")
        fee, balance = delivery_fee + design_fee, dollars(account["current_holdings"])
        _check_choice(delivery_option, card_design)
        cards = list(self.matching("debit_cards", account_id=account_id).values())
        _check_order(account_id, cards, fee=fee, balance=balance)
        order = "dcord_" + identify("debit_card_order", account_id, user_id, delivery_option)
        card = "dbc_" + identify("debit_card", account_id, user_id, TODAY)
        refusal = f"Error: Order '{order}' may already exist."
        user = self.row("users", user_id, f"Error: User '{user_id}' not found.")
        row = {
            "order_id": order,
            "account_id": account_id,
            "user_id": user_id,
            "delivery_option": delivery_option,
            "card_design": card_design,
            "shipping_address": shipping_address,
            "delivery_fee": delivery_fee,
            "design_fee": design_fee,
            "total_fee": fee,
            "order_date": TODAY,
            "expected_delivery": _DELIVERY[delivery_option],
            "status": "PENDING",
        }
        self.add("debit_card_orders", order, row, refusal=refusal)
        reasons = [one["closure_reason"] for one in cards if "closure_reason" in one]
        self.add("debit_cards", card, _ordered(card, account_id, user, reasons=reasons), refusal=refusal)
        if fee:
            self.change("accounts", account_id, current_holdings=f"{balance - fee:.2f}")
        return (
            f"Debit Card Order Confirmed\nOrder ID: {order}\nCard ID: {card}\nDelivery: {delivery_option} "
            f"({_DELIVERY[delivery_option]})\nDesign: {card_design}\nTotal Fee: ${fee:.2f}"
        )

    @hidden
    def activate_debit_card_8291(
        self, *, card_id: str, last_4_digits: str, expiration_date: str, cvv: str, pin: str
    ) -> str:
        """Activate an account's first debit card."""
        return self._activate("8291", card_id, pin)

    @hidden
    def activate_debit_card_8292(
        self, *, card_id: str, last_4_digits: str, expiration_date: str, cvv: str, pin: str
    ) -> str:
        """Activate a debit card that replaces a lost or stolen one, or one used fraudulently."""
        return self._activate("8292", card_id, pin)

    @hidden
    def activate_debit_card_8293(
        self, *, card_id: str, last_4_digits: str, expiration_date: str, cvv: str, pin: str
    ) -> str:
        """Activate a debit card that was reissued: expired, damaged, upgraded, or at the bank's initiative."""
        return self._activate("8293", card_id, pin)

    @hidden
    def freeze_debit_card_3892(self, card_id: str) -> str:
        """Block a debit card until it is unfrozen."""
        self._need(card_id, "ACTIVE", "frozen")
        self.change("debit_cards", card_id, status="FROZEN", frozen_date=TODAY)
        return f"Debit Card Frozen Successfully\nCard ID: {card_id}\nStatus: FROZEN\nFrozen Date: {TODAY}"

    @hidden
    def unfreeze_debit_card_3893(self, card_id: str) -> str:
        """Make a frozen debit card usable again."""
        if self._debit_card(card_id)["status"] == "ACTIVE":
            raise Refused(f"Error: Debit card '{card_id}' is already active.")
        self._need(card_id, "FROZEN", "unfrozen")
        self.change("debit_cards", card_id, status="ACTIVE", unfrozen_date=TODAY)
        return f"Debit Card Unfrozen Successfully\nCard ID: {card_id}\nStatus: ACTIVE\nUnfrozen Date: {TODAY}"

    @hidden
    def close_debit_card_4721(self, card_id: str, reason: str) -> str:
        """Close a debit card for good, for a reason such as 'lost', 'stolen' or 'fraud_suspected'."""
        before = self._debit_card(card_id)["status"]
        if before not in {"ACTIVE", "PENDING"}:
            raise Refused(
                f"Error: Debit card '{card_id}' cannot be closed. Current status: {before}. "
                "Only ACTIVE or PENDING cards can be closed."
            )
        self.change("debit_cards", card_id, status="CLOSED", closed_date=TODAY, closure_reason=reason)
        return f"Debit Card Closed Successfully\nCard ID: {card_id}\nPrevious Status: {before}\nNew Status: CLOSED"

    @hidden
    def reset_debit_card_pin_6284(self, *, card_id: str, last_4_digits: str, new_pin: str) -> str:
        """Set a new PIN of four digits for a customer who has forgotten it."""
        card = self._need(card_id, "ACTIVE", "given a new PIN")
        if last_4_digits != card["last_4_digits"]:
            raise Refused(f"Error: The last 4 digits do not match card '{card_id}'.")
        _check_pin(new_pin)
        locked = {"pin_locked": False, "pin_attempts_remaining": 3} if "pin_locked" in card else {}
        self.change("debit_cards", card_id, pin_last_changed=TODAY, **locked)
        return f"Debit Card PIN Reset Successfully\nCard ID: {card_id}\nPIN Changed: {TODAY}"

    @hidden
    def clear_debit_card_fraud_alert_4892(self, card_id: str, reason: str) -> str:
        """Clear a customer's own alert ('customer_verified') or a velocity block ('velocity_clear')."""
        card = self._debit_card(card_id)
        if reason == "velocity_clear":
            changes: dict[str, Any] = {"velocity_blocked": False}
        elif reason != "customer_verified":
            raise Refused(f"Error: reason must be customer_verified or velocity_clear, got '{reason}'.")
        elif card.get("alert_source") not in {None, "customer"}:
            raise Refused(f"Error: The alert of card '{card_id}' is the bank's; only the security team can clear it.")
        else:
            changes = {"fraud_alert_active": False}
        self.change("debit_cards", card_id, **changes)
        return f"Debit Card Alert Cleared Successfully\nCard ID: {card_id}\nReason: {reason}"

    @hidden
    def request_temporary_debit_card_limit_increase_8374(
        self, *, card_id: str, limit_type: str, new_limit: float
    ) -> str:
        """Raise a card's daily limit for 24 hours; the limit is 'atm' or 'purchase'."""
        card = self._need(card_id, "ACTIVE", "given a new limit")
        if limit_type not in {"atm", "purchase"}:
            raise Refused(f"Error: limit_type must be atm or purchase, got '{limit_type}'.")
        known = card.get(f"daily_{limit_type}_limit")
        if known is not None and new_limit > _LIMIT_BOOST * known:
            raise Refused(f"Error: The limit cannot exceed ${_LIMIT_BOOST * known:.2f}, got ${new_limit:.2f}.")
        self.change("debit_cards", card_id, **{f"temporary_{limit_type}_limit": new_limit})
        named = "ATM Withdrawal" if limit_type == "atm" else "Purchase"
        return (
            f"Temporary Daily {named} Limit Increase Granted Successfully\nCard ID: {card_id}\n"
            f"New Limit: ${new_limit:.2f}, for 24 hours"
        )

    @hidden
    def get_debit_dispute_status_7483(self, user_id: str) -> str:
        """Look up a customer's debit card disputes."""
        listed = self.listed("debit_card_disputes", user_id=user_id)
        return f"Debit card dispute history retrieved successfully.\n\n{listed}"

    @hidden
    def file_debit_card_transaction_dispute_6281(
        self,
        *,
        transaction_id: str,
        account_id: str,
        card_id: str,
        user_id: str,
        dispute_category: str,
        transaction_date: str,
        discovery_date: str,
        disputed_amount: float,
        transaction_type: str,
        card_in_possession: bool,
        pin_compromised: str,
        contacted_merchant: bool,
        police_report_filed: bool,
        written_statement_provided: bool,
        provisional_credit_eligible: bool,
        card_action: str,
        customer_max_liability_amount: float,
    ) -> str:
        """File a dispute of a debit card transaction; the documents explain each argument."""
        given = {name: value for name, value in locals().items() if name != "self"}
        key = "dsp_" + identify("dispute", user_id, transaction_id)
        row = {"dispute_id": key, **given, "filing_date": TODAY, "status": "OPEN"}
        refusal = "Error: Dispute may have already been filed for this transaction."
        self.add("debit_card_disputes", key, row, refusal=refusal)
        return (
            f"Dispute ID: {key}\nTransaction: {transaction_id}\nAccount: {account_id}\nCard: {card_id}\n"
            f"Category: {dispute_category}\nAmount: ${disputed_amount:.2f}\nStatus: OPEN"
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

    def _activate(self, number: str, card_id: str, pin: str) -> str:
        """Activates a card; the digits that the customer reads from it are not compared: see the package."""
        card = self._debit_card(card_id)
        if card["status"] == "ACTIVE":
            raise Refused(f"Error: Debit card '{card_id}' is already active.")
        if (right := _TOOLS[reason := card["issue_reason"]]) != f"activate_debit_card_{number}":
            raise Refused(f"Error: Wrong activation tool. This card has issue_reason='{reason}'. Please use {right}.")
        self._need(card_id, "PENDING", "activated")
        _check_pin(pin)
        self.change("debit_cards", card_id, status="ACTIVE")
        kind = {"8291": "New", "8292": "Replacement", "8293": "Reissued"}[number]
        return f"{kind} Debit Card Activation Successful\nCard ID: {card_id}\n{kind} card is now ACTIVE."


def _check_choice(delivery: str, design: str) -> None:
    if delivery not in _DELIVERY or design not in _DESIGNS:
        raise Refused(
            f"Error: delivery_option must be one of {', '.join(_DELIVERY)}, got '{delivery}'; "
            f"card_design must be one of {', '.join(_DESIGNS)}, got '{design}'."
        )


def _check_order(account_id: str, cards: list[dict[str, Any]], *, fee: float, balance: float) -> None:
    if any(card["status"] in {"ACTIVE", "FROZEN"} for card in cards):
        raise Refused(
            f"Error: Account '{account_id}' already has an active debit card. Maximum 1 active card per account."
        )
    if any(card["status"] == "PENDING" for card in cards):
        raise Refused(f"Error: There is already a pending debit card order for account '{account_id}'.")
    if balance < fee:
        raise Refused(f"Error: Fees are ${fee:.2f}, the balance of account '{account_id}' is ${balance:.2f}.")


def _ordered(card_id: str, account_id: str, user: dict[str, Any], *, reasons: list[str]) -> dict[str, Any]:
    """Returns the row of a card that was ordered; a card that replaces another one is issued for its reason."""
    reason = reasons[-1].removesuffix("_suspected") if reasons else "first_card"
    return {
        "card_id": card_id,
        "account_id": account_id,
        "user_id": user["user_id"],
        "cardholder_name": user["name"].upper(),
        "last_4_digits": f"{int(identify('last_4_digits', card_id), 16) % 10_000:04}",
        "cvv": f"{int(identify('cvv', card_id), 16) % 1_000:03}",
        "status": "PENDING",
        "issue_date": TODAY,
        "expiration_date": "11/30/2029",
        "issue_reason": reason if reason in _TOOLS else "first_card",
    }


def _check_pin(pin: str) -> None:
    steps = {int(b) - int(a) for a, b in itertools.pairwise(pin)} if pin.isdecimal() else set[int]()
    if len(pin) != 4 or not steps or steps in ({0}, {1}, {-1}):
        raise Refused("Error: The PIN must be 4 digits, neither all the same nor a sequence.")
