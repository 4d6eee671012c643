"""A text adventure: two hands, a dark cellar, a goat that eats; turns and phases have rewards beside the verdict."""

from typing import Literal

import quintain as qn

Room = Literal["hall", "kitchen", "cellar", "garden", "attic"]
Item = Literal["lamp", "key", "rope", "apple", "book", "coin"]
DOORS: dict[str, list[Room]] = {
    "hall": ["kitchen", "garden", "attic"],
    "kitchen": ["hall", "cellar"],
    "cellar": ["kitchen"],
    "garden": ["hall"],
    "attic": ["hall"],
}
START: dict[str, str] = {
    "lamp": "attic", "key": "garden", "rope": "hall", "apple": "kitchen", "book": "attic", "coin": "cellar",
}  # fmt: skip
HANDS = 2


class House(qn.State):
    items: dict[str, str]
    """Room of each item, "hand", or "eaten"."""
    room: Room = "hall"

    def dark(self) -> bool:
        return self.room == "cellar" and self.items["lamp"] not in ("hand", "cellar")

    def held(self) -> list[str]:
        return sorted(item for item, place in self.items.items() if place == "hand")

    @qn.tool
    def look(self) -> str:
        """Look around in the room: doors, and what lies here. The cellar is dark unless the lamp is in it.

        A goat stands in the garden and eats an apple or a book as soon as it lies there.
        """
        here = ", ".join(sorted(item for item, place in self.items.items() if place == self.room))
        seen = "It is too dark to see what lies here." if self.dark() else f"Here lies: {here or 'nothing'}."
        goat = " A goat looks at you." if self.room == "garden" else ""
        return f"You are in the {self.room}. {seen}{goat} Doors lead to: {', '.join(DOORS[self.room])}."

    @qn.tool
    def hands(self) -> list[str]:
        """Tell what you hold, sorted."""
        return self.held()

    @qn.tool
    def go(self, room: Room) -> str:
        """Go through a door. The door from the kitchen to the cellar opens only with the key in hand; you may come
        back without it.

        Args:
            room: The room behind a door of this one.
        """
        if room not in DOORS[self.room]:
            raise qn.ToolError(f"no door leads from the {self.room} to the {room}")
        if room == "cellar" and self.items["key"] != "hand":
            raise qn.ToolError("the cellar is locked; hold the key")
        self.room = room
        return self.look()

    @qn.tool
    def take(self, item: Item) -> str:
        """Take an item that lies in this room; you have two hands, one for each. In the dark you find nothing.

        Args:
            item: The item.
        """
        if self.items[item] != self.room:
            raise qn.ToolError(f"no {item} lies here")
        if self.dark():
            raise qn.ToolError("it is too dark to find anything")
        if len(self.held()) == HANDS:
            raise qn.ToolError(f"your hands are full: {' and '.join(self.held())}")
        self.items[item] = "hand"
        return f"you hold {' and '.join(self.held())}"

    @qn.tool
    def drop(self, item: Item) -> str:
        """Lay down an item that you hold. What the goat in the garden eats is gone.

        Args:
            item: The item.
        """
        if self.items[item] != "hand":
            raise qn.ToolError(f"you do not hold the {item}")
        if self.room == "garden" and item in ("apple", "book"):
            self.items[item] = "eaten"
            return f"the goat has eaten the {item}"
        self.items[item] = self.room
        return f"the {item} lies in the {self.room}"


Call = tuple[str, dict[str, object]]


def walk(text: str) -> list[Call]:
    """Returns the calls of a walk such as "go attic, take lamp"."""
    names = {"go": "room", "take": "item", "drop": "item"}
    return [(verb, {names[verb]: what}) for verb, what in (step.split() for step in text.split(", "))]


LONG = (
    "go garden, take key, go hall, go attic, take lamp, go hall, go kitchen, go cellar, drop key, take coin, "
    "drop lamp, go kitchen, drop coin"
)
# Each: what is asked for, items that are elsewhere at the end, a walk that does it.
JOBS: list[tuple[str, dict[str, str], str]] = [
    ("Bring the rope to the attic and lay it down there.", {"rope": "attic"}, "take rope, go attic, drop rope"),
    ("Bring lamp and book to the kitchen, and lay both down there.", {"lamp": "kitchen", "book": "kitchen"},
     "go attic, take lamp, take book, go hall, go kitchen, drop lamp, drop book"),
    ("Feed the apple to the goat.", {"apple": "eaten"}, "go kitchen, take apple, go hall, go garden, drop apple"),
    ("Lay the coin down in the kitchen. Key and lamp must lie in the cellar at the end.",
     {"coin": "kitchen", "key": "cellar", "lamp": "cellar"},
     LONG),
    ("Bring the key to the hall and hold nothing at the end.", {"key": "hall"},
     "go garden, take key, go hall, drop key"),
    ("Swap the places of rope and book: the rope lies in the attic, the book in the hall.",
     {"rope": "attic", "book": "hall"}, "take rope, go attic, drop rope, take book, go hall, drop book"),
]  # fmt: skip
RULE = (
    "You stand in the hall with two empty hands; rope: hall, lamp and book: attic, apple: kitchen, key: garden, coin: "
    "cellar. You are judged by where all items are at the end; those that are not named must lie where they lie now. "
    "Where you stand and how many steps you take does not count."
)


def tasks(split: str) -> list[qn.Task[House]]:
    return [
        qn.Task(
            id=f"{split}-{n}",
            prompt=f"{prompt} {RULE}",
            start=House(items=dict(START)),
            truth=START | moved,
            solution=tuple(walk(steps)),
        )
        for n, (prompt, moved, steps) in enumerate(JOBS, 1)
    ]


@qn.reward
def in_place(view: qn.EpisodeView[House]) -> qn.Score:
    wrong = [item for item, place in view.state.items.items() if place != view.task.truth[item]]
    return qn.Score(float(not wrong), f"elsewhere: {', '.join(wrong) or 'nothing'}")


@qn.reward(level="turn", low=-1, high=1)
def closer(view: qn.TurnView[House]) -> float:
    """The share of items that came to their places in a turn, less those that left them."""
    before, after = (
        sum(bool(place == view.task.truth[item]) for item, place in world.items.items())
        for world in (view.before, view.after)
    )
    return (after - before) / len(START)


@qn.phase()
def something_held(view: qn.TurnView[House]) -> bool:
    return bool(view.after.held())


@qn.phase(after="something_held")
def something_placed(view: qn.TurnView[House]) -> bool:
    return any(place == view.task.truth[item] != START[item] for item, place in view.after.items.items())


env = qn.Environment(
    "house",
    tasks=tasks,
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(in_place, closer, something_held, something_placed),
    state=House,
    splits=("test",),
)
