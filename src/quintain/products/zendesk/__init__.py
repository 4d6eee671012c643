"""Zendesk Support as a world: its API, pages, rules and clocks.

tables                              rows
account, world                      the account's state, and the product as a world
conditions, actions                 what rules ask and do; triggers, automations
commit, wanted                      the only way to change a ticket, and what it takes
sla                                 measurements, clocks and policies
search                              the query language
wire                                conventions of the API
people, tickets, requests, business, webhooks, misc    routes by subject
screens                             sessions, forms, tables, and errors as pages
workspace, portal                   pages of agents, pages of customers
records                             pages generated from declared resources: users, organizations, settings
seed                                a fresh account
"""

from __future__ import annotations

from .search import index
from .seed import ADMIN, TOKEN, account, populate
from .world import Zendesk, ZendeskPages

__all__ = ["ADMIN", "TOKEN", "Zendesk", "ZendeskPages", "account", "index", "populate"]
