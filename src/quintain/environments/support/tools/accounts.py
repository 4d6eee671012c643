"""Tools about accounts: logins, locks, sessions and devices."""

from __future__ import annotations

from typing import Any, Literal

import quintain as qn
from quintain.environments.support import policy
from quintain.environments.support.desk import Desk, paged, reading, shown, writing
from quintain.environments.support.schema.accounts import Account, AccountMember, Device, Lock, Login, Session
from quintain.environments.support.schema.billing import Subscription
from quintain.environments.support.schema.desk import Mail
from quintain.environments.support.schema.people import Customer

from .people import Number, Page


class Accounts(Desk):
    """Accounts and what hangs on them."""

    @reading
    def get_account(self, account_id: Number) -> dict[str, Any]:
        """Show an account with its locks, its members, open sessions and the numbers of its subscriptions.

        Args:
            account_id: Number of the account.
        """
        account = self.need(Account, account_id)
        of = ("account_id = ?", account_id)
        return shown(account) | {
            "locks": [shown(row, "account_id") for row in self.rows(Lock, *of)],
            "members": [shown(row, "id", "account_id") for row in self.rows(AccountMember, *of)],
            "sessions": [
                shown(row, "account_id") for row in self.rows(Session, "ended IS NULL AND account_id = ?", account_id)
            ],
            "subscription_ids": [row.id for row in self.rows(Subscription, *of)],
        }

    @reading
    def list_logins(self, account_id: Number, page: Page = 1) -> dict[str, Any]:
        """List attempts to log in to an account, latest first, ten on a page.

        Args:
            account_id: Number of the account.
            page: Page of the result, from 1.
        """
        self.need(Account, account_id)
        found = self.rows(Login, "account_id = ? ORDER BY at DESC, id DESC", account_id)
        return paged([shown(row, "id", "account_id") for row in found], page)

    @reading
    def list_devices(self, account_id: Number) -> list[dict[str, Any]]:
        """List the devices of an account with firmware and when they were last seen.

        Args:
            account_id: Number of the account.
        """
        self.need(Account, account_id)
        return [shown(row, "account_id") for row in self.rows(Device, "account_id = ?", account_id)]

    @writing
    def unlock_account(self, account_id: Number) -> str:
        """Lift the locks that failed logins or a suspected takeover put on an account. Needs a verified customer.

        A lock for an unpaid invoice stays; it goes when the invoice is paid.

        Args:
            account_id: Number of the account.
        """
        account = self.need(Account, account_id)
        locks = self.rows(Lock, "account_id = ? AND lifted IS NULL AND reason <> 'unpaid'", account_id)
        if not locks:
            raise qn.ToolError(f"account {account_id} has no lock that could be lifted here")
        for lock in locks:
            self.change(Lock, lock.id, lifted=self.now)
        self.audit("unlock_account", account.customer_id, f"account {account_id}")
        self.relock(account_id)
        return f"account {account_id} is {self.need(Account, account_id).status}"

    @writing
    def lock_account(self, account_id: Number, reason: Literal["takeover"] = "takeover") -> str:
        """Lock an account that somebody else got into, until Security has looked at it.

        Args:
            account_id: Number of the account.
            reason: Why.
        """
        account = self.need(Account, account_id)
        if self.count(Lock, "account_id = ? AND reason = ? AND lifted IS NULL", account_id, reason):
            raise qn.ToolError(f"account {account_id} is locked for {reason} already")
        self.add(Lock, account_id=account_id, reason=reason, at=self.now)
        self.audit("lock_account", account.customer_id, f"account {account_id}: {reason}")
        self.relock(account_id)
        return f"account {account_id} is locked"

    @writing
    def send_password_reset(self, account_id: Number) -> str:
        """Send the owner of an account a link for a new password. Needs a verified customer.

        Args:
            account_id: Number of the account.
        """
        account = self.need(Account, account_id)
        owner = self.need(Customer, account.customer_id)
        self.change(Account, account_id, password_reset_sent=self.now)
        self.add(Mail, at=self.now, to=owner.email, subject="Your new password")
        self.audit("send_password_reset", owner.id, f"account {account_id}")
        return f"a link that works for {policy.LINK_HOURS} hours was sent to {owner.email}"

    @writing
    def end_sessions(self, account_id: Number) -> str:
        """Log everybody out of an account. Needs a verified customer.

        Args:
            account_id: Number of the account.
        """
        account = self.need(Account, account_id)
        sessions = self.rows(Session, "account_id = ? AND ended IS NULL", account_id)
        if not sessions:
            raise qn.ToolError(f"nobody is logged in to account {account_id}")
        for session in sessions:
            self.change(Session, session.id, ended=self.now)
        self.audit("end_sessions", account.customer_id, f"account {account_id}")
        return f"{len(sessions)} sessions ended"

    @writing
    def update_firmware(self, device_id: Number) -> str:
        """Have a device load the current firmware and start anew. It is offline for a moment.

        Args:
            device_id: Number of the device.
        """
        device = self.need(Device, device_id)
        account = self.need(Account, device.account_id)
        if device.firmware == policy.FIRMWARE:
            raise qn.ToolError(f"device {device_id} has firmware {policy.FIRMWARE} already")
        self.change(Device, device_id, firmware=policy.FIRMWARE, is_online=True, last_seen=self.now)
        self.audit("update_firmware", account.customer_id, f"device {device_id}")
        return f"device {device_id} runs {policy.FIRMWARE} and is online"

    def relock(self, account_id: int) -> None:
        """Let the account's status say whether a lock is on it."""
        account = self.need(Account, account_id)
        locked = self.count(Lock, "account_id = ? AND lifted IS NULL", account_id)
        if account.status != "closed":
            self.change(Account, account_id, status="locked" if locked else "active")
