"""Subjects of the tests of what cannot be solved or is judged by accident: shops, forms and quizzes, sound and not."""

from __future__ import annotations

import random
import time
from typing import Any, ClassVar


def _schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


TEXT, NUMBER, WHOLE = {"type": "string"}, {"type": "number"}, {"type": "integer"}


class Garage:
    """A car is booked in for a service: its plate is known to the owner, its price to the list."""

    SCHEMAS: ClassVar[dict[str, Any]] = {
        "get_owner": _schema(name=TEXT),
        "list_prices": _schema(),
        "book_service": _schema(plate=TEXT, price=WHOLE, helpers={"type": "array", "items": TEXT}),
    }

    def __init__(self) -> None:
        self.number, self.calls, self.seed = 0, 0, 0
        self.booked: list[dict[str, Any]] = []

    def tasks(self) -> list[str]:
        return [f"service {number}" for number in range(8)]

    def tools(self) -> list[dict[str, Any]]:
        return [{"name": name, "description": "", "parameters": schema} for name, schema in self.SCHEMAS.items()]

    def owner(self, number: int) -> str:
        return ["Ada", "Bo", "Cleo", "Dov", "Eve", "Fil", "Gus", "Hal"][number]

    def plate(self, number: int) -> str:
        return f"ZH{random.Random(number).randrange(10**5, 10**6)}"

    def price(self, number: int) -> int:
        return random.Random(f"price {number}").randrange(100, 9000)

    def prompt(self, task: str) -> str:
        number = int(task[-1])
        return f"Book the car of {self.owner(number)} in, for {self.price(number)}, with the helpers Kim and Lou."

    def reset(self, task: str, seed: int) -> str:
        self.number, self.booked, self.calls, self.seed = int(task[-1]), [], 0, seed
        return self.prompt(task)

    def details(self, number: int) -> dict[str, Any]:
        return {"name": self.owner(number), "plate": self.plate(number)}

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        self.calls += 1
        if name == "get_owner":
            there = [number for number in range(8) if self.owner(number) == arguments["name"]]
            return self.details(there[0]) if there else {"error": "no such owner"}
        if name == "list_prices":
            return {"prices": [90, 120]}
        if name == "book_service":
            return self.book(arguments)
        return {"error": f"no such tool: {name}"}

    def book(self, arguments: dict[str, Any]) -> Any:
        self.booked.append(arguments)
        return {"ok": True}

    def state(self) -> Any:
        return {"booked": list(self.booked)}

    def oracle(self, task: str) -> list[Any]:
        number = int(task[-1])
        asked = {"plate": self.plate(number), "price": self.price(number), "helpers": ["Kim", "Lou"]}
        return [["get_owner", {"name": self.owner(number)}], ["book_service", asked]]

    def right(self) -> bool:
        wanted = (self.plate(self.number), self.price(self.number), ["Kim", "Lou"])
        return [(one["plate"], one["price"], sorted(one["helpers"])) for one in self.booked] == [wanted]

    def score(self) -> float:
        return float(self.right())


class NoPlate(Garage):
    """Garage in which one owner does not know the plate."""

    def details(self, number: int) -> dict[str, Any]:
        return {"name": self.owner(number)} if number == 2 else super().details(number)


class NoPrice(Garage):
    """Garage with one prompt without the price."""

    def prompt(self, task: str) -> str:
        return super().prompt(task).replace(f", for {self.price(5)}", "")


class FreePrice(NoPrice):
    """NoPrice that accepts any price."""

    def right(self) -> bool:
        return super().right() or (self.number == 5 and [one["plate"] for one in self.booked] == [self.plate(5)])


class Computed(Garage):
    """Garage in which one price is stated as a double, so that it can be computed."""

    def prompt(self, task: str) -> str:
        return super().prompt(task).replace(f"for {self.price(5)}", f"for twice {self.price(5) / 2:g}")


class Hasty(Garage):
    """Garage that pays nothing for more reads than the author made."""

    def right(self) -> bool:
        return super().right() and self.calls <= 3


