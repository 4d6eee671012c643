"""Fault injection: planned tool faults, sampled so that all episodes of a group meet the same ones.

Whether call k of a task meets a fault is a function of (seed, task, k), not of the episode's member number nor of the
world's random stream: siblings stay comparable, and switching noise on does not shift anything else. Two calls in a row
never fail, so a retry gets through and a solvable task stays solvable.
"""

from __future__ import annotations

import hashlib

import msgspec

from .config import Config, FaultKind
from .trace import Content, plain


class Fault(msgspec.Struct, frozen=True):
    """One kind of trouble between an actor and a tool.

    Attributes:
        kind: Name in the record.
        weight: Share among all faults by default, in [0, 1].
        share: Share among all faults under `noise_weights="all"`, in (0, 1].
        error: Message that the actor reads while the call does not reach the tool; empty if it does.
        rest: Share of the tool's answer that the actor reads, from its beginning.
        tail: Text after it.
        copies: Times the actor reads the whole answer; 0 where `rest` and `tail` say what it reads.
    """

    kind: FaultKind
    weight: float
    share: float
    error: str = ""
    rest: float = 0.0
    tail: str = ""
    copies: int = 0

    @property
    def runs(self) -> bool:
        """True if the call reaches the tool and only the answer suffers."""
        return not self.error and self.kind != "stale"

    def corrupt(self, observation: Content) -> tuple[Content, bool]:
        """Returns the content that the actor reads instead, and whether it is marked as an error."""
        if self.copies:
            again = self.copies - 1
            if isinstance(observation, str):
                return observation + f"\n{observation}" * again, False
            return observation + observation * again, False
        text = plain(observation)
        return self.error or text[: int(len(text) * self.rest)] + self.tail, bool(self.error)


FAULTS = (
    Fault("timeout", 0.30, 0.30, error="error: the request timed out"),
    Fault("unavailable", 0.20, 0.15, error="error: 503 service unavailable"),
    Fault("rate_limited", 0.15, 0.10, error="error: 429 too many requests, try again"),
    Fault("truncated", 0.20, 0.15, rest=0.5),
    Fault("malformed", 0.0, 0.10, rest=1.0, tail=","),  # No JSON text ends in a comma.
    Fault("stale", 0.0, 0.05, copies=1),
    Fault("duplicate", 0.0, 0.05, copies=2),
    Fault("empty", 0.15, 0.10),
)


def sample_fault(config: Config, *, seed: int, task: str, call: int) -> Fault | None:
    """The fault that call number `call` of a task meets, if any; a pure function of its arguments."""
    block = hashlib.blake2b(f"{seed}/{task}/{call}".encode(), digest_size=16).digest()
    if int.from_bytes(block[:8], "little") >= config.noise_rate * 2**64:
        return None
    given = config.noise_weights
    usual = {one.kind: one.share if given else one.weight for one in FAULTS}
    weights = given if isinstance(given, dict) else usual
    faults = [fault for fault in FAULTS if weights.get(fault.kind)]
    left = int.from_bytes(block[8:], "little") / 2**64 * sum(weights[fault.kind] for fault in faults)
    for fault in faults[:-1]:
        left -= weights[fault.kind]
        if left < 0:
            return fault
    return faults[-1]
