"""A help desk: tickets, accounts, money and parcels in one database, and a policy by which troubles are repaired."""

from quintain.environments import lacks_worlds

if lacks_worlds():
    raise ImportError("support needs a database and time zones: pip install 'quintain[worlds]'")

from .environment import env as env
from .environment import make as make
