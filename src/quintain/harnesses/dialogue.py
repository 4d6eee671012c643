"""`Dialogue`: the agent and a simulated user talk."""

from __future__ import annotations

import msgspec

from quintain.errors import ModelError
from quintain.harness import STOP, Model, Session, run_until_text, set_system_prompt
from quintain.trace import Message


class Dialogue(msgspec.Struct, frozen=True, kw_only=True):
    """The agent and a simulated user take turns; each may call its own tools before it speaks.

    A user that twice in a row says nothing to the agent's words is a failure of its model.

    Attributes:
        system: The agent's system prompt.
        user_system: Stands before the script that the task gives the user.
        opening: What the agent says first, by the rules of the house; empty: the user begins.
        stop: Words that end the conversation when the user says one of them.
    """

    system: str = ""
    user_system: str = ""
    opening: str = ""
    stop: tuple[str, ...] = (STOP,)

    async def play(self, session: Session, model: Model) -> None:
        """Plays one episode to its end."""
        user = session.add_actor("user")
        set_system_prompt(session, self.system)
        set_system_prompt(user, self.user_system)
        if self.opening:
            session.append(Message("assistant", self.opening))
            user.append(Message("user", self.opening))
        said, silent = self.opening, 0
        while not session.ended:
            words = await run_until_text(user, model)
            if any(word in words for word in self.stop):
                session.terminate("the user ended the conversation")
                return
            silent = silent + 1 if said and not words.strip() else 0
            if silent > 1 and not session.ended:
                raise ModelError("the simulated user said nothing, twice in a row", kind="quintain:model_reply_invalid")
            session.append(Message("user", words))
            said = await run_until_text(session, model)
            user.append(Message("user", said))
