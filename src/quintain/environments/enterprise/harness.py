"""H: the plain tool loop, with the rules of the house as its system prompt."""

from __future__ import annotations

import msgspec

import quintain as qn
from quintain.harness import Model, Session

from .description import company

RULES = """\
You work in the software of Halden, a trading company with eight departments: people, finance, sales, support, it, \
procurement, logistics and corporate. You act as one employee: sign in first, with the passcode that you are given.

- Tools are named <department>_<verb>_<record>. search_tools finds them by words; describe_table explains a table.
- A record is referred to by its key, such as PR-17 or EMP-42, or by its exact name or title.
- What you may do depends on the roles of who is signed in (whoami). An error that begins with 403 means that somebody \
else has to do it.
- Amounts are whole euros, dates are YYYY-MM-DD.
- Change only what you are asked to change. Reading is free.
- When you are done, say so in a sentence."""


class Office(msgspec.Struct, frozen=True):
    """A tool loop.

    Attributes:
        system: The rules of the house.
        company: Digest of the description, so that it is part of the environment's fingerprint.
    """

    system: str
    company: str

    async def play(self, session: Session, model: Model) -> None:
        """Drive one episode."""
        await qn.ToolLoop(self.system).play(session, model)


harness = Office(RULES, company().digest)
