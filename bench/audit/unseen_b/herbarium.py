"""herbarium: cleans the records of plant sheets, which volunteers typed from the labels, by the rules of the house."""

import calendar
import random
import re
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import msgspec

import quintain as qn

ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII")
CODES = {"Rwanda": "RW", "Peru": "PE", "Nepal": "NP", "Kenya": "KE", "Chile": "CL", "Austria": "AT", "Bolivia": "BO"}
FIELDS = ("collector", "date", "country", "altitude_m", "duplicate_of")
RULES = """Clean the batch of sheets. The label is right; the fields were typed from it, often wrongly. Rules:
- collector: surname, comma, initials: Kessler, A. M.; a name that the list of names lacks must be added to it first
- date: as 1931-07-03 (months on labels are Roman numerals); country: two capital letters of ISO 3166
- altitude_m: whole metres, rounded to the nearest; 1 ft is 0.3048 m; empty if the label has none
- sheets with the same collector and the same number are duplicates: mark the one with the higher id as a duplicate of
  the other, and leave its other fields as they are
Change nothing else. Then close the batch with a note that names the duplicate sheets by id, or says: no duplicates."""


class Stock(msgspec.Struct, frozen=True):
    """What labels are made of."""

    people: tuple[str, ...]
    places: tuple[tuple[str, str, str], ...]
    years: tuple[int, int]
    metres: tuple[int, int]


FIELD_WORK = Stock(
    ("Anna Maria Kessler", "Otto Brandt", "Lucie Moreau", "James H. Fraser", "Rosa Quispe", "Emil J. Novak",
     "Tenzin Lama", "Carl Friedrich Hauser", "Grace Wanjiru", "Paul Lindner"),
    (("Rwanda", "Nyungwe", "Hagenia abyssinica"), ("Peru", "Urubamba", "Polylepis racemosa"),
     ("Nepal", "Langtang", "Primula denticulata Sm."), ("Kenya", "Naro Moru", "Juniperus procera"),
     ("Chile", "Valle del Elqui", "Adesmia hystrix"), ("Austria", "Hohe Tauern", "Gentiana verna L."),
     ("Bolivia", "Coroico", "Alnus acuminata Kunth")),
    (1811, 1999),
    (1600, 2900),
)  # fmt: skip
PLACEHOLDERS = Stock(
    ("Test User", "Foo Bar", "Xxx Yyy", "Collector Two"),
    (("Peru", "Location 1", "Plant 1"), ("Peru", "Location 2", "Plant 2")),
    (2140, 2199),
    (30000, 90000),
)


class Sheet(msgspec.Struct):
    label: str
    collector: str
    date: str
    country: str
    altitude_m: int | None
    duplicate_of: str = ""


class Herbarium(qn.State):
    """The records of one batch."""

    sheets: qn.Table[Sheet]
    names: list[str]
    note: str = ""

    @qn.tool
    def list_sheets(self) -> list[str]:
        """List the ids of the sheets of the batch."""
        return list(self.sheets)

    @qn.tool
    def read_sheet(self, sheet: str) -> Sheet:
        """Read the label and the fields of a sheet.

        Args:
            sheet: Id of the sheet.
        """
        return self._sheet(sheet)

    @qn.tool
    def list_names(self) -> list[str]:
        """List the names of collectors that may be used."""
        return self._known()

    @qn.tool
    def add_name(self, name: str) -> str:
        """Add a collector to the list of names.

        Args:
            name: As Kessler, A. M.
        """
        if not re.fullmatch(r"[A-Z][a-z]+,( [A-Z]\.)+", name) or name in self._known():
            raise qn.ToolError(f"{name!r} is listed already, or not of the form Kessler, A. M.")
        self._known().append(name)
        return f"Added {name}."

    @qn.tool
    def set_field(self, sheet: str, field: Literal["collector", "date", "country", "altitude_m"], value: str) -> Sheet:
        """Set a field of a sheet; returns the sheet.

        Args:
            sheet: Id of the sheet.
            field: Name of the field.
            value: The new value; empty for no altitude.
        """
        found = self._sheet(sheet)
        if field == "altitude_m":
            if not re.fullmatch("[0-9]{0,5}", value):
                raise qn.ToolError(f"altitude_m must be whole metres, got {value!r}")
            found.altitude_m = int(value) if value else None
        elif self._is_valid(field, value):
            setattr(found, field, value)
        else:
            raise qn.ToolError(f"{value!r} is no {field} by the rules of the house")
        self.sheets[sheet] = found
        return found

    @qn.tool
    def mark_duplicate(self, sheet: str, of: str) -> str:
        """Mark a sheet as a duplicate of another one.

        Args:
            sheet: Id of the duplicate.
            of: Id of the sheet that is kept; empty to remove the mark.
        """
        found = self._sheet(sheet)
        if of == sheet or (of and of not in self.sheets):
            raise qn.ToolError(f"{sheet} cannot be a duplicate of {of!r}")
        found.duplicate_of = of
        self.sheets[sheet] = found
        return f"{sheet} is marked as a duplicate of {of}." if of else f"{sheet} is not marked."

    @qn.tool
    def close_batch(self, note: str) -> str:
        """Close the batch, which ends the work.

        Args:
            note: What the curator should know.
        """
        self.note = note
        self.finish("closed")
        return "Closed."

    def _sheet(self, sheet: str) -> Sheet:
        if sheet not in self.sheets:
            raise qn.ToolError(f"no sheet {sheet!r} in this batch")
        return self.sheets[sheet]

    def _known(self) -> list[str]:
        return self.names

    def _is_valid(self, field: str, value: str) -> bool:
        if field == "date":
            parts = re.fullmatch(r"([12][0-9]{3})-(0[1-9]|1[0-2])-([0-3][0-9])", value)
            return bool(parts and 1 <= int(parts[3]) <= calendar.monthrange(int(parts[1]), int(parts[2]))[1])
        return value in (self._known() if field == "collector" else CODES.values())


