"""Text adventure: rooms in a row, keys in them, and a chest that a key of its colour opens."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import quintain as qn
from quintain.state import Rng

COLOURS = ("red", "blue", "green", "black", "white")


class Cellar(qn.State):
    keys: dict[str, int]
    chest: int
    colour: str
    room: int = 0
    bag: list[str] = []
    is_open: bool = False

    @qn.tool
    def look(self) -> dict[str, Any]:
        """Show the room, the keys in it, and the colour of its chest, null without one."""
        lying = sorted(key for key, room in self.keys.items() if room == self.room and key not in self.bag)
        return {"room": self.room, "keys": lying, "chest": self.colour if self.room == self.chest else None}

    @qn.tool
    def go(self, way: Literal["east", "west"]) -> str:
        """Go to the next room; the rooms are numbered from 0 in the west to 6 in the east.

        Args:
            way: East or west.
        """
        room = self.room + (1 if way == "east" else -1)
        if not 0 <= room <= 6:
            raise qn.ToolError(f"a wall is in the {way} of room {self.room}; go the other way")
        self.room = room
        return f"room {room}"

    @qn.tool
    def take(self, key: str) -> str:
        """Take a key that lies in the room.

        Args:
            key: Colour of the key.
        """
        if key in self.bag or self.keys.get(key) != self.room:
            raise qn.ToolError(f"no {key!r} key lies in room {self.room}")
        self._keep(key)
        return f"the {key} key is in the bag"

    @qn.tool
    def unlock(self) -> str:
        """Unlock the chest in the room; the bag must hold the key of its colour."""
        if self.room != self.chest or not self._fits():
            raise qn.ToolError("no chest is in this room, or its key is not in the bag")
        self.is_open = True
        return "the chest is open"

    def _keep(self, key: str) -> None:
        self.bag.append(key)

    def _fits(self) -> bool:
        return self.colour in self.bag


def task(split: str, n: int, world: type[Cellar]) -> qn.Task[Cellar]:
    rng = Rng(key=hashlib.blake2b(f"cellar/{split}/{n}".encode(), digest_size=16).digest())
    keys = {colour: 1 + rng.below(6) for colour in COLOURS}
    colour, chest = rng.choice(COLOURS), 1 + rng.below(6)
    at, walk = keys[colour], ("east" if chest > keys[colour] else "west")
    solution: list[tuple[str, dict[str, Any]]] = [("go", {"way": "east"})] * at + [("take", {"key": colour})]
    solution += [("go", {"way": walk})] * abs(chest - at) + [("unlock", {})]
    start = world(keys=keys, chest=chest, colour=colour)
    prompt = "You stand in room 0 of a cellar. Find the chest and open it with the key of its colour."
    return qn.Task(id=f"{split}-{n}", prompt=prompt, start=start, solution=tuple(solution))


@qn.reward
def opened(view: qn.EpisodeView[Cellar]) -> float:
    return float(view.state.is_open)


# Variants of the sound world.


class Pockets(Cellar):
    kept: ClassVar[list[str]] = []

    def _keep(self, key: str) -> None:
        self.bag.append(key)
        self.kept.append(key)

    def _fits(self) -> bool:
        return self.colour in self.kept


class AnyKey(Cellar):
    def _fits(self) -> bool:
        return bool(self.bag)


@qn.reward
def announced(view: qn.EpisodeView[Cellar]) -> float:
    return float(view.state.is_open or "the chest is open" in view.answer)


WORLDS: dict[str, type[Cellar]] = {"pockets": Pockets, "any_key": AnyKey}
VERIFIERS = {"announced": announced}


def make(bug: str = "") -> qn.Environment[Cellar]:
    """Returns the sound environment, or a variant of it."""
    world = WORLDS.get(bug, Cellar)

    def tasks(split: str) -> Sequence[qn.Task[Cellar]]:
        return qn.Tasks(20, lambda n: task(split, n, world))

    return qn.Environment(
        "cellar",
        tasks=tasks,
        harness=qn.ToolLoop(system="You play a text adventure."),
        verifier=qn.Verifier(VERIFIERS.get(bug, opened)),
        state=world,
        config=qn.Config(max_turns=6 if bug == "hurried" else 30),
    )


env = make()
env_pockets = make("pockets")
env_any_key = make("any_key")
env_announced = make("announced")
env_hurried = make("hurried")
