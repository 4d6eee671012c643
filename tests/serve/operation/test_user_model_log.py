"""Replies of the simulated user are logged, and replayed before the user model is asked again."""

from __future__ import annotations

import asyncio

import pytest

from quintain.errors import EpisodeError
from quintain.harness import Request
from quintain.serve.journal.entries import FORGETFUL, Said, UserModelLog
from quintain.trace import Message, Reply


class User:
    """User model that counts its questions.

    Attributes:
        asked: Number of questions.
    """

    asked = 0

    async def __call__(self, request: Request) -> Reply:
        self.asked += 1
        return Reply(Message("assistant", str(self.asked)))


def question(role: str = "user") -> Request:
    return Request(messages=[Message("user", "Well?")], tools=(), role=role)


def logged(*texts: str) -> list[Said]:
    return [Said("one", "user", Reply(Message("assistant", text))) for text in texts]


def test_logged_replies_come_before_the_user_model_is_asked() -> None:
    async def play() -> None:
        user = User()
        log = UserModelLog(user, "one", FORGETFUL)
        log.replay(logged("a", "b"), is_over=False)
        assert [(await log(question())).message.text for _ in range(3)] == ["a", "b", "1"]
        assert user.asked == 1

    asyncio.run(play())


def test_logged_reply_of_another_role_is_a_divergence() -> None:
    async def play() -> None:
        log = UserModelLog(User(), "one", FORGETFUL)
        log.replay(logged("a"), is_over=False)
        with pytest.raises(EpisodeError, match="'judge' is asked, where 'user' was") as raised:
            await log(question("judge"))
        assert raised.value.kind == "quintain:replay_diverged"

    asyncio.run(play())


def test_user_model_of_an_episode_that_is_over_is_not_asked() -> None:
    async def play() -> None:
        user = User()
        log = UserModelLog(user, "one", FORGETFUL)
        log.replay([], is_over=True)
        with pytest.raises(EpisodeError, match="'user' had failed"):
            await log(question())
        assert user.asked == 0

    asyncio.run(play())
