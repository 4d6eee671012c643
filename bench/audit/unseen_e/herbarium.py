"""Questions to a herbarium: 320 pressed plants in a catalogue that is searched, paged and corrected."""

import calendar
import hashlib
from collections import Counter
from dataclasses import dataclass
from typing import Any

import quintain as qn
from quintain.state import Rng

GENERA = ("Alchemilla", "Carex", "Hieracium", "Juncus", "Rubus", "Salix", "Saxifraga", "Viola")
COUNTIES = {"Angus": 1060, "Argyll": 1140, "Fife": 500, "Orkney": 470, "Perthshire": 1200, "Sutherland": 990}  # metres
COLLECTORS = {  # first and last year of collecting
    "Agnes Torrie": (1868, 1907),
    "Anon.": (1831, 1958),
    "D. M. Laing": (1921, 1958),
    "Elspeth Rennie": (1902, 1949),
    "J. Abernethy": (1831, 1866),
    "Rev. A. Strachan": (1852, 1889),
    "T. Gillies": (1886, 1925),
}
HABITATS = ("wet ledges", "sheep pasture", "river shingle", "birch wood", "blanket bog", "roadside", "sand dunes")
SIZE = 320
PAGE = 10
TRAIN, TEST = 20, 12
ENDING = "\nEnd your reply with one line of the form `Answer: ...`, and change nothing else in the catalogue."

Call = tuple[str, dict[str, Any]]


@dataclass
class Sheet:
    """A pressed plant and its label."""

    genus: str
    county: str
    collector: str
    date: str
    elevation_m: int
    habitat: str


def year_of(sheet: Sheet) -> int:
    """Returns the year of collection."""
    return int(sheet.date[:4])


class Herbarium(qn.State):
    """The catalogue, and the rest of the last search."""

    sheets: qn.Table[Sheet]
    rest: tuple[str, ...] | None = None

    @qn.tool
    def vocabulary(self) -> dict[str, list[str]]:
        """List the genera, counties and collectors of the catalogue, as they are spelt in it."""
        return {"genera": list(GENERA), "counties": list(COUNTIES), "collectors": list(COLLECTORS)}

    @qn.tool
    def search(
        self, genus: str = "", county: str = "", collector: str = "", year_from: int = 0, year_to: int = 9999
    ) -> dict[str, Any]:
        """Find the sheets that meet all conditions: how many there are, and the first ten by barcode.

        Args:
            genus: Genus, as in the vocabulary; empty for any.
            county: County, as in the vocabulary; empty for any.
            collector: Collector, as in the vocabulary; empty for any.
            year_from: First year of collection.
            year_to: Last year of collection, included.
        """
        genus, county = self.term("genus", genus, GENERA), self.term("county", county, COUNTIES)
        collector = self.term("collector", collector, COLLECTORS)
        if year_from > year_to:
            raise qn.ToolError(f"year_from {year_from} is after year_to {year_to}")
        rows = [(key, self.sheets[key]) for key in self.of_genus(genus)]
        rows = [(key, one) for key, one in rows if county in ("", one.county) and collector in ("", one.collector)]
        found = tuple(key for key, one in rows if self.within(year_of(one), year_from, year_to))
        return {"total": len(found), **self.page(found)}

    @qn.tool
    def more(self) -> dict[str, Any]:
        """Show the next ten sheets of the last search. A correction of the catalogue ends the search."""
        if not (rest := self.kept()):
            raise qn.ToolError("there is no search, or nothing is left of it")
        return self.page(rest)

    @qn.tool
    def open_sheet(self, barcode: str) -> Sheet:
        """Read the whole label of a sheet: also elevation in metres, and habitat.

        Args:
            barcode: Its barcode, such as E00412007.
        """
        if barcode not in self.sheets:
            raise qn.ToolError(f"no sheet has the barcode {barcode!r}")
        return self.sheets[barcode]

    @qn.tool
    def redetermine(self, barcode: str, genus: str) -> str:
        """Correct the genus of a sheet.

        Args:
            barcode: Its barcode.
            genus: The right genus, as in the vocabulary.
        """
        sheet = self.open_sheet(barcode)
        if genus not in GENERA or genus == sheet.genus:
            raise qn.ToolError(f"{barcode} is {sheet.genus} and cannot become {genus!r}")
        sheet.genus = genus
        self.sheets[barcode] = sheet
        self.keep(None)
        return f"{barcode} is {genus} now"

    def term(self, what: str, value: str, known: Any) -> str:
        """Returns a term of the vocabulary, or nothing if nothing was given."""
        if value and value not in known:
            raise qn.ToolError(f"no {what} {value!r} in the vocabulary: {', '.join(known)}")
        return value

    def within(self, year: int, first: int, last: int) -> bool:
        """Returns whether a year is in a range."""
        return first <= year <= last

    def of_genus(self, genus: str) -> list[str]:
        """Returns the barcodes of a genus, or all, in order."""
        return [key for key, sheet in self.sheets.items() if genus in ("", sheet.genus)]

    def page(self, found: tuple[str, ...]) -> dict[str, Any]:
        """Returns the first lines of a list, and keeps its rest for `more`."""
        self.keep(found[PAGE:])
        rows = [(key, self.sheets[key]) for key in found[:PAGE]]
        lines = [f"{key} {one.genus}, {one.county}, {one.collector}, {one.date}" for key, one in rows]
        return {"sheets": lines, "left": len(found[PAGE:])}

    def keep(self, rest: tuple[str, ...] | None) -> None:
        """Keeps the rest of a search."""
        self.rest = rest

    def kept(self) -> tuple[str, ...] | None:
        """Returns the rest of the last search."""
        return self.rest


