"""Adapters that give other kinds of environments the methods of a plain subject: `tasks`, `reset`, `score`, and more.

Each module adapts one kind and has a function `make(text)` that returns a factory of sessions: independent objects
whose methods are ordinary, not async. A session names methods that its kind lacks (a score, a snapshot) in `absent`, or
does not define them.
"""

from .failure import SubjectFailure as SubjectFailure
