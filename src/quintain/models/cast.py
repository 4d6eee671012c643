"""Several models in one episode."""

from __future__ import annotations

from quintain.errors import DefinitionError
from quintain.harness import Model, Request
from quintain.trace import Reply


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
