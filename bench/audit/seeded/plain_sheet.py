"""A sheet of orders to be put right: totals to fill in, dates and towns to spell alike, double orders to merge.

Each cell or row that a task is about earns its share; a change of anything else, and nothing is paid.
"""

from __future__ import annotations

import math
import re
from typing import Any

from .common import ToolError, World, choice, integer, name_of, rng, text, tool, weighted

Data = Any
Cell = str | int | float
COLUMNS = {
    "A": "Order", "B": "Date", "C": "Town", "D": "Customer", "E": "Quantity", "F": "Price", "G": "Total",
}  # fmt: skip
NUMBERS = "EFG"
ROWS = 40
TOWNS = ("Köln", "Zürich", "Malmö", "Łódź", "São Paulo")
CELL = text("A cell by its column and row, such as E4.", 4)
KINDS = ("totals", "dates", "towns", "doubles")


def split(cell: str) -> tuple[str, int]:
    """Returns the column and the row of a cell.

    Raises:
        ToolError: The cell does not exist.
    """
    found = re.fullmatch(r"([A-G])([1-9][0-9]?)", cell)
    if not found or int(found[2]) > ROWS:
        raise ToolError(f"a cell lies in A1:G{ROWS}, not at {ascii(cell)[:20]}")
    return found[1], int(found[2])


def moved(formula: str, rows: int) -> str:
    return re.sub(r"([A-G])([0-9]+)", lambda found: f"{found[1]}{int(found[2]) + rows}", formula)


