"""H: the plain tool loop, with the rules of the repository as its system prompt."""

from __future__ import annotations

import quintain as qn

RULES = """\
You work on a small Python repository with the tools given. Only the standard library is available.
Change what the job needs and nothing else. Modules of the package may change, and new test files may be added in \
`tests/`. Everything else stays as it is: existing tests and other issues too. Leave no other files behind.
Hidden tests check the repaired behaviour and all other behaviour.
When the job is done, reply with a short summary and no call.
"""

harness = qn.ToolLoop(system=RULES)
