"""Text adventure with a dark cellar, a locked vault and two hands."""

from collections import deque
from typing import Literal

import quintain as qn
from quintain.task import Call

Direction = Literal["north", "south", "east", "west", "up", "down"]
ROOMS: dict[str, dict[Direction, str]] = {
    "hall": {"north": "library", "east": "kitchen", "south": "garden"},
    "library": {"south": "hall", "east": "tower"},
    "tower": {"west": "library"},
    "kitchen": {"west": "hall", "down": "cellar"},
    "cellar": {"up": "kitchen", "east": "vault"},
    "vault": {"west": "cellar"},
    "garden": {"north": "hall", "west": "chapel"},
    "chapel": {"east": "garden"},
}
PLACES = {"lamp": "kitchen", "key": "tower", "cup": "vault", "coin": "cellar", "scroll": "library", "rose": "garden"}
HANDS = "hands"


class Castle(qn.State):
    places: dict[str, str]
    """Room of each thing, or `hands`."""
    room: str = "hall"
    locked: bool = True

    @qn.tool
    def look(self) -> dict[str, object]:
        """Look around: the room, its exits, and the things in it in alphabetical order.

        The cellar is dark: without the lamp in your hands or on its floor you see its exits, but no things.
        """
        seen = sorted(thing for thing, place in self.places.items() if place == self.room) if self.lit() else []
        exits = {way: "locked" if self.shut(way) else room for way, room in ROOMS[self.room].items()}
        return {"room": self.room, "dark": not self.lit(), "exits": exits, "things": seen}

    @qn.tool
    def hands(self) -> list[str]:
        """List what you carry, in alphabetical order; you can carry two things."""
        return sorted(thing for thing, place in self.places.items() if place == HANDS)

    @qn.tool
    def go(self, direction: Direction) -> str:
        """Walk through an exit; darkness does not hinder you, a locked door does.

        Args:
            direction: Where to.
        """
        exits = ROOMS[self.room]
        if direction not in exits:
            raise qn.ToolError(f"no exit {direction} of the {self.room}; exits: {', '.join(exits)}")
        if self.shut(direction):
            raise qn.ToolError(f"the door {direction} is locked; `unlock` it with the key in your hands")
        self.room = exits[direction]
        return f"you are in the {self.room}"

    @qn.tool
    def take(self, thing: str) -> str:
        """Take a thing that you see.

        Args:
            thing: Name of the thing.
        """
        if self.places.get(thing) != self.room or not self.lit():
            raise qn.ToolError(f"you see no {thing!r} here; `look` lists what you see")
        if len(self.hands()) == 2:
            raise qn.ToolError(f"your hands are full: {', '.join(self.hands())}; `drop` one first")
        self.places[thing] = HANDS
        return f"you carry the {thing}"

    @qn.tool
    def drop(self, thing: str) -> str:
        """Put a thing that you carry on the floor of this room.

        Args:
            thing: Name of the thing.
        """
        if self.places.get(thing) != HANDS:
            raise qn.ToolError(f"you do not carry {thing!r}; you carry: {', '.join(self.hands()) or 'nothing'}")
        self.places[thing] = self.room
        return f"the {thing} lies in the {self.room}"

    @qn.tool
    def unlock(self) -> str:
        """Unlock the door of the vault, from the cellar, with light and the key in your hands; it stays unlocked."""
        if self.room != "cellar" or self.places["key"] != HANDS or not self.lit():
            raise qn.ToolError("you need to stand in the cellar with light, and carry the key")
        self.locked = False
        return "the door to the vault is unlocked"

    def lit(self) -> bool:
        return self.room != "cellar" or self.places["lamp"] in {HANDS, "cellar"}

    def shut(self, direction: Direction) -> bool:
        return self.locked and (self.room, direction) == ("cellar", "east")


def walk(start: str, end: str) -> list[Call]:
    """Returns the calls of a shortest way."""
    ways: dict[str, list[Call]] = {start: []}
    queue = deque([start])
    while end not in ways:
        room = queue.popleft()
        for direction, beyond in ROOMS[room].items():
            if beyond not in ways:
                ways[beyond] = [*ways[room], ("go", {"direction": direction})]
                queue.append(beyond)
    return ways[end]


def solution(thing: str, goal: str) -> tuple[Call, ...]:
    """Returns calls that fetch what the thing needs, then the thing, and carry it to the goal."""
    needs = {"cup": ("key", "lamp"), "coin": ("lamp",)}.get(thing, ())
    calls, room = list[Call](), "hall"
    for one in needs:
        calls += [*walk(room, PLACES[one]), ("take", {"thing": one})]
        room = PLACES[one]
    if "key" in needs:
        calls += [*walk(room, "cellar"), ("unlock", {}), ("drop", {"thing": "key"})]
        room = "cellar"
    calls += [*walk(room, PLACES[thing]), ("take", {"thing": thing}), *walk(PLACES[thing], goal)]
    return (*calls, ("drop", {"thing": thing}))


def task(thing: str, goal: str) -> qn.Task[Castle]:
    return qn.Task(
        id=f"{thing}-{goal}",
        prompt=(
            f"You are in the hall of a castle with {len(ROOMS)} rooms, and can carry two things. Find the {thing} and "
            f"leave it on the floor of the {goal}. Where other things end up does not matter."
        ),
        start=Castle(places=dict(PLACES)),
        truth={"thing": thing, "goal": goal},
        solution=solution(thing, goal),
    )


@qn.reward
def delivered(view: qn.EpisodeView[Castle]) -> qn.Score:
    place = view.state.places[view.task.truth["thing"]]
    return qn.Score(float(place == view.task.truth["goal"]), f"it is at {place}, wanted at {view.task.truth['goal']}")


QUESTS = [(thing, goal) for thing in PLACES for goal in ("chapel", "tower", "kitchen") if PLACES[thing] != goal]
env = qn.Environment(
    "text_adventure",
    tasks=lambda split: qn.Tasks(len(QUESTS), lambda number: task(*QUESTS[number])),
    harness=qn.ToolLoop(system="You play a text adventure."),
    verifier=qn.Verifier(delivered),
    state=Castle,
    splits=("test",),
)
