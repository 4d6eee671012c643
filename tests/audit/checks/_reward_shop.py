"""Subjects of the tests of the checks that change a solution: a shop, a tutor, a workshop; sound, and with faults."""

from __future__ import annotations

import copy
import re
from typing import Any


class ToolError(Exception):
    """Error for a request that cannot be met."""


def tool(name: str, about: str, **properties: Any) -> dict[str, Any]:
    required = [key for key, schema in properties.items() if "default" not in schema]
    return {
        "name": name,
        "description": about,
        "parameters": {"type": "object", "properties": properties, "required": required},
    }


TEXT, WHOLE = {"type": "string"}, {"type": "integer", "minimum": 1, "maximum": 1000}
HIDDEN = {"type": "boolean", "default": False}


class Base:
    """Tools are methods; the world is a dict."""

    def __init__(self) -> None:
        self.task = ""
        self.world: dict[str, Any] = {}
        self.start: dict[str, Any] = {}

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        try:
            return getattr(self, f"_{name}")(**arguments)
        except (KeyError, TypeError, AttributeError) as error:
            raise ToolError(str(error)) from error

    def state(self) -> Any:
        return copy.deepcopy(self.world)

    def snapshot(self) -> Any:
        return copy.deepcopy(vars(self))

    def restore(self, saved: Any) -> None:
        vars(self).update(copy.deepcopy(saved))


class Shop(Base):
    """Pack each line of an order, send it, and leave a note that the customer sees; any clerk may sign."""

    def tasks(self) -> list[str]:
        return ["P-101", "P-104", "P-107"]

    def tools(self) -> list[dict[str, Any]]:
        return [
            tool("get_order", "Show an order.", order_id=TEXT),
            tool("pack", "Pack a line of an open order.", order_id=TEXT, item=TEXT, count=WHOLE),
            tool("send_order", "Send it.", order_id=TEXT),
            tool("call_back", "Have a sent order come back.", order_id=TEXT),
            tool("move_money", "Pay.", source=TEXT, target=TEXT, cents=WHOLE),
            tool("add_note", "Leave a note.", order_id=TEXT, text=TEXT, visible=HIDDEN),
        ]

    def lines(self, number: int) -> dict[str, int]:
        return {f"item{(number + step) % 7}": 2 + (number * step) % 5 for step in (1, 2)}

    def reset(self, task: str, seed: int) -> str:
        self.task = task
        numbers = range(101, 109)
        status = {n: "held" if n % 4 == 2 else "open" for n in numbers}
        orders: dict[str, Any] = {
            f"P-{n}": {"status": status[n], "lines": self.lines(n), "packed": {}, "notes": []} for n in numbers
        }
        self.world = {"orders": orders, "accounts": {f"A-{n}": {"cents": 5000} for n in range(301, 306)}}
        self.start = copy.deepcopy(self.world)
        return (
            f"Pack every line of order {task}, send it, pay {self.due} cents from A-301 to A-302, and leave a visible "
            f"note that says exactly: {self.note}"
        )

    @property
    def due(self) -> int:
        return 200 + int(self.task[2:])

    @property
    def note(self) -> str:
        return f"Your order {self.task} is on its way."

    def _get_order(self, order_id: str) -> Any:
        return copy.deepcopy(self.world["orders"][order_id])

    def _pack(self, order_id: str, item: str, count: int) -> Any:
        order = self.world["orders"][order_id]
        if self.refuses(order) or order["lines"].get(item) != count:
            raise ToolError("that cannot be packed")
        order["packed"][item] = count
        return {"ok": True}

    def refuses(self, order: Any) -> bool:
        return bool(order["status"] != "open")

    def _send_order(self, order_id: str) -> Any:
        order = self.world["orders"][order_id]
        if order["packed"] != order["lines"]:
            raise ToolError("not all is packed")
        order["status"] = "sent"
        return {"ok": True}

    def _call_back(self, order_id: str) -> Any:
        order = self.world["orders"][order_id]
        if order["status"] != "sent":
            raise ToolError("it is here")
        order["status"] = "returned"
        return {"ok": True}

    def _move_money(self, source: str, target: str, cents: int) -> Any:
        accounts = self.world["accounts"]
        accounts[target]["cents"] += cents
        accounts[source]["cents"] -= cents
        return {"ok": True}

    def _add_note(self, order_id: str, text: str, visible: bool = False) -> Any:
        self.world["orders"][order_id]["notes"].append({"text": text, "visible": visible})
        return {"ok": True}

    def wanted(self) -> Any:
        wanted = copy.deepcopy(self.start)
        wanted["orders"][self.task] |= {
            "status": "sent",
            "packed": self.lines(int(self.task[2:])),
            "notes": [{"text": self.note, "visible": True}],
        }
        wanted["accounts"]["A-301"]["cents"] -= self.due
        wanted["accounts"]["A-302"]["cents"] += self.due
        return wanted

    def score(self) -> float:
        return float(self.world == self.wanted())

    def oracle(self, task: str) -> list[Any]:
        number = int(task[2:])
        packs = [
            ["pack", {"order_id": task, "item": item, "count": count}] for item, count in self.lines(number).items()
        ]
        paid = ["move_money", {"source": "A-301", "target": "A-302", "cents": 200 + number}]
        said = ["add_note", {"order_id": task, "text": f"Your order {task} is on its way.", "visible": True}]
        return [["get_order", {"order_id": task}], *packs, ["send_order", {"order_id": task}], paid, said]


