"""`Zendesk`: the product as a world."""

from __future__ import annotations

from typing import Any, ClassVar

from quintain.resources.web import Product, Routes

from . import actions, business, misc, people, requests, sla, tickets, webhooks, wire
from .account import Desk

_ROUTES = Routes()
for _module in (people, tickets, requests, business, webhooks, misc):
    for _route in _module.ROUTES.all:
        _ROUTES.mount(_route)

_ACTS: dict[str, Any] = {"breach": sla.breach, "sweep": actions.sweep, "webhook": webhooks.deliver}


class Zendesk(Desk):
    """A Zendesk account. Mix it with other products in one class for a company that has several."""

    product: ClassVar[Product] = Product(
        name="zendesk",
        routes=_ROUTES,
        admit=wire.admit,
        finish=wire.finish,
        unknown=wire.unknown,
        stranger=wire.STRANGER,
        translate=wire.translate,
        acts=_ACTS,
        workers=misc.WORKERS,
    )
