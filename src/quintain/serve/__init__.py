"""Serving: environments behind the protocols of trainers and agents.

`episodes` holds the episodes, `journal` writes them down, `http` is the server; each other folder is one protocol, thin
over these, and `client` plays the environments of another server.
"""

from .episodes.secrets import secret as secret

__framework__ = True
