"""Other kinds of environments in the form of the plain subject: `tasks`, `tools`, `reset`, `call`, `score`, and more.

Each module knows one kind, and has a function `make(text)` that returns a factory of sessions: independent objects
whose methods are ordinary, not async. What a kind does not have (a score, a snapshot) its object names in `absent`, or
has no method for.
"""

from .failure import SubjectFailure as SubjectFailure
