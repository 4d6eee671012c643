"""H: one agent with all tools, with the rules of the desk as its system prompt."""

from __future__ import annotations

import msgspec

import quintain as qn
from quintain.harness import Model, Session

from .description import causes, digest

RULES = """\
You are on call for the production of Halden, a shop with fourteen services. Something fails. Find the root cause, \
repair it, and report it with `report`.

- Runbooks are binding: they say how a root cause is recognised and repaired. They are pages of the docs, such as \
runbook/missing_index; those of services are named like service/cart.
- Not all that changed lately has to do with the incident. Look for what fits in kind, place and time.
- Change nothing but what the runbook asks for. Reading, acknowledging alerts and waiting are free.
- The service of a finding is the one in which the cause lies, not one that calls it.
- When all is repaired and reported, reply with a sentence and no call.

Root causes, and what a report names as their culprit:
"""


def rules() -> str:
    """Returns the rules with the list of root causes."""
    return RULES + "\n".join(
        f"- {name}: {cause.about} Culprit: {cause.culprit_is}." for name, cause in causes().items()
    )


class Flat(msgspec.Struct, frozen=True):
    """A tool loop.

    Attributes:
        system: The rules of the desk.
        description: Digest of the description, so that it is part of the environment's fingerprint.
    """

    system: str
    description: str

    async def play(self, session: Session, model: Model) -> None:
        """Plays one episode to its end."""
        await qn.ToolLoop(self.system).play(session, model)


harness = Flat(rules(), digest())
