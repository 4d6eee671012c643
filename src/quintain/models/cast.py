"""Several models in one episode."""

from __future__ import annotations

from quintain.errors import DefinitionError
from quintain.harness import STOP, Harness, Model, Request
from quintain.trace import Message, Reply


class Cast:
    """Model with one model for each role, such as `Cast(agent=policy, user=simulator)`.

    Args:
        models: Models by role.
    """

    def __init__(self, **models: Model) -> None:
        self._models = models

    async def __call__(self, request: Request) -> Reply:
        """Asks the model of the request's role.

        Raises:
            DefinitionError: No model plays that role.
        """
        if request.role not in self._models:
            known = ", ".join(self._models) or "no role"
            raise DefinitionError(f"no model plays the role {request.role!r}; the cast has {known}")
        return await self._models[request.role](request)


def with_silent_user(model: Model, harness: Harness) -> Model:
    """Returns a model that adds a user who lets the agent act, and ends the conversation when it has answered.

    The user says nothing when asked first, and then the stop word of the harness. All other requests go to `model`.

    Args:
        model: Plays the agent, and any role except "user".
        harness: Harness whose first stop word is said; one without such words gets the default word.
    """
    words: tuple[str, ...] = getattr(harness, "stop", (STOP,))

    async def ask(request: Request) -> Reply:
        if request.role != "user":
            return await model(request)
        is_first = all(message.role != "assistant" for message in request.messages)
        return Reply(Message("assistant", "" if is_first else "".join(words[:1])))

    return ask