class Declared(Hasty):
    """Hasty with its limit in the prompt."""

    def prompt(self, task: str) -> str:
        return f"{super().prompt(task)} Use at most 3 calls."


class Barred(Garage):
    """No price above 5000 may be named, and one is."""

    def tools(self) -> list[dict[str, Any]]:
        schema = _schema(plate=TEXT, price={"type": "integer", "maximum": 5000}, helpers={"type": "array"})
        found = super().tools()
        return [one | {"parameters": schema} if one["name"] == "book_service" else one for one in found]


class FullOnTuesdays(Garage):
    """Under some seeds the garage is full."""

    def book(self, arguments: dict[str, Any]) -> Any:
        if self.seed % 3 == 2 and self.number % 4 == 0:
            return {"error": "the garage is full"}
        return super().book(arguments)


class OneBad(Garage):
    """Garage with graded rewards that pays the right work of one task in part."""

    graded = True

    def score(self) -> float:
        return 0.8 * super().score() if self.number == 3 else super().score()


class Misled(Garage):
    """Garage with one prompt that names another price than the paid one."""

    def prompt(self, task: str) -> str:
        return super().prompt(task).replace(f"for {self.price(5)}", "for 98765")


class Short(Garage):
    """Garage that closes after as many calls as its author made, without notice."""

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        return super().call(name, arguments) if self.calls < 2 else {"error": "the garage is closed"}


class Same(Garage):
    """Garage in which every owner has the same car."""

    def details(self, number: int) -> dict[str, Any]:
        return super().details(3)

    def oracle(self, task: str) -> list[Any]:
        return super().oracle("service 3")

    def right(self) -> bool:
        return [(one["plate"], one["price"]) for one in self.booked] == [(self.plate(3), self.price(3))]


class Listed(Garage):
    """Helpers must be named in one order."""

    def right(self) -> bool:
        return super().right() and self.booked[0]["helpers"] == ["Kim", "Lou"]


class Early(Garage):
    """The first verdict is the last."""

    def reset(self, task: str, seed: int) -> str:
        self.first: float | None = None
        return super().reset(task, seed)

    def score(self) -> float:
        self.first = super().score() if self.first is None else self.first
        return self.first


class Late(Garage):
    """Garage that pays less after half a minute."""

    def reset(self, task: str, seed: int) -> str:
        self.begun = time.monotonic()
        return super().reset(task, seed)

    def score(self) -> float:
        return super().score() / (1 if time.monotonic() - self.begun < 30 else 2)


class Moody(Garage):
    """Garage of which one session in four fails."""

    def reset(self, task: str, seed: int) -> str:
        self.mood = random.random() > 0.25
        return super().reset(task, seed)

    def score(self) -> float:
        return super().score() * self.mood


class Sums:
    """Numbers are read, added up by a tool, and the sum is handed in."""

    PLACES = 0
    SCHEMAS: ClassVar[dict[str, Any]] = {
        "read_list": _schema(name=TEXT),
        "calculate": _schema(left=NUMBER, right=NUMBER),
        "submit": _schema(answer=TEXT),
    }

    def __init__(self) -> None:
        self.number, self.said = 0, ""

    def tasks(self) -> list[str]:
        return [f"sum {number}" for number in range(8)]

    def tools(self) -> list[dict[str, Any]]:
        return [{"name": name, "description": "", "parameters": schema} for name, schema in self.SCHEMAS.items()]

    def pair(self, number: int) -> list[float]:
        dice = random.Random(f"pair {number}")
        return [round(dice.uniform(10, 9000), self.PLACES) for _ in range(2)]

    def gold(self, number: int) -> str:
        return f"{sum(self.pair(number)):.{self.PLACES}f}"

    def reset(self, task: str, seed: int) -> str:
        self.number, self.said = int(task[-1]), ""
        return f"What is the sum of list L{self.number}0?"

    def computed(self, left: float, right: float) -> float:
        return round(left + right, 4)

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        if name == "read_list":
            return {"numbers": self.pair(int(arguments["name"][1]))}
        if name == "calculate":
            return {"result": self.computed(arguments["left"], arguments["right"])}
        self.said = arguments["answer"]
        return {"ok": True}

    def oracle(self, task: str) -> list[Any]:
        left, right = self.pair(int(task[-1]))
        look = ["read_list", {"name": f"L{task[-1]}0"}]
        return [look, ["calculate", {"left": left, "right": right}], ["submit", {"answer": self.gold(int(task[-1]))}]]

    def score(self) -> float:
        try:
            return float(abs(float(self.said) - float(self.gold(self.number))) < 1e-6)
        except ValueError:
            return 0.0


