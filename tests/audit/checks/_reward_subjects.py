"""Subjects of the tests of the checks of reward: a desk of orders and a quiz, sound, and each with one thing wrong."""

from __future__ import annotations

import copy
import math
from typing import Any


class ToolError(Exception):
    """Error for a request that cannot be met."""


def _schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


TEXT, NUMBER = {"type": "string"}, {"type": "number"}


class Desk:
    """Refund an order, then resolve its ticket. The verifier wants exactly that, in the world as it is."""

    budget = 20

    def __init__(self) -> None:
        self.number = ""
        self.world: dict[str, Any] = {}
        self.start: dict[str, Any] = {}
        self.events: list[str] = []

    def tasks(self) -> list[str]:
        return ["refund 1", "refund 2", "refund 3"]

    def tools(self) -> list[dict[str, Any]]:
        status = {"type": "string", "enum": ["open", "pending", "resolved"]}
        schemas = {
            "get_order": _schema(order_id=TEXT),
            "get_ticket": _schema(ticket_id=TEXT),
            "list_orders": _schema(),
            "refund_order": _schema(order_id=TEXT, amount=NUMBER),
            "cancel_refund": _schema(order_id=TEXT),
            "set_ticket": _schema(ticket_id=TEXT, status=status),
            "delete_order": _schema(order_id=TEXT),
        }
        return [{"name": name, "description": "", "parameters": schema} for name, schema in schemas.items()]

    def reset(self, task: str, seed: int) -> str:
        self.number = task[-1]
        orders = {f"O-10{i}": {"total": 10.0 * i + 5, "customer": f"C{i}", "refunded": 0.0} for i in range(1, 6)}
        tickets = {f"T-20{i}": {"status": "open", "order": f"O-10{i}"} for i in range(1, 4)}
        self.world = {"orders": orders, "tickets": tickets}
        self.start, self.events = copy.deepcopy(self.world), []
        return f"Refund {self.due} for order {self.order} and then set ticket {self.ticket} to resolved."

    @property
    def order(self) -> str:
        return f"O-10{self.number}"

    @property
    def ticket(self) -> str:
        return f"T-20{self.number}"

    @property
    def due(self) -> float:
        return 10.0 * int(self.number) + 5

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        try:
            return getattr(self, f"_{name}")(**arguments)
        except (KeyError, TypeError, AttributeError) as error:
            raise ToolError(str(error)) from error

    def _get_order(self, order_id: str) -> Any:
        return dict(self.world["orders"][order_id])

    def _get_ticket(self, ticket_id: str) -> Any:
        return dict(self.world["tickets"][ticket_id])

    def _list_orders(self) -> Any:
        return list(self.world["orders"])

    def _refund_order(self, order_id: str, amount: float) -> Any:
        if not 0 < amount < 1000:
            raise ToolError("an amount is above 0 and below 1000")
        self.world["orders"][order_id]["refunded"] = float(amount)
        self.events.append(f"refunded {order_id}")
        return {"ok": True}

    def _cancel_refund(self, order_id: str) -> Any:
        self.world["orders"][order_id]["refunded"] = 0.0
        return {"ok": True}

    def _set_ticket(self, ticket_id: str, status: str) -> Any:
        if status not in ("open", "pending", "resolved"):
            raise ToolError(f"no status {status!r}")
        self.world["tickets"][ticket_id]["status"] = status
        return {"ok": True}

    def _delete_order(self, order_id: str) -> Any:
        del self.world["orders"][order_id]
        return {"ok": True}

    @property
    def is_resolved(self) -> bool:
        return bool(self.world["tickets"][self.ticket]["status"] == "resolved")

    @property
    def refunded(self) -> float:
        return float(self.world["orders"].get(self.order, {}).get("refunded", 0.0))

    @property
    def is_right(self) -> bool:
        wanted = copy.deepcopy(self.start)
        wanted["orders"][self.order]["refunded"] = self.due
        wanted["tickets"][self.ticket]["status"] = "resolved"
        return bool(self.world == wanted)

    def score(self) -> float:
        return float(self.is_right)

    def oracle(self, task: str) -> list[Any] | None:
        number = task[-1]
        due = 10.0 * int(number) + 5
        return [
            ["get_order", {"order_id": f"O-10{number}"}],
            ["refund_order", {"order_id": f"O-10{number}", "amount": due}],
            ["set_ticket", {"ticket_id": f"T-20{number}", "status": "resolved"}],
        ]

    def state(self) -> Any:
        return copy.deepcopy(self.world)


class OnlyStatus(Desk):
    """Looks at the ticket alone."""

    def score(self) -> float:
        return float(self.is_resolved)


class Unseen(OnlyStatus):
    """OnlyStatus with an invisible world."""

    absent = ("state",)


