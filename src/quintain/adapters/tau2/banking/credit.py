"""Hidden tools for credit cards."""

from __future__ import annotations

import json
from typing import Any

from .records import TODAY, Records, Refused, dollars, hidden, identify, lent, recorded


class CreditCards(Records, kw_only=True):
    """Services for credit cards."""

    @hidden
    def get_user_dispute_history_7291(self, user_id: str) -> str:
        """Look up a customer's credit card disputes."""
        listed = self.listed("transaction_disputes", user_id=user_id)
        return f"User transaction dispute history retrieved successfully.\n\n{listed}"

    @hidden
    def get_pending_replacement_orders_5765(self, credit_card_account_id: str) -> str:
        """Look up the replacement cards that were ordered for a credit card account."""
        listed = self.listed("credit_card_orders", credit_card_account_id=credit_card_account_id)
        return f"Pending replacement orders check completed.\n\n{listed}"

    @hidden
    def get_closure_reason_history_8293(self, credit_card_account_id: str) -> str:
        """Look up why a customer wanted to close a credit card account before."""
        listed = self.listed("credit_card_closure_reasons", credit_card_account_id=credit_card_account_id)
        return f"Closure reason history retrieved successfully.\n\n{listed}"

    @hidden
    def get_credit_limit_increase_history_4829(self, credit_card_account_id: str) -> str:
        """Look up the requests to increase the limit of a credit card account."""
        listed = self.listed("credit_limit_increase_requests", credit_card_account_id=credit_card_account_id)
        return f"Credit limit increase history retrieved.\n\n{listed}"

    @hidden
    def get_payment_history_6183(self, credit_card_account_id: str, months: int) -> str:
        """Look up the last monthly payments of a credit card account."""
        rows = self.matching("payment_history", credit_card_account_id=credit_card_account_id).values()
        latest = sorted(rows, key=_day, reverse=True)[:months]
        on_time = next((n for n, row in enumerate(latest) if row["status"] != "ON_TIME"), len(latest))
        lines = [f"  - {row['payment_date']}: {row['amount']} ({row['status']})" for row in latest]
        title = f"Payment history for account '{credit_card_account_id}' (last {months} months):"
        return "\n".join([title, f"Consecutive on-time payments: {on_time}", *lines])

    @hidden
    def file_credit_card_transaction_dispute_4829(
        self,
        *,
        transaction_id: str,
        card_action: str,
        card_last_4_digits: str,
        full_name: str,
        user_id: str,
        phone: str,
        email: str,
        address: str,
        contacted_merchant: bool,
        purchase_date: str,
        issue_noticed_date: str,
        dispute_reason: str,
        resolution_requested: str,
        eligible_for_provisional_credit: bool,
        partial_refund_amount: float | None = None,
    ) -> str:
        """File a dispute of a credit card transaction; the documents explain each argument."""
        given = {name: value for name, value in locals().items() if name != "self"}
        key = "dsp_" + identify("dispute", user_id, transaction_id)
        outcome = {
            "provisional_credit_given": eligible_for_provisional_credit,
            "submitted_at": TODAY,
            "status": "SUBMITTED",
        }
        refusal = "Error: Dispute may have already been filed for this transaction."
        self.add("transaction_disputes", key, {"dispute_id": key, **given, **outcome}, refusal=refusal)
        return (
            "Credit card transaction dispute filed successfully. A case has been opened and will be reviewed.\n"
            f"  - Dispute ID: {key}\n  - Transaction: {transaction_id}"
        )

    @hidden
    def update_transaction_rewards_3847(self, transaction_id: str, new_rewards_earned: str) -> str:
        """Correct the rewards of a credit card transaction; they are written as 'X points'."""
        refusal = f"Error: Transaction '{transaction_id}' not found."
        before = self.row("credit_card_transaction_history", transaction_id, refusal)["rewards_earned"]
        self.change("credit_card_transaction_history", transaction_id, rewards_earned=new_rewards_earned)
        return (
            f"Transaction rewards updated successfully.\n\n  - Transaction: {transaction_id}\n"
            f"  - Rewards: {new_rewards_earned} (before: {before})"
        )

    @hidden
    def order_replacement_credit_card_7291(
        self,
        *,
        credit_card_account_id: str,
        user_id: str,
        shipping_address: str,
        reason: str,
        expedited_shipping: bool = False,
    ) -> str:
        """Order a new credit card for a customer, for a reason such as 'lost' or 'fraud_suspected'."""
        key = "ccord_" + identify("credit_card_order", credit_card_account_id, user_id, reason)
        row = {
            "order_id": key,
            "credit_card_account_id": credit_card_account_id,
            "user_id": user_id,
            "shipping_address": shipping_address,
            "reason": reason,
            "expedited_shipping": expedited_shipping,
            "order_date": TODAY,
            "status": "ORDERED",
        }
        refusal = "Error: Order may have already been placed for this card replacement."
        self.add("credit_card_orders", key, row, refusal=refusal)
        speed = "expedited, 2-3 business days" if expedited_shipping else "standard, 7-10 business days"
        return (
            f"Order ID: {key}\nCard Account: {credit_card_account_id}\nReason: {reason.replace('_', ' ').title()}\n"
            f"Shipping: {speed}\nShipping Address: {shipping_address}"
        )

    @hidden
    def apply_credit_card_account_flag_6147(
        self, *, credit_card_account_id: str, user_id: str, flag_type: str, expiration_date: str, reason: str
    ) -> str:
        """Put a flag such as 'annual_fee_waived' on a credit card account, until a date as MM/DD/YYYY."""
        key = "ccflag_" + identify("account_flag", credit_card_account_id, flag_type, expiration_date)
        row = {
            "flag_id": key,
            "credit_card_account_id": credit_card_account_id,
            "user_id": user_id,
            "flag_type": flag_type,
            "effective_date": TODAY,
            "expiration_date": expiration_date,
            "reason": reason,
            "applied_at": TODAY,
            "status": "ACTIVE",
        }
        refusal = f"Error: Failed to apply account flag. Flag ID '{key}' may already exist."
        self.add("credit_card_account_flags", key, row, refusal=refusal)
        return (
            f"Account flag applied successfully!\n  - Flag ID: {key}\n  - Account: {credit_card_account_id}\n"
            f"  - Flag: {flag_type}, until {expiration_date}"
        )

    @hidden
    def apply_statement_credit_8472(
        self, *, user_id: str, credit_card_account_id: str, amount: float, reason: str
    ) -> str:
        """Credit a credit card account, for a reason such as 'goodwill_adjustment' or 'retention_offer'."""
        card = self._credit_card(credit_card_account_id)
        key = "txn_" + identify("statement_credit", user_id, credit_card_account_id, float(amount), reason)
        row = {
            "transaction_id": key,
            "user_id": user_id,
            "credit_card_type": card["card_type"],
            "merchant_name": "Rho-Bank",
            "transaction_amount": f"-${amount:.2f}",
            "transaction_date": TODAY,
            "category": "Statement Credit",
            "status": "COMPLETED",
            "rewards_earned": "0 points",
        }
        refusal = f"Error: Failed to apply statement credit. Transaction ID '{key}' may already exist."
        self.add("credit_card_transaction_history", key, row, refusal=refusal)
        balance = dollars(card["current_balance"]) - amount
        self.change("credit_card_accounts", credit_card_account_id, current_balance=f"${balance:.2f}")
        return f"Statement credit applied successfully.\n\n  - Transaction ID: {key}\n  - Amount: ${amount:.2f}"

    @hidden
    def log_credit_card_closure_reason_4521(
        self, *, credit_card_account_id: str, user_id: str, closure_reason: str
    ) -> str:
        """Record why a customer wants to close a credit card account, such as 'annual_fee' or 'other'."""
        key = "clsr_" + identify("closure_reason", credit_card_account_id, user_id)
        row = {
            "record_id": key,
            "credit_card_account_id": credit_card_account_id,
            "user_id": user_id,
            "closure_reason": closure_reason,
            "logged_at": TODAY,
            "status": "LOGGED",
        }
        refusal = "Error: A reason may have already been logged for this account."
        self.add("credit_card_closure_reasons", key, row, refusal=refusal)
        return f"Closure reason logged successfully.\n\n  - Record ID: {key}\n  - Reason: {closure_reason}"

    @hidden
    def close_credit_card_account_7834(self, credit_card_account_id: str, user_id: str) -> str:
        """Close a credit card account that owes nothing."""
        if balance := dollars(self._credit_card(credit_card_account_id)["current_balance"]):
            raise Refused(f"Error: The balance must be $0.00 before closing. Current balance: ${balance:.2f}")
        self.change("credit_card_accounts", credit_card_account_id, status="CLOSED", closed_date=TODAY)
        return f"Credit card account closed successfully.\n  - Account: {credit_card_account_id}"

    @hidden
    def submit_credit_limit_increase_request_7392(
        self, *, credit_card_account_id: str, user_id: str, requested_increase_amount: int
    ) -> str:
        """Record a request to increase a credit limit by an amount in dollars."""
        key = "cli_" + identify("cli_request", credit_card_account_id, user_id, requested_increase_amount)
        row = {
            "request_id": key,
            "credit_card_account_id": credit_card_account_id,
            "user_id": user_id,
            "requested_increase_amount": requested_increase_amount,
            "submitted_date": TODAY,
            "status": "SUBMITTED",
        }
        self.add("credit_limit_increase_requests", key, row, refusal="Error: A similar request may already exist.")
        return f"Credit limit increase request submitted successfully.\n\n  - Request ID: {key}"

    @hidden
    def approve_credit_limit_increase_5847(
        self, *, credit_card_account_id: str, user_id: str, new_credit_limit: float
    ) -> str:
        """Approve a request to increase a credit limit, and set the new limit."""
        shown = self._credit_card(credit_card_account_id).get("credit_limit", "$0.00")
        before = 0.0 if "," in shown else dollars(shown)  # so the stored verdicts of repeated approvals require
        key = "cli_" + identify("cli_approval", credit_card_account_id, user_id, float(new_credit_limit), before)
        row = {
            "request_id": key,
            "credit_card_account_id": credit_card_account_id,
            "user_id": user_id,
            "decision_date": TODAY,
            "previous_limit": before,
            "new_limit": float(new_credit_limit),
            "increase_amount": new_credit_limit - before,
            "status": "APPROVED",
        }
        self.credit_limit_increase_requests[key] = recorded(row)
        self.change("credit_card_accounts", credit_card_account_id, credit_limit=f"${new_credit_limit:,.2f}")
        return (
            f"Credit limit increase approved!\n  - Account: {credit_card_account_id}\n"
            f"  - Previous Limit: {shown}\n  - New Limit: ${new_credit_limit:,.2f}"
        )

    @hidden
    def deny_credit_limit_increase_5848(self, *, credit_card_account_id: str, user_id: str, denial_reason: str) -> str:
        """Deny a request to increase a credit limit, for a reason such as 'high_utilization'."""
        self._credit_card(credit_card_account_id)
        key = "cli_" + identify("cli_denial", credit_card_account_id, user_id, denial_reason)
        row = {
            "request_id": key,
            "credit_card_account_id": credit_card_account_id,
            "user_id": user_id,
            "decision_date": TODAY,
            "denial_reason": denial_reason,
            "status": "DENIED",
        }
        self.credit_limit_increase_requests[key] = recorded(row)
        return (
            f"Credit limit increase request denied.\n  - Account: {credit_card_account_id}\n"
            f"  - Denial Reason: {denial_reason}"
        )

    @lent
    def submit_cash_back_dispute_0589(self, user_id: str, transaction_id: str) -> str:
        """Submit a cash back dispute of one of your credit card transactions."""
        key = "dsp_" + identify("dispute", user_id, transaction_id)
        settings: dict[str, Any] = self.document("task_config", "dispute_settings") or {}
        row = {
            "dispute_id": key,
            "user_id": user_id,
            "transaction_id": transaction_id,
            "submitted_at": TODAY,
            "status": "APPROVED" if settings.get("auto_resolve_disputes") else "SUBMITTED",
        }
        said = "Cash back dispute submitted successfully. Your case has been queued for review.\n"
        if not self.document("cash_back_disputes", key):
            self.add("cash_back_disputes", key, row, refusal="")
        return f"{said}  - Dispute ID: {key}"

    @lent
    def get_card_last_4_digits(self, credit_card_account_id: str) -> str:
        """Look up the last 4 digits of one of your credit cards."""
        known = self._credit_card(credit_card_account_id).get("card_last_4_digits")
        drawn = filter(str.isdecimal, identify("card_last4", credit_card_account_id, digits=64))
        digits = known or "".join(drawn)[:4]
        given = json.dumps({"credit_card_account_id": credit_card_account_id}, indent=2)
        return (
            "Card information retrieved successfully.\n\nExecuted: get_card_last_4_digits\n"
            f"Arguments: {given}\nLast 4 digits of card: {digits}"
        )

    @lent
    def get_referral_link(self, user_id: str, card_name: str) -> str:
        """Get a link with which a friend can apply for a card."""
        code = identify("referral_link", user_id, card_name)
        return f"Referral link: https://rho-bank.example/refer/{code}\n  - Card: {card_name}"

    def _credit_card(self, account_id: str) -> dict[str, Any]:
        return self.row("credit_card_accounts", account_id, f"Error: Credit card account '{account_id}' not found.")


def _day(row: dict[str, Any]) -> str:
    """Returns the date of a payment in an order that sorts; the data write it in two ways."""
    date = row["payment_date"]
    return f"{date[6:]}-{date[:2]}-{date[3:5]}" if "/" in date else date
