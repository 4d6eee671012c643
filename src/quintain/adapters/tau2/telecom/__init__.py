"""The telecom domain: an agent who sees the company's database, and a customer who holds a phone.

Texts of tools that no stored case calls (`get_` and `suspend_line`, `disable_roaming`) are this project's.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, ClassVar

from quintain.adapters.tau2.convention import action, shared
from quintain.adapters.tau2.record import builtin, editing, found, shown
from quintain.errors import ToolError
from quintain.table import Table

from .phone import Handset
from .rows import Bill, Customer, Device, Line, LineItem, PaymentRequest, Plan

_TODAY = "2025-02-25"
_ASKED = "Awaiting Payment"


class Telecom(Handset, kw_only=True):
    """The company's database, the tools of its agent, and the customer's phone."""

    toolkit: ClassVar[str] = "TelecomTools"
    sections: ClassVar[tuple[str, ...]] = ("plans", "customers", "lines", "bills", "devices")

    plans: Table[Plan]
    customers: Table[Customer]
    lines: Table[Line]
    bills: Table[Bill]
    devices: Table[Device]

    def laid_out(self, section: str, rows: dict[str, str]) -> str:
        return f"[{', '.join(rows[key] for key in self.keys(section))}]"

    def settle(self) -> None:
        """Tells the phone what its line may do, asks for payments, and books those that were made."""
        around = self.surroundings
        line = next((line for line in self.lines.values() if line.phone_number == around.phone_number), None)
        if line is None:
            return
        around.line_active, around.roaming_allowed = line.status == "Active", line.roaming_enabled
        limit = self.plans[line.plan_id].data_limit_gb + line.data_refueling_gb
        around.mobile_data_usage_exceeded = line.data_used_gb >= limit
        owner = next(customer for customer in self.customers.values() if line.line_id in customer.line_ids)
        if (request := around.payment_request) is not None and request.paid:
            self._set_bill_status(request.bill_id, "Paid")
            around.payment_request = None
        for bill_id in owner.bill_ids:
            if (bill := self.bills[bill_id]).status == _ASKED and around.payment_request is None:
                around.payment_request = PaymentRequest(bill_id, bill.total_due)

    @action
    def get_customer_by_phone(self, phone_number: str) -> str:
        """Find a customer by the number of the account or of one of its lines.

        Args:
            phone_number: Such as '555-123-2002'.
        """
        for customer in self.customers.values():
            numbers = [self.lines[line_id].phone_number for line_id in customer.line_ids]
            if phone_number in (customer.phone_number, *numbers):
                return shown(customer)
        raise ToolError(f"Customer with phone number {phone_number} not found")

    @action
    def get_customer_by_id(self, customer_id: str) -> str:
        """Look up a customer.

        Args:
            customer_id: Such as 'C1001'.
        """
        return shown(self._customer(customer_id))

    @action
    def get_customer_by_name(self, full_name: str, dob: str) -> str:
        """Find customers by name and date of birth.

        Args:
            full_name: Such as 'John Smith'.
            dob: Date of birth, such as '1985-06-15'.
        """
        named = [customer for customer in self.customers.values() if customer.full_name.lower() == full_name.lower()]
        return shown([customer for customer in named if customer.date_of_birth == dob])

    @action
    def get_details_by_id(self, id: str) -> str:
        """Look up a customer, line, device, bill or plan.

        Args:
            id: Such as 'C1001', 'L1001', 'D1001', 'B1001' or 'P1001'.
        """
        for section in self.sections:
            if (document := self.document(section, id)) is not None:
                return json.dumps(document)
        raise ToolError(f"Unknown ID: {id}")

    @action
    def get_bills_for_customer(self, customer_id: str, limit: int = 12) -> str:
        """List a customer's bills, the newest first.

        Args:
            customer_id: Such as 'C1001'.
            limit: Most bills to return.
        """
        bills = [self.bills[bill_id] for bill_id in self._customer(customer_id).bill_ids]
        return shown(sorted(bills, key=lambda bill: bill.issue_date, reverse=True)[:limit])

    @action
    def get_data_usage(self, customer_id: str, line_id: str) -> str:
        """Look up the data that a line has used, its plan's limit, and refueled data, in GB.

        Args:
            customer_id: Such as 'C1001'.
            line_id: Such as 'L1001'.
        """
        line = self._line(customer_id, line_id)
        usage = {
            "line_id": line_id,
            "data_used_gb": line.data_used_gb,
            "data_limit_gb": self.plans[line.plan_id].data_limit_gb,
            "data_refueling_gb": line.data_refueling_gb,
        }
        return _as_text(usage)

    @action
    def send_payment_request(self, customer_id: str, bill_id: str) -> str:
        """Ask a customer to pay a bill; whether it is overdue is not checked.

        Args:
            customer_id: Such as 'C1001'.
            bill_id: Such as 'B1001'.
        """
        customer = self._customer(customer_id)
        if bill_id not in customer.bill_ids:
            raise ToolError(f"Bill {bill_id} not found for customer {customer_id}")
        if any(self.bills[known].status == _ASKED for known in customer.bill_ids):
            raise ToolError("A bill is already awaiting payment for this customer")
        self._set_bill_status(bill_id, _ASKED)
        return f"Payment request sent to the customer for bill {bill_id}"

    @action
    def suspend_line(self, customer_id: str, line_id: str, reason: str) -> str:
        """Suspend a line that is active. Returns the line.

        Args:
            customer_id: Such as 'C1001'.
            line_id: Such as 'L1001'.
            reason: Why.
        """
        with self._editing_line(customer_id, line_id) as line:
            if line.status != "Active":
                raise ToolError("Line must be active to suspend")
            line.status, line.suspension_start_date = "Suspended", _TODAY
        return json.dumps({"message": f"Line suspended successfully. Reason: {reason}", "line": builtin(line)})

    @action
    def resume_line(self, customer_id: str, line_id: str) -> str:
        """Resume a suspended line; the customer has to reboot the phone afterwards. Returns the line.

        Args:
            customer_id: Such as 'C1001'.
            line_id: Such as 'L1001'.
        """
        with self._editing_line(customer_id, line_id) as line:
            if line.status not in {"Suspended", "Pending Activation"}:
                raise ToolError("Line must be suspended to resume")
            line.status, line.suspension_start_date = "Active", None
        return json.dumps({"message": "Line resumed successfully", "line": builtin(line)})

    @action
    def enable_roaming(self, customer_id: str, line_id: str) -> str:
        """Let a line use other carriers' networks; it costs nothing.

        Args:
            customer_id: Such as 'C1001'.
            line_id: Such as 'L1001'.
        """
        return self._set_roaming(customer_id, line_id, on=True)

    @action
    def disable_roaming(self, customer_id: str, line_id: str) -> str:
        """Keep a line from using other carriers' networks.

        Args:
            customer_id: Such as 'C1001'.
            line_id: Such as 'L1001'.
        """
        return self._set_roaming(customer_id, line_id, on=False)

    @action
    def refuel_data(self, customer_id: str, line_id: str, gb_amount: float) -> str:
        """Add data to a line, at its plan's price per GB. Confirm the amount and the price with the customer before.

        Args:
            customer_id: Such as 'C1001'.
            line_id: Such as 'L1001'.
            gb_amount: How many GB.
        """
        with self._editing_line(customer_id, line_id) as line:
            if gb_amount <= 0:
                raise ToolError("Refuel amount must be positive")
            price = self.plans[line.plan_id].data_refueling_price_per_gb
            line.data_refueling_gb += gb_amount
        charge = gb_amount * price
        self._put_on_bill(
            customer_id, LineItem(f"Data refueling: {gb_amount} GB at ${price}/GB", charge, _TODAY, "Charge")
        )
        message = f"Successfully added {gb_amount} GB of data for line {line_id} for ${charge:.2f}"
        return _as_text({"message": message, "new_data_refueling_gb": line.data_refueling_gb, "charge": charge})

    @action
    def transfer_to_human_agents(self, summary: str) -> str:
        """Hand the customer over to a human agent, when neither the policy nor the tools allow what they need.

        Args:
            summary: What the customer's issue is.
        """
        return "Transfer successful"

    def set_data_usage(self, customer_id: str, line_id: str, data_used_gb: float) -> None:
        """Sets the data that a line has used."""
        with self._editing_line(customer_id, line_id) as line:
            line.data_used_gb = data_used_gb

    def suspend_line_for_overdue_bill(
        self, customer_id: str, line_id: str, new_bill_id: str, *, contract_ended: bool
    ) -> None:
        """Adds an overdue bill for a line and suspends the line, whose contract may have ended."""
        with self._editing_line(customer_id, line_id) as line:
            amount = self.plans[line.plan_id].price_per_month
            line.status, line.suspension_start_date = "Suspended", _TODAY
            if contract_ended:
                line.contract_end_date = "2025-01-31"
        item = LineItem(f"Charge for line {line_id}", amount, _TODAY, "Charge")
        self.bills[new_bill_id] = Bill(
            new_bill_id, customer_id, "2025-01-01", "2025-01-31", "2025-01-01", amount, "2025-01-15", [item], "Overdue"
        )
        with editing(self.customers, customer_id, "") as customer:
            customer.bill_ids.append(new_bill_id)

    def assert_data_refueling_amount(self, customer_id: str, line_id: str, expected_amount: float) -> bool:
        """Returns whether a line got as much data as expected."""
        return abs(self._line(customer_id, line_id).data_refueling_gb - expected_amount) < 1e-6

    def assert_no_overdue_bill(self, overdue_bill_id: str) -> bool:
        """Returns whether a bill was paid, or never made."""
        return (bill := self.bills.get(overdue_bill_id)) is None or bill.status == "Paid"

    def _customer(self, customer_id: str) -> Customer:
        return found(self.customers, customer_id, f"Customer with ID {customer_id} not found")

    def _line(self, customer_id: str, line_id: str) -> Line:
        refusal = f"Line {line_id} not found for customer {customer_id}"
        if line_id not in self._customer(customer_id).line_ids:
            raise ToolError(refusal)
        return found(self.lines, line_id, refusal)

    @contextmanager
    def _editing_line(self, customer_id: str, line_id: str) -> Generator[Line]:
        self._line(customer_id, line_id)
        with editing(self.lines, line_id, "") as line:
            yield line

    def _set_roaming(self, customer_id: str, line_id: str, *, on: bool) -> str:
        said = "enabled" if on else "disabled"
        with self._editing_line(customer_id, line_id) as line:
            if line.roaming_enabled == on:
                return f"Roaming was already {said}"
            line.roaming_enabled = on
        return f"Roaming {said} successfully"

    def _put_on_bill(self, customer_id: str, item: LineItem) -> None:
        """Adds a charge to the bill that the customer gets next."""
        for bill_id in self._customer(customer_id).bill_ids:
            with editing(self.bills, bill_id, "") as bill:
                if bill.status == "Draft":
                    bill.line_items.append(item)
                    bill.total_due += item.amount
                    return

    def _set_bill_status(self, bill_id: str, status: str) -> None:
        with editing(self.bills, bill_id, "") as bill:
            bill.status = status


@shared
class Solo(Telecom, kw_only=True):
    """The telecom domain for an agent who holds the phone too."""


def _as_text(answer: dict[str, Any]) -> str:
    """Returns an answer as the reference writes one that is no record: its numbers are text."""
    return json.dumps({name: str(value) for name, value in answer.items()})