class OldGold(Sums):
    """The answer of one task is the first number alone."""

    def gold(self, number: int) -> str:
        return f"{self.pair(number)[0]:.{self.PLACES}f}" if number == 6 else super().gold(number)


class Coarse(Sums):
    """The tool gives tens where the answer needs units."""

    PLACES = 3

    def computed(self, left: float, right: float) -> float:
        return round(left + right, 1)


class Fine(Coarse):
    """So it does, and such an answer is right."""

    def score(self) -> float:
        return float(bool(self.said) and abs(float(self.said) - float(self.gold(self.number))) < 0.06)


class Uneven(Sums):
    """Long texts are compared as text, short ones as numbers."""

    def score(self) -> float:
        return float(self.said == self.gold(self.number)) if self.number == 4 else super().score()


class Strict(Sums):
    """All are compared as text: strict, and the same for all."""

    def score(self) -> float:
        return float(self.said == self.gold(self.number))


class Marked(Strict):
    """The lists write marks between thousands, and an answer must not."""

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        if name == "read_list":
            return {"numbers": " and ".join(f"{one:,.0f}" for one in self.pair(int(arguments["name"][1])))}
        return super().call(name, arguments)


class Lenient(Marked):
    """Any spelling will do."""

    def score(self) -> float:
        said = self.said.strip().rstrip(".").replace(",", "")
        return float(bool(said) and float(said) == float(self.gold(self.number)))


class Unfiled(Sums):
    """Sums of which one list is missing."""

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        is_there = arguments.get("name") != "L50"
        return super().call(name, arguments) if is_there else {"error": "no such list"}


class Twins(Sums):
    """Sums with two tasks of equal prompts and reads that want different things."""

    def state(self) -> Any:
        return {"said": self.said}

    def tasks(self) -> list[str]:
        return ["sum 1", "sum 2"]

    def pair(self, number: int) -> list[float]:
        return [3.0, 4.0]

    def gold(self, number: int) -> str:
        return "7" if number == 1 else "12"

    def reset(self, task: str, seed: int) -> str:
        super().reset(task, seed)
        return "What is the sum of list L10?"

    def oracle(self, task: str) -> list[Any]:
        return [["read_list", {"name": "L10"}], ["submit", {"answer": self.gold(int(task[-1]))}]]


class Lamps:
    """Lamps to be lit, each in its room; nothing is offered but what must be there."""

    def tasks(self) -> list[str]:
        return ["hall", "attic", "cellar"]

    def tools(self) -> list[dict[str, Any]]:
        schemas = {"look": _schema(), "light": _schema(room={"type": "string", "enum": self.tasks()})}
        return [{"name": name, "description": name, "parameters": schema} for name, schema in schemas.items()]

    def reset(self, task: str, seed: int) -> str:
        dice = random.Random(f"{task} {seed}")
        self.task = task
        self.lit = {room: dice.random() < self.share(room) for room in self.tasks()}
        return f"Light the lamp in the {task}."

    def share(self, room: str) -> float:
        return 0.0 if room == self.task else 0.5

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        if name == "light" and arguments.get("room") in self.lit:
            self.lit[arguments["room"]] = True
            return {"ok": True}
        return dict(self.lit) if name == "look" and not arguments else {"error": "unknown tool or wrong arguments"}

    def score(self) -> float:
        return float(self.lit[self.task])


class LitBefore(Lamps):
    """Lamps of which a share burns at the start."""

    def share(self, room: str) -> float:
        return 0.3
