"""Hidden tools for checking and savings accounts."""

from __future__ import annotations

from typing import Any

from .records import TODAY, Records, Refused, dollars, hidden, identify, lent


class Accounts(Records, kw_only=True):
    """Services for bank accounts."""

    @hidden
    def get_all_user_accounts_by_user_id_3847(self, user_id: str) -> str:
        """Look up a customer's checking and savings accounts."""
        return f"User accounts retrieved successfully.\n\n{self.listed('accounts', user_id=user_id)}"

    @hidden
    def get_bank_account_transactions_9173(self, account_id: str) -> str:
        """Look up the transactions of a bank account, the newest first."""
        rows = self.matching("bank_account_transaction_history", account_id=account_id)
        newest = sorted(rows.values(), key=lambda row: _sortable(row["date"]), reverse=True)
        lines = [", ".join(f"{name}: {value}" for name, value in row.items()) for row in newest]
        return "\n".join(["Bank account transactions retrieved successfully.\n", *(lines or ["No transactions."])])

    @hidden
    def open_bank_account_4821(self, *, user_id: str, account_type: str, account_class: str) -> str:
        """Open a bank account: its type, such as 'checking' or 'savings', and its full official name."""
        key = identify("account", user_id, account_type, account_class, digits=16)
        row = {
            "account_id": key,
            "user_id": user_id,
            "account_type": account_type,
            "account_class": account_class,
            "date_opened": TODAY,
            "status": "OPEN",
            "current_holdings": "0.00",
        }
        self.add("accounts", key, row, refusal=f"Failed to open account: Account ID '{key}' may already exist.")
        return (
            f"Bank account opened successfully!\n  - Account ID: {key}\n  - User ID: {user_id}\n"
            f"  - Account Type: {account_type}\n  - Account Class: {account_class}\n  - Status: OPEN\n"
            f"  - Initial Balance: $0.00\n  - Date Opened: {TODAY}"
        )

    @hidden
    def close_bank_account_7392(self, account_id: str) -> str:
        """Close a bank account that holds nothing."""
        account = self._account(account_id)
        if account["status"] == "CLOSED":
            raise Refused(f"Error: Account '{account_id}' is already closed.")
        if balance := dollars(account["current_holdings"]):
            raise Refused(f"Error: Account balance must be $0.00 before closing. Current balance: ${balance:.2f}")
        self.change("accounts", account_id, status="CLOSED", closed_date=TODAY)
        type_ = account.get("class") or account.get("account_type")
        return f"Bank account closed successfully!\n  - Account ID: {account_id}\n  - Account Type: {type_}"

    @hidden
    def transfer_funds_between_bank_accounts_7291(
        self, *, source_account_id: str, destination_account_id: str, amount: float
    ) -> str:
        """Move money between two of the bank's accounts."""
        source = self._account(source_account_id, "Source account")
        destination = self._account(destination_account_id, "Destination account")
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
        self, *, user_id: str, checking_account_id: str, credit_card_account_id: str, amount: float
    ) -> str:
        """Pay a credit card's balance from a checking account."""
        checking = self._account(checking_account_id, "Checking account")
        refusal = f"Error: Credit card account '{credit_card_account_id}' not found."
        card = self.row("credit_card_accounts", credit_card_account_id, refusal)
        holdings, balance = dollars(checking["current_holdings"]), dollars(card["current_balance"])
        if not 0 < amount <= min(holdings, balance):
            raise Refused(
                f"Error: Payment of ${amount:.2f} must be positive, and at most the checking account's "
                f"${holdings:.2f} and the credit card's ${balance:.2f}."
            )
        self.change("accounts", checking_account_id, current_holdings=f"{holdings - amount:.2f}")
        self.change("credit_card_accounts", credit_card_account_id, current_balance=f"${balance - amount:.2f}")
        return (
            f"Payment processed successfully!\n  - Payment Amount: ${amount:.2f}\n"
            f"  - From Checking Account: {checking_account_id} (new balance: ${holdings - amount:.2f})\n"
            f"  - To Credit Card: {credit_card_account_id} (new balance: ${balance - amount:.2f})"
        )

    @hidden
    def apply_checking_account_credit_5829(self, *, account_id: str, amount: float, credit_type: str) -> str:
        """Credit a checking account; the type is 'rebate_credit' or 'fee_refund'."""
        self._check_credit(account_id, amount, credit_type, types=("rebate_credit", "fee_refund"))
        return self._credit("checking_credit", account_id, float(amount), credit_type=credit_type, sign="$")

    @hidden
    def apply_savings_account_credit_6831(self, *, account_id: str, amount: float, credit_type: str) -> str:
        """Credit a savings account; the type is 'interest_correction', 'fee_refund' or 'goodwill_credit'."""
        self._check_credit(
            account_id, amount, credit_type, types=("interest_correction", "fee_refund", "goodwill_credit")
        )
        return self._credit("savings_credit", account_id, float(amount), credit_type=credit_type, sign="")

    @hidden
    def submit_interest_discrepancy_report_7294(
        self, *, account_id: str, user_id: str, expected_apy: float, actual_apy: float, amount_difference: float
    ) -> str:
        """Report interest that was calculated wrongly to the back office."""
        key = "IDR_" + identify("interest_report", account_id, user_id, expected_apy, actual_apy, TODAY)
        return (
            f"\nInterest Discrepancy Report Submitted Successfully!\n  - Report ID: {key}\n"
            f"  - Account ID: {account_id}\n  - Amount Difference: ${amount_difference:.2f}"
        )

    @lent
    def deposit_check_3847(self, account_id: str, check_amount: float) -> str:
        """Deposit a check into one of your checking or savings accounts."""
        holdings = dollars(self._account(account_id)["current_holdings"])
        self.change("accounts", account_id, current_holdings=f"{holdings + check_amount:.2f}")
        return (
            "Check deposited successfully. Funds will be available according to your account's policy.\n"
            f"  - Account ID: {account_id}\n  - Amount: ${check_amount:.2f}"
        )

    def _account(self, account_id: str, named: str = "Account") -> dict[str, Any]:
        return self.row("accounts", account_id, f"Error: {named} '{account_id}' not found.")

    def _check_credit(self, account_id: str, amount: float, credit_type: str, *, types: tuple[str, ...]) -> None:
        self._account(account_id)
        if amount <= 0 or credit_type not in types:
            raise Refused(
                f"Error: amount must be positive, got {amount}; credit_type must be one of {', '.join(types)}, "
                f"got '{credit_type}'."
            )

    def _credit(self, kind: str, account_id: str, amount: float, *, credit_type: str, sign: str) -> str:
        """Books a credit; the reference writes the balance with a sign for one kind of account only."""
        key = "txn_" + identify(kind, account_id, credit_type, amount, TODAY, digits=16)
        row = {
            "transaction_id": key,
            "account_id": account_id,
            "date": TODAY,
            "description": f"{credit_type.replace('_', ' ').upper()} - CUSTOMER SERVICE",
            "amount": amount,
            "type": credit_type,
            "status": "posted",
        }
        if not self.document("bank_account_transaction_history", key):
            self.add("bank_account_transaction_history", key, row, refusal="")
        balance = dollars(self._account(account_id)["current_holdings"]) + amount
        self.change("accounts", account_id, current_holdings=f"{sign}{balance:.2f}")
        return (
            f"\nCredit applied successfully!\n  - Transaction ID: {key}\n  - Account ID: {account_id}\n"
            f"  - Amount: ${amount:.2f}\n  - New Balance: ${balance:.2f}"
        )


def _sortable(date: str) -> tuple[str, str]:
    return date[6:], date[:5]
