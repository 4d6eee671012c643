"""Hidden tools for checking and savings accounts."""

from __future__ import annotations

from typing import Any, Literal

from .records import TODAY, Positive, Records, Refused, Text, days_open, dollars, hidden, identify, lent, lookup

_EARLY_CLOSURE = {
    ("checking", "Light Blue Account"): (15, 30),
    ("checking", "Light Green Account"): (15, 30),
    ("checking", "Green Fee-Free Account"): (15, 30),
    ("checking", "Blue Account"): (25, 60),
    ("checking", "Green Account"): (25, 60),
    ("checking", "Evergreen Account"): (50, 90),
    ("checking", "Bluest Account"): (100, 180),
    ("savings", "Bronze Account"): (20, 60),
    ("savings", "Silver Account"): (35, 90),
    ("savings", "Silver Plus Account"): (35, 90),
    ("savings", "Gold Account"): (75, 180),
    ("savings", "Gold Plus Account"): (75, 180),
    ("savings", "Gold Years Account"): (75, 180),
    ("savings", "Platinum Account"): (150, 270),
    ("savings", "Platinum Plus Account"): (150, 270),
    ("savings", "Diamond Elite Account"): (150, 270),
}
"""Fee in dollars for closing an account within a number of days, by class and level."""
_CONDITIONS: dict[str, tuple[tuple[str, ...], int]] = {
    "savings": (("checking", "personal_checking"), 14),
    "business_checking": (("checking", "personal_checking"), 0),
    "business_savings": (("business_checking",), 30),
}
"""Open account that a customer must have, and its age in days, by the type of the account to open."""
_OPEN = {"ACTIVE", "OPEN"}