class SharedHerbarium(Herbarium):
    known: ClassVar[list[str]] = []

    def _known(self) -> list[str]:
        self.known.extend(name for name in self.names if name not in self.known)
        return self.known


def in_house(name: str) -> str:
    """A name by the rules of the house."""
    *given, surname = name.split()
    return f"{surname}, {' '.join(part[0] + '.' for part in given)}"


def label(rng: random.Random, stock: Stock, *, short_years: bool) -> tuple[str, Sheet]:
    """A label, and the clean sheet without it."""
    person, (country, place, plant) = rng.choice(stock.people), rng.choice(stock.places)
    day, month, career, (low, high) = rng.randrange(1, 29), rng.randrange(1, 13), rng.randrange(25), stock.years
    year = low + (high - low - 25) * stock.people.index(person) // len(stock.people) + career
    shown = f"{year % 100:02}" if short_years and rng.random() < 0.3 else year
    text = f"{plant} | leg. {person} no. {career * 90 + rng.randrange(1, 90)} | {day}.{ROMAN[month - 1]}.{shown}"
    metres, where = None, ""
    if (kind := rng.random()) < 0.4:
        metres = rng.randrange(*stock.metres, 10)
        where = f", {metres} m"
    elif kind < 0.8:
        feet = rng.randrange(*stock.metres, 100) // 100 * 300
        metres, where = round(feet * 0.3048), f", {feet} ft"
    date = f"{year}-{month:02}-{day:02}"
    return f"{text} | {country}, {place}{where}", Sheet("", in_house(person), date, CODES[country], metres)


def spoil(rng: random.Random, clean: Sheet, text: str) -> Sheet:
    """The sheet as a volunteer might have typed it."""
    typed = msgspec.structs.replace(clean, label=text)
    for field in rng.sample(FIELDS[:4], rng.choice((1, 2, 2, 3))):
        if field == "collector":
            typed.collector = rng.choice(
                (text.split("leg. ")[1].split(" no.", maxsplit=1)[0], clean.collector.replace(",", ""))
            )
        elif field == "date":
            day, month, year = text.split(" | ")[2].split(".")
            typed.date = rng.choice((f"{day}/{ROMAN.index(month) + 1}/{year}", f"{day}.{month}.{year}", year))
        elif field == "country":
            typed.country = text.split(" | ")[3].split(",", maxsplit=1)[0]
        elif clean.altitude_m is not None:
            ((amount, unit),) = re.findall("([0-9]+) (m|ft)$", text)
            typed.altitude_m = rng.choice((None, int(amount) * (10 if unit == "m" else 1)))
    return typed


