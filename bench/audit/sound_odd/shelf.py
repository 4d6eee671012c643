"""A catalogue whose search ranks, stems words and forgives a typo; the cursor of its pages expires."""

from typing import Annotated, Literal

import msgspec

import quintain as qn

Query = Annotated[str, msgspec.Meta(min_length=1, max_length=60)]
BookId = Literal["B1", "B2", "B3", "B4", "B5", "B6", "B7", "B8", "B9"]
TITLES: dict[str, str] = {
    "B1": "Sailing alone",
    "B2": "The sails of Holland",
    "B3": "Painting harbours",
    "B4": "Harbour lights",
    "B5": "How boats sail and boats sink",
    "B6": "The painter and the garden",
    "B7": "Gardens of glass",
    "B8": "Cooking for sailors",
    "B9": "A painted harbour garden",
}
ENDINGS = ("ing", "ors", "ed", "er", "or", "s")
PAGE = 2
TYPO = 5  # letters


def stem(word: str) -> str:
    """Returns a word in lower case without the first of ENDINGS that it has, if three letters are left."""
    low = word.lower()
    return next((low[: -len(end)] for end in ENDINGS if low.endswith(end) and len(low) - len(end) >= 3), low)


def near(one: str, other: str) -> bool:
    """Tells if two different stems of five or more letters differ by one letter: replaced, missing or additional."""
    short, long = sorted((one, other), key=len)
    if len(short) < TYPO or len(long) - len(short) > 1:
        return False
    cut = len(long) > len(short)
    return any(long[:n] + long[n + 1 :] == (short if cut else short[:n] + short[n + 1 :]) for n in range(len(long)))


def points(query: str, title: str) -> int:
    """Returns the points of a title, as `search` says."""
    held = {stem(word) for word in title.split()}
    return sum(2 if one in held else any(near(one, two) for two in held) for one in {stem(w) for w in query.split()})


def ranked(query: str) -> list[str]:
    found = {book: points(query, title) for book, title in TITLES.items()}
    return sorted((book for book in found if found[book]), key=lambda book: (-found[book], book))


class Page(msgspec.Struct):
    books: dict[str, str]
    total: int
    cursor: str | None


class Shelf(qn.State):
    reserved: list[str] = []
    cursor: str | None = None
    rest: list[str] = []
    """What the pages after the cursor hold."""

    def _page(self, left: list[str], total: int) -> Page:
        self.rest = left[PAGE:]
        self.cursor = self.new_id("next-") if self.rest else None
        return Page({book: TITLES[book] for book in left[:PAGE]}, total, self.cursor)

    @qn.tool
    def search(self, query: Query) -> Page:
        """Search the titles; returns the first page of two books, the total, and a cursor if there are more books.

        Words are compared in small letters and without the first of the endings -ing, -ors, -ed, -er, -or, -s that
        they have, if three letters are left. Such a stem of the query counts 2 points if the title has it. It counts 1
        if both have five letters or more and one letter is replaced, missing or additional. Books with more points
        come first, equal ones by id.

        Each search ends the cursor of the one before. A cursor has a new name each time.

        Args:
            query: Words that are looked for, 1 to 60 characters.
        """
        found = ranked(query)
        return self._page(found, len(found))

    @qn.tool
    def more(self, cursor: str) -> Page:
        """Read the page after a cursor; the total counts the books from there. It uses the cursor up.

        Args:
            cursor: The newest cursor. It has expired after the next `search`, `more`, `reserve` or `release` that
                was not refused.
        """
        if cursor != self.cursor:
            raise qn.ToolError(f"the cursor {cursor!r} has expired or was never given; search again")
        return self._page(self.rest, len(self.rest))

    @qn.tool
    def reserve(self, book: BookId) -> list[str]:
        """Reserve a book; returns the reserved ones, sorted. The newest cursor expires.

        Args:
            book: Its id; it is not reserved yet.
        """
        if book in self.reserved:
            raise qn.ToolError(f"{book} is reserved already")
        self.reserved, self.cursor, self.rest = sorted([*self.reserved, book]), None, []
        return self.reserved

    @qn.tool
    def release(self, book: BookId) -> list[str]:
        """Release a reserved book; returns the reserved ones, sorted. The newest cursor expires.

        Args:
            book: Its id.
        """
        if book not in self.reserved:
            raise qn.ToolError(f"{book} is not reserved")
        self.reserved, self.cursor, self.rest = [one for one in self.reserved if one != book], None, []
        return self.reserved


# Each: what is asked for, a search that helps, books to be reserved.
JOBS: list[tuple[str, str, list[str]]] = [
    ("Reserve every book with a form of 'sail' in its title (sails, sailing, sailors).", "sail",
     ["B1", "B2", "B5", "B8"]),
    ("Reserve every book with 'harbour' or 'harbours' in its title.", "habour", ["B3", "B4", "B9"]),
    ("Reserve the one book whose title has both a form of 'paint' and 'harbour', and 'garden'.",
     "harbour paint garden", ["B9"]),
    ("Reserve every book with 'garden' or 'gardens' in its title.", "gardens", ["B6", "B7", "B9"]),
    ("Reserve the book that search ranks first for the query 'boats sinking'.", "boats sinking", ["B5"]),
    ("Reserve the two books that search ranks first and second for the query 'painter harbours'.",
     "painter harbours", ["B3", "B9"]),
]  # fmt: skip


def tasks(split: str) -> list[qn.Task[Shelf]]:
    made: list[qn.Task[Shelf]] = []
    for n, (prompt, query, books) in enumerate(JOBS, 1):
        pages = (len(ranked(query)) + PAGE - 1) // PAGE
        calls: list[tuple[str, dict[str, object]]] = [("search", {"query": query})]
        calls += [("more", {"cursor": f"next-{page}"}) for page in range(1, pages)]
        calls += [("reserve", {"book": book}) for book in books]
        made.append(
            qn.Task(
                id=f"{split}-{n}",
                prompt=f"{prompt} Nothing is reserved yet. You are judged by the reserved books: these and no others.",
                start=Shelf(),
                truth=books,
                solution=tuple(calls),
            )
        )
    return made


@qn.reward
def as_asked(view: qn.EpisodeView[Shelf]) -> qn.Score:
    return qn.Score(float(view.state.reserved == view.task.truth), f"reserved: {view.state.reserved}")


env = qn.Environment(
    "shelf", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(as_asked), state=Shelf, splits=("test",)
)