class HiddenNote(Shop):
    """Shop that pays the same for an invisible note."""

    def score(self) -> float:
        seen = copy.deepcopy(self.world)
        for order in seen["orders"].values():
            for note in order["notes"]:
                note["visible"] = True
        return float(seen == self.wanted())


class AnyWay(Shop):
    """Shop that ignores which account pays which."""

    def score(self) -> float:
        changed = {key: abs(one["cents"] - 5000) for key, one in self.world["accounts"].items()}
        wanted = {key: abs(one["cents"] - 5000) for key, one in self.wanted()["accounts"].items()}
        return float(changed == wanted and self.world["orders"] == self.wanted()["orders"])


class MoreIsFine(Shop):
    """More money than was asked for is as good, and so is money that moved twice."""

    def score(self) -> float:
        paid = 5000 - self.world["accounts"]["A-301"]["cents"]
        return float(paid >= self.due and self.world["orders"] == self.wanted()["orders"])


class AnyOrder(Shop):
    """Some order was sent."""

    def score(self) -> float:
        sent = [one for one in self.world["orders"].values() if one["status"] == "sent"]
        noted = [one for one in self.world["orders"].values() if one["notes"]]
        return float(len(sent) == 1 and len(noted) == 1 and self.world["accounts"] == self.wanted()["accounts"])


class Returned(Shop):
    """Sent is what once was sent."""

    def score(self) -> float:
        seen = copy.deepcopy(self.world)
        for order in seen["orders"].values():
            order["status"] = "sent" if order["status"] == "returned" else order["status"]
        return float(seen == self.wanted())


class OthersAreFree(Shop):
    """Looks at the order and at the two accounts alone."""

    def score(self) -> float:
        order, wanted = self.world["orders"][self.task], self.wanted()
        both = all(self.world["accounts"][one] == wanted["accounts"][one] for one in ("A-301", "A-302"))
        return float(order == wanted["orders"][self.task] and both)


class HeldIsOpen(Shop):
    """An order that is held is packed all the same."""

    def refuses(self, order: Any) -> bool:
        return bool(order["status"] in ("sent", "returned"))


class HeldToo(HeldIsOpen):
    """An order that is held is packed as well, and the tool says so."""

    def tools(self) -> list[dict[str, Any]]:
        found = super().tools()
        found[1]["description"] = "Pack a line of an open order, or of one that is held."
        return found


class Tutor(Base):
    """Say what a customer owes and by when, and nothing else."""

    def tasks(self) -> list[str]:
        return [f"customer {number}" for number in range(1, 7)]

    def tools(self) -> list[dict[str, Any]]:
        return [tool("get_bill", "Show a bill.", customer=TEXT), tool("reply", "Write the answer.", message=TEXT)]

    def facts(self, task: str) -> list[str]:
        number = int(task[-1])
        return [f"{37.5 + 11 * number:.2f}", f"2030-05-1{number}"]

    def reset(self, task: str, seed: int) -> str:
        self.task, self.world = task, {"said": ""}
        return f"Tell {task} what the bill comes to and when it is due."

    def _get_bill(self, customer: str) -> Any:
        return dict(zip(("sum", "due"), self.facts(customer), strict=True))

    def _reply(self, message: str) -> Any:
        self.world["said"] = message
        return {"ok": True}

    def score(self) -> float:
        named = re.findall(r"\d{4}-\d\d-\d\d|\d+\.\d\d", self.world["said"])
        return float(set(named) == set(self.facts(self.task)))

    def oracle(self, task: str) -> list[Any]:
        amount, day = self.facts(task)
        return [["get_bill", {"customer": task}], ["reply", {"message": f"You owe {amount}, to be paid by {day}."}]]


