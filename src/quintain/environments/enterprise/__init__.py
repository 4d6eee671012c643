"""A company of 164 tables and 512 tools over eight departments, made from one description."""

from quintain.environments import lacks_worlds

if lacks_worlds():
    raise ImportError("enterprise needs a database and time zones: pip install 'quintain[worlds]'")

from .environment import env as env