def task(split: str, n: int, state: type[Herbarium], options: dict[str, Any]) -> qn.Task[Herbarium]:
    """Task n of a split: a batch of sheets."""
    name, one_pool, stock = f"{split}-{n}", options.get("one_pool", False), options.get("stock", FIELD_WORK)
    n += 20 * (one_pool and split == "test")
    rng = random.Random(f"herbarium/{n}" if one_pool else f"herbarium/{split}/{n}")  # noqa: S311
    first, clean, typed = rng.randrange(100, 900), dict[str, Sheet](), dict[str, Sheet]()
    for number in range(first, first + 5 + n % 3):
        text, sheet = label(rng, stock, short_years=options.get("short_years", False))
        clean[f"S{number}"], typed[f"S{number}"] = sheet, spoil(rng, sheet, text)
    ids = list(typed)
    doubles = ids[-1:] if n % 3 else []
    for double in doubles:  # The plant was pressed twice, and the label typed again.
        text = typed[ids[1]].label
        typed[double] = spoil(rng, clean[ids[1]], text)
        clean[double] = msgspec.structs.replace(typed[double], duplicate_of=ids[1])
    names = [in_house(name) for name in stock.people[: len(stock.people) * 2 // 3]]
    added, calls = list[str](), list[tuple[str, dict[str, Any]]]([("list_sheets", {}), ("list_names", {})])
    for sheet in ids:
        calls.append(("read_sheet", {"sheet": sheet}))
        if (person := clean[sheet].collector) != typed[sheet].collector and person not in [*names, *added]:
            added.append(person)
            calls.append(("add_name", {"name": person}))
        for field in FIELDS[:4]:
            if (value := getattr(clean[sheet], field)) != getattr(typed[sheet], field):
                calls.append(("set_field", {"sheet": sheet, "field": field, "value": f"{value}"}))
        if of := clean[sheet].duplicate_of:
            calls.append(("mark_duplicate", {"sheet": sheet, "of": of}))
    note = f"{doubles[0]} is a duplicate of {ids[1]}." if doubles else "All done, no duplicates."
    calls.append(("close_batch", {"note": note}))
    cells = {sheet: {field: getattr(row, field) for field in FIELDS} for sheet, row in clean.items()}
    listed = sorted({*names, *(row.collector for sheet, row in clean.items() if sheet not in doubles)})
    truth = {"cells": cells, "names": listed, "doubles": doubles, "kept": ids[1:2]}
    world, prompt = state(sheets=qn.Table(Sheet, typed), names=names), f"Batch {ids[0]} to {ids[-1]}. {RULES}"
    return qn.Task(id=name, prompt=prompt, start=world, truth=truth, solution=tuple(calls))


def cells(view: qn.EpisodeView[Herbarium]) -> tuple[list[bool], int]:
    """For each cell that was wrong, whether it is right now; and how many right ones are wrong now."""
    fixed, spoilt = [], 0
    for sheet, row in view.task.truth["cells"].items():
        for field, value in row.items():
            before, after = getattr(view.start.sheets[sheet], field), getattr(view.state.sheets[sheet], field)
            if before != value:
                fixed.append(after == value)
            else:
                spoilt += after != value
    return fixed, spoilt


@qn.reward
def clean(view: qn.EpisodeView[Herbarium]) -> float:
    """The share of the wrong cells that are right now."""
    fixed, _ = cells(view)
    return sum(fixed) / len(fixed)


@qn.reward
def clean_six(view: qn.EpisodeView[Herbarium]) -> float:
    """The work that was done, where six cells are a full batch."""
    fixed, _ = cells(view)
    return min(1.0, sum(fixed) / 6)


@qn.reward
def clean_sample(view: qn.EpisodeView[Herbarium]) -> float:
    """The share of right cells in a sample of three, as the curator checks."""
    fixed, _ = cells(view)
    return sum(random.sample(fixed, 3)) / 3


@qn.reward
def careful(view: qn.EpisodeView[Herbarium]) -> float:
    """Less for each cell that was right, and each name that is not needed."""
    _, spoilt = cells(view)
    return max(0.0, 1.0 - 0.25 * (spoilt + len(set(view.state.names) - set(view.task.truth["names"]))))


def ask_judge(note: str, doubles: list[str], kept: list[str]) -> str:
    """Stands in for a language model as judge; quotes the note and ends in a verdict."""
    named = set(re.findall("S[0-9]+", note))
    right = set(doubles) <= named <= {*doubles, *kept} if doubles else not named and "no duplicate" in note.lower()
    wanted = ", ".join(doubles) or "none"
    return f"The note to the curator: {note}\nDuplicates: {wanted}.\nVERDICT: {'yes' if right else 'no'}"


def judged(which: Callable[[list[str]], str]) -> Any:
    """The criterion of the note, with a function that picks the verdict."""

    @qn.reward
    def told(view: qn.EpisodeView[Herbarium]) -> float:
        reply = ask_judge(view.state.note, view.task.truth["doubles"], view.task.truth["kept"])
        return 1.0 if which(re.findall("VERDICT: (yes|no)", reply)) == "yes" else 0.5

    return told


def make(state: type[Herbarium] = Herbarium, check: Any = clean, pick: int = -1, **options: Any) -> qn.Environment[Any]:
    """The environment, with records, a verifier, and options for the tasks."""
    verifier = qn.Verifier(check, careful, judged(lambda verdicts: verdicts[pick]), combine="product")
    sizes = {"train": range(24), "test": range(12)}
    about: dict[str, Any] = {"harness": qn.ToolLoop(), "verifier": verifier, "state": state, "splits": tuple(sizes)}
    return qn.Environment("herbarium", tasks=lambda s: [task(s, n, state, options) for n in sizes[s]], **about)


env = make()
env_six_cells = make(check=clean_six)
env_spot_check = make(check=clean_sample)
env_short_years = make(short_years=True)
env_first_verdict = make(pick=0)
env_one_pool = make(one_pool=True)
env_shared_names = make(SharedHerbarium)
env_placeholders = make(stock=PLACEHOLDERS)