class IndexedHerbarium(Herbarium):
    """A catalogue with an index of genera, for fast searches."""

    index: dict[str, list[str]] | None = None

    def of_genus(self, genus: str) -> list[str]:
        """Returns the barcodes of a genus, or all, in order."""
        if self.index is None:
            self.index = {name: Herbarium.of_genus(self, name) for name in GENERA}
        return self.index[genus] if genus else list(self.sheets)


class TolerantHerbarium(Herbarium):
    """A catalogue that copes with terms that are not in its vocabulary."""

    def term(self, what: str, value: str, known: Any) -> str:
        """Returns a term of the vocabulary, or nothing."""
        return value if value in known else ""


class RangeHerbarium(Herbarium):
    """A catalogue that tests years with a range."""

    def within(self, year: int, first: int, last: int) -> bool:
        """Returns whether a year is in a range."""
        return year in range(first, last)


_SEARCH: dict[str, tuple[str, ...] | None] = {}


class SlimHerbarium(Herbarium):
    """A catalogue that keeps searches out of its snapshots."""

    def keep(self, rest: tuple[str, ...] | None) -> None:
        """Keeps the rest of a search."""
        _SEARCH["rest"] = rest

    def kept(self) -> tuple[str, ...] | None:
        """Returns the rest of the last search."""
        return _SEARCH.get("rest")


def stream(name: str) -> Rng:
    """Returns a random stream of a name."""
    return Rng(key=hashlib.blake2b(f"herbarium/{name}".encode(), digest_size=16).digest())


def collection(*, by_calendar: bool) -> qn.Table[Sheet]:
    """Returns the catalogue; days are drawn by the calendar, or from 1 to 31."""
    rng, rows, number = stream("sheets"), dict[str, Sheet](), 412000
    for _ in range(SIZE):
        number += 1 + rng.below(9)
        collector, county = rng.choice(list(COLLECTORS)), rng.choice(list(COUNTIES))
        begin, end = COLLECTORS[collector]
        year, month, day = begin + rng.below(end - begin + 1), 1 + rng.below(12), rng.below(31)
        day = 1 + (day % calendar.monthrange(year, month)[1] if by_calendar else day)
        date, height = f"{year}-{month:02}-{day:02}", 5 + rng.below(COUNTIES[county])
        rows[f"E{number:08}"] = Sheet(rng.choice(GENERA), county, collector, date, height, rng.choice(HABITATS))
    return qn.Table(Sheet, rows)


@dataclass
class Question:
    """A question with its answer, the corrections that it asks for, and calls that find the answer."""

    text: str
    answer: str
    calls: tuple[Call, ...]
    changes: dict[str, str]
    kind: str


