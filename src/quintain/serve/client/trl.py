"""Reward function for TRL's GRPOTrainer: it also scores rollouts that end in plain words, which no tool receives."""

from __future__ import annotations

import logging
import os
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from quintain.errors import UsageError

KEY = "OPENREWARD_API_KEY"
"""Environment variable that holds the API key if none is given; TRL's client reads the same one."""
EPISODE = "dev.quintain/episode"
"""Key of a session's name in the metadata of each of its calls."""
CLOSING_S = 660.0
"""Seconds without a byte after which the score of a session that is being closed is given up."""

_Messages = Sequence[Mapping[str, Any]]
_log = logging.getLogger(__name__)


class Rollout(Protocol):
    """Environment of one rollout, as the factory of TRL's OpenRewardSpec makes it.

    Attributes:
        reward: The score; None until a call has returned it.
        finished: True if the last call ended the episode.
        metadata: Metadata of each call; None for a call that failed.
    """

    reward: float | None
    finished: bool
    metadata: list[dict[str, Any] | None]


class _Closed(msgspec.Struct):
    reward: float | None = None


def reward_function(url: str, *, key: str | None = None, tool: str = "answer") -> Callable[..., list[float | None]]:
    """Returns a reward function for GRPOTrainer, for rollouts of an OpenRewardSpec.

    It returns the score of each rollout. If a rollout has ended in plain words, its last message is first delivered by
    the tool `answer`. A session that still continues is closed and scored as its world stands. A failed episode has no
    reward, so the function returns None for it, which TRL reports and leaves out.

    Args:
        url: URL of the server, as in the OpenRewardSpec.
        key: API key; None takes the environment variable OPENREWARD_API_KEY.
        tool: Name under which the server lists the tool `answer`.

    Raises:
        UsageError: The URL is not one of a server. The function that is returned raises it for a rollout that has no
            such tool.
    """
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"a server is named like http://localhost:8080, not {url!r}")
    secret = os.environ.get(KEY, "") if key is None else key
    headers = {"Authorization": f"Bearer {secret}"} if secret else {}

    def score(environments: Sequence[Rollout], completions: Sequence[_Messages], **_: object) -> list[float | None]:
        for rollout, completion in zip(environments, completions, strict=True):
            if not rollout.finished and (words := _last_words(completion)) is not None:
                _answer(rollout, tool, words)
        return [
            one.reward if one.finished or one.reward is not None else _close(url, headers, one) for one in environments
        ]

    return score


def _last_words(completion: _Messages) -> str | None:
    """Returns the text of the last message; None unless it is the policy's and calls no tool."""
    last: Mapping[str, Any] = completion[-1] if completion else {}
    if last.get("role") != "assistant" or last.get("tool_calls"):
        return None
    content = last.get("content") or ""
    if isinstance(content, str):
        return content
    parts: list[dict[str, str]] = content
    return "".join(part.get("text", "") for part in parts)


def _answer(rollout: Rollout, tool: str, words: str) -> None:
    method = getattr(rollout, tool, None)
    if method is None:
        raise UsageError(
            f"the rollout has no tool {tool!r} to answer by; pass the name under which the server lists it: "
            "reward_function(url, tool=...)"
        )
    method(text=words)


def _close(url: str, headers: Mapping[str, str], rollout: Rollout) -> float | None:
    """Closes the session of a rollout and returns its score; None if it has none, or is not known yet."""
    name = next((one[EPISODE] for one in reversed(rollout.metadata) if one and EPISODE in one), None)
    if name is None:
        return None
    address, sent = f"{url.rstrip('/')}/delete", {**headers, "X-Session-ID": name}
    request = urllib.request.Request(address, b"", sent, method="POST")  # noqa: S310 (an HTTP server: see above)
    try:
        with urllib.request.urlopen(request, timeout=CLOSING_S) as response:  # noqa: S310
            return msgspec.json.decode(response.read(), type=_Closed).reward
    except (OSError, msgspec.DecodeError) as error:
        _log.warning("session %s has no score, because it could not be closed: %s", name, error)
        return None
