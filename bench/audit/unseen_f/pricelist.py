"""Pricelist: the article table of a shop, which is kept by selecting, reading and editing its rows."""

from __future__ import annotations

import hashlib
import math
import random
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import date
from typing import Any, Literal

import quintain as qn
from quintain.state import Rng

GROUPS = ("stationery", "toys", "kitchen", "garden")
WORDS = ("pencil", "notebook", "kite", "puzzle", "kettle", "whisk", "rake", "trowel")
KINDS = ("small", "large", "red", "blue", "plain", "deluxe")
PAGE, TODAY = 6, date(2026, 5, 4)
SYSTEM = (
    f"You keep the price list of a shop; today is {TODAY}. Edit the rows that the request is about, and no others. End "
    "with a line such as 'changed: 5': how many rows you changed or deleted."
)
Column = Literal["name", "group", "price", "vat", "stock", "sold", "barcode", "status"]


@dataclass
class Row:
    name: str
    group: str
    price: int
    vat: int
    stock: int
    sold: str
    barcode: str
    status: str = "listed"


class Pricelist(qn.State):
    rows: dict[str, Row]
    selected: list[str] = []

    @qn.tool
    def columns(self) -> dict[str, str]:
        """Explain the columns."""
        return {
            "name": "text",
            "group": ", ".join(GROUPS),
            "price": "cents, above 0",
            "vat": "percent, 7 or 19",
            "stock": "pieces, 0 or more",
            "sold": "day of the last sale, YYYY-MM-DD",
            "barcode": "13 digits; one article has one row",
            "status": "listed or delisted",
        }

    @qn.tool
    def select(self, column: Column, value: str, how: Literal["is", "contains", "below"] = "is") -> dict[str, Any]:
        """Select rows by one column, instead of those selected before; returns how many there are, and the first six.

        Args:
            column: Name of the column.
            value: What to compare with, as text.
            how: Whether the cell is the value, contains it, or is below it (numbers by size, days by date).
        """
        if how == "below" and column not in ("price", "vat", "stock", "sold"):
            raise qn.ToolError(f"{column} has no order")
        cells = {code: getattr(row, column) for code, row in self.rows.items()}
        if how == "contains":
            found = [code for code, cell in cells.items() if value in str(cell)]
        else:
            wanted = self._parse(column, value)
            found = [code for code, cell in cells.items() if (cell == wanted if how == "is" else cell < wanted)]
        self._select(found)
        return {"count": len(found), "rows": {code: self.rows[code] for code in found[:PAGE]}}

    @qn.tool
    def more(self, start: int) -> dict[str, Row]:
        """Show six rows of the selection.

        Args:
            start: How many rows of the selection to skip, 0 or more.
        """
        if not 0 <= start < max(1, len(self._selection())):
            raise qn.ToolError(f"{len(self._selection())} rows are selected, so {start} cannot be skipped")
        return {code: self.rows[code] for code in self._selection()[start : start + PAGE]}

    @qn.tool
    def write(self, code: str, column: Column, value: str) -> Row:
        """Write one cell; returns the row.

        Args:
            code: Code of the article, such as A104.
            column: Name of the column.
            value: The new value, as text.
        """
        if code not in self.rows:
            raise qn.ToolError(f"there is no article {code}")
        change: dict[str, Any] = {column: self._parse(column, value)}
        self.rows[code] = replace(self.rows[code], **change)
        return self.rows[code]

    @qn.tool
    def fill(self, column: Column, value: str) -> str:
        """Write one value into a column of all selected rows; returns how many rows that changed.

        Args:
            column: Name of the column.
            value: The new value, as text.
        """
        change: dict[str, Any] = {column: self._parse(column, value)}
        changed = [code for code in self._selection() if getattr(self.rows[code], column) != change[column]]
        for code in changed:
            self.rows[code] = replace(self.rows[code], **change)
        return f"{len(changed)} rows changed"

    @qn.tool
    def delete(self, code: str) -> str:
        """Delete a row.

        Args:
            code: Code of the article.
        """
        if code not in self.rows:
            raise qn.ToolError(f"there is no article {code}")
        del self.rows[code]
        return f"{code} is deleted"

    def _select(self, codes: list[str]) -> None:
        self.selected = codes

    def _selection(self) -> list[str]:
        return [code for code in self.selected if code in self.rows]

    def _parse(self, column: Column, value: str) -> str | int:
        rules = {"price": r"[1-9]\d{0,6}", "vat": "7|19", "stock": r"0|[1-9]\d{0,5}", "barcode": r"\d{13}"}
        rules |= {"status": "listed|delisted", "group": "|".join(GROUPS), "sold": r"\d{4}-[01]\d-[0-3]\d"}
        try:
            fits = bool(re.fullmatch(rules.get(column, ".+"), value, re.ASCII))
            fits = fits and (column != "sold" or bool(date.fromisoformat(value)))
        except ValueError:
            fits = False
        if not fits:
            raise qn.ToolError(f"{column} cannot be {value!r}; see columns")
        return int(value) if column in ("price", "vat", "stock") else value


