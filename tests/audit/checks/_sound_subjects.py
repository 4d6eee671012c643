"""Sound subjects that look like faulty ones: a distinguishing word, free choices, ended or session-local data."""

from __future__ import annotations

import copy
from typing import Any

TEXT, WHOLE = {"type": "string"}, {"type": "integer", "minimum": 1, "maximum": 100000}


def tool(name: str, about: str, **properties: Any) -> dict[str, Any]:
    required = [key for key, schema in properties.items() if "default" not in schema]
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"name": name, "description": about, "parameters": parameters}


class ToolError(Exception):
    """Error for a request that cannot be met."""


class Base:
    """Tools are methods; the world is a dict."""

    def __init__(self) -> None:
        self.task = ""
        self.world: dict[str, Any] = {}

    def tools(self) -> list[dict[str, Any]]:
        raise NotImplementedError

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        if name not in {one["name"] for one in self.tools()}:
            raise ToolError(f"unknown tool {name!r}")
        try:
            return getattr(self, f"_{name}")(**arguments)
        except (KeyError, TypeError) as error:
            raise ToolError(str(error)) from error

    def state(self) -> Any:
        return copy.deepcopy(self.world)


class Orders(Base):
    """Each customer has two orders; the prompt says a word of the product of the one that is meant."""

    NAMES = ("Ada Lane", "Ben Hale", "Cara Nash", "Dana Reed")
    THINGS = ("Desk lamp 40W", "Garden chair", "Kettle 2l", "Wool blanket")
    SAID = ("lamp", "chair", "kettle", "blanket")

    def tasks(self) -> list[str]:
        return [f"refund {number}" for number in range(4)]

    def tools(self) -> list[dict[str, Any]]:
        return [tool("find_orders", "Find orders.", customer=TEXT), tool("refund", "Refund an order.", order=TEXT)]

    def reset(self, task: str, seed: int) -> str:
        self.task, number = task, int(task[-1])
        orders = {
            f"O{10 + 4 * n + step}": {"customer": name, "product": f"P-{(n + step) % 4}", "status": "paid"}
            for n, name in enumerate(self.NAMES)
            for step in (0, 1)
        }
        products = {f"P-{n}": {"title": title} for n, title in enumerate(self.THINGS)}
        self.world = {"orders": orders, "products": products}
        return f"{self.NAMES[number]} wants the {self.SAID[number]} refunded. Do it."

    def _find_orders(self, customer: str) -> Any:
        return [{"id": key, **row} for key, row in self.world["orders"].items() if row["customer"] == customer]

    def _refund(self, order: str) -> Any:
        self.world["orders"][order]["status"] = "refunded"
        return {"ok": True}

    def oracle(self, task: str) -> list[Any]:
        number = int(task[-1])
        return [["find_orders", {"customer": self.NAMES[number]}], ["refund", {"order": f"O{10 + 4 * number}"}]]

    def refunded(self) -> list[str]:
        return [key for key, row in self.world["orders"].items() if row["status"] == "refunded"]

    def score(self) -> float:
        return float(self.refunded() == [f"O{10 + 4 * int(self.task[-1])}"])


class Refunded(Orders):
    """Orders in which the other order of the same product is refunded already, so that it is not meant."""

    SAID = Orders.THINGS

    def reset(self, task: str, seed: int) -> str:
        prompt = super().reset(task, seed)
        for n in range(4):
            self.world["orders"][f"O{11 + 4 * n}"] |= {"product": f"P-{n}", "status": "refunded"}
        return prompt

    def score(self) -> float:
        mine = f"O{10 + 4 * int(self.task[-1])}"
        return float(self.refunded() == sorted([mine, *(f"O{11 + 4 * n}" for n in range(4))]))


class Asked(Orders):
    """Orders with a tool for questions to the customer."""

    SAID = ("one",) * 4

    def tools(self) -> list[dict[str, Any]]:
        return [*super().tools(), tool("ask_customer", "Ask the customer.", question=TEXT)]

    def _ask_customer(self, question: str) -> str:
        return f"I mean the {self.THINGS[int(self.task[-1])]}."


class Overdue(Orders):
    """Orders of which one is overdue at the third call, also at one that does nothing."""

    def tools(self) -> list[dict[str, Any]]:
        return [*super().tools(), tool("delete_order", "Delete a draft of an order.", order=TEXT)]

    def _delete_order(self, order: str) -> Any:
        return {"deleted": len([key for key in self.world["orders"] if key == f"draft of {order}"])}

    def reset(self, task: str, seed: int) -> str:
        prompt = super().reset(task, seed)
        self.world["clock"] = {"calls": {"number": 0}}
        self.world["orders"]["O11"]["promise"] = "open"
        return prompt

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        self.world["clock"]["calls"]["number"] += 1
        if self.world["clock"]["calls"]["number"] == 3:
            self.world["orders"]["O11"]["promise"] = "broken"
        return super().call(name, arguments)