class SaysSo(Desk):
    """Believes an answer that names order, amount and ticket."""

    said = ""

    def reset(self, task: str, seed: int) -> str:
        self.said = ""
        return super().reset(task, seed)

    def answer(self, text: str) -> None:
        self.said = text

    def score(self) -> float:
        return float(self.is_right or all(str(one) in self.said for one in (self.order, self.due, self.ticket)))


class AnyAmount(Desk):
    """Does not look at the amount."""

    def score(self) -> float:
        return float(self.is_resolved and self.refunded > 0)


class History(Desk):
    """Looks at what was once done."""

    def score(self) -> float:
        return float(self.is_resolved and f"refunded {self.order}" in self.events)


class Careless(Desk):
    """Looks at what was asked for, and at nothing else."""

    def score(self) -> float:
        return float(self.is_resolved and self.refunded == self.due)


class AnyTicket(Desk):
    """Takes any order and ticket for the right ones."""

    def score(self) -> float:
        orders = any(order["refunded"] for order in self.world["orders"].values())
        return float(orders and any(one["status"] == "resolved" for one in self.world["tickets"].values()))


class Always(Desk):
    """Pays for everything."""

    def score(self) -> float:
        return 1.0


class Mean(Desk):
    """Never pays in full."""

    def score(self) -> float:
        return 0.9 * self.is_right


class Undefined(Desk):
    """Divides by what was done."""

    def score(self) -> float:
        return float(self.is_right) if self.world != self.start else math.nan


class WrongOrder(Desk):
    """The solution names an order that there is not."""

    def oracle(self, task: str) -> list[Any]:
        return [["refund_order", {"order_id": "O-999", "amount": 15.0}]]


class NoOracle(Desk):
    """The solution of one task breaks, and one has none."""

    def oracle(self, task: str) -> list[Any] | None:
        if task == "refund 1":
            raise RuntimeError("the file of solutions is gone")
        return None if task == "refund 2" else super().oracle(task)


class Tight(Desk):
    """Allows fewer calls than it takes."""

    budget = 2


class Empty(Desk):
    """Has no tasks."""

    def tasks(self) -> list[str]:
        return []


class Silent(Desk):
    """Desk with empty prompts."""

    def reset(self, task: str, seed: int) -> str:
        super().reset(task, seed)
        return ""


class Hollow(Desk):
    """Desk whose refund does nothing and counts as done."""

    def _refund_order(self, order_id: str, amount: float) -> Any:
        self.events.append(f"refunded {order_id}")
        return {"ok": True}

    def _set_ticket(self, ticket_id: str, status: str) -> Any:
        self.events.append(f"{ticket_id} {status}")
        return {"ok": True}

    def score(self) -> float:
        return float({f"refunded {self.order}", f"{self.ticket} resolved"} <= set(self.events))


class Talk(Desk):
    """Desk that believes any claim."""

    def __init__(self) -> None:
        super().__init__()
        self.said = ""

    def answer(self, text: str) -> None:
        self.said = text

    def score(self) -> float:
        return float(self.is_right or "done" in self.said.lower())

    def oracle(self, task: str) -> list[Any] | None:
        return [*(super().oracle(task) or []), {"answer": "It is done."}]


class Secret(Desk):
    """Desk whose solution uses a number that stands nowhere."""

    def tools(self) -> list[dict[str, Any]]:
        schema = _schema(order_id=TEXT, amount=NUMBER, voucher=TEXT)
        rest = [tool for tool in super().tools() if tool["name"] != "refund_order"]
        return [*rest, {"name": "refund_order", "description": "", "parameters": schema}]

    def _refund_order(self, order_id: str, amount: float, voucher: str = "") -> Any:
        if voucher != "RF-48213":
            raise ToolError("no such voucher")
        return super()._refund_order(order_id, amount)

    def oracle(self, task: str) -> list[Any] | None:
        look, refund, close = super().oracle(task) or []
        return [look, [refund[0], {**refund[1], "voucher": "RF-48213"}], close]


class Pair(Desk):
    """Resolve two tickets, in any order."""

    def reset(self, task: str, seed: int) -> str:
        super().reset(task, seed)
        self.order_of_events: list[str] = []
        return "Resolve T-201 and T-203."

    def _set_ticket(self, ticket_id: str, status: str) -> Any:
        self.order_of_events.append(ticket_id)
        return super()._set_ticket(ticket_id, status)

    def oracle(self, task: str) -> list[Any] | None:
        return [["set_ticket", {"ticket_id": f"T-20{number}", "status": "resolved"}] for number in (1, 3)]

    @property
    def is_right(self) -> bool:
        wanted = copy.deepcopy(self.start)
        for ticket in ("T-201", "T-203"):
            wanted["tickets"][ticket]["status"] = "resolved"
        return bool(self.world == wanted)


class Ordered(Pair):
    """Wants them in the order in which the author did it."""

    def score(self) -> float:
        return float(self.is_right and self.order_of_events == ["T-201", "T-203"])
