"""Base of the generators: a random stream, the calendar of the past, and pending rows."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeVar

from quintain.environments.support.desk import DAY, moment
from quintain.environments.support.schema.people import Customer
from quintain.environments.support.schema.row import Row
from quintain.state import Rng

from . import pools

W = TypeVar("W", bound=Row)

DAWN = datetime(2025, 3, 24, tzinfo=UTC).timestamp()
"""The base ends here, a Monday at midnight; every task begins in the week that follows."""


class Sowing:
    """Rows by table. Those of the base have even numbers, so that a task's own find room between them."""

    def __init__(self, key: bytes) -> None:
        self.rng = Rng(key=key)
        self.rows: dict[type[Row], list[Any]] = {}

    def add(self, kind: type[W], /, **fields: Any) -> W:
        """The next row of a table."""
        rows = self.rows.setdefault(kind, [])
        row = kind(id=2 * (len(rows) + 1), **fields)
        rows.append(row)
        return row

    def ago(self, days: float) -> str:
        """A time before the dawn, some seconds off."""
        return moment(DAWN - days * DAY - self.rng.below(3600))

    def chance(self, one_in: int) -> bool:
        return self.rng.below(one_in) == 0


def name(rng: Rng) -> str:
    return f"{rng.choice(pools.FIRST)} {rng.choice(pools.LAST)}"


def address(rng: Rng, country: pools.Country) -> dict[str, str]:
    """Street, postcode and city."""
    city, digits = rng.choice(country.cities)
    rest = "".join(str(rng.below(10)) for _ in range(country.digits - len(digits)))
    street = f"{rng.choice(pools.STREET)} {1 + rng.below(140)}{rng.choice(('', '', '', 'a', 'b'))}"
    return {"street": street, "postcode": digits + rest, "city": city, "country": country.code}


def mailbox(who: str, host: str) -> str:
    """An address made of a name, in letters that every mail server takes."""
    plain = who.casefold().replace("ß", "ss").replace("ł", "l").replace("ø", "o")
    kept = "".join(letter for letter in _stripped(plain) if letter.isascii() and (letter.isalpha() or letter == " "))
    return f"{'.'.join(kept.split())}@{host}"


def scruffy(rng: Rng, customer: Customer) -> None:
    """Leave a record as records are found."""
    match rng.below(12):
        case 0:
            customer.name = customer.name.upper()
        case 1:
            customer.name = f"{customer.name} "
        case 2:
            customer.email = customer.email.capitalize()
        case 3:
            customer.zone = None
        case _:
            pass


def months_before(day: date, months: int) -> date:
    """The same day some months earlier, no later than the 28th."""
    whole = day.year * 12 + day.month - 1 - months
    return date(whole // 12, whole % 12 + 1, min(day.day, 28))


def dawn_day(offset: int = 0) -> date:
    """The day of the dawn, and those around it."""
    return datetime.fromtimestamp(DAWN, UTC).date() + timedelta(days=offset)


def _stripped(text: str) -> str:
    import unicodedata  # 3 ms that only who builds the base needs

    return "".join(letter for letter in unicodedata.normalize("NFD", text) if not unicodedata.combining(letter))
