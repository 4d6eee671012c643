"""`Zendesk`: the product as a world."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from quintain.resources.web import Product, Routes
from quintain.resources.web.browser import Browser, BrowserTools

from . import (
    actions,
    business,
    misc,
    people,
    portal,
    records,
    requests,
    screens,
    sla,
    tickets,
    webhooks,
    wire,
    workspace,
)
from .account import Desk

_ROUTES = Routes()
for _module in (people, tickets, requests, business, webhooks, misc, screens, workspace, records, portal):
    for _route in _module.ROUTES.all:
        _ROUTES.mount(_route)

_ACTS: dict[str, Any] = {"breach": sla.breach, "sweep": actions.sweep, "webhook": webhooks.deliver}


class Zendesk(Desk):
    """A Zendesk account. Mix it with other products in one class for a company that has several."""

    product: ClassVar[Product] = Product(
        name="zendesk",
        routes=_ROUTES,
        admit=screens.admit,
        finish=screens.finish,
        unknown=wire.unknown,
        stranger=wire.STRANGER,
        translate=wire.translate,
        acts=_ACTS,
        workers=misc.WORKERS,
        trouble=wire.trouble,
    )


class ZendeskPages(BrowserTools, Zendesk):
    """A Zendesk account with the tools of a browser, for agents that work in its pages.

    `goto("http://acme.zendesk.localhost/agent")` asks for an e-mail, and for the account's token as password.
    """

    browser: Browser = msgspec.field(default_factory=Browser)
