"""Hotel portal: a search with filters, availability and pages; a final choice ends the episode."""

import datetime as dt
from typing import Annotated

import msgspec
from msgspec import Meta

import quintain as qn
from quintain.state import Rng

CITIES = ("Bergen", "Ghent", "Lucca", "Porto")
AMENITIES: tuple[str, ...] = ("bar", "garden", "gym", "parking", "pool", "sauna")
FIRST, END = dt.date(2026, 3, 1), dt.date(2026, 4, 1)
PAGE_SIZE = 4


class Hotel(msgspec.Struct, frozen=True):
    """One hotel; `full` are the nights, by their first day, on which no room is left."""

    id: str
    name: str
    city: str
    stars: int
    price_cents: int
    amenities: list[str]
    full: list[dt.date]


class Hit(msgspec.Struct):
    id: str
    name: str
    stars: int
    price_cents: int


class Hits(msgspec.Struct):
    total: int
    page: int
    pages: int
    hotels: list[Hit]


def nights(check_in: dt.date, count: int) -> list[dt.date]:
    return [check_in + dt.timedelta(days=n) for n in range(count)]


class Portal(qn.State):
    hotels: qn.Table[Hotel]
    chosen: str = ""

    @qn.tool
    def search(
        self,
        city: str,
        check_in: dt.date,
        stay: Annotated[int, Meta(ge=1, le=7)],
        min_stars: Annotated[int, Meta(ge=1, le=5)] = 1,
        page: Annotated[int, Meta(ge=1, le=1000)] = 1,
    ) -> Hits:
        """List hotels that have a room on every night of a stay, the cheapest first, four on a page.

        Hotels without a room on one of the nights are left out. Nights from 2026-03-01 to 2026-03-31 are on sale.
        `total` counts all hits. Prices are in cents for one night. `hotel` shows what a hotel offers.

        Args:
            city: Name of the city.
            check_in: Day of arrival.
            stay: How many nights, 1 to 7.
            min_stars: Fewest stars.
            page: Number of the page, from 1.
        """
        if city not in CITIES:
            raise qn.ToolError(f"no hotels in {city!r}; cities: {', '.join(CITIES)}")
        if not FIRST <= check_in < END or check_in + dt.timedelta(days=stay) > END:
            raise qn.ToolError(f"{stay} nights from {check_in} are not on sale; nights {FIRST} to 2026-03-31 are")
        wanted = set(nights(check_in, stay))
        rows = [row for row in self.hotels.values() if row.city == city and row.stars >= min_stars]
        free = sorted((row for row in rows if not wanted & set(row.full)), key=lambda row: (row.price_cents, row.id))
        pages = max(1, -(-len(free) // PAGE_SIZE))
        if page > pages:
            raise qn.ToolError(f"page {page} does not exist; pages: 1 to {pages}")
        shown = free[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]
        return Hits(len(free), page, pages, [Hit(row.id, row.name, row.stars, row.price_cents) for row in shown])

    @qn.tool
    def hotel(self, id: str) -> dict[str, object]:
        """Show a hotel: name, city, stars, price of one night in cents, and amenities. It shows no availability.

        Args:
            id: Id of the hotel, from a search.
        """
        row = self._row(id)
        return {"id": row.id, "name": row.name, "city": row.city, "stars": row.stars, "price_cents": row.price_cents,
                "amenities": row.amenities}  # fmt: skip

    @qn.tool
    def choose(self, id: str) -> str:
        """Choose a hotel. The choice is final and ends the task.

        Args:
            id: Id of the hotel, from a search.
        """
        if self.chosen:
            raise qn.ToolError(f"{self.chosen} is chosen already, and the choice is final")
        self.chosen = self._row(id).id
        self.finish("a hotel was chosen")
        return f"chosen: {self.chosen}"

    def _row(self, id: str) -> Hotel:
        if id not in self.hotels:
            raise qn.ToolError(f"no hotel {id!r}; ids are such as H12, see `search`")
        return self.hotels[id]


def catalogue() -> qn.Table[Hotel]:
    """Returns 40 hotels; prices differ, so the cheapest is always one."""
    rng = Rng(key=b"hotel_search/catalogue")
    prices = rng.sample(range(45, 260), 40)
    rows: list[Hotel] = []
    for n in range(40):
        full = sorted(rng.sample(nights(FIRST, 31), 7))
        name = f"{('Blue', 'Old', 'Grand', 'Little')[n // 4 % 4]} {('Anchor', 'Lime', 'Court')[n // 16]} {n + 1}"
        amenities = sorted(rng.sample(AMENITIES, 3))
        rows.append(Hotel(f"H{n + 1}", name, CITIES[n % 4], 2 + rng.below(4), 100 * prices[n], amenities, full))
    return qn.Table(Hotel, {row.id: row for row in rows})


CATALOGUE = catalogue()


def make(split: str, number: int) -> qn.Task[Portal]:
    rng = Rng(key=f"hotel_search/{split}/{number}".encode())
    city, rows = CITIES[number % 4], list(CATALOGUE.values())
    while True:  # Most draws have a hit, so this ends after a few.
        check_in, stay = FIRST + dt.timedelta(days=rng.below(25)), 2 + rng.below(3)
        stars, amenity = 2 + rng.below(3), rng.choice(AMENITIES)
        found = [row for row in rows if row.city == city and row.stars >= stars and amenity in row.amenities]
        free = [row for row in found if not set(nights(check_in, stay)) & set(row.full)]
        if free:
            break
    best = min(free, key=lambda row: row.price_cents)
    search = {"city": city, "check_in": f"{check_in}", "stay": stay, "min_stars": stars}
    return qn.Task(
        id=f"{split}-{number}",
        prompt=(
            f"I arrive in {city} on {check_in} and stay {stay} nights. The hotel must have at least {stars} stars, "
            f"offer this amenity: {amenity}, and have a room on every night. Choose the cheapest such hotel."
        ),
        start=Portal(hotels=CATALOGUE.fork()),
        truth=best.id,
        solution=(("search", search), ("hotel", {"id": best.id}), ("choose", {"id": best.id})),
    )


@qn.reward
def cheapest(view: qn.EpisodeView[Portal]) -> qn.Score:
    said, right = view.state.chosen or "no hotel", view.task.truth
    return qn.Score(float(said == right), f"chose {said}, the cheapest is {right}")


env = qn.Environment(
    "hotel_search",
    tasks=lambda split: qn.Tasks(12, lambda number: make(split, number)),
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(cheapest),
    state=Portal,
)
