"""The base that all tasks stand on, built once on a machine: a company's customers, sales and tickets of some years."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

from quintain.environments.support.schema import TABLES
from quintain.resources.database import Database

from . import goods, money, people, tickets
from .sowing import Sowing


def fill(db: Database) -> None:
    """Put everything into an empty database."""
    sowing = Sowing(b"support/base")
    people.staff(sowing)
    people.customers(sowing)
    people.accounts(sowing)
    money.catalogue(sowing)
    money.subscriptions(sowing)
    goods.catalogue(sowing)
    goods.orders(sowing)
    tickets.knowledge(sowing)
    tickets.tickets(sowing)
    for table in TABLES:
        db.insert(*sowing.rows.get(table, ()))


@functools.cache
def base() -> Database:
    """The base; take a fork of it."""
    # A cached image is known by its schema and by the seed's own module. The seed reads others, so they are named too.
    folder = Path(__file__).parent
    sources = sorted([*folder.glob("*.py"), folder.parent / "policy.py"])
    digest = hashlib.blake2b(b"".join(path.read_bytes() for path in sources), digest_size=16).hexdigest()
    return Database(*TABLES, f"-- made from {digest}", seed=fill)