class Over(Base):
    """Desk with ended reservations, a dispute that changes none, a fixed fee and a card outside the world."""

    def tasks(self) -> list[str]:
        return ["A1", "A2", "A3"]

    def tools(self) -> list[dict[str, Any]]:
        return [
            tool("dispute", "Raise a dispute about the total of an order.", order=TEXT),
            tool("take_fee", "Deducts the fee of an order from the balance.", order=TEXT),
            tool("pay_back", "Refund the money of an order to the card.", order=TEXT),
            tool("close_order", "Close an order and release all reservations of it.", order=TEXT),
        ]

    def reset(self, task: str, seed: int) -> str:
        self.task = task
        orders = {f"A{n}": {"customer": f"C{n}", "total": 100 + n, "fee": 3, "status": "open"} for n in range(1, 5)}
        held = {f"R{n}": {"order": f"A{1 + n % 4}", "status": "fulfilled"} for n in range(8)}
        customers = {f"C{n}": {"balance": 900} for n in range(1, 5)}
        self.world = {"orders": orders, "reservations": held, "customers": customers, "disputes": {}}
        return f"Dispute {task}, take the fee, pay it back and close it."

    def _dispute(self, order: str) -> Any:
        self.world["disputes"][f"X{len(self.world['disputes'])}"] = {"order": self.world["orders"][order]["customer"]}
        return {"ok": True}

    def _take_fee(self, order: str) -> Any:
        row = self.world["orders"][order]
        self.world["customers"][row["customer"]]["balance"] -= row["fee"]
        return {"ok": True}

    def _pay_back(self, order: str) -> Any:
        self.world["orders"][order]["status"] = "paid back"
        return {"ok": True}

    def _close_order(self, order: str) -> Any:
        self.world["orders"][order]["status"] = "closed"
        return {"ok": True}

    def oracle(self, task: str) -> list[Any]:
        return [[one["name"], {"order": task}] for one in self.tools()]

    def score(self) -> float:
        return float(self.world["orders"][self.task]["status"] == "closed")


class Pieces(Base):
    """Orders that take pieces from two warehouses in any split."""

    def tasks(self) -> list[str]:
        return ["S1", "S2", "S3"]

    def tools(self) -> list[dict[str, Any]]:
        take = tool("take", "Take pieces out of a warehouse.", order=TEXT, warehouse=TEXT, pieces=WHOLE)
        return [tool("get_need", "What an order needs.", order=TEXT), take]

    def need(self, order: str) -> int:
        return 30 + int(order[1:])

    def reset(self, task: str, seed: int) -> str:
        self.task, self.world = task, {"stock": {"north": 24, "south": 24}, "taken": {}}
        return f"Take what order {task} needs out of the warehouses."

    def _get_need(self, order: str) -> Any:
        return {"pieces": self.need(order)}

    def _take(self, order: str, warehouse: str, pieces: int) -> Any:
        self.world["stock"][warehouse] -= pieces
        self.world["taken"][order] = self.world["taken"].get(order, 0) + pieces
        return {"ok": True}

    def oracle(self, task: str) -> list[Any]:
        first = {"order": task, "warehouse": "north", "pieces": 17}
        second = {"order": task, "warehouse": "south", "pieces": self.need(task) - 17}
        return [["get_need", {"order": task}], ["take", first], ["take", second]]

    def score(self) -> float:
        return float(self.world["taken"] == {self.task: self.need(self.task)})


class Steps(Pieces):
    """Pieces from one warehouse in two recorded steps, with the need stated nowhere."""

    def reset(self, task: str, seed: int) -> str:
        prompt = super().reset(task, seed)
        self.world |= {"stock": {"north": 90}, "moves": {}}
        return prompt

    def _get_need(self, order: str) -> Any:
        return {"ok": True}

    def _take(self, order: str, warehouse: str, pieces: int) -> Any:
        self.world["moves"][f"M{len(self.world['moves'])}"] = {"pieces": pieces}
        return super()._take(order, warehouse, pieces)

    def oracle(self, task: str) -> list[Any]:
        return [[name, given | {"warehouse": "north"} if name == "take" else given]
                for name, given in super().oracle(task)]  # fmt: skip


