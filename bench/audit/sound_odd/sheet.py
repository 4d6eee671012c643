"""A small spreadsheet: a cell that is written changes what others show; numbers have up to 40 digits."""

import math
import re
from typing import Annotated, Literal

import msgspec

import quintain as qn

Cell = Literal["A1", "A2", "A3", "A4", "B1", "B2", "B3", "B4", "C1", "C2", "C3", "C4"]
CELLS = [f"{column}{row}" for column in "ABC" for row in range(1, 5)]
OPERAND = "([ABC][1-4]|[0-9]{1,30})"
Content = Annotated[
    str, msgspec.Meta(pattern=f"^(-?[0-9]{{1,30}}|=-?{OPERAND}([-+*]{OPERAND})*)$", min_length=1, max_length=60)
]
DIGITS = 40


def values(cells: dict[str, str]) -> dict[str, int]:
    """Returns what each cell shows.

    Raises:
        ToolError: A formula uses its own cell, or a number has too many digits.
    """
    shown: dict[str, int] = {}
    open_: list[str] = []

    def value(cell: str) -> int:
        if cell in open_:
            raise qn.ToolError(f"{cell} would use itself, by {' -> '.join([*open_, cell])}")
        if cell not in shown:
            open_.append(cell)
            shown[cell] = total(cells.get(cell, "0").removeprefix("="))
            open_.pop()
            if abs(shown[cell]) >= 10**DIGITS:
                raise qn.ToolError(f"{cell} would show more than {DIGITS} digits")
        return shown[cell]

    def total(formula: str) -> int:
        terms = re.findall("[-+]?[^-+]+", formula)
        return sum(math.prod(map(operand, term.lstrip("-+").split("*"))) * (-1) ** (term[0] == "-") for term in terms)

    def operand(text: str) -> int:
        return value(text) if text in CELLS else int(text)

    return {cell: value(cell) for cell in CELLS}


def texts(cells: dict[str, str]) -> dict[str, str]:
    return {cell: str(number) for cell, number in values(cells).items()}


class Sheet(qn.State):
    cells: dict[str, str]

    @qn.tool
    def show(self) -> dict[str, str]:
        """Read what all cells show: whole numbers, as text because they have up to 40 digits. An empty cell shows 0."""
        return texts(self.cells)

    @qn.tool
    def contents(self) -> dict[str, str]:
        """Read what the cells hold, as it was put in: numbers, and formulas, which begin with "=". Empty ones are left
        out."""
        return {cell: self.cells[cell] for cell in CELLS if cell in self.cells}

    @qn.tool
    def put(self, cell: Cell, content: Content) -> dict[str, str]:
        """Put a number or a formula into a cell; returns the cells that show another number now, often several.

        Refused if a formula would use its own cell, also by others, or if a cell would show more than 40 digits.

        Args:
            cell: The cell.
            content: A whole number such as -12, or a formula such as =A1*3-B2 without spaces, 1 to 60 characters;
                * comes before + and -, and a number has at most 30 digits.
        """
        return self._replace({**self.cells, cell: content})

    @qn.tool
    def clear(self, cell: Cell) -> dict[str, str]:
        """Make a cell empty; returns the cells that show another number now.

        Args:
            cell: The cell; it may be empty already.
        """
        return self._replace({one: held for one, held in self.cells.items() if one != cell})

    def _replace(self, cells: dict[str, str]) -> dict[str, str]:
        before, after = texts(self.cells), texts(cells)
        self.cells = cells
        return {cell: text for cell, text in after.items() if before[cell] != text}


START = {"A1": "2", "A2": "4", "A3": "1", "B1": "5", "B2": "10", "B3": "25"}
START |= {"C1": "=A1*B1", "C2": "=A2*B2", "C3": "=A3*B3", "C4": "=C1+C2+C3"}
BIG = "12345678901234567890"

# Each: what is asked for, cells of a solution, and a change with which it is judged once more.
JOBS: list[tuple[str, dict[str, str], dict[str, str]]] = [
    ("Change the number of pieces in A1 to 7; C1 and C4 shall show what follows from it.", {"A1": "7"}, {}),
    ("Double the three prices in B1 to B3; column C shall show what follows from it.",
     {"B1": "10", "B2": "20", "B3": "50"}, {}),
    ("Let A4 show the sum of A1 to A3 and follow them. It is judged once more after A2 is set to 50.",
     {"A4": "=A1+A2+A3"}, {"A2": "50"}),
    (f"Let B4 show C4 times {BIG}, and follow it. It is judged once more after A3 is set to 3.",
     {"B4": f"=C4*{BIG}"}, {"A3": "3"}),
    ("Let A2, B2 and C2 show 0, and C4 the sum of what is left.", {"A2": "0", "B2": "0"}, {}),
    ("Change A3 so that C4 shows 100.", {"A3": "2"}, {}),
    ("Let C4 show the difference C1 - C2 - C3 and follow it. It is judged once more after B1 is set to 9.",
     {"C4": "=C1-C2-C3"}, {"B1": "9"}),
]  # fmt: skip
RULE = (
    "A holds numbers of pieces, B prices, C their products, and C4 the sum. You are judged by what all twelve cells "
    "show at the end: as asked, and the others as now. Whether a cell holds a number or a formula does not count "
    "beyond that."
)


def tasks(split: str) -> list[qn.Task[Sheet]]:
    return [
        qn.Task(
            id=f"{split}-{n}",
            prompt=f"{prompt} {RULE}",
            start=Sheet(cells=dict(START)),
            truth={"shown": texts(START | cells), "probe": probe, "then": texts(START | cells | probe)},
            solution=tuple(("put", {"cell": cell, "content": content}) for cell, content in cells.items()),
        )
        for n, (prompt, cells, probe) in enumerate(JOBS, 1)
    ]


@qn.reward
def as_asked(view: qn.EpisodeView[Sheet]) -> qn.Score:
    truth, cells = view.task.truth, view.state.cells
    if texts(cells) != truth["shown"]:
        return qn.Score(0.0, f"the cells show {texts(cells)}")
    try:
        then = texts(cells | truth["probe"])
    except qn.ToolError as error:
        return qn.Score(0.0, f"after {truth['probe']}: {error}")
    return qn.Score(float(then == truth["then"]), f"after {truth['probe']} the cells show {then}")


env = qn.Environment(
    "sheet", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(as_asked), state=Sheet, splits=("test",)
)
