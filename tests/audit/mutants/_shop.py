"""Shop that refunds, as source, with a verifier that checks the status alone or everything."""

from __future__ import annotations

from pathlib import Path

SHOP = """
import copy

START = {"orders": {"7": {"status": "paid", "paid": 30, "back": 0}, "8": {"status": "paid", "paid": 50, "back": 0}}}


class Shop:
    def tasks(self):
        return ["7", "8"]

    def tools(self):
        number = {"type": "integer"}
        asked = {"order": {"type": "string"}, "amount": number}
        return [{"name": "refund", "parameters": {"type": "object", "properties": asked, "required": list(asked)}}]

    def reset(self, task, seed):
        self.task = task
        self.world = copy.deepcopy(START) | {"ledger": []}
        return "Refund order %s in full." % task

    def call(self, name, arguments):
        order = self.world["orders"].get(str(arguments.get("order")))
        amount = arguments.get("amount", 0)
        if order is None:
            return {"error": "unknown order"}
        if amount > order["paid"]:
            return {"error": "that is more than was paid"}
        order["back"] = order["back"] + amount
        order["status"] = "refunded"
        self.world["ledger"].append({"id": "%d" % len(self.world["ledger"]), "amount": amount})
        return "refunded"

    def state(self):
        return copy.deepcopy(self.world)

    def oracle(self, task):
        return [["refund", {"order": task, "amount": START["orders"][task]["paid"]}]]

    def score(self):
        order = self.world["orders"][self.task]
        JUDGED
"""
BLIND = 'return 1.0 if order["status"] == "refunded" else 0.0'
STRICT = """want = copy.deepcopy(START) | {"ledger": [{"id": "0", "amount": order["paid"]}]}
        want["orders"][self.task].update(status="refunded", back=order["paid"])
        return float(self.world == want)"""
VACUOUS = """if order["paid"] > 1000 or order["back"] < 0:
            return 0.0
        missing = [one for one in self.world["ledger"] if one["amount"] != 31]
        return 1.0 if order["status"] == "refunded" and len(missing) >= 0 else 0.0"""


def shop(folder: Path, judged: str) -> Path:
    """Returns the shop as a file."""
    path = folder / "shop.py"
    path.write_text(SHOP.replace("JUDGED", judged))
    return path


def at(path: Path, text: str) -> str:
    """Returns file and line of the first occurrence of a text."""
    line = next(number for number, line in enumerate(path.read_text().splitlines(), 1) if text in line)
    return f"{path}:{line}"