class Places(Base):
    """Lists end after five rows, or after as many as a default says; notes are found by whole words."""

    def tasks(self) -> list[str]:
        return ["first", "second"]

    def tools(self) -> list[dict[str, Any]]:
        seats, price = WHOLE | {"description": "At least so many."}, WHOLE | {"description": "At most that much."}
        return [
            tool("find_halls", "Find halls, the cheapest first.", seats=seats, limit=WHOLE | {"default": 4}),
            tool("find_rooms", "Find rooms, the best first.", price=price),
            tool("find_notes", "Show the notes that contain the query.", query=TEXT),
        ]

    def reset(self, task: str, seed: int) -> str:
        self.rows: list[dict[str, Any]] = [
            {"id": f"L{n}", "seats": 2 + (n * 5) % 13, "price": 10 + (n * 7) % 31, "stars": n % 5} for n in range(14)
        ]
        said = ("meeting rooms are full", "room for a meeting", "meet the lodgers", "lodge the complaint")
        self.notes = [{"id": f"N{n}", "text": one} for n, one in enumerate(said)]
        self.world = {"rows": self.rows, "notes": self.notes}
        return "Look around."

    def _find_halls(self, seats: int, limit: int = 4) -> Any:
        return sorted((one for one in self.rows if one["seats"] >= seats), key=lambda one: one["price"])[:limit]

    def _find_rooms(self, price: int) -> Any:
        return sorted((one for one in self.rows if one["price"] <= price), key=lambda one: -one["stars"])[:5]

    def _find_notes(self, query: str) -> Any:
        return [one for one in self.notes if query.lower() in one["text"].split()]

    def oracle(self, task: str) -> list[Any]:
        notes = ["find_notes", {"query": "meeting"}]
        return [["find_halls", {"seats": 3}], ["find_rooms", {"price": 30}], notes]

    def score(self) -> float:
        return 1.0


class Desktop(Base):
    """Desktop with tabs, lamps and phones that belong to no other user."""

    def tasks(self) -> list[str]:
        return ["note 1", "note 2", "note 3"]

    def tools(self) -> list[dict[str, Any]]:
        return [
            tool("write_note", "Write a note.", note=TEXT, text=TEXT),
            tool("close_tab", "Close a tab.", tab=TEXT),
            tool("move_lamp", "Move a lamp.", lamp=TEXT, room=TEXT),
            tool("charge_phone", "Charge a phone.", phone=TEXT),
        ]

    def reset(self, task: str, seed: int) -> str:
        self.task = task
        tables = {"tabs": "B", "lamps": "L", "phones": "H", "notes": "K"}
        self.world = {name: {f"{key}{n}": {"at": ""} for n in range(1, 5)} for name, key in tables.items()}
        return f"Write 'milk' into K{task[-1]}."

    def _write_note(self, note: str, text: str) -> Any:
        return self._set("notes", note, text)

    def _close_tab(self, tab: str) -> Any:
        return self._set("tabs", tab, "closed")

    def _move_lamp(self, lamp: str, room: str) -> Any:
        return self._set("lamps", lamp, room)

    def _charge_phone(self, phone: str) -> Any:
        return self._set("phones", phone, "charging")

    def _set(self, table: str, key: str, value: str) -> Any:
        self.world[table][key]["at"] = value
        return {"ok": True}

    def oracle(self, task: str) -> list[Any]:
        return [["write_note", {"note": f"K{task[-1]}", "text": "milk"}]]

    def score(self) -> float:
        written = {key: row["at"] for key, row in self.world["notes"].items() if row["at"]}
        return float(written == {f"K{self.task[-1]}": "milk"})


class Files(Base):
    """A repository in which a path that does not exist is made, and a function is named in the prompt."""

    def tasks(self) -> list[str]:
        return ["cart", "stock", "post"]

    def tools(self) -> list[dict[str, Any]]:
        read = tool("read_file", "Read a file.", path=TEXT)
        return [read, tool("write_file", "Write a file; it is made if it is missing.", path=TEXT, text=TEXT)]

    def reset(self, task: str, seed: int) -> str:
        self.task = task
        paths = [f"src/{name}.py" for name in self.tasks()]
        self.world = {"files": {path: {"path": path, "text": "def read_total(): ...\n"} for path in paths}}
        return f"Complete the function `read_total` in src/{task}.py."

    def _read_file(self, path: str) -> str:
        text: str = self.world["files"][path]["text"]
        return text

    def _write_file(self, path: str, text: str) -> str:
        self.world["files"][path] = {"path": path, "text": text}
        return f"wrote {path}"

    def oracle(self, task: str) -> list[Any]:
        path = f"src/{task}.py"
        return [["read_file", {"path": path}], ["write_file", {"path": path, "text": "def read_total(): return 7\n"}]]

    def score(self) -> float:
        return float("return 7" in self.world["files"][f"src/{self.task}.py"]["text"])
