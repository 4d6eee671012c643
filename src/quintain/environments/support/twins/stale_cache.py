"""stale_cache: an account is read through a cache that lives ten minutes, and only locks drop it.

`unlock_account` and `lock_account` forget what was cached, for that is what its author had in mind. Logging everybody
out does not, nor does a new password or a cancelled subscription, nor the payment that lifts a lock: for ten minutes
the account shows sessions and locks that are gone. Who waits sees the truth.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from quintain.environments.faults import reach
from quintain.environments.support.desk import READ_S, moment
from quintain.environments.support.environment import env as sound
from quintain.environments.support.state import Support
from quintain.environments.twins import in_place_of, poisoned

LIVES_S = 600


class CachedSupport(Support):
    """A help desk that is spared to read an account twice."""

    cache: dict[str, tuple[str, dict[str, Any]]] = msgspec.field(default_factory=dict[str, tuple[str, dict[str, Any]]])
    """Number of an account to when it was read, and what was read."""

    @in_place_of(Support.get_account)
    def get_account(self, account_id: int) -> dict[str, Any]:
        read, shown = self.cache.get(str(account_id), ("", {}))
        if read >= moment(self.clock.now - LIVES_S):
            self.clock.advance(READ_S)
            reach(self)
            return shown
        shown = Support.get_account(self, account_id)
        self.cache[str(account_id)] = (self.now, shown)
        return shown

    @in_place_of(Support.unlock_account)
    def unlock_account(self, account_id: int) -> str:
        self.cache.pop(str(account_id), None)
        return Support.unlock_account(self, account_id)

    @in_place_of(Support.lock_account)
    def lock_account(self, account_id: int, reason: Literal["takeover"] = "takeover") -> str:
        self.cache.pop(str(account_id), None)
        return Support.lock_account(self, account_id, reason)


env = poisoned(sound, "stale_cache", state=CachedSupport)
