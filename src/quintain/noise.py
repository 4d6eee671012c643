"""Fault injection: planned tool faults, sampled so that all episodes of a group meet the same ones.

Whether call k of a task meets a fault is a function of (seed, task, k), not of the episode's member number nor of the
world's random stream: siblings stay comparable, and switching noise on does not shift anything else. Two calls in a row
never fail, so a retry gets through and a solvable task stays solvable.
"""

from __future__ import annotations

import hashlib

import msgspec

from .config import Config
from .trace import Content, plain


class Fault(msgspec.Struct, frozen=True):
    """One kind of trouble between an actor and a tool.

    Attributes:
        kind: Name in the record.
        weight: Its share among all faults; the shares add up to 1.
        error: Message that the actor reads while the call does not reach the tool; empty if it does.
        rest: Share of the tool's answer that the actor reads, from its beginning.
    """

    kind: str
    weight: float
    error: str = ""
    rest: float = 0.0

    @property
    def runs(self) -> bool:
        """True if the call reaches the tool and only the answer suffers."""
        return not self.error

    def corrupt(self, observation: Content) -> tuple[str, bool]:
        """Returns the text that the actor reads instead, and whether it is marked as an error."""
        text = plain(observation)
        return self.error or text[: int(len(text) * self.rest)], not self.runs


FAULTS = (
    Fault("timeout", 0.30, error="error: the request timed out"),
    Fault("unavailable", 0.20, error="error: 503 service unavailable"),
    Fault("rate_limited", 0.15, error="error: 429 too many requests, try again"),
    Fault("truncated", 0.20, rest=0.5),
    Fault("empty", 0.15),
)


def sample_fault(config: Config, *, seed: int, task: str, call: int) -> Fault | None:
    """The fault that call number `call` of a task meets, if any; a pure function of its arguments."""
    block = hashlib.blake2b(f"{seed}/{task}/{call}".encode(), digest_size=16).digest()
    if int.from_bytes(block[:8], "little") >= config.noise_rate * 2**64:
        return None
    left = int.from_bytes(block[8:], "little") / 2**64
    for fault in FAULTS[:-1]:
        left -= fault.weight
        if left < 0:
            return fault
    return FAULTS[-1]
