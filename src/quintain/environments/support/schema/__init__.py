"""The tables of the world, one class each."""

from __future__ import annotations

from . import accounts, billing, desk, people, shop

TABLES = (*people.TABLES, *accounts.TABLES, *billing.TABLES, *shop.TABLES, *desk.TABLES)
"""In an order in which every table comes after those that it refers to."""