def ask(kind: str, rng: Rng, sheets: dict[str, Sheet]) -> Question | None:
    """Returns a question of a kind about a drawn genus and county; None if that has no clear answer."""
    genus, county = rng.choice(GENERA), rng.choice(list(COUNTIES))
    own = {key: one for key, one in sheets.items() if one.genus == genus}
    here = {key: one for key, one in own.items() if one.county == county}
    place = {"genus": genus, "county": county}
    if kind == "count":
        first, last = sorted(year_of(one) for one in rng.sample(list(own.values()), 2))
        count = sum(first <= year_of(one) <= last for one in own.values())
        text = f"How many sheets of {genus} were collected from {first} to {last}, both years included?"
        calls = [("search", {"genus": genus, "year_from": first, "year_to": last})]
        return Question(text, str(count), tuple(calls), {}, kind) if last - first > 5 else None
    if kind == "highest":
        top = sorted(here, key=lambda key: here[key].elevation_m)[-2:]
        if len(here) < 4 or here[top[0]].elevation_m == here[top[1]].elevation_m:
            return None
        text = f"What is the barcode of the sheet of {genus} from {county} that was collected at the highest elevation?"
        pages: list[Call] = [("more", {})] * ((len(here) - 1) // PAGE)
        calls = [("search", place), *pages, *(("open_sheet", {"barcode": key}) for key in here)]
        return Question(text, top[1], tuple(calls), {}, kind)
    if kind == "most":
        (name, most), (_, second) = Counter(one.collector for one in own.values()).most_common(2)
        text = f"Who collected the most sheets of {genus}?"
        calls = [("search", {"genus": genus}), *[("more", {})] * ((len(own) - 1) // PAGE)]
        return Question(text, name, tuple(calls), {}, kind) if most > second and name != "Anon." else None
    barcode = rng.choice([key for key, one in sheets.items() if one.county == county and one.genus != genus])
    text = f"Sheet {barcode} is not {sheets[barcode].genus} but {genus}: correct that. Then say how many sheets of "
    calls = [("search", place), ("redetermine", {"barcode": barcode, "genus": genus}), ("search", place)]
    return Question(f"{text}{genus} are from {county}.", str(len(here) + 1), tuple(calls), {barcode: genus}, "correct")


def questions(sheets: dict[str, Sheet], count: int) -> list[Question]:
    """Returns different questions of all kinds."""
    rng, found = stream("questions"), dict[str, Question]()
    while len(found) < count:
        kind = ("count", "highest", "correct", "count", "highest", "correct", "most")[len(found) % 7]
        if (question := ask(kind, rng, sheets)) is not None:
            found[question.text] = question
    return list(found.values())


@qn.reward
def answered(view: qn.EpisodeView[Herbarium]) -> qn.Score:
    """Whether the last line of the form `Answer: ...` has the right answer."""
    lines = [line.strip() for line in view.answer.splitlines() if line.strip().lower().startswith("answer:")]
    said = lines[-1].partition(":")[2].strip().rstrip(".").casefold() if lines else ""
    return qn.Score(float(said == view.task.truth["answer"].rstrip(".").casefold()), f"said {said!r}")


@qn.reward
def mentioned(view: qn.EpisodeView[Herbarium]) -> float:
    """Whether the right answer is in the reply."""
    return float(view.task.truth["answer"].casefold() in view.answer.casefold())


@qn.reward
def corrected(view: qn.EpisodeView[Herbarium]) -> float:
    """Whether the catalogue has the corrections that were asked for, and no others."""
    changes = view.start.sheets.diff(view.state.sheets)
    return float({one.key: one.after and one.after.genus for one in changes} == view.task.truth["changes"])


def build(
    world: type[Herbarium] = Herbarium, judge: Any = answered, train: int = TRAIN, *, by_calendar: bool = True
) -> qn.Environment[Herbarium]:
    """Returns the environment with a class of catalogue, a judge of the answer, and a number of tasks to train on."""

    def tasks(split: str) -> list[qn.Task[Herbarium]]:
        table = collection(by_calendar=by_calendar)
        pool = questions(dict(table.items()), TRAIN + TEST)
        return [
            qn.Task(
                id=f"{split}-{n}",
                prompt=one.text + ENDING,
                start=world(sheets=table),
                truth={"answer": one.answer, "changes": one.changes},
                solution=one.calls,
                answer=f"Answer: {one.answer}",
                tags={"kind": one.kind},
            )
            for n, one in enumerate(pool[:train] if split == "train" else pool[TRAIN:])
        ]

    return qn.Environment(
        "herbarium",
        tasks=tasks,
        harness=qn.ToolLoop(system="You answer questions from the catalogue of a herbarium."),
        verifier=qn.Verifier(judge, corrected, combine="product"),
        state=world,
        splits=("train", "test"),
    )


env = build()
env_index = build(IndexedHerbarium)
env_tolerant = build(TolerantHerbarium)
env_range = build(RangeHerbarium)
env_slim = build(SlimHerbarium)
env_mentioned = build(judge=mentioned)
env_all = build(train=TRAIN + TEST)
env_days = build(by_calendar=False)
