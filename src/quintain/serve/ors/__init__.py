"""The Open Reward Standard, at the root of the port: a superset that satisfies both of its clients at once."""

from .app import Ors as Ors
