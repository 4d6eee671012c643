"""The banking domain: an agent who finds policies and hidden tools in documents, and a customer with tools too.

Rows and refusals are the reference's. Descriptions of hidden tools and most answers are this project's own words.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable
from typing import Any, TypeVar, cast

import msgspec

from quintain.adapters.tau2.convention import action, shared
from quintain.errors import ToolError
from quintain.harnesses.corpus import CorpusTools
from quintain.harnesses.corpus import Page as Page
from quintain.table import Table

from .accounts import Accounts
from .credit import CreditCards
from .debit import DebitCards
from .records import NOW, TODAY, Refused, form, identify, lookup, parsed

F = TypeVar("F", bound=Callable[..., str])

_REASONS = (
    "fraud_or_security_concern",
    "account_closure_request",
    "deceased_account_holder",
    "legal_or_regulatory_matter",
    "account_ownership_dispute",
    "complex_billing_dispute",
    "abusive_customer_behavior",
    "third_party_inquiry",
    "technical_system_error",
    "unconfirmed_external_communication",
    "customer_demands_after_unavailable_offer_refusal",
    "kb_search_unsuccessful_customer_requests_transfer",
    "specialized_department_required",
    "accessibility_or_special_needs",
    "customer_frustrated_demands_human",
    "supervisor_request_service_complaint",
    "customer_requests_human_no_specific_reason",
    "request_completed_customer_wants_human_followup",
    "other",
)
_REWARDS: dict[str, dict[str, float]] = {
    "Bronze Rewards Card": {},
    "Business Bronze Rewards Card": {},
    "Business Gold Rewards Card": {"Operations": 2.5},
    "Business Platinum Rewards Card": {"": 1.5, "Travel": 4.0, "Software": 4.0, "Media": 4.0},
    "Business Silver Rewards Card": {"Travel": 10.0, "Software": 10.0},
    "Crypto-Cash Back": {"": 2.0},
    "Diamond Elite Card": {"": 5.0},
    "EcoCard": {"Green": 5.0},
    "Gold Rewards Card": {"": 2.5},
    "Green Rewards Card": {"Sustainable": 3.0},
    "Platinum Rewards Card": {"": 10.0},
    "Silver Rewards Card": {"Travel": 4.0, "Software": 4.0},
    "Silver Zoom Card": {"Transportation": 3.0},
}
"""Points of a card per dollar, by category; those of other categories are under "", or 1.0."""


def _answering(*roles: str) -> Callable[[F], F]:
    """Marks a method as a tool; a refusal is an answer that is not flagged as an error, as in the reference."""

    def mark(method: F) -> F:
        @functools.wraps(method)
        def answer(world: Any, **arguments: Any) -> str:
            try:
                return method(world, **arguments)
            except Refused as refusal:
                return str(refusal)

        return action(roles=roles)(cast("F", answer))

    return mark


_agent, _customer = _answering("agent"), _answering("user")


class Banking(Accounts, DebitCards, CreditCards, CorpusTools, kw_only=True):
    """The bank's database and documents, with the tools of the agent and of the customer."""

    pages: Table[Page]

    @_agent
    def get_current_time(self) -> str:
        """Look up the date and the time."""
        return f"The current time is {NOW}."

    @_agent
    def get_user_information_by_id(self, user_id: str) -> str:
        """Find a customer by user id.

        Args:
            user_id: Such as '6680a37184'.
        """
        self._check_user(user_id=user_id)
        return self.listed("users", user_id=user_id)

    @_agent
    def get_user_information_by_name(self, customer_name: str) -> str:
        """Find a customer by full name.

        Args:
            customer_name: Such as 'Kenji Tanaka'.
        """
        self._check_user(name=customer_name)
        return self.listed("users", name=customer_name)

    @_agent
    def get_user_information_by_email(self, email: str) -> str:
        """Find a customer by email address.

        Args:
            email: As the customer gives it.
        """
        self._check_user(email=email)
        return self.listed("users", email=email)

    @_agent
    def get_credit_card_accounts_by_user(self, user_id: str) -> str:
        """Look up a customer's credit card accounts.

        Args:
            user_id: As in the database.
        """
        return self.listed("credit_card_accounts", user_id=user_id)

    @_agent
    def get_credit_card_transactions_by_user(self, user_id: str) -> str:
        """Look up a customer's credit card transactions.

        Args:
            user_id: As in the database.
        """
        self._check_user(user_id=user_id)
        return self.listed("credit_card_transaction_history", user_id=user_id)

    @_agent
    def get_cash_back_disputes_by_user(self, user_id: str) -> str:
        """Look up a customer's cash back disputes.

        Args:
            user_id: As in the database.
        """
        self._check_user(user_id=user_id)
        return self.listed("cash_back_disputes", user_id=user_id)

    @_agent
    def get_referrals_by_user(self, user_id: str) -> str:
        """Look up the referrals that a customer has made.

        Args:
            user_id: As in the database.
        """
        return self.listed("referrals", referrer_id=user_id)

    @_agent
    def log_verification(
        self,
        *,
        name: str,
        user_id: str,
        address: str,
        email: str,
        phone_number: str,
        date_of_birth: str,
        time_verified: str,
    ) -> str:
        """Record that you have verified a customer's identity, with the customer's data as in the database.

        Args:
            name: Full name.
            user_id: Such as '6680a37184'.
            address: Postal address.
            email: Email address.
            phone_number: Such as '206-555-0293'.
            date_of_birth: As MM/DD/YYYY.
            time_verified: Time of verification, such as '2025-11-14 03:40:00 EST'.
        """
        given = {field: value for field, value in locals().items() if field != "self"}
        key = f"{user_id}_{time_verified.translate(str.maketrans(' ', '_', '-:'))}"
        self.add("verification_history", key, given, refusal="Failed to log verification: Record may already exist.")
        return f"Verification logged successfully.\n  - User: {name} (ID: {user_id})\n  - Verified at: {time_verified}"

    @_agent
    def change_user_email(self, user_id: str, new_email: str) -> str:
        """Change a customer's email address.

        Args:
            user_id: As in the database.
            new_email: The new address.
        """
        self.row("users", user_id, f"Error: User '{user_id}' not found.")
        self.change("users", user_id, email=new_email)
        return f"Email updated successfully.\n  - User ID: {user_id}\n  - New Email: {new_email}"

    @_agent
    def transfer_to_human_agents(self, summary: str, reason: str = "other") -> str:
        """Hand the customer over to a person, when neither the documents nor the tools allow what they need.

        Args:
            summary: What the customer's issue is.
            reason: Reason code, as the documents list them.
        """
        if reason not in _REASONS:
            raise Refused(f"Error: Invalid transfer reason '{reason}'. Must be one of: {', '.join(_REASONS)}")
        return f"Transfer successful (reason: {reason}). A human agent will assist you shortly."

    @_agent
    def unlock_discoverable_agent_tool(self, agent_tool_name: str) -> str:
        """Make a tool that a document names callable by `call_discoverable_agent_tool`; see how it is described.

        Args:
            agent_tool_name: Full name of the tool, such as 'close_bank_account_7392'.
        """
        described = self._described(agent_tool_name, "agent")
        if agent_tool_name not in self.unlocked:
            self.unlocked.append(agent_tool_name)
        return f"Tool unlocked: {agent_tool_name}\n{described}"

    @_agent
    def call_discoverable_agent_tool(self, agent_tool_name: str, arguments: str = "{}") -> str:
        """Call a tool that was unlocked.

        Args:
            agent_tool_name: Full name of the tool.
            arguments: Its arguments, a JSON object as text.
        """
        self._described(agent_tool_name, "agent")
        if agent_tool_name not in self.unlocked:
            raise Refused(
                f"Error: Tool '{agent_tool_name}' has not been unlocked. You must first use "
                "`unlock_discoverable_agent_tool` to unlock this tool before calling it."
            )
        given = self.bound(agent_tool_name, arguments)
        if not hasattr(getattr(self, agent_tool_name), "is_lookup") or agent_tool_name in self.foreseen:
            key = identify("agent_discoverable_tool", agent_tool_name, digits=16)
            self.add("agent_discoverable_tools", key, {"tool_name": agent_tool_name, "status": "CALLED"})
        return self.invoke(agent_tool_name, given)

    @_agent
    def give_discoverable_user_tool(self, discoverable_tool_name: str, arguments: str = "{}") -> str:
        """Let the customer call a tool that a document names.

        Args:
            discoverable_tool_name: Full name of the tool, such as 'deposit_check_3847'.
            arguments: Those that you suggest, a JSON object as text.
        """
        described = self._described(discoverable_tool_name, "user")
        for name in parsed(arguments):
            if name not in inspect.signature(getattr(self, discoverable_tool_name)).parameters:
                raise Refused(f"Error: Unexpected parameter: {name}")
        record = {"tool_name": discoverable_tool_name, "status": "GIVEN"}
        self.add("user_discoverable_tools", _given(discoverable_tool_name), record)
        return f"Tool given to user: {discoverable_tool_name}\n{described}"

    @_customer
    def call_discoverable_user_tool(self, discoverable_tool_name: str, arguments: str = "{}") -> str:
        """Call a tool that the agent has given you.

        Args:
            discoverable_tool_name: Full name of the tool.
            arguments: Its arguments, a JSON object as text.
        """
        if _given(discoverable_tool_name) not in self.user_discoverable_tools:
            raise Refused(
                f"Error: Tool '{discoverable_tool_name}' has not been given to you by the agent. "
                "The agent must first give it to you."
            )
        given = self.bound(discoverable_tool_name, arguments)
        record = {"tool_name": discoverable_tool_name, "arguments": given, "status": "CALLED", "called_at": TODAY}
        text = json.dumps(given, sort_keys=True)
        key = identify("user_discoverable_tool_call", discoverable_tool_name, text, digits=16)
        self.add("user_discoverable_tool_calls", key, record)
        return self.invoke(discoverable_tool_name, given)

    @_customer
    def submit_referral(self, user_id: str, account_type: str) -> str:
        """Refer a friend to an account or a card.

        Args:
            user_id: Your own user id.
            account_type: Such as 'Gold Rewards Card' or 'Blue Account'.
        """
        key = identify("referral", user_id, account_type, digits=16)
        refusal = f"Failed to submit referral: Record ID '{key}' may already exist."
        self.refer(key, user_id, account_type, refusal=refusal)
        return f"Referral request submitted successfully!\n  - Referral ID: {key}\n  - Referred: {account_type}"

    @_customer
    def apply_for_credit_card(
        self,
        *,
        card_type: str,
        customer_name: str,
        annual_income: float,
        rho_bank_subscription: bool = False,
    ) -> str:
        """Apply for a credit card.

        Args:
            card_type: Such as 'Gold Rewards Card'.
            customer_name: Your full name.
            annual_income: In dollars.
            rho_bank_subscription: Whether you have Rho-Bank+.
        """
        if card_type not in _REWARDS:
            raise Refused(f"Error: Invalid card_type '{card_type}'. Must be one of: {list(_REWARDS)}")
        income = float(annual_income)
        key = identify("credit_card", card_type, customer_name, income, rho_bank_subscription, digits=16)
        row = {
            "application_id": key,
            "card_type": card_type,
            "customer_name": customer_name,
            "annual_income": income,
            "rho_bank_subscription": rho_bank_subscription,
            "status": "PENDING",
            "date": TODAY,
        }
        refusal = f"Failed to submit application: Record ID '{key}' may already exist."
        self.add("credit_card_applications", key, row, refusal=refusal)
        return (
            "Credit card application submitted:\nYour application has been successfully submitted.\n"
            f"  - Application ID: {key}"
        )

    @_customer
    def submit_transaction(
        self, *, user_id: str, credit_card_type: str, merchant_name: str, amount: float, category: str
    ) -> str:
        """Pay with one of your credit cards.

        Args:
            user_id: Your user id.
            credit_card_type: Such as 'Silver Rewards Card'.
            merchant_name: Who is paid.
            amount: In dollars.
            category: Such as 'Shopping'.
        """
        if credit_card_type not in _REWARDS:
            raise Refused(f"Error: Unknown credit card type '{credit_card_type}'. Available types: {list(_REWARDS)}")
        rates = _REWARDS[credit_card_type]
        points = int(amount * rates.get(category, rates.get("", 1.0)))
        key = "txn_" + identify("transaction", user_id, credit_card_type, merchant_name, f"{amount:.2f}", category)
        row = {
            "transaction_id": key,
            "user_id": user_id,
            "credit_card_type": credit_card_type,
            "merchant_name": merchant_name,
            "transaction_amount": f"${amount:.2f}",
            "transaction_date": TODAY,
            "category": category,
            "status": "COMPLETED",
            "rewards_earned": f"{points} points",
        }
        refusal = f"Failed to submit transaction: Record ID '{key}' may already exist."
        self.add("credit_card_transaction_history", key, row, refusal=refusal)
        return f"Transaction submitted successfully!\n  - Transaction ID: {key}"

    @_customer
    def request_human_agent_transfer(self) -> str:
        """Ask to be handed over to a person."""
        number = len(self.human_transfer_requests) + 1
        key = f"transfer_request_{number}"
        row = {"request_id": key, "request_number": number, "requested_at": TODAY, "status": "PENDING"}
        self.add("human_transfer_requests", key, row)
        return f"Transfer request #{number} submitted.\nThe agent will process your request."

    @lookup
    def initial_transfer_to_human_agent_0218(self) -> str:
        """Begin to hand a customer over to a person."""
        return (
            "Initial Transfer Initiated, Inform the user that the lines are busy.\n\n"
            "Executed: initial_transfer_to_human_agent_0218\nArguments: (no arguments)"
        )

    @lookup
    def initial_transfer_to_human_agent_1822(self) -> str:
        """Begin to hand a customer over whose payment is not reflected."""
        return "No person is called yet. Don't tell the customer; ask about simple causes of the trouble first."

    @lookup
    def emergency_credit_bureau_incident_transfer_1114(self) -> str:
        """Begin to hand a customer over who was reported to a credit bureau by mistake."""
        return "The incident is logged with priority. Now hand the customer over with transfer_to_human_agents."

    def _check_user(self, **wanted: str) -> None:
        if not self.matching("users", **wanted):
            ((name, value),) = wanted.items()
            raise ToolError(f"no customer has the {name} {value!r}; ask the customer for another detail")

    def _described(self, name: str, role: str) -> str:
        """Returns what a hidden tool is for, and its parameters.

        Raises:
            Refused: The role has no such tool.
        """
        if (method := self.hidden_tool(name, role)) is None:
            raise Refused(f"Error: Unknown {role} tool '{name}'. This tool is not available.")
        schema = msgspec.json.schema_components([form(getattr(type(self), name))])[1][name]
        listed = json.dumps({part: schema[part] for part in ("properties", "required")})
        return f"Description: {inspect.getdoc(method)}\nParameters: {listed}"


def _given(name: str) -> str:
    return identify("user_discoverable_tool", name, digits=16)


@shared
class BankingSolo(Banking, kw_only=True):
    """The banking domain for an agent who has the customer's tools too."""