class EverythingNamed(Tutor):
    """The right facts stand somewhere in the answer."""

    def score(self) -> float:
        return float(all(fact in self.world["said"] for fact in self.facts(self.task)))


class Unread(Tutor):
    """Any answer will do, which is a fault of another kind."""

    def score(self) -> float:
        return float(bool(self.world["said"]))


class Workshop(Base):
    """Two tables of numbers in one file; one sum is wrong."""

    FILE = "sums.txt"

    def tasks(self) -> list[str]:
        return ["first", "second"]

    def tools(self) -> list[dict[str, Any]]:
        return [
            tool("read_file", "Show it.", path=TEXT),
            tool("write_file", "Write it.", path=TEXT, content=TEXT),
            tool("replace", "Put one text in the place of another.", path=TEXT, old=TEXT, new=TEXT),
            tool("run_tests", "Check the sums."),
        ]

    def text(self, wrong: str) -> str:
        return "\n\n".join(
            f"def {name}(a, b):\n    # the sum\n    return {'a - b' if name == wrong else 'a + b'}"
            for name in ("first", "second", "third")
        )

    def reset(self, task: str, seed: int) -> str:
        self.task, self.world = task, {"files": {self.FILE: {"content": self.text(task)}}}
        return f"Correct the function {task} in {self.FILE}."

    def _read_file(self, path: str) -> Any:
        return self.world["files"][path]["content"]

    def _write_file(self, path: str, content: str) -> Any:
        self.world["files"][path] = {"content": content}
        return {"ok": True}

    def _replace(self, path: str, old: str, new: str) -> Any:
        before = self.world["files"][path]["content"]
        if before.count(old) != 1:
            raise ToolError("it does not occur once")
        self.world["files"][path]["content"] = before.replace(old, new)
        return {"ok": True}

    def results(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for name in ("first", "second", "third"):
            body = re.search(rf"def {name}\(a, b\):\n    # the sum\n    return (.*)", self.source)
            said = body.group(1).strip() if body else None
            found[name] = "broken" if said not in ("a + b", "a - b") else "ok" if said == "a + b" else "wrong"
        return found

    @property
    def source(self) -> str:
        return str(self.world["files"].get(self.FILE, {}).get("content", ""))

    def _run_tests(self) -> Any:
        return self.results()

    def score(self) -> float:
        return float(set(self.results().values()) == {"ok"})

    def oracle(self, task: str) -> list[Any]:
        edit = {"path": self.FILE, "old": "    return a - b", "new": "    return a + b"}
        return [["read_file", {"path": self.FILE}], ["replace", edit], ["run_tests", {}]]


class BrokenPasses(Workshop):
    """Workshop in which a test that cannot run has not failed."""

    def score(self) -> float:
        return float("wrong" not in self.results().values())


class OneIsEnough(Workshop):
    """Only the function that was wrong is run."""

    def score(self) -> float:
        return float(self.results()[self.task] == "ok")


class Choices(Base):
    """Choose the one colour that fits; some fits two."""

    COLOURS = ("red", "green", "blue", "grey", "pink")

    def tasks(self) -> list[str]:
        return ["grass", "sky", "blood"]

    def tools(self) -> list[dict[str, Any]]:
        return [tool("submit", "Hand it in.", colour={"type": "string", "enum": list(self.COLOURS)})]

    def right(self, task: str) -> str:
        return {"grass": "green", "sky": "blue", "blood": "red"}[task]

    def reset(self, task: str, seed: int) -> str:
        self.task, self.world = task, {"said": ""}
        return f"What colour has {task}?"

    def _submit(self, colour: str) -> Any:
        self.world["said"] = colour
        return {"ok": True}

    def score(self) -> float:
        return float(self.world["said"] == self.right(self.task))

    def oracle(self, task: str) -> list[Any]:
        return [["submit", {"colour": self.right(task)}]]


class PinkIsFine(Choices):
    """Choices of which pink is right in every task."""

    def score(self) -> float:
        return max(super().score(), float(self.world["said"] == "pink"))
