"""Stories: jobs that follow each other through the departments. Each step is a family of tasks."""

from __future__ import annotations

from collections.abc import Callable

from quintain.environments.enterprise.draft import CompanyDraft

from . import buying, governing, people, running, selling, serving

Step = Callable[[CompanyDraft], str]
"""Writes one task into a draft; returns the request to the agent."""

STORIES: dict[str, tuple[Step, ...]] = {
    "onboarding": people.ONBOARDING,
    "offboarding": people.OFFBOARDING,
    "leave": people.LEAVE,
    "recruiting": people.RECRUITING,
    "purchase": buying.PURCHASE,
    "supplier": buying.SUPPLIER,
    "tender": buying.TENDER,
    "budget": buying.BUDGET,
    "expenses": buying.EXPENSES,
    "order": selling.ORDER,
    "discount": selling.DISCOUNT,
    "price": selling.PRICE,
    "lead": selling.LEAD,
    "ticket": serving.TICKET,
    "return": serving.RETURN,
    "warranty": serving.WARRANTY,
    "complaint": serving.COMPLAINT,
    "duplicate": serving.DUPLICATE,
    "incident": running.INCIDENT,
    "change": running.CHANGE,
    "access": running.ACCESS,
    "role": running.ROLE,
    "transfer": running.TRANSFER,
    "correction": running.CORRECTION,
    "visit": running.VISIT,
    "close": governing.CLOSE,
    "renewal": governing.RENEWAL,
    "contract": governing.CONTRACT,
    "privacy": governing.PRIVACY,
    "audit": governing.AUDIT,
    "policy": governing.POLICY,
}
