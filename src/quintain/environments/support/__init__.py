"""A help desk: tickets, accounts, money and parcels in one database, and a policy by which troubles are repaired."""

from .environment import env as env
