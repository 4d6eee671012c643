"""A company's help desk on Zendesk's clone: a year of tickets, and eleven families of work."""

import importlib.util

from quintain.environments import lacks_worlds

if lacks_worlds() or importlib.util.find_spec("selectolax") is None:
    raise ImportError("helpdesk needs a database, time zones and pages: pip install 'quintain[web]'")

from .environment import env as env
from .environment import make as make
