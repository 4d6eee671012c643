"""Questions about the monthly reports of six depots, answered by a number or by three names in order.

The numbers of a question depend on the task alone; the seed changes the order of the reports and their other content.
An answer is right when it is the value alone, in any usual spelling.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal, InvalidOperation
from typing import Any

from .common import ToolError, World, choice, rng, text, tool

Data = Any
Row = dict[str, Data]
DEPOTS = ("Aarau", "Bern", "Chur", "Genève", "Olten", "Zürich")
MONTHS = ("January", "February", "March")
REMARKS = (
    "Two vans were in repair.", "n/a", "Heizung defekt, siehe Ticket.", "Snow on the 14th, tours late!!", "-",
    "Numbers checked by K. Ott", "3 new colleagues started", "see last month", "Dock 4 closed until further notice.",
)  # fmt: skip
BIGGEST = 1e12
NUMBER = {"type": "number", "description": "A number.", "minimum": -BIGGEST, "maximum": BIGGEST}
TOOLS = (
    tool("list_reports", "List the reports."),
    tool("read_report", "Show a report.", report_id=text("Its id, such as R1234.", 20)),
    tool("search_reports", "Show the ids of the reports that hold a text.", query=text("What to look for.", 80)),
    tool(
        "calculate",
        "Compute with two numbers; the result is rounded to 4 decimals.",
        left=NUMBER,
        operation=choice("What to do.", "+", "-", "*", "/"),
        right=NUMBER,
    ),
    tool("submit", "Give the answer; the last one counts.", answer=text("The answer alone.", 200)),
)


class Quiz(World):
    """One set of reports; a session of its own per instance."""

    TOOLS = TOOLS
    KINDS = ("sum", "rate", "rank")

    def __init__(self) -> None:
        super().__init__()
        self.reports: dict[str, Row] = {}
        self.said: str | None = None

    # --- tasks ---

    def tasks(self) -> list[str]:
        return [f"{kind}-{number}" for number in range(10) for kind in self.KINDS]

    def numbers(self, task: str) -> dict[tuple[str, str], tuple[int, int]]:
        """Parcels and returns of each depot and month, the same under every seed."""
        if task not in self.tasks():
            raise LookupError(f"no such task: {task!r}")
        dice = rng("quiz", task)
        table: dict[tuple[str, str], tuple[int, int]] = {}
        for depot in DEPOTS:
            for month in MONTHS:
                parcels = int(dice.lognormvariate(9.3, 0.4)) + 1000
                table[depot, month] = (parcels, max(int(parcels * dice.uniform(0.002, 0.009)), 1))
        return table

    def asked(self, task: str) -> tuple[str, str]:
        """The depot and the month that a question is about."""
        dice = rng("quiz", "asked", task)
        return dice.choice(DEPOTS), dice.choice(MONTHS)

    def trio(self, task: str) -> list[str]:
        """Three depots, not in the order that is the answer."""
        month, table = self.asked(task)[1], self.numbers(task)
        names = sorted(rng("quiz", "trio", task).sample(DEPOTS, 3))
        parcels = [table[one, month][0] for one in names]
        return names[::-1] if parcels == sorted(parcels, reverse=True) else names

    def prompt(self, task: str) -> str:
        depot, month = self.asked(task)
        question = {
            "sum": f"How many parcels did the depot of {depot} ship from {MONTHS[0]} to {MONTHS[-1]} in all? Answer by "
            f"the number alone.",
            "rate": f"How many returns came on one parcel in {depot} in {month}? Answer by the number alone, rounded "
            f"to 4 decimals.",
            "rank": f"Put {', '.join(self.trio(task))} in order, from the most to the fewest parcels of {month}. "
            f"Answer by the three names alone, separated by commas.",
        }
        return question[task.partition("-")[0]]

    def gold(self, task: str) -> str:
        table, (depot, month) = self.numbers(task), self.asked(task)
        if task.startswith("sum"):
            return str(sum(table[depot, one][0] for one in MONTHS))
        if task.startswith("rate"):
            parcels, returns = table[depot, month]
            return f"{returns / parcels:.4f}"
        return ", ".join(sorted(self.trio(task), key=lambda one: -table[one, month][0]))

    def hidden(self, task: str) -> Row:
        return {"gold": self.gold(task)}

    def oracle(self, task: str) -> list[list[Data]] | None:
        table, (depot, month) = self.numbers(task), self.asked(task)
        names = self.trio(task) if task.startswith("rank") else [depot]
        calls: list[list[Data]] = [["list_reports", {}]]
        months = MONTHS if task.startswith("sum") else (month,)
        calls += [["read_report", {"report_id": self.key(name, one)}] for name in names for one in months]
        if task.startswith("sum"):
            first, second, third = (table[depot, one][0] for one in MONTHS)
            calls.append(["calculate", {"left": first, "operation": "+", "right": second}])
            calls.append(["calculate", {"left": first + second, "operation": "+", "right": third}])
        if task.startswith("rate"):
            parcels, returns = table[depot, month]
            calls.append(["calculate", {"left": returns, "operation": "/", "right": parcels}])
        return [*calls, ["submit", {"answer": self.gold(task)}]]

    # --- the episode ---

    @staticmethod
    def key(depot: str, month: str) -> str:
        return f"R{1000 + 37 * (1 + DEPOTS.index(depot)) + 11 * MONTHS.index(month)}"

    def reset(self, task: str, seed: int) -> str:
        dice = rng("quiz", task, seed)
        pairs = list(self.numbers(task).items())
        dice.shuffle(pairs)
        self.reports = {}
        for (depot, month), (parcels, returns) in pairs:
            spelt = dice.choice((f"{parcels:,}", f"{parcels:,}".replace(",", "'"), str(parcels)))
            remark = dice.choice(REMARKS)
            body = f"Depot of {depot}, {month}\nParcels shipped: {spelt}\nReturns: {returns}\nRemarks: {remark}"
            self.reports[self.key(depot, month)] = {"title": f"{depot} {month}", "text": body}
        self.task, self.said = task, None
        return self.prompt(task)

    def answer(self, text: str) -> None:
        self.said = text

    # --- the tools ---

    def _list_reports(self) -> Data:
        return {"reports": [{"id": key, "title": one["title"]} for key, one in self.reports.items()]}

    def _read_report(self, report_id: str) -> Data:
        if report_id not in self.reports:
            raise ToolError(f"no such report: {report_id}")
        return {"text": self.reports[report_id]["text"]}

    def _search_reports(self, query: str) -> Data:
        if not query.strip():
            raise ToolError("look for something")
        return {"ids": [key for key, one in self.reports.items() if query.lower() in one["text"].lower()]}

    def _calculate(self, left: float, operation: str, right: float) -> Data:
        if operation == "/" and right == 0:
            raise ToolError("nothing can be divided by 0")
        found = {
            "+": lambda: left + right,
            "-": lambda: left - right,
            "*": lambda: left * right,
            "/": lambda: left / right,
        }[operation]()
        if not math.isfinite(found):
            raise ToolError("the result is too big")
        return {"result": round(found, 4)}

    def _submit(self, answer: str) -> Data:
        if not answer.strip():
            raise ToolError("an answer says something")
        self.answer(answer)
        return {"ok": True}

    # --- the verdict ---

    def score(self) -> float | None:
        if self.task is None:
            return None
        if not isinstance(self.said, str):
            return 0.0
        return float(self.right(self.said, self.gold(self.task)))

    def right(self, said: str, gold: str) -> bool:
        if not any(letter.isdigit() for letter in gold):
            return [one.strip().lower() for one in re.split(r"[,;>]", said)] == gold.lower().split(", ")
        number = self.number(said)
        if number is None:
            return False
        return abs(number - Decimal(gold)) <= (Decimal("0.00005") if "." in gold else 0)

    @staticmethod
    def number(said: str) -> Decimal | None:
        """The number that a text is, with or without marks between thousands; None when it is none."""
        plain = re.sub(r"(?<=\d)[,' ](?=\d{3}(?!\d))", "", said.strip().removesuffix("."))
        if not re.fullmatch(r"[+-]?\d{1,20}(\.\d{1,20})?", plain, re.ASCII):
            return None
        try:
            return Decimal(plain)
        except InvalidOperation:
            return None
