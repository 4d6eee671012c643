"""Sound subjects whose design looks like a bug: tolerances, filters, caches, logins, verdicts that come at the end."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import msgspec

from tests.audit.checks._sound_subjects import TEXT, WHOLE, Base, ToolError, tool


class Clients(Base):
    """Orders of clients who are found by three words of the prompt; the solution names the order at once."""

    ROWS = (("Ana", "Silva", "77159"), ("Bo", "Lind", "10423"), ("Cy", "Hart", "30911"), ("Di", "Moss", "55120"))

    def tasks(self) -> list[str]:
        return [f"cancel {n}" for n in range(4)]

    def tools(self) -> list[dict[str, Any]]:
        return [
            tool("find_client", "Find a client's id.", first_name=TEXT, last_name=TEXT, zip_code=TEXT),
            tool("get_client", "Show a client with his orders.", client_id=TEXT),
            tool("cancel_order", "Cancel an order.", order_id=TEXT),
        ]

    def reset(self, task: str, seed: int) -> str:
        self.task = task
        clients = {
            f"{first.lower()}_{last.lower()}_{8213 + 977 * n}": {
                "name": [first, last], "zip": place, "orders": [f"#W{48219371 + 771373 * n}"],
            }
            for n, (first, last, place) in enumerate(self.ROWS)
        }  # fmt: skip
        self.world = {"clients": clients, "cancelled": []}
        first, last, place = self.ROWS[int(task[-1])]
        return f"You are {first} {last}, you live in {place}, and you want your order cancelled."

    def _find_client(self, first_name: str, last_name: str, zip_code: str) -> str:
        for key, row in self.world["clients"].items():
            if row["name"] == [first_name, last_name] and row["zip"] == zip_code:
                return str(key)
        raise ToolError("no such client")

    def _get_client(self, client_id: str) -> Any:
        return self.world["clients"][client_id]

    def _cancel_order(self, order_id: str) -> Any:
        if not any(order_id in row["orders"] for row in self.world["clients"].values()):
            raise ToolError("no such order")
        self.world["cancelled"].append(order_id)
        return {"ok": True}

    def oracle(self, task: str) -> list[Any]:
        return [["cancel_order", {"order_id": f"#W{48219371 + 771373 * int(task[-1])}"}]]

    def score(self) -> float:
        return float(self.world["cancelled"] == [self.oracle(self.task)[0][1]["order_id"]])


class Acting(Base):
    """Reports of people; whoever is logged in is a field of the state and no record."""

    def tasks(self) -> list[str]:
        return [f"submit R{n}" for n in range(4)]

    def tools(self) -> list[dict[str, Any]]:
        role = {"type": "string", "enum": ["employee", "manager"]}
        return [tool("submit", "Submit a report.", report=TEXT), tool("act_as", "Take a role.", role=role)]

    def reset(self, task: str, seed: int) -> str:
        self.task = task
        self.world = {
            "role": "employee",
            "reports": {f"R{n}": {"title": f"Fair {n}", "status": "draft"} for n in range(6)},
        }
        return f"Submit report {task[-2:]}. Change no other report; your role at the end does not matter."

    def _submit(self, report: str) -> str:
        self.world["reports"][report]["status"] = "submitted"
        return "submitted"

    def _act_as(self, role: str) -> str:
        if role not in ("employee", "manager"):
            raise ToolError(f"role must be employee or manager, got {role!r}")
        self.world["role"] = role
        return f"you act as {role}"

    def oracle(self, task: str) -> list[Any]:
        return [["submit", {"report": task[-2:]}]]

    def score(self) -> float:
        done = [key for key, row in self.world["reports"].items() if row["status"] == "submitted"]
        return float(done == [self.task[-2:]])


class Sums:
    """Questions whose answers are compared as numbers, however they are written."""

    GOLD = {"half of one": "1/2", "one by two": "0.5", "a quarter": "1/4", "five plus five": "ten", "two to one": "2"}
    WORDS = {"ten": Fraction(10), "two": Fraction(2)}

    def tasks(self) -> list[str]:
        return list(self.GOLD)

    def reset(self, task: str, seed: int) -> str:
        self.task, self.said = task, ""
        return f"How much is {task}?"

    def answer(self, text: str) -> None:
        self.said = text

    def oracle(self, task: str) -> list[Any]:
        return [{"answer": self.GOLD[task]}]

    def value(self, text: str) -> Fraction | None:
        try:
            return self.WORDS.get(text.strip()) or Fraction(text.strip())
        except (ValueError, ZeroDivisionError):
            return None

    def score(self) -> float:
        return float(self.value(self.said) is not None and self.value(self.said) == self.value(self.GOLD[self.task]))


class Lengths(Sums):
    """Measured lengths, right within one part in a hundred on both sides."""

    GOLD = {"bridge": "128", "tower": "312", "tunnel": "1530", "pole": "41.5"}

    def score(self) -> float:
        try:
            return float(abs(float(self.said) - (gold := float(self.GOLD[self.task]))) <= 0.01 * gold)
        except ValueError:
            return 0.0


class Rooms(Base):
    """Rooms of a city that have a bed left; the full ones are not listed."""

    def tasks(self) -> list[str]:
        return [f"book {n}" for n in range(3)]

    def tools(self) -> list[dict[str, Any]]:
        return [tool("find_rooms", "Find rooms in a city.", city=TEXT), tool("book", "Book a room.", room_id=TEXT)]

    def reset(self, task: str, seed: int) -> str:
        self.task = task
        cities = ("Oslo", "Bern", "Rome", "Bonn", "Nice")
        beds = {f"R{n}": {"id": f"R{n}", "city": cities[n % 5], "beds": 5 + n % 7, "taken": n % 4} for n in range(30)}
        for n in (17, 23):
            beds[f"R{n}"]["taken"] = beds[f"R{n}"]["beds"]
        self.world = {"rooms": beds}
        return f"Book R{task[-1]}."

    def _find_rooms(self, city: str) -> Any:
        rows = self.world["rooms"].values()
        return [{"id": one["id"]} for one in rows if one["city"] == city and one["taken"] < one["beds"]]

    def _book(self, room_id: str) -> Any:
        self.world["rooms"][room_id]["taken"] += 1
        return {"ok": True}

    def oracle(self, task: str) -> list[Any]:
        cities = ("Oslo", "Bern", "Rome")
        return [["find_rooms", {"city": cities[int(task[-1])]}], ["book", {"room_id": f"R{task[-1]}"}]]

    def score(self) -> float:
        n = int(self.task[-1])
        return float(self.world["rooms"][f"R{n}"]["taken"] == n % 4 + 1)


class Ends(Base):
    """A game without a solution that has a verdict at its end only."""

    def tasks(self) -> list[str]:
        return ["game"]

    def tools(self) -> list[dict[str, Any]]:
        return [tool("step", "Take a step.", way={"type": "string", "enum": ["left", "right"]})]

    def reset(self, task: str, seed: int) -> str:
        self.world = {"at": 0, "steps": 0}
        return "Get to the right."

    def _step(self, way: str) -> Any:
        self.world = {"at": self.world["at"] + (1 if way == "right" else -1), "steps": self.world["steps"] + 1}
        return dict(self.world)

    def score(self) -> float | None:
        return float(self.world["at"] > 0) if self.world["steps"] >= 5 else None


class Cached(Base):
    """Accounts that are read through a cache in the world, which every write keeps up to date."""

    def tasks(self) -> list[str]:
        return ["A1", "A2", "A3"]

    def tools(self) -> list[dict[str, Any]]:
        return [
            tool("get_account", "Show an account.", account=TEXT),
            tool("close_account", "Close an account.", account=TEXT),
            tool("raise_limit", "Raise the limit.", account=TEXT, limit=WHOLE),
        ]

    def reset(self, task: str, seed: int) -> str:
        self.task = task
        accounts = {f"A{n}": {"owner": f"owner {n}", "limit": 100 * n, "open": True} for n in range(1, 7)}
        self.world = {"accounts": accounts, "cache": {}}
        return f"Raise the limit of {task} to 900. Change nothing else."

    def _get_account(self, account: str) -> Any:
        if account not in self.world["cache"]:
            self.world["cache"][account] = dict(self.world["accounts"][account])
        return self.world["cache"][account]

    def _write(self, account: str, **fields: Any) -> Any:
        self.world["accounts"][account] |= fields
        self.world["cache"].pop(account, None)
        return {"ok": True}

    def _close_account(self, account: str) -> Any:
        return self._write(account, open=False)

    def _raise_limit(self, account: str, limit: int) -> Any:
        return self._write(account, limit=limit)

    def oracle(self, task: str) -> list[Any]:
        return [["get_account", {"account": task}], ["raise_limit", {"account": task, "limit": 900}]]

    def score(self) -> float:
        limits = {key: (row["limit"], row["open"]) for key, row in self.world["accounts"].items()}
        wanted = {f"A{n}": (100 * n, True) for n in range(1, 7)} | {self.task: (900, True)}
        return float(limits == wanted)


class StaleCached(Cached):
    """The same with a bug: closing forgets the cache, raising a limit does not."""

    def _raise_limit(self, account: str, limit: int) -> Any:
        self.world["accounts"][account]["limit"] = limit
        return {"ok": True}


class Squares(Base):
    """A calculator without a largest integer, as Python and JSON have none."""

    def tasks(self) -> list[str]:
        return ["7", "12", "30"]

    def tools(self) -> list[dict[str, Any]]:
        return [tool("square", "Multiply a number by itself.", number={"type": "integer"})]

    def reset(self, task: str, seed: int) -> str:
        self.task, self.world = task, {"last": 0}
        return f"Square {task}."

    def _square(self, number: Any) -> Any:
        if not isinstance(number, int):
            raise ToolError("number must be an integer")
        self.world["last"] = number * number
        return {"result": self.world["last"]}

    def oracle(self, task: str) -> list[Any]:
        return [["square", {"number": int(task)}]]

    def score(self) -> float:
        return float(self.world["last"] == int(self.task) ** 2)


class Forms(Squares):
    """A prompt that shows the form of a call with placeholders."""

    def reset(self, task: str, seed: int) -> str:
        super().reset(task, seed)
        return f"Square {task}. Write calls as tool_name(arg_name=value), and use snake_case for names."


class Returns(Base):
    """Orders that can be returned for 30 days; a refusal says how many have passed."""

    def tasks(self) -> list[str]:
        return ["11", "12", "13"]

    def tools(self) -> list[dict[str, Any]]:
        number = {"type": "integer", "minimum": 1}
        return [tool("get_order", "Show an order.", order=number), tool("return_order", "Return it.", order=number)]

    def reset(self, task: str, seed: int) -> str:
        self.task = task
        self.world = {"orders": {str(n): {"days": (n * 17) % 60, "returned": False} for n in range(1, 41)}}
        self.world["orders"][task]["days"] = 5
        return f"Return order {task}."

    def _get_order(self, order: int) -> Any:
        return self.world["orders"][str(order)]

    def _return_order(self, order: int) -> Any:
        if (row := self.world["orders"][str(order)])["days"] > 30:
            raise ToolError(f"order {order} came more than 30 days ago")
        row["returned"] = True
        return {"ok": True}

    def oracle(self, task: str) -> list[Any]:
        return [["get_order", {"order": int(task)}], ["return_order", {"order": int(task)}]]

    def score(self) -> float:
        return float([key for key, row in self.world["orders"].items() if row["returned"]] == [self.task])


class Kept(msgspec.Struct):
    """Struct that copies its defaults for each instance."""

    rows: list[str] = []


class Log(Kept):
    """Struct of a struct."""

    more: dict[str, int] = {}

    def add(self, text: str) -> None:
        self.rows.append(text)
        self.more[text] = len(self.rows)


class Structs(Base):
    """A world in a struct with mutable defaults."""

    def tasks(self) -> list[str]:
        return ["a", "b"]

    def tools(self) -> list[dict[str, Any]]:
        return [tool("add", "Add a word.", text=TEXT)]

    def reset(self, task: str, seed: int) -> str:
        self.task, self.log = task, Log()
        return f"Add {task}."

    def _add(self, text: str) -> Any:
        self.log.add(text)
        return {"ok": True}

    def state(self) -> Any:
        return json.loads(msgspec.json.encode(self.log))

    def oracle(self, task: str) -> list[Any]:
        return [["add", {"text": task}]]

    def score(self) -> float:
        return float(self.log.rows == [self.task])


class Diary(Base):
    """A diary whose events are content. The sound verdict wants the event; that of `Blind` wants the message only."""

    def tasks(self) -> list[str]:
        return ["lunch", "swim", "talk"]

    def tools(self) -> list[dict[str, Any]]:
        add = tool("add_event", "Add an event.", title=TEXT, day=WHOLE)
        return [add, tool("send_message", "Tell a friend.", text=TEXT)]

    def reset(self, task: str, seed: int) -> str:
        self.task, self.world = task, {"events": {"E0": {"title": "old", "day": 1}}, "messages": {}}
        return f"Add the event {task} on day 12, and send the message 'See you at {task}'."

    def _add_event(self, title: str, day: int) -> Any:
        self.world["events"][f"E{len(self.world['events'])}"] = {"title": title, "day": day}
        return {"ok": True}

    def _send_message(self, text: str) -> Any:
        self.world["messages"][f"M{len(self.world['messages'])}"] = {"text": text}
        return {"ok": True}

    def oracle(self, task: str) -> list[Any]:
        return [["add_event", {"title": task, "day": 12}], ["send_message", {"text": f"See you at {task}"}]]

    def score(self) -> float:
        events = [row for row in self.world["events"].values() if row == {"title": self.task, "day": 12}]
        return float(len(events) == 1 and self.is_told())

    def is_told(self) -> bool:
        return [row["text"] for row in self.world["messages"].values()] == [f"See you at {self.task}"]


class Blind(Diary):
    """The diary with a bug: no event is wanted."""

    def score(self) -> float:
        return float(self.is_told())


class Unreadable(Diary):
    """The diary with a bug: its state cannot be read after a message."""

    def state(self) -> Any:
        if self.world["messages"]:
            raise RuntimeError("no serializer for a message")
        return super().state()
