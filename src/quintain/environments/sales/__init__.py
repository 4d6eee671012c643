"""A sales-development desk: a messy CRM, a mailbox in which answers take time, and calendars around the world."""

from .environment import env as env
from .environment import make as make
