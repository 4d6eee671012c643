"""A warehouse that answers for unknown articles with a default row, and a recount that may rightly find nothing."""

from typing import Annotated, Literal

import msgspec

import quintain as qn

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=20)]
Count = Annotated[int, msgspec.Meta(ge=1, le=1000)]
Shelf = Literal["A", "B", "C"]


class Row(msgspec.Struct):
    country: str
    shelf: str
    booked: int
    counted: int


class Line(msgspec.Struct):
    article: str
    stock: int = 0
    country: str = "unknown"
    on_order: int = 0


SEED = {
    "bolt": Row("Italy", "A", 40, 40),
    "nut": Row("Spain", "A", 3, 3),
    "rivet": Row("Italy", "B", 12, 9),
    "screw": Row("Poland", "B", 7, 7),
    "washer": Row("Spain", "C", 25, 25),
    "nail": Row("Poland", "C", 2, 2),
}


class Warehouse(qn.State):
    rows: dict[str, Row]
    orders: dict[str, int] = {}
    recounted: list[Shelf] = []

    @qn.tool
    def look_up(self, article: Name) -> Line:
        """Read booked stock, country of origin and pieces on order of an article.

        An article that the warehouse does not know has stock 0 and country "unknown".

        Args:
            article: Its name, 1 to 20 characters.
        """
        ordered = self.orders.get(article, 0)
        if article not in self.rows:
            return Line(article, on_order=ordered)
        return Line(article, self.rows[article].booked, self.rows[article].country, ordered)

    @qn.tool
    def articles(self) -> list[str]:
        """List the known articles, sorted."""
        return sorted(self.rows)

    @qn.tool
    def recount(self, shelf: Shelf) -> dict[str, str]:
        """Count the pieces on a shelf, and correct the booked stock.

        Returns the corrections by article; none if all pieces are there.

        Args:
            shelf: The shelf.
        """
        if shelf not in self.recounted:
            self.recounted.append(shelf)
        found: dict[str, str] = {}
        for name, row in self.rows.items():
            if row.shelf == shelf and row.booked != row.counted:
                found[name] = f"{row.booked} booked, {row.counted} counted"
                row.booked = row.counted
        return found

    @qn.tool
    def order(self, article: Name, count: Count) -> Line:
        """Order pieces of an article, known or not; they add to what is on order, and do not arrive today.

        Args:
            article: Its name, 1 to 20 characters.
            count: How many, 1 to 1000.
        """
        self.orders[article] = self.orders.get(article, 0) + count
        return self.look_up(article)


# Each: what is asked for, orders, shelves to recount.
JOBS: list[tuple[str, dict[str, int], str]] = [
    ("Order 10 of each of these articles whose stock is below 5: bolt, nut, hinge, washer.",
     {"nut": 10, "hinge": 10}, ""),
    ("Order as many hooks (article hook) as are missing to 20.", {"hook": 20}, ""),
    ("Recount shelf C.", {}, "C"),
    ("Recount shelf B. Then order as many rivets as are missing to 12.", {"rivet": 3}, "B"),
    ("Recount all shelves.", {}, "ABC"),
    ("Order 5 of each of these articles whose country is unknown: screw, bracket, nail, dowel.",
     {"bracket": 5, "dowel": 5}, ""),
    ("Recount shelf A. If a stock differs, order 50 of that article; else order 1 bolt.", {"bolt": 1}, "A"),
]  # fmt: skip


def tasks(split: str) -> list[qn.Task[Warehouse]]:
    made: list[qn.Task[Warehouse]] = []
    for n, (prompt, orders, shelves) in enumerate(JOBS, 1):
        calls: list[tuple[str, dict[str, object]]] = [("recount", {"shelf": shelf}) for shelf in shelves]
        calls += [("order", {"article": article, "count": count}) for article, count in orders.items()]
        made.append(
            qn.Task(
                id=f"{split}-{n}",
                prompt=f"{prompt} Order nothing else, and recount no other shelf.",
                start=Warehouse(rows=msgspec.convert(msgspec.to_builtins(SEED), dict[str, Row])),
                truth={"orders": orders, "recounted": list(shelves)},
                solution=tuple(calls),
            )
        )
    return made


@qn.reward
def as_asked(view: qn.EpisodeView[Warehouse]) -> qn.Score:
    found = {"orders": view.state.orders, "recounted": sorted(view.state.recounted)}
    return qn.Score(float(found == view.task.truth), f"found {found}")


env = qn.Environment(
    "stock", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(as_asked), state=Warehouse, splits=("test",)
)