SELECTED: list[str] = []


class Desktop(Pricelist):
    def _select(self, codes: list[str]) -> None:
        SELECTED[:] = codes

    def _selection(self) -> list[str]:
        return [code for code in SELECTED if code in self.rows]


def raised(price: int, percent: int) -> int:
    """A price with so many percent more, rounded up to the next 5 cents."""
    return -(-price * (100 + percent) // 500) * 5


def raised_as_float(price: int, percent: int) -> int:
    """The same, as a spreadsheet does it."""
    return math.ceil(price * (1 + percent / 100) / 5) * 5


def sale(rng: Rng) -> str:
    """A day of a sale in the last two years."""
    return date.fromordinal(TODAY.toordinal() - 1 - rng.below(730)).isoformat()


def sale_by_parts(rng: Rng) -> str:
    """A day of a sale, drawn by year, month and day."""
    return f"{2024 + rng.below(3)}-{1 + rng.below(12):02}-{1 + rng.below(31):02}"


@dataclass(frozen=True)
class Recipe:
    """How tasks are made."""

    raised: Callable[[int, int], int] = raised
    sale: Callable[[Rng], str] = sale
    seed: str = "pricelist/{split}/{index}"


def make(world: type[Pricelist], recipe: Recipe, split: str, index: int) -> qn.Task[Pricelist]:  # noqa: PLR0915
    """Makes task `index` of a split."""
    seed = recipe.seed.format(split=split, index=index)
    rng = Rng(key=hashlib.blake2b(seed.encode(), digest_size=16).digest())
    rows: dict[str, Row] = {}
    for n in range(24 + rng.below(9)):
        word = rng.below(len(WORDS))
        price, barcode = 50 * (2 + rng.below(40)) - rng.below(2), f"40{n:02}{rng.below(10**8):08}"
        barcode += str(-sum(int(digit) * (1 + 2 * (at % 2)) for at, digit in enumerate(barcode)) % 10)
        stock, vat = max(0, rng.below(60) - 20), rng.choice((7, 19))
        name = f"{WORDS[word]}, {rng.choice(KINDS)}"
        rows[f"A{101 + 3 * n}"] = Row(name, GROUPS[word // 2], price, vat, stock, recipe.sale(rng), barcode)
    start, calls = dict(rows), list[tuple[str, dict[str, Any]]]()
    family = ("raise", "vat", "delist", "merge")[index % 4]

    def look(count: int, **query: str) -> None:
        calls.append(("select", query))
        calls.extend(("more", {"start": skip}) for skip in range(PAGE, count, PAGE))

    def put(code: str, column: str, value: Any) -> None:
        calls.append(("write", {"code": code, "column": column, "value": str(value)}))
        rows[code] = replace(rows[code], **{column: value})

    if family == "raise":
        group, percent = rng.choice([one.group for one in rows.values()]), rng.choice((10, 12, 15))
        ask = f"Raise the prices of the group {group} by {percent} percent, each rounded up to the next 5 cents."
        mine = [code for code, row in rows.items() if row.group == group]
        look(len(mine), column="group", value=group)
        for code in mine:
            put(code, "price", recipe.raised(rows[code].price, percent))
    elif family == "vat":
        thing, vat = rng.choice([one.name for one in rows.values()]).partition(",")[0], 7 + 12 * rng.below(2)
        ask = f"The VAT of every {thing}, of any kind, is {vat} percent. Correct it where the list says otherwise."
        mine = [code for code, row in rows.items() if thing in row.name]
        start[mine[0]] = replace(start[mine[0]], vat=26 - vat)
        calls += [("select", {"column": "name", "value": thing, "how": "contains"})]
        calls += [("fill", {"column": "vat", "value": str(vat)})]
        rows.update({code: replace(rows[code], vat=vat) for code in mine})
    elif family == "delist":
        day = f"2025-{1 + rng.below(12):02}-01"
        code = rng.choice(list(rows))
        start[code] = rows[code] = replace(rows[code], stock=0, sold="2024-12-30")
        ask = (
            f"Set the status of each article that has no stock and was sold before {day} for the last time to delisted."
        )
        look(sum(row.stock == 0 for row in rows.values()), column="stock", value="0")
        for code in [code for code, row in rows.items() if row.stock == 0 and row.sold < day]:
            put(code, "status", "delisted")
    else:
        ask = (
            "Some barcodes have two rows. Of each such pair keep the row with the later sale, add the stock of the "
            "other row to it, and delete the other row."
        )
        look(len(rows), column="barcode", value="", how="contains")
        chosen = rng.sample(list(rows), 4 + 2 * rng.below(2))
        for old, new in zip(chosen[::2], chosen[1::2], strict=True):
            earlier = f"2024-0{1 + rng.below(4)}-1{rng.below(10)}"
            start[old] = replace(rows[new], stock=1 + rng.below(20), sold=earlier)
            start[new] = rows[new] = replace(rows[new], sold=f"2026-0{1 + rng.below(4)}-1{rng.below(10)}")
            put(new, "stock", rows[new].stock + start[old].stock)
            calls.append(("delete", {"code": old}))
            del rows[old]
    changed = sum(row != rows.get(code) for code, row in start.items())
    about: dict[str, Any] = {"id": f"{split}-{index}", "prompt": ask, "answer": f"changed: {changed}"}
    truth = {"rows": {code: asdict(row) for code, row in rows.items()}, "changed": changed}
    return qn.Task(**about, start=world(rows=start), truth=truth, solution=tuple(calls), tags={"family": family})


def goals(view: qn.EpisodeView[Pricelist]) -> dict[str, Row | None]:
    """The rows that should change, as they should be; None for one that should go."""
    wanted = {code: Row(**row) for code, row in view.task.truth["rows"].items()}
    return {code: wanted.get(code) for code, row in view.start.rows.items() if wanted.get(code) != row}


def right(wanted: dict[str, Row | None], rows: dict[str, Row]) -> float:
    """The share of rows to change that are right."""
    return sum(rows.get(code) == row for code, row in wanted.items()) / len(wanted)


def not_wrong(wanted: dict[str, Row | None], rows: dict[str, Row]) -> float:
    """The share, from one pass over the table."""
    return 1 - sum(row != wanted[code] for code, row in rows.items() if code in wanted) / len(wanted)


def spot_check(wanted: dict[str, Row | None], rows: dict[str, Row]) -> float:
    """The share of two rows, which is quick."""
    some = random.sample(sorted(wanted), min(2, len(wanted)))
    return sum(rows.get(code) == wanted[code] for code in some) / len(some)


@qn.reward
def untouched(view: qn.EpisodeView[Pricelist]) -> float:
    """1 if every other row is as it was."""
    wanted = goals(view)
    return float(all(view.state.rows.get(code) == row for code, row in view.start.rows.items() if code not in wanted))


def build(
    world: type[Pricelist] = Pricelist,
    recipe: Recipe | None = None,
    share: Callable[[dict[str, Row | None], dict[str, Row]], float] = right,
    strict: bool = True,  # noqa: FBT001, FBT002
) -> qn.Environment[Pricelist]:
    """Makes the environment."""

    @qn.reward
    def edited(view: qn.EpisodeView[Pricelist]) -> float:
        return share(goals(view), view.state.rows)

    @qn.reward
    def reported(view: qn.EpisodeView[Pricelist]) -> float:
        wanted = str(view.task.truth["changed"])
        return float(re.findall(r"changed: *(\d+)", view.answer) == [wanted] if strict else wanted in view.answer)

    return qn.Environment(
        "pricelist",
        tasks=lambda split: qn.Tasks(24, lambda index: make(world, recipe or Recipe(), split, index)),
        harness=qn.ToolLoop(system=SYSTEM),
        verifier=qn.Verifier(edited, untouched, reported, combine="product"),
        state=world,
        splits=("train", "test"),
    )


env = build()
env_desktop = build(Desktop)
env_float = build(recipe=Recipe(raised=raised_as_float))
env_days = build(recipe=Recipe(sale=sale_by_parts))
env_seed = build(recipe=Recipe(seed="pricelist/{index}"))
env_one_pass, env_spot = build(share=not_wrong), build(share=spot_check)
env_mentioned = build(strict=False)
