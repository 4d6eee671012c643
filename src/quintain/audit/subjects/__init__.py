"""Adapters that give other kinds of environments the methods of a plain subject: `tasks`, `reset`, `score`, and more.

Each module adapts one kind and has a function `make(text)` that returns a factory of sessions: independent objects
whose methods are ordinary, not async. A session names methods that its kind lacks (a score, a snapshot) in `absent`, or
does not define them.

gymnasium, spaces       Gymnasium's environments and spaces
mcp, ors, openenv       environments behind these protocols
openapi                 services described by OpenAPI, with operations as tools
native, world           this project's environments, and their state as plain data
judging                 a stub in the place of the models that grade in these
remote                  environments behind `quintain serve`
verifiers, scorer       tasksets of verifiers, and a scoring function alone
matching                keys of a case and parameters of a scoring function
http, loops             HTTP, parsed JSON and event loops for the adapters
failure                 error of adapters
"""

from .failure import SubjectFailure as SubjectFailure
