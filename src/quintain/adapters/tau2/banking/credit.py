"""Hidden tools for credit cards."""

from __future__ import annotations

import json
from typing import Any, Literal

from .records import TODAY, Positive, Records, Refused, Text, Whole, dollars, hidden, identify, lent, lookup

_UNDECIDED = {"SUBMITTED", "UNDER_REVIEW", "PENDING"}
_UNDELIVERED = {"PENDING", "PROCESSING", "SHIPPED"}
_TROUBLED = {"PAST_DUE", "DELINQUENT", "COLLECTIONS", "CLOSED"}


class CreditCards(Records, kw_only=True):
    """Services for credit cards."""

    @lookup
    def get_user_dispute_history_7291(self, user_id: Text) -> str:
        """Look up a customer's credit card disputes."""
        listed = self.listed("transaction_disputes", user_id=user_id)
        return f"User transaction dispute history retrieved successfully.\n\n{listed}"

    @lookup
    def get_pending_replacement_orders_5765(self, credit_card_account_id: Text) -> str:
        """Look up the replacement cards that were ordered for a credit card account."""
        listed = self.listed("credit_card_orders", credit_card_account_id=credit_card_account_id)
        return f"Pending replacement orders check completed.\n\n{listed}"

    @lookup
    def get_closure_reason_history_8293(self, credit_card_account_id: Text) -> str:
        """Look up why a customer wanted to close a credit card account before."""
        listed = self.listed("credit_card_closure_reasons", credit_card_account_id=credit_card_account_id)
        return f"Closure reason history retrieved successfully.\n\n{listed}"

    @lookup
    def get_credit_limit_increase_history_4829(self, credit_card_account_id: Text) -> str:
        """Look up the requests to increase the limit of a credit card account."""
        listed = self.listed("credit_limit_increase_requests", credit_card_account_id=credit_card_account_id)
        return f"Credit limit increase history retrieved.\n\n{listed}"

    @lookup
    def get_payment_history_6183(self, credit_card_account_id: Text, months: Positive) -> str:
        """Look up the last monthly payments of a credit card account."""
        rows = self.matching("payment_history", credit_card_account_id=credit_card_account_id).values()
        # Dates are written in two ways; they are sorted as text, as in the reference.
        latest = sorted(rows, key=lambda row: row["payment_date"], reverse=True)[: int(months)]
        on_time = next((n for n, row in enumerate(latest) if row["status"] != "ON_TIME"), len(latest))
        lines = [
            f"\n  - Payment Date: {row['payment_date']}\n    Amount: {row['amount']}\n    Status: {row['status']}"
            for row in latest
        ]
        title = f"Payment history for account '{credit_card_account_id}' (last {int(months)} months):"
        return "\n".join([title, f"Consecutive on-time payments: {on_time}", *lines])

    @hidden
    def file_credit_card_transaction_dispute_4829(
        self,
        *,
        transaction_id: Text,
        card_action: Literal["keep_active", "cancel_and_reissue"],
        card_last_4_digits: str,
        full_name: str,
        user_id: Text,
        phone: str,
        email: str,
        address: str,
        contacted_merchant: bool,
        purchase_date: str,
        issue_noticed_date: str,
        dispute_reason: Literal[
            "unauthorized_fraudulent_charge",
            "duplicate_charge",
            "incorrect_amount",
            "goods_services_not_received",
            "goods_services_not_as_described",
            "canceled_subscription_still_charging",
            "refund_never_processed",
        ],
        resolution_requested: Literal["full_refund", "partial_refund"],
        eligible_for_provisional_credit: bool,
        partial_refund_amount: float | None = None,
    ) -> str:
        """File a dispute of a credit card transaction; the documents explain each argument."""
        given = {name: value for name, value in locals().items() if name != "self"}
        if resolution_requested == "partial_refund" and partial_refund_amount is None:
            raise Refused("Error: partial_refund_amount is required for the resolution 'partial_refund'.")
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
    def update_transaction_rewards_3847(self, transaction_id: Text, new_rewards_earned: Text) -> str:
        """Correct the rewards of a credit card transaction; they are written as 'X points'."""
        given = {"transaction_id": transaction_id, "new_rewards_earned": new_rewards_earned}
        self.row("credit_card_transaction_history", transaction_id, f"Error: Transaction '{transaction_id}' not found.")
        self.change("credit_card_transaction_history", transaction_id, rewards_earned=new_rewards_earned)
        return (
            "Transaction rewards updated successfully.\n\nExecuted: update_transaction_rewards_3847\n"
            f"Arguments: {json.dumps(given, indent=2)}\nTransaction updated:\n"
            f"  - Transaction ID: {transaction_id}\n  - New Rewards: {new_rewards_earned}"
        )

    @hidden
    def order_replacement_credit_card_7291(
        self,
        *,
        credit_card_account_id: Text,
        user_id: Text,
        shipping_address: Text,
        reason: Literal["fraud_suspected", "lost", "stolen", "damaged", "expired", "other"],
        expedited_shipping: bool = False,
    ) -> str:
        """Order a new credit card for a customer; the old one is closed."""
        self._credit_card(credit_card_account_id)
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
            "old_card_cancelled": True,
        }
        refusal = "Error: Order may have already been placed for this card replacement."
        self.add("credit_card_orders", key, row, refusal=refusal)
        self.change("credit_card_accounts", credit_card_account_id, status="CLOSED", closed_date=TODAY)
        speed = "expedited, 2-3 business days" if expedited_shipping else "standard, 7-10 business days"
        return (
            f"Order ID: {key}\nCard Account: {credit_card_account_id}\nReason: {reason.replace('_', ' ').title()}\n"
            f"Shipping: {speed}\nShipping Address: {shipping_address}"
        )

    @hidden
    def apply_credit_card_account_flag_6147(
        self,
        *,
        credit_card_account_id: Text,
        user_id: Text,
        flag_type: Literal["annual_fee_waived", "promotional_apr", "rewards_bonus", "other"],
        expiration_date: Text,
        reason: Literal["retention_offer", "loyalty_benefit", "promotional", "error_correction", "other"],
    ) -> str:
        """Put a flag on a credit card account, until a date as MM/DD/YYYY."""
        self._credit_card(credit_card_account_id)
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
            f"  - User ID: {user_id}\n  - Flag Type: {flag_type.replace('_', ' ').title()}\n"
            f"  - Effective Date: {TODAY}\n  - Expiration Date: {expiration_date}\n"
            f"  - Reason: {reason.replace('_', ' ').title()}"
        )

    @hidden
    def apply_statement_credit_8472(
        self,
        *,
        user_id: Text,
        credit_card_account_id: Text,
        amount: Positive,
        reason: Literal[
            "goodwill_adjustment",
            "promotional_credit",
            "annual_fee_reversal",
            "late_fee_reversal",
            "interest_charge_reversal",
            "dispute_resolution",
            "price_match",
            "retention_offer",
            "error_correction",
            "other",
        ],
    ) -> str:
        """Credit a credit card account."""
        self._credit_card(credit_card_account_id)
        category = "Statement Credit"
        key = "txn_" + identify("transaction", user_id, "STATEMENT_CREDIT", reason, f"{amount:.2f}", category)
        row = {
            "transaction_id": key,
            "user_id": user_id,
            "credit_card_account_id": credit_card_account_id,
            "credit_card_type": "N/A",
            "merchant_name": "Rho-Bank Statement Credit",
            "transaction_amount": f"-${amount:.2f}",
            "transaction_date": TODAY,
            "category": category,
            "status": "COMPLETED",
            "rewards_earned": "0 points",
            "credit_reason": reason,
        }
        refusal = f"Error: Failed to apply statement credit. Transaction ID '{key}' may already exist."
        self.add("credit_card_transaction_history", key, row, refusal=refusal)
        return (
            "Statement credit applied successfully.\n\nExecuted: apply_statement_credit_8472\n"
            f"  - Transaction ID: {key}\n  - User ID: {user_id}\n  - Account: {credit_card_account_id}\n"
            f"  - Credit Amount: ${amount:.2f}\n  - Reason: {reason.replace('_', ' ').title()}\n  - Date: {TODAY}"
        )

    @hidden
    def log_credit_card_closure_reason_4521(
        self,
        *,
        credit_card_account_id: Text,
        user_id: Text,
        closure_reason: Literal[
            "annual_fee",
            "not_using_card",
            "found_better_card",
            "unhappy_with_rewards",
            "simplifying_finances",
            "negative_experience",
            "other",
        ],
    ) -> str:
        """Record why a customer wants to close a credit card account; the first reason stays."""
        key = "clsr_" + identify("closure_reason", credit_card_account_id, user_id)
        row = {
            "record_id": key,
            "credit_card_account_id": credit_card_account_id,
            "user_id": user_id,
            "closure_reason": closure_reason,
            "logged_at": TODAY,
            "status": "LOGGED",
        }
        self.add("credit_card_closure_reasons", key, row)
        return f"Closure reason logged successfully.\n\n  - Record ID: {key}\n  - Reason: {closure_reason}"

    @hidden
    def close_credit_card_account_7834(self, credit_card_account_id: Text, user_id: Text) -> str:
        """Close a credit card account."""
        self._credit_card(credit_card_account_id)
        closed = {"status": "CLOSED", "closed_date": TODAY, "closed_by": user_id}
        self.change("credit_card_accounts", credit_card_account_id, **closed)
        return f"Credit card account closed successfully.\n  - Account: {credit_card_account_id}"

    @hidden
    def submit_credit_limit_increase_request_7392(
        self, *, credit_card_account_id: Text, user_id: Text, requested_increase_amount: Whole
    ) -> str:
        """Record a request to increase a credit limit by an amount in dollars."""
        self._credit_card(credit_card_account_id, user_id)
        key = self._record_increase(
            (credit_card_account_id, user_id),
            requested_increase_amount,
            refusal="Error: A similar request may already exist.",
            requested_increase_amount=int(requested_increase_amount),
            submitted_at=TODAY,
            status="PENDING",
        )
        return (
            "Credit limit increase request submitted successfully.\n\n"
            f"Executed: submit_credit_limit_increase_request_7392\n  - Request ID: {key}\n"
            f"  - Account: {credit_card_account_id}\n  - Requested Increase: ${int(requested_increase_amount):,}\n"
            "  - Status: PENDING"
        )

    @hidden
    def approve_credit_limit_increase_5847(
        self, *, credit_card_account_id: Text, user_id: Text, new_credit_limit: float
    ) -> str:
        """Approve a request to increase a credit limit, and set the new limit."""
        account = self._credit_card(credit_card_account_id, user_id)
        disputes = self.matching("transaction_disputes", user_id=user_id).values()
        orders = self.matching("credit_card_orders", credit_card_account_id=credit_card_account_id).values()
        if (
            any(dispute["status"] in _UNDECIDED for dispute in disputes)
            or any(order["status"] in _UNDELIVERED for order in orders)
            or account.get("account_status", "").upper() in _TROUBLED
        ):
            raise Refused("Error: Credit limit increase request cannot be approved at this time.")
        before, limit = dollars(account.get("credit_limit", 0)), f"${new_credit_limit:.2f}"
        increase = new_credit_limit - before
        self.change("credit_card_accounts", credit_card_account_id, credit_limit=limit)
        self._record_increase(
            (credit_card_account_id, user_id),
            increase,
            previous_limit=f"${before:.2f}",
            new_limit=limit,
            increase_amount=f"${increase:.2f}",
            decision_date=TODAY,
            status="APPROVED",
        )
        return (
            f"Credit limit increase approved!\n  - Account: {credit_card_account_id}\n"
            f"  - Previous Limit: ${before:.2f}\n  - New Limit: {limit}"
        )

    @hidden
    def deny_credit_limit_increase_5848(
        self,
        *,
        credit_card_account_id: Text,
        user_id: Text,
        denial_reason: Literal[
            "insufficient_account_age",
            "cooldown_period_active",
            "pending_disputes",
            "pending_replacement_card",
            "past_due_balance",
            "high_utilization",
            "insufficient_payment_history",
            "requested_amount_exceeds_limit",
            "other",
        ],
    ) -> str:
        """Deny a request to increase a credit limit."""
        self._credit_card(credit_card_account_id)
        decision = {"denial_reason": denial_reason, "decision_date": TODAY, "status": "DENIED"}
        self._record_increase((credit_card_account_id, user_id), 0, **decision)
        return (
            f"Credit limit increase request denied.\n  - Account: {credit_card_account_id}\n"
            f"  - Denial Reason: {denial_reason}"
        )

    @lent
    def submit_cash_back_dispute_0589(self, user_id: str, transaction_id: str) -> str:
        """Submit a cash back dispute of one of your credit card transactions."""
        key = "dsp_" + identify("dispute", user_id, transaction_id)
        settings: dict[str, Any] = self.document("task_config", "dispute_settings") or {}
        is_approved = bool(settings.get("auto_resolve_disputes"))
        row = {
            "dispute_id": key,
            "user_id": user_id,
            "transaction_id": transaction_id,
            "submitted_at": TODAY,
            "status": "RESOLVED" if is_approved else "SUBMITTED",
        }
        self.add("cash_back_disputes", key, row | ({"resolution": "APPROVED"} if is_approved else {}))
        return (
            "Cash back dispute submitted successfully. Your case has been queued for review.\n"
            f"  - Dispute ID: {key}\n"
            f"  - Status: {row['status']}{', the rewards have to be corrected' if is_approved else ''}"
        )

    @lent
    def get_card_last_4_digits(self, credit_card_account_id: Text) -> str:
        """Look up the last 4 digits of one of your credit cards."""
        self._credit_card(credit_card_account_id)
        drawn = filter(str.isdecimal, identify("card_last4", credit_card_account_id, digits=64))
        digits = "".join(drawn)[:4]
        given = json.dumps({"credit_card_account_id": credit_card_account_id}, indent=2)
        return (
            "Card information retrieved successfully.\n\nExecuted: get_card_last_4_digits\n"
            f"Arguments: {given}\nLast 4 digits of card: {digits}"
        )

    @lent
    def get_referral_link(self, user_id: str, card_name: str) -> str:
        """Get a link with which a friend can apply for a card."""
        key = identify("referral_link", user_id, card_name, digits=16)
        self.refer(key, user_id, card_name)
        return f"Referral link: https://rhobank.com/refer/{key}\n  - Card: {card_name}"

    def refer(self, key: str, user_id: str, product: str, *, refusal: str = "") -> None:
        """Adds a referral, as `add` does."""
        row = {
            "referral_id": key,
            "referrer_id": user_id,
            "referred_account_type": product,
            "referral_status": "NO_PROGRESS",
            "date": TODAY,
        }
        self.add("referrals", key, row, refusal=refusal)

    def _credit_card(self, account_id: str, user_id: str | None = None) -> dict[str, Any]:
        card = self.row("credit_card_accounts", account_id, f"Error: Credit card account '{account_id}' not found.")
        if user_id and card["user_id"] != user_id:
            raise Refused(f"Error: Credit card account '{account_id}' does not belong to user '{user_id}'.")
        return card

    def _record_increase(self, of: tuple[str, str], increase: float, *, refusal: str = "", **details: Any) -> str:
        """Records a request to increase the limit of an account of a user, or the decision on it; returns its key."""
        account_id, user_id = of
        key = "cli_" + identify("cli_request", account_id, user_id, f"{increase:.2f}")
        row = {"request_id": key, "credit_card_account_id": account_id, "user_id": user_id, **details}
        self.add("credit_limit_increase_requests", key, row, refusal=refusal)
        return key