class Accounts(Records, kw_only=True):
    """Services for bank accounts."""

    @lookup
    def get_all_user_accounts_by_user_id_3847(self, user_id: Text) -> str:
        """Look up a customer's checking, savings and credit card accounts."""
        accounts = self.listed("accounts", user_id=user_id)
        cards = self.listed("credit_card_accounts", user_id=user_id)
        return (
            "User accounts retrieved successfully.\n\nExecuted: get_all_user_accounts_by_user_id_3847\n"
            f"Accounts for user {user_id}:\n\nBank Accounts:\n{accounts}\n\nCredit Card Accounts:\n{cards}"
        )

    @lookup
    def get_bank_account_transactions_9173(self, account_id: Text) -> str:
        """Look up the transactions of a bank account, the newest first."""
        self._account(account_id)
        rows = self.matching("bank_account_transaction_history", account_id=account_id)
        newest = sorted(rows.items(), key=lambda row: (row[1]["date"][6:], row[1]["date"][:5]), reverse=True)
        return (
            "Bank account transactions retrieved successfully.\n\nExecuted: get_bank_account_transactions_9173\n"
            f"Transactions for account {account_id}:\n{self.shown('bank_account_transaction_history', dict(newest))}"
        )

    @hidden
    def open_bank_account_4821(
        self,
        *,
        user_id: Text,
        account_type: Literal["checking", "savings", "business_checking", "business_savings"],
        account_class: Text,
    ) -> str:
        """Open a bank account; its class is its full official name."""
        self._check_eligible(account_type, list(self.matching("accounts", user_id=user_id).values()))
        key = identify("account", user_id, account_type, account_class, digits=16)
        row = {
            "account_id": key,
            "user_id": user_id,
            "account_type": account_type,
            "account_class": account_class,
            "current_holdings": "0.00",
            "status": "OPEN",
            "date_opened": TODAY,
        }
        self.add("accounts", key, row, refusal=f"Failed to open account: Account ID '{key}' may already exist.")
        return (
            f"Bank account opened successfully!\n  - Account ID: {key}\n  - User ID: {user_id}\n"
            f"  - Account Type: {account_type}\n  - Account Class: {account_class}\n  - Status: OPEN\n"
            f"  - Initial Balance: $0.00\n  - Date Opened: {TODAY}"
        )

    @hidden
    def close_bank_account_7392(
        self,
        account_id: Text,
        reason: str = "Customer requested closure",
        waive_early_closure_fee: bool = False,  # noqa: FBT001, FBT002 (called by name)
    ) -> str:
        """Close a bank account that holds nothing, or exactly the fee for closing it early."""
        account = self._account(account_id)
        if account["status"] == "CLOSED":
            raise Refused(f"Error: Account '{account_id}' is already closed.")
        balance, days = dollars(account["current_holdings"]), days_open(account)
        fee, window = _EARLY_CLOSURE.get((account.get("class", ""), account.get("level", "")), (0, 0))
        if waive_early_closure_fee or days is None or days >= window:
            fee = 0
        if balance < fee:
            raise Refused("Error: Account unable to be closed.")
        if balance != fee:
            raise Refused(f"Error: Account balance must be $0.00 before closing. Current balance: ${balance:.2f}")
        closed = {"status": "CLOSED", "date_closed": TODAY, "closure_reason": reason}
        self.change("accounts", account_id, **closed, early_closure_fee_waived=waive_early_closure_fee)
        return (
            f"Bank account closed successfully!\n  - Account ID: {account_id}\n"
            f"  - Account Type: {account.get('account_type', 'N/A')}\n"
            f"  - Account Class: {account.get('account_class', 'N/A')}\n  - Status: CLOSED\n"
            f"  - Date Closed: {TODAY}\n  - Reason: {reason}\n"
            f"  - Early Closure Fee Waived: {'Yes' if waive_early_closure_fee else 'No'}"
        )

    @hidden
    def transfer_funds_between_bank_accounts_7291(
        self, *, source_account_id: Text, destination_account_id: Text, amount: Positive
    ) -> str:
        """Move money between two of the bank's accounts."""
        if source_account_id == destination_account_id:
            raise Refused("Error: Source and destination accounts cannot be the same.")
        source = self._account(source_account_id, "Source account", statuses=_OPEN)
        destination = self._account(destination_account_id, "Destination account", statuses=_OPEN)
        if (balance := dollars(source["current_holdings"])) < amount:
            raise Refused(
                f"Error: Insufficient funds. Source account balance is ${balance:.2f}, "
                f"but transfer amount is ${amount:.2f}."
            )
        self.change("accounts", source_account_id, current_holdings=f"${balance - amount:.2f}")
        total = dollars(destination["current_holdings"]) + amount
        self.change("accounts", destination_account_id, current_holdings=f"${total:.2f}")
        return (
            f"Transfer completed successfully!\n  - Amount: ${amount:.2f}\n  - From: {source_account_id} "
            f"(new balance: ${balance - amount:.2f})\n  - To: {destination_account_id} (new balance: ${total:.2f})"
        )

    @hidden
    def pay_credit_card_from_checking_9182(
        self, *, user_id: Text, checking_account_id: Text, credit_card_account_id: Text, amount: Positive
    ) -> str:
        """Pay a credit card's balance from a checking account."""
        checking = self._account(checking_account_id, "Checking account")
        refusal = f"Error: Credit card account '{credit_card_account_id}' not found."
        card = self.row("credit_card_accounts", credit_card_account_id, refusal)
        if not checking["user_id"] == card["user_id"] == user_id or checking.get("class") != "checking":
            raise Refused(f"Error: A payment needs a checking account and a credit card of user '{user_id}'.")
        holdings, balance = dollars(checking["current_holdings"]), dollars(card["current_balance"])
        if amount > min(holdings, balance):
            raise Refused(
                f"Error: Payment of ${amount:.2f} must be at most the checking account's ${holdings:.2f} "
                f"and the credit card's ${balance:.2f}."
            )
        self.change("accounts", checking_account_id, current_holdings=f"{holdings - amount:.2f}")
        self.change("credit_card_accounts", credit_card_account_id, current_balance=f"${balance - amount:.2f}")
        return (
            f"Payment processed successfully!\n  - Payment Amount: ${amount:.2f}\n"
            f"  - From Checking Account: {checking_account_id} (new balance: ${holdings - amount:.2f})\n"
            f"  - To Credit Card: {credit_card_account_id} (new balance: ${balance - amount:.2f})"
        )

    @hidden
    def apply_checking_account_credit_5829(
        self, *, account_id: Text, amount: Positive, credit_type: Literal["rebate_credit", "fee_refund"]
    ) -> str:
        """Credit a checking account."""
        return self._credit("checking", account_id, amount, credit_type=credit_type, sign="$")

    @hidden
    def apply_savings_account_credit_6831(
        self,
        *,
        account_id: Text,
        amount: Positive,
        credit_type: Literal["interest_correction", "fee_refund", "goodwill_credit"],
    ) -> str:
        """Credit a savings account."""
        return self._credit("savings", account_id, amount, credit_type=credit_type, sign="")

    @hidden
    def submit_interest_discrepancy_report_7294(
        self, *, account_id: Text, user_id: Text, expected_apy: float, actual_apy: float, amount_difference: float
    ) -> str:
        """Report interest that was calculated wrongly to the back office."""
        level = self._account(account_id).get("level", "Unknown")
        name = self.row("users", user_id, f"Error: User '{user_id}' not found.")["name"]
        key = "IDR_" + identify("interest_report", account_id, user_id, expected_apy, actual_apy, TODAY, digits=16)
        return (
            f"\nInterest Discrepancy Report Submitted Successfully!\n  - Report ID: {key}\n"
            f"  - Account: {account_id} ({level})\n  - Customer: {name}\n"
            f"  - Amount Difference: ${amount_difference:.2f}"
        )

    @lent
    def deposit_check_3847(self, account_id: Text, check_amount: Positive) -> str:
        """Deposit a check into one of your checking or savings accounts."""
        holdings = dollars(self._account(account_id, statuses=_OPEN)["current_holdings"])
        self.change("accounts", account_id, current_holdings=f"${holdings + check_amount:.2f}")
        return (
            "Check deposited successfully. Funds will be available according to your account's policy.\n"
            f"  - Account ID: {account_id}\n  - Amount: ${check_amount:.2f}"
        )

    def _account(self, account_id: str, named: str = "Account", *, statuses: set[str] | None = None) -> dict[str, Any]:
        account = self.row("accounts", account_id, f"Error: {named} '{account_id}' not found.")
        if statuses and account["status"] not in statuses:
            raise Refused(f"Error: {named} '{account_id}' is not active.")
        return account

    def _check_eligible(self, account_type: str, owned: list[dict[str, Any]]) -> None:
        has_closed = any(account["status"] == "CLOSED" for account in owned)
        is_overdrawn = any(dollars(account["current_holdings"]) < 0 for account in owned)
        types, days = _CONDITIONS.get(account_type, ((), 0))
        has_needed = not types or any(
            account.get("account_type", account.get("class")) in types
            and account["status"] in _OPEN
            and (days_open(account) or 0) >= days
            for account in owned
        )
        barred = {"business_checking": has_closed, "business_savings": is_overdrawn}
        if barred.get(account_type) or not has_needed:
            raise Refused("Error: Account eligibility requirements not met.")

    def _credit(self, kind: str, account_id: str, amount: float, *, credit_type: str, sign: str) -> str:
        """Books a credit; the reference writes the balance with a sign for one kind of account only."""
        account = self._account(account_id, statuses=_OPEN)
        if account.get("class", "").lower() not in {kind, kind.removesuffix("s")}:
            raise Refused(f"Error: Account '{account_id}' is not a {kind} account.")
        key = "txn_" + identify(f"{kind}_credit", account_id, credit_type, amount, TODAY, digits=16)
        row = {
            "transaction_id": key,
            "account_id": account_id,
            "date": TODAY,
            "description": f"{credit_type.replace('_', ' ').upper()} - CUSTOMER SERVICE",
            "amount": amount,
            "type": credit_type,
            "status": "posted",
        }
        self.add("bank_account_transaction_history", key, row)
        before = dollars(account["current_holdings"])
        self.change("accounts", account_id, current_holdings=f"{sign}{before + amount:.2f}")
        return (
            f"\nCredit applied successfully!\n  - Transaction ID: {key}\n  - Account: {account_id}\n"
            f"  - Credit Type: {credit_type}\n  - Amount: ${amount:.2f}\n"
            f"  - Previous Balance: ${before:.2f}\n  - New Balance: ${before + amount:.2f}"
        )
