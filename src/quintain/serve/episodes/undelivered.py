"""Calls whose answers nobody has got: for a while the same request, sent again without their key, is taken for them.

A client whose connection broke before it read a key sends its request anew, and cannot say that it does; an agent that
means to do the same once more sends the same. Only time tells them apart. That another call came in between says
nothing: a client that made several at once sends each of them anew when it comes to it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .live import Live

AGAIN_S = 60.0
"""Seconds after its end in which a call may be asked for so: the field's clients wait 15.5 s in all between their
tries, and its reference server keeps results for a minute."""
MOST = 64
"""So many calls of an episode are kept for those who ask again; of more, the oldest ones are not."""
FOREVER = math.inf

Asked = tuple[bytes, Callable[[], bool], float]
"""What was asked, whether its client has left, and until when it may be asked for again."""


def same(live: Live, request: bytes, is_its: Callable[[str], bool]) -> str | None:
    """The key of the same request that came before, when its client left without the answer, or its server died.

    Args:
        live: The episode.
        request: What is asked now.
        is_its: Whether a key, of a process that is gone, was given to such a request.
    """
    now = time.monotonic()
    over = [key for key, (_, _, until) in live.asked.items() if until < now]
    over += [key for key, until in live.lost.items() if until is not None and until < now]
    for key in over:
        heard(live, key)
    for key, (asked, gone, _) in live.asked.items():
        if asked == request and gone():
            return key
    for key, until in live.lost.items():
        if until is not None and is_its(key):
            live.lost[key] = None
            return key
    return None


def left(live: Live, key: str, request: bytes) -> None:
    """A call has ended, and its answer found nobody."""
    live.asked.pop(key, None)  # As the newest it stands at the end.
    live.asked[key] = (request, gone, deadline())
    live.missed(key)
    waiting = [key for key, (_, _, until) in live.asked.items() if until < FOREVER]
    for oldest in waiting[:-MOST]:
        heard(live, oldest)


def heard(live: Live, key: str) -> None:
    """The answer to a call was told, or nobody may ask for it without its key any more."""
    live.asked.pop(key, None)
    if live.lost:
        live.met(key)


def deadline() -> float:
    """Until when what has found nobody by now may be asked for."""
    return time.monotonic() + AGAIN_S


def gone() -> bool:
    """Of a client that has left."""
    return True
