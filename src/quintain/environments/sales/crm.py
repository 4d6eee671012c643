"""The CRM: accounts, contacts, leads, deals and what was noted about them. Usable alone."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

import quintain as qn
from quintain.environments.faults import served

from . import search, times
from .records import (
    Account,
    Activity,
    Contact,
    Lead,
    LeadReason,
    LeadStatus,
    Member,
    Opportunity,
    Record,
    Region,
    Stage,
)

PAGE = 10
Page = Annotated[int, msgspec.Meta(ge=1, le=1000)]
Amount = Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)]
Count = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]
Months = Annotated[int, msgspec.Meta(ge=0, le=120)]
Words = Annotated[str, msgspec.Meta(min_length=1, max_length=4000)]


class Crm(qn.State):
    """Records by id; the first letter of an id names the table."""

    accounts: qn.Table[Account]
    contacts: qn.Table[Contact]
    leads: qn.Table[Lead]
    opportunities: qn.Table[Opportunity]
    activities: qn.Table[Activity]
    team: qn.Table[Member]

    # -- reading

    @qn.tool
    @served
    def search(
        self, kind: Literal["accounts", "contacts", "leads", "opportunities"], query: Words, page: Page = 1
    ) -> dict[str, Any]:
        """Find records in which every word of the query occurs, ten on a page, best match first.

        Contacts are searched by name, e-mail, phone and title, accounts by name and domain, leads by contact and
        account name, opportunities by name.

        Args:
            kind: Which records.
            query: Words or parts of words; capital letters do not matter.
            page: Page of the result, from 1.
        """
        hits = search.ranked(self, kind, query)
        shown = hits[(page - 1) * PAGE : page * PAGE]
        return {"found": len(hits), "page": page, "pages": -(-len(hits) // PAGE), "records": shown}

    @qn.tool
    @served
    def get(self, record_id: str) -> dict[str, Any]:
        """Show a record with the ids of the records around it.

        Args:
            record_id: Id of an account (A-), contact (C-), lead (L-) or opportunity (O-).
        """
        record = self._table(record_id)[record_id]
        shown = {name: value for name, value in msgspec.structs.asdict(record).items() if value is not None}
        return {"id": record_id} | shown | {"related": search.related(self, record_id)}

    @qn.tool
    @served
    def history(self, record_id: str, page: Page = 1) -> dict[str, Any]:
        """Show what was noted about a record, newest first, ten on a page.

        Args:
            record_id: Id of an account, contact, lead or opportunity.
            page: Page of the result, from 1.
        """
        self._table(record_id)
        newest = search.entries(self, record_id)
        shown = [f"{a.at} {a.kind}: {a.text}" for a in newest[(page - 1) * PAGE : page * PAGE]]
        return {"found": len(newest), "page": page, "pages": -(-len(newest) // PAGE), "entries": shown}

    @qn.tool
    @served
    def colleagues(self, region: Region | None = None) -> list[dict[str, Any]]:
        """List the sales team with roles, segments and absences.

        Args:
            region: Only colleagues of this region.
        """
        listed = [(key, member) for key, member in sorted(self.team.items()) if region in {None, member.region}]
        return [{"id": key} | msgspec.structs.asdict(member) for key, member in listed]

    # -- writing

    @qn.tool
    @served
    def update_account(
        self,
        account_id: str,
        *,
        domain: Words | None = None,
        country: Words | None = None,
        employees: Count | None = None,
    ) -> str:
        """Change fields of an account; what is left out stays.

        Args:
            account_id: Id of the account.
            domain: Internet domain.
            country: Country of the head office.
            employees: Number of employees.
        """
        return self._change(account_id, "A-", domain=domain, country=country, employees=employees)

    @qn.tool
    @served
    def update_contact(
        self,
        contact_id: str,
        *,
        name: Words | None = None,
        email: Words | None = None,
        phone: Words | None = None,
        title: Words | None = None,
        zone: Words | None = None,
    ) -> str:
        """Change fields of a contact; what is left out stays.

        Args:
            contact_id: Id of the contact.
            name: Full name.
            email: E-mail address.
            phone: Phone number.
            title: Job title.
            zone: Time zone such as Europe/Berlin.
        """
        if zone is not None and zone not in times.ZONES:
            raise qn.ToolError(f"unknown time zone {zone!r}; known: {', '.join(times.ZONES)}")
        return self._change(contact_id, "C-", name=name, email=email, phone=phone, title=title, zone=zone)

    @qn.tool
    @served
    def update_lead(
        self,
        lead_id: str,
        *,
        budget_eur: Amount | None = None,
        months: Months | None = None,
        contact_id: str | None = None,
    ) -> str:
        """Record facts about a lead; what is left out stays.

        Args:
            lead_id: Id of the lead.
            budget_eur: Budget in whole euros.
            months: Months until they want to decide.
            contact_id: The contact who is responsible.
        """
        self._present(contact_id, "C-")
        return self._change(lead_id, "L-", budget_eur=budget_eur, months=months, contact=contact_id)

    @qn.tool
    @served
    def decide_lead(self, lead_id: str, status: LeadStatus, reason: LeadReason | None = None) -> str:
        """Set the status of a lead.

        Args:
            lead_id: Id of the lead.
            status: The new status.
            reason: Why it is disqualified; only for that status.
        """
        if (status == "disqualified") != (reason is not None):
            raise qn.ToolError("a reason is given exactly when a lead is disqualified")
        row = self._lead(lead_id)
        row.status, row.reason, row.updated = status, reason, times.stamp(self.clock.now)
        self.leads[lead_id] = row
        return f"{lead_id} is {status}"

    @qn.tool
    @served
    def assign_owner(self, record_id: str, rep_id: str) -> str:
        """Give an account, a lead or an opportunity to a colleague.

        Args:
            record_id: Id of the account, lead or opportunity.
            rep_id: Id of the colleague (R-).
        """
        if rep_id not in self.team:
            raise qn.ToolError(f"there is no colleague {rep_id!r}")
        if record_id.startswith("C-"):
            raise qn.ToolError("a contact has no owner; its account has")
        return self._change(record_id, record_id[:2], owner=rep_id)

    @qn.tool
    @served
    def update_opportunity(
        self,
        opportunity_id: str,
        *,
        amount_eur: Amount | None = None,
        close_date: str | None = None,
        next_step: Words | None = None,
        contact_id: str | None = None,
    ) -> str:
        """Change fields of an opportunity; what is left out stays.

        Args:
            opportunity_id: Id of the opportunity.
            amount_eur: Amount in whole euros.
            close_date: Day of the expected decision, such as 2025-03-31.
            next_step: What happens next.
            contact_id: The contact on their side.
        """
        if close_date is not None:
            times.parse_date(close_date)
        self._present(contact_id, "C-")
        facts = {"amount_eur": amount_eur, "close_date": close_date, "next_step": next_step, "contact": contact_id}
        return self._change(opportunity_id, "O-", **facts)

    @qn.tool
    @served
    def set_stage(self, opportunity_id: str, stage: Stage) -> str:
        """Move an opportunity to a stage.

        Args:
            opportunity_id: Id of the opportunity.
            stage: The new stage.
        """
        return self._change(opportunity_id, "O-", stage=stage)

    @qn.tool
    @served
    def merge_contacts(self, survivor_id: str, duplicate_id: str) -> str:
        """Merge a contact into another: its leads, deals and history move over, its own fields do not. Irreversible.

        Args:
            survivor_id: The contact that stays.
            duplicate_id: The contact that disappears.
        """
        if survivor_id == duplicate_id:
            raise qn.ToolError("a contact cannot be merged into itself")
        self._present(survivor_id, "C-")
        self._change(duplicate_id, "C-", merged_into=survivor_id)
        moved = 0
        for name, field in (("leads", "contact"), ("opportunities", "contact"), ("activities", "about")):
            table: qn.Table[Any] = getattr(self, name)
            for key, row in [pair for pair in table.items() if getattr(pair[1], field) == duplicate_id]:
                setattr(row, field, survivor_id)
                table[key] = row
                moved += 1
        return f"{duplicate_id} merged into {survivor_id}; {moved} related records moved"

    @qn.tool
    @served
    def mark_opt_out(self, contact_id: str) -> str:
        """Mark that a contact refuses e-mail.

        Args:
            contact_id: Id of the contact.
        """
        self._present(contact_id, "C-")
        if since := self.contacts[contact_id].opted_out:
            raise qn.ToolError(f"{contact_id} is opted out already, since {since}")
        self._change(contact_id, "C-", opted_out=times.stamp(self.clock.now))
        return f"{contact_id} is opted out"

    @qn.tool
    @served
    def log(self, record_id: str, kind: Literal["call", "note", "email", "meeting"], text: Words) -> str:
        """Write an entry into the history of a record.

        Args:
            record_id: Id of an account, contact, lead or opportunity.
            kind: What it was.
            text: What happened and why.
        """
        self._table(record_id)
        entry = self.new_id("N-")
        self.activities[entry] = Activity(kind=kind, about=record_id, text=text, at=times.stamp(self.clock.now))
        return f"logged {entry}"

    # -- inside

    def _table(self, record_id: str) -> qn.Table[Any]:
        """The table of a record that exists and was not merged away."""
        tables: dict[str, qn.Table[Any]] = {
            "A-": self.accounts, "C-": self.contacts, "L-": self.leads, "O-": self.opportunities}  # fmt: skip
        table = tables.get(record_id[:2])
        if table is None or record_id not in table:
            raise qn.ToolError(f"there is no record {record_id!r}")
        if table is self.contacts and (survivor := self.contacts[record_id].merged_into):
            raise qn.ToolError(f"{record_id} was merged into {survivor}")
        return table

    def _present(self, record_id: str | None, letter: str) -> None:
        if record_id is not None:
            self._table(record_id)
            if not record_id.startswith(letter):
                raise qn.ToolError(f"{record_id!r} is of another kind; an id beginning with {letter} is needed here")

    def _lead(self, lead_id: str) -> Lead:
        self._present(lead_id, "L-")
        return self.leads[lead_id]

    def _change(self, record_id: str, letter: str, /, **facts: Any) -> str:
        self._present(record_id, letter)
        given = {name: value for name, value in facts.items() if value is not None}
        if not given:
            raise qn.ToolError("nothing to change: give at least one field")
        table = self._table(record_id)
        row: Record = table[record_id]
        for name, value in given.items():
            setattr(row, name, value)
        row.updated = times.stamp(self.clock.now)
        table[record_id] = row
        return f"{record_id}: {', '.join(given)} changed"