class Sheet(World):
    """A session with one sheet."""

    graded = True
    TOOLS = (
        tool("get_sheet", "Show what the columns hold, and in which rows there is anything."),
        tool("get_rows", "Show the values of some rows; formulas are worked out.",
             first=integer("The first row.", 1, ROWS), last=integer("The last row.", 1, ROWS)),
        tool("get_cell", "Show what was typed into a cell, and its value.", cell=CELL),
        tool("find_rows", "Show the rows whose value in a column contains a text, in capitals or not.",
             column=choice("The column's letter.", *COLUMNS), text=text("The text.", 60)),
        tool("set_cell", "Type into a cell. E, F and G take numbers and formulas: =E2*F2 multiplies two cells, "
             "=SUM(G2:G9) adds up what lies between two cells of a column. An empty text clears the cell.",
             cell=CELL, value=text("What is typed.", 80)),
        tool("fill_down", "Copy a cell into the empty cells beneath it; the rows in its formula move along.",
             cell=CELL, last=integer("The last row that gets a copy.", 3, ROWS)),
        tool("delete_row", "Clear a row; the others stay where they are.", row=integer("Its number.", 2, ROWS)),
    )  # fmt: skip

    def tasks(self) -> list[Data]:
        return [{"id": f"{kind}-{number}", "kind": kind, "number": number} for kind in KINDS for number in (1, 2)]

    # --- an episode ---

    def reset(self, task: Data, seed: int) -> str:
        self.task, self.kind = task["id"], task["kind"]
        self.plan = self.planned(task)
        self.cells = self.built(task, seed)
        self.initial = dict(self.cells)
        self.goals = self.wishes()
        return f"{self.asked()} Leave everything else as it is: if anything else changes, nothing is paid."

    def planned(self, task: Data) -> Data:
        """Returns the part of the plan that the seed does not change: number of rows, and the wrong ones."""
        dice = rng("sheet", task["id"])
        last = dice.randint(10, 14)
        rows = sorted(dice.sample(range(2, last + 1), 4))
        days = [(dice.randint(1, 28), dice.randint(1, 12)) for _ in rows]
        towns = [dice.choice(TOWNS) for _ in rows]
        slips = [dice.choice((town.upper(), town.lower(), f"{town} ", f" {town}", town.swapcase())) for town in towns]
        counts = [dice.randint(1, 24) for _ in rows]
        return {"last": last, "rows": rows, "days": days, "towns": towns, "slips": slips, "counts": counts}

    def built(self, task: Data, seed: int) -> dict[str, Cell]:
        plan, dice = self.plan, rng("sheet", task["id"], seed)
        cells: dict[str, Cell] = {f"{column}1": name for column, name in COLUMNS.items()}
        orders = sorted(dice.sample(range(10300, 10990), plan["last"]))
        for row in range(2, plan["last"] + 1):
            for column, value in zip("ABCDEF", self.order(dice, orders[row - 2]), strict=True):
                cells[f"{column}{row}"] = value
            cells[f"G{row}"] = f"=E{row}*F{row}"
        cells[f"G{plan['last'] + 1}"] = f"=SUM(G2:G{plan['last']})"
        for number, row in enumerate(plan["rows"]):
            if self.kind == "dates":
                cells[f"B{row}"] = "{:02}.{:02}.2031".format(*plan["days"][number])
            if self.kind == "towns":
                cells[f"C{row}"] = plan["slips"][number]
            if self.kind == "doubles":
                cells |= {f"{column}{row}": cells[f"{column}{plan['rows'][number // 2 * 2]}"] for column in "ABCDF"}
                cells[f"E{row}"] = plan["counts"][number]
        blank = {f"G{row}" for row in range(2, plan["last"] + 2)} if self.kind == "totals" else set[str]()
        return {cell: value for cell, value in cells.items() if cell not in blank and value != ""}

    def order(self, dice: Data, number: int) -> list[Cell]:
        """Returns an order line as typed by a person: usual customers, small numbers, odd prices."""
        day = f"2031-{dice.randint(1, 12):02}-{dice.randint(1, 28):02}"
        customer = "" if dice.random() < 0.08 else name_of(dice)
        town = weighted(dice, [("Köln", 9), ("Zürich", 5), ("Malmö", 3), ("Łódź", 2), ("São Paulo", 1)])
        price = round(float(dice.choice((0.99, 4.95, 12.5, 19.99, 79, 249.9))) * dice.uniform(0.8, 1.3), 2)
        return [f"A-{number}", day, town, customer, min(60, int(dice.expovariate(0.15)) + 1), price]

    def asked(self) -> str:
        last = self.plan["last"]
        if self.kind == "totals":
            return (
                f"Column G is empty. Fill in the total of each order in rows 2 to {last}, its quantity times its "
                f"price, and their sum in G{last + 1}, as numbers or formulas, right to half a cent. Each "
                "cell counts alike."
            )
        if self.kind == "dates":
            return (
                "Some dates in column B are written as day.month.year. Write each of those as year-month-day, such as "
                "2031-04-09. Each counts alike."
            )
        if self.kind == "towns":
            return (
                f"In column C, only {', '.join(TOWNS)} should stand, spelled like this. Correct those that differ by "
                "capitals or by blanks around them. Each counts alike."
            )
        return (
            "Some orders stand in two rows. For each, the upper row stays and gets the quantities of both together, "
            "and the lower row is deleted; the sum below is left as it is. Each quantity and each deleted row counts "
            "alike."
        )

    # --- values ---

    def value(self, cell: str, done: dict[str, Cell] | None = None) -> Cell:
        """Returns the shown value of a cell; `done` caches the formulas computed on the way."""
        raw, done = self.cells.get(cell, ""), {} if done is None else done
        if not isinstance(raw, str) or not raw.startswith("="):
            return raw
        if cell not in done:
            done[cell] = "#VALUE!"  # which is what a formula meets that leads back to itself
            done[cell] = self.worked_out(raw, done)
        return done[cell]

    def worked_out(self, formula: str, done: dict[str, Cell]) -> Cell:
        """A product or a sum, where empty cells are nought and texts are errors."""
        first, last = (split(cell) for cell in re.findall(r"[A-G][0-9]+", formula))
        product = "*" in formula
        places = [first, last] if product else [(first[0], row) for row in range(first[1], last[1] + 1)]
        values = [self.value(f"{column}{row}", done) for column, row in places]
        numbers = [value or 0 for value in values if not isinstance(value, str) or value == ""]
        if len(numbers) < len(values):
            return "#VALUE!"
        found = math.prod(float(number) for number in numbers) if product else sum(float(number) for number in numbers)
        return round(found, 6) if abs(found) < 1e15 else "#VALUE!"

    def put(self, cell: str, raw: Cell) -> None:
        """Every write passes here."""
        if raw == "":
            self.cells.pop(cell, None)
        else:
            self.cells[cell] = raw

    def read(self, column: str, typed: str) -> Cell:
        """Returns the stored value for a typed text."""
        if typed.startswith("="):
            return self.formula(column, typed)
        if column not in NUMBERS or typed == "":
            return typed
        if not re.fullmatch(r"-?[0-9]{1,9}(\.[0-9]{1,6})?", typed):
            raise ToolError(f"column {column} takes numbers, such as 12.50, and formulas")
        return float(typed) if "." in typed else int(typed)

    def formula(self, column: str, typed: str) -> str:
        found = re.fullmatch(r"=(SUM\()?([A-G][0-9]+)([*:])([A-G][0-9]+)(\))?", typed)
        if column not in NUMBERS or not found or (found[1] is None, found[5] is None) != (found[3] == "*",) * 2:
            raise ToolError("formulas are =E2*F2 and =SUM(G2:G9), in the columns E, F and G")
        first, last = split(found[2]), split(found[4])
        if found[1] and (first[0] != last[0] or first[1] > last[1]):
            raise ToolError("a sum goes down a single column")
        return typed

    # --- what the tools do ---

    def shown(self, row: int) -> Data:
        return {"row": row, **{name: self.value(f"{column}{row}") for column, name in COLUMNS.items()}}

    def used(self) -> list[int]:
        return sorted({split(cell)[1] for cell in self.cells})

    def _get_sheet(self) -> Data:
        return {"columns": dict(COLUMNS), "rows": self.used()}

    def _get_rows(self, first: int, last: int) -> Data:
        if first > last:
            raise ToolError("the first row comes after the last")
        return {"rows": [self.shown(row) for row in range(first, last + 1)]}

    def _get_cell(self, cell: str) -> Data:
        split(cell)
        return {"cell": cell, "typed": self.cells.get(cell, ""), "value": self.value(cell)}

    def _find_rows(self, column: str, text: str) -> Data:
        rows = (row for row in self.used() if row > 1)
        return {
            "rows": [self.shown(row) for row in rows if text.casefold() in str(self.value(f"{column}{row}")).casefold()]
        }

    def _set_cell(self, cell: str, value: str) -> Data:
        column, row = split(cell)
        if row == 1:
            raise ToolError("the first row is the head")
        self.put(cell, self.read(column, value))
        return self._get_cell(cell)

    def _fill_down(self, cell: str, last: int) -> Data:
        column, row = split(cell)
        raw = self.cells.get(cell, "")
        if not 1 < row < last:
            raise ToolError("a cell is copied downwards, and not out of the head")
        formula = isinstance(raw, str) and raw.startswith("=")
        copies: dict[str, Cell] = {}
        for to in range(row + 1, last + 1):
            copies[f"{column}{to}"] = self.formula(column, moved(str(raw), to - row)) if formula else raw
        self.filled(copies)
        return {"filled": f"{column}{row + 1}:{column}{last}"}

    def filled(self, copies: dict[str, Cell]) -> None:
        for cell in copies:
            self.empty(cell)
        for cell, raw in copies.items():
            self.put(cell, raw)

    def empty(self, cell: str) -> None:
        if cell in self.cells:
            raise ToolError(f"{cell} is not empty; clear it first")

    def _delete_row(self, row: int) -> Data:
        if row not in self.used():
            raise ToolError(f"row {row} is empty")
        for column in COLUMNS:
            self.put(f"{column}{row}", "")
        return {"deleted": row}

    # --- the verdict ---

    def wishes(self) -> dict[str, Cell | None]:
        """Returns the final values of cells; None for a row that should be empty."""
        plan = self.plan
        if self.kind == "dates":
            pairs = zip(plan["rows"], plan["days"], strict=True)
            return {f"B{row}": f"2031-{month:02}-{day:02}" for row, (day, month) in pairs}
        if self.kind == "towns":
            pairs = zip(plan["rows"], plan["towns"], strict=True)
            return {f"C{row}": town for row, town in pairs}
        if self.kind == "doubles":
            one, two, three, four = plan["counts"]
            upper, lower, third, fourth = plan["rows"]
            return {f"E{upper}": one + two, f"row {lower}": None, f"E{third}": three + four, f"row {fourth}": None}
        found: dict[str, Cell | None] = {}
        for row in range(2, plan["last"] + 1):
            found[f"G{row}"] = float(self.cells[f"E{row}"]) * float(self.cells[f"F{row}"])
        return {**found, f"G{plan['last'] + 1}": sum(float(value or 0) for value in found.values())}

    def holds(self, place: str, wanted: Cell | None) -> bool:
        if wanted is None:
            return not any(f"{column}{place[4:]}" in self.cells for column in COLUMNS)
        shown = self.value(place)
        if isinstance(wanted, str) or isinstance(shown, str):
            return shown == wanted
        return abs(shown - wanted) <= 0.005

    def met(self) -> list[str]:
        return [place for place, wanted in self.goals.items() if self.holds(place, wanted)]

    def damage(self) -> int:
        """Returns the number of changed cells outside the goals."""
        about = {f"{column}{place[4:]}" for place in self.goals if place.startswith("row") for column in COLUMNS}
        changed = (cell for cell in {**self.initial, **self.cells} if self.initial.get(cell) != self.cells.get(cell))
        return sum(cell not in about and cell not in self.goals for cell in changed)

    def score(self) -> Data:
        if self.task is None:
            return None
        met, damage = len(self.met()), self.damage()
        return {"score": met / len(self.goals) * (damage == 0), "met": met, "damage": damage}

    # --- for who looks from outside ---

    def oracle(self, task: Data) -> list[list[Data]]:
        plan = self.planned(task)
        last, rows, counts = plan["last"], plan["rows"], plan["counts"]
        if task["kind"] == "totals":
            return [
                ["set_cell", {"cell": "G2", "value": "=E2*F2"}],
                ["fill_down", {"cell": "G2", "last": last}],
                ["set_cell", {"cell": f"G{last + 1}", "value": f"=SUM(G2:G{last})"}],
            ]
        if task["kind"] == "doubles":
            pairs = ((0, 1), (2, 3))
            sums = [["set_cell", {"cell": f"E{rows[a]}", "value": str(counts[a] + counts[b])}] for a, b in pairs]
            return [*sums, *(["delete_row", {"row": rows[b]}] for _, b in pairs)]
        if task["kind"] == "dates":
            typed = [f"2031-{month:02}-{day:02}" for day, month in plan["days"]]
            return [["set_cell", {"cell": f"B{row}", "value": one}] for row, one in zip(rows, typed, strict=True)]
        return [["set_cell", {"cell": f"C{row}", "value": one}] for row, one in zip(rows, plan["towns"], strict=True)]

    def state(self) -> Data:
        if self.task is None:
            return {"rows": {}}
        rows = {
            row: {name: self.cells.get(f"{column}{row}", "") for column, name in COLUMNS.items()} for row in self.used()
        }
        return {"rows": {str(row): cells for row, cells in rows.items()}}
