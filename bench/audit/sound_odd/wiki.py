"""A wiki whose search reads an index; only `reindex` refreshes it, and each answer says of which revision it is."""

from typing import Annotated, Literal

import msgspec

import quintain as qn

Title = Literal["Harbour", "Market", "Museum", "Station", "Theatre"]
Line = Annotated[str, msgspec.Meta(min_length=1, max_length=60)]
Word = Annotated[str, msgspec.Meta(min_length=1, max_length=20)]
START: dict[str, str] = {
    "Harbour": "boats leave at noon",
    "Market": "open on friday at noon",
    "Museum": "closed on monday",
    "Station": "trains leave at midnight",
    "Theatre": "closed in august",
}


class Found(msgspec.Struct):
    as_of: str
    titles: list[str]


class Wiki(qn.State):
    pages: dict[str, str]
    indexed: dict[str, str]
    """What the pages held when the index was made."""
    revision: int = 1
    as_of: int = 1

    @qn.tool
    def read(self, title: Title) -> str:
        """Read the current text of a page.

        Args:
            title: Its title.
        """
        return self.pages[title]

    @qn.tool
    def write(self, title: Title, text: Line) -> str:
        """Replace the text of a page. The wiki gets a new revision, also if the text was the same.

        `search` finds the new text only after a `reindex`.

        Args:
            title: Its title.
            text: The new text, 1 to 60 characters.
        """
        self.pages[title] = text
        self.revision += 1
        return f"{title} is written, revision {self.revision}; the index is of revision {self.as_of}"

    @qn.tool
    def search(self, word: Word) -> Found:
        """Search the index for a whole word; returns titles, sorted, and the revision of which the index is.

        The index does not hold what was written after that revision; it holds what was replaced since.

        Args:
            word: 1 to 20 characters, compared to the letter.
        """
        titles = sorted(title for title, text in self.indexed.items() if word in text.split())
        note = "" if self.as_of == self.revision else f"; the wiki is at revision {self.revision}"
        return Found(f"as of revision {self.as_of}{note}", titles)

    @qn.tool
    def reindex(self) -> str:
        """Make the index anew, of the current revision."""
        self.indexed, self.as_of = dict(self.pages), self.revision
        return f"the index is of revision {self.as_of}"


Job = tuple[str, dict[str, str], bool]
# Each: what is asked for, pages that change, and whether the index must be fresh at the end or be as at the start.
JOBS: list[Job] = [
    ("The museum is closed on tuesday: let its page say 'closed on tuesday'.", {"Museum": "closed on tuesday"}, True),
    (
        "Boats and trains leave at dawn: write 'boats leave at dawn' and 'trains leave at dawn' on the two pages.",
        {"Harbour": "boats leave at dawn", "Station": "trains leave at dawn"},
        True,
    ),
    ("Let the page of the theatre say 'open all year'.", {"Theatre": "open all year"}, False),
    ("Let the page of the market say 'moved to the harbour'.", {"Market": "moved to the harbour"}, True),
    (
        "Everything that is closed gets the text 'closed for ever'.",
        {"Museum": "closed for ever", "Theatre": "closed for ever"},
        False,
    ),
    ("Let all five pages say 'under construction'.", dict.fromkeys(START, "under construction"), True),
    ("Let the pages of harbour and market swap their texts.", {"Harbour": START["Market"], "Market": START["Harbour"]},
     True),
]  # fmt: skip
RULES = {
    True: "The search must find the current text of all pages at the end.",
    False: "The index is in use by others: do not refresh it.",
}


def tasks(split: str) -> list[qn.Task[Wiki]]:
    made: list[qn.Task[Wiki]] = []
    for n, (prompt, changed, fresh) in enumerate(JOBS, 1):
        pages = START | changed
        calls: list[tuple[str, dict[str, object]]] = [
            ("write", {"title": title, "text": text}) for title, text in changed.items()
        ]
        made.append(
            qn.Task(
                id=f"{split}-{n}",
                prompt=f"{prompt} {RULES[fresh]} Leave the other pages as they are.",
                start=Wiki(pages=dict(START), indexed=dict(START)),
                truth={"pages": pages, "index": pages if fresh else START},
                solution=(*calls, ("reindex", {})) if fresh else tuple(calls),
            )
        )
    return made


@qn.reward
def as_asked(view: qn.EpisodeView[Wiki]) -> qn.Score:
    found = {"pages": view.state.pages, "index": view.state.indexed}
    wrong = [key for key in found if found[key] != view.task.truth[key]]
    return qn.Score(float(not wrong), f"differs: {', '.join(wrong) or 'nothing'}")


env = qn.Environment(
    "wiki", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(as_asked), state=Wiki, splits=("test",)
)
