"""Serving: environments behind the protocols that trainers and agents already speak.

`driven` and `live` are one episode that is played over a wire, `host` all of them; each folder is one protocol, thin
over these; `app` puts the protocols on one port and `server` runs it.
"""

from .episodes.secrets import secret as secret

__framework__ = True
