"""Table policy and its learner: softmax logits by state, updated by REINFORCE with the advantages of Quintain."""

from __future__ import annotations

import json
import math
import random
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, NamedTuple, Protocol

import quintain as qn
from quintain.harness import Model, Request
from quintain.rollouts import Draw
from quintain.trace import Message, Reply, Tokens, ToolCall
from quintain.train.advantages import PerToken, Rows, group_mean
from quintain.train.curriculum import Sampler
from quintain.train.survival import Survival

GROUP, GROUPS, RATE = 8, 16, 0.2
"""Episodes of a group, groups of an update, and step size: those of all parts, chosen before any of them ran."""


class Reader(Protocol):
    """Policy's view of one episode: what it remembers, and how it writes an act as a call."""

    def read(self, message: Message) -> None:
        """Takes the next message of the context."""

    def key(self) -> str:
        """Returns the name of the state that the policy is in."""
        ...

    def call(self, act: str) -> tuple[str, dict[str, Any]] | None:
        """Returns tool and arguments of an act, or None to end with a text."""
        ...


class Choice(NamedTuple):
    """Act that was drawn, with the token of its state.

    Attributes:
        state: Token of the state.
        act: Token of the act, its place among the acts.
        logprob: Natural log of its probability.
        version: Updates of the policy so far.
    """

    state: int
    act: int
    logprob: float
    version: int


class Table:
    """Logits by state. The first tokens are the acts, those after them the states in the order of their first visit.

    Args:
        acts: Names of the acts.
        start: Returns the logits of a state that is seen first; None for zeros.
    """

    def __init__(self, acts: Sequence[str], start: Callable[[str], list[float]] | None = None) -> None:
        self.acts, self.version = acts, 0
        self._start = start or (lambda key: [0.0] * len(acts))
        self._tokens: dict[str, int] = {}
        self.logits: dict[int, list[float]] = {}

    def chances(self, state: int) -> list[float]:
        """Returns the probability of each act."""
        most = max(self.logits[state])
        weights = [math.exp(logit - most) for logit in self.logits[state]]
        total = sum(weights)
        return [weight / total for weight in weights]

    def state(self, key: str) -> int:
        """Returns the token of a state."""
        if key not in self._tokens:
            self._tokens[key] = len(self.acts) + len(self._tokens)
            self.logits[self._tokens[key]] = self._start(key)
        return self._tokens[key]

    async def choose(self, key: str, seed: int) -> Choice:
        """Draws an act."""
        state = self.state(key)
        chances = self.chances(state)
        (act,) = random.Random(seed).choices(range(len(chances)), chances)  # noqa: S311 (acts, no secrets)
        return Choice(state, act, math.log(chances[act]), self.version)

    def learn(self, rows: Rows, advantages: PerToken, *, rate: float = RATE) -> None:
        """Adds the gradient of all drawn tokens, times the rate."""
        change: dict[int, list[float]] = defaultdict(lambda: [0.0] * len(self.acts))
        for row, values in zip(rows, advantages, strict=True):
            for _, place, _ in row.turns:
                if value := values[place]:
                    state, drawn = row.token_ids[place - 1], row.token_ids[place]
                    for act, chance in enumerate(self.chances(state)):
                        change[state][act] += rate * value * ((act == drawn) - chance)
        for state, added in change.items():
            self.logits[state] = [a + b for a, b in zip(self.logits[state], added, strict=True)]
        self.version += 1


class Player:
    """Agent that reads, chooses and calls; its tokens are a state and an act per turn."""

    name = "table"

    def __init__(
        self, reader: Callable[[], Reader], acts: Sequence[str], choose: Callable[[str, int], Awaitable[Choice]]
    ) -> None:
        self._reader, self._acts, self._choose = reader, acts, choose

    def model(self, task: qn.Task[Any], seed: int) -> Model:
        """Returns the model of one episode."""
        reader, ids, seen = self._reader(), list[int](), 0

        async def ask(request: Request) -> Reply:
            nonlocal seen
            for message in request.messages[seen:]:
                reader.read(message)
            seen = len(request.messages) + 1  # The next message is this reply.
            state, act, logprob, version = await self._choose(reader.key(), request.seed)
            ids.append(state)
            tokens = Tokens(list(ids), [act], [logprob])
            ids.append(act)
            call = reader.call(self._acts[act])
            calls = () if call is None else (ToolCall(f"c{seen}", call[0], json.dumps(call[1])),)
            text = "" if calls else "done"
            return Reply(Message("assistant", text, calls=calls), tokens, policy_version=version)

        return ask


def turn_mean(rows: Rows, *, gamma: float = 1.0) -> PerToken:
    """Returns G_k - mean(G_k), where G_k is the return of turn k, over the group's episodes that have a turn k.

    `quintain.train.advantages.turn_return` without the division by the std. `gamma` is the discount per turn.
    """
    returns: dict[tuple[str, int], dict[int, float]] = defaultdict(dict)
    for number, row in enumerate(rows):
        earned: dict[int, float] = defaultdict(float)
        for reward in row.rewards:
            earned[reward.turn] += reward.value
        later = row.score
        for turn, (index, _, _) in reversed(list(enumerate(row.turns))):
            last = turn == len(row.turns) - 1
            later = earned[index] + (later if last else gamma * later)
            returns[row.group, turn][number] = later
    found = [[0.0] * len(row.token_ids) for row in rows]
    for (_, turn), values in returns.items():
        for number, value in values.items():
            found[number][rows[number].turns[turn][1]] = value - sum(values.values()) / len(values)
    return found


async def play(env: qn.Environment[Any], player: Player, draws: Sequence[Draw[Any]], *, size: int = GROUP) -> Any:
    """Returns the groups of some draws."""
    return [group async for group in qn.rollouts(env, player, draws, group=size)]


async def train(
    env: qn.Environment[Any],
    player: Player,
    table: Table,
    sampler: Sampler[Any],
    *,
    advantages: Callable[[Rows], PerToken] = group_mean,
    groups: int = GROUPS,
    rate: float = RATE,
    survival: Survival | None = None,
) -> AsyncGenerator[list[qn.Trace], None]:
    """Plays and updates without end; yields the traces of each update. `survival` weighs the advantages."""
    while True:
        played = await play(env, player, [sampler.draw() for _ in range(groups)])
        for group in played:
            sampler.observe(group)
        rows = [row for group in played for row in qn.trajectories(group.traces)]
        traces, found = [trace for group in played for trace in group.traces], advantages(rows)
        if survival is not None:
            survival.observe([*traces, *(one.trace for group in played for one in group.earlier)])
            found = survival.weigh(rows, found, traces)
        table.learn(rows, found, rate=rate)
        yield traces


def mean(values: Sequence[float | None]) -> float:
    """Returns the mean of the scores that exist; 0 if none does."""
    found = [value for value in values if value is not None]
    return sum(found) / max(1, len(found))
