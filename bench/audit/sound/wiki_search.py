"""Wiki whose search index lags behind by a stated minute: renaming a firm on every page that names it."""

import re
from typing import Annotated

from msgspec import Meta

import quintain as qn
from quintain.state import Rng

LAG, LONGEST, SHOWN = 60, 2000, 4
Phrase = Annotated[str, Meta(min_length=1, max_length=80)]
OLD = ("Globex", "Initech", "Umbrella", "Hooli", "Vandelay", "Soylent", "Tyrell", "Wonka", "Duff", "Acme")
NEW = {"train": ("Nordal", "Kestrel"), "validation": ("Lumen", "Sable"), "test": ("Ravelin", "Ostler")}
TOPICS = ("Travel", "Payroll", "Pantry", "Parking", "Badges", "Printers", "Holidays", "Laptops", "Visitors", "Lunch")
SENTENCES = (
    "{} pays for it.",
    "Ask {} before you order anything.",
    "The contract with {} runs until June.",
    "Our contact at {} answers within a day.",
    "In doubt, the rules of {} apply.",
)


class Wiki(qn.State):
    pages: dict[str, str]
    index: dict[str, str]
    """Text of each page as the search knows it."""

    @qn.tool
    def search(self, word: Phrase, skip: Annotated[int, Meta(ge=0, le=1000)] = 0) -> dict[str, object]:
        """Find pages by a whole word, in any letter case; four titles in alphabetical order, and the total.

        The search reads an index. An edit reaches the index 60 seconds after it was made, so until then a search finds
        a page by its old text. `read` always shows the newest text.

        Args:
            word: The word, such as Globex.
            skip: How many titles to leave out at the beginning; beyond the last one the list is empty.
        """
        whole = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)
        titles = sorted(title for title, text in self.index.items() if whole.search(text))
        return {"total": len(titles), "titles": titles[skip : skip + SHOWN]}

    @qn.tool
    def read(self, title: str) -> str:
        """Read the newest text of a page.

        Args:
            title: Title of the page.
        """
        return self._text(title)

    @qn.tool
    def replace(self, title: str, old: Phrase, new: Phrase) -> str:
        """Replace every occurrence of a text on one page, with upper and lower case as given.

        Args:
            title: Title of the page.
            old: Text to replace; it must stand on the page.
            new: Text that takes its place; the page may have at most 2,000 characters afterwards.
        """
        text = self._text(title)
        if old == new:
            raise qn.ToolError(f"old and new are both {old!r}; give two different texts")
        if old not in text:
            raise qn.ToolError(f"{old!r} does not stand on {title!r}; `read` shows the text")
        changed = text.replace(old, new)
        if len(changed) > LONGEST:
            raise qn.ToolError(f"the page would have {len(changed)} characters; at most {LONGEST} are allowed")
        self.pages[title] = changed
        self.clock.after(LAG, self._update, title=title, text=changed)
        return f"replaced {text.count(old)} times; the search will know in {LAG} seconds"

    @qn.tool
    def wait(self, seconds: Annotated[int, Meta(ge=1, le=600)]) -> str:
        """Let time pass. No other tool takes time.

        Args:
            seconds: How long, 1 to 600.
        """
        self.clock.advance(seconds)
        return f"{seconds} seconds passed"

    def _update(self, title: str, text: str) -> None:
        self.index[title] = text

    def _text(self, title: str) -> str:
        if title not in self.pages:
            raise qn.ToolError(f"no page {title!r}; pages: {', '.join(sorted(self.pages))}")
        return self.pages[title]


def make(split: str, number: int) -> qn.Task[Wiki]:
    rng = Rng(key=f"wiki_search/{split}/{number}".encode())
    old, new = OLD[number % len(OLD)], NEW[split][number // len(OLD)]
    others = [firm for firm in OLD if firm != old]
    named = rng.sample(TOPICS, 3 + number % 4)
    pages: dict[str, str] = {}
    for topic in TOPICS:
        lines = [rng.choice(SENTENCES).format(rng.choice(others)) for _ in range(2)]
        if topic in named:
            lines += [sentence.format(old) for sentence in rng.sample(SENTENCES, 1 + rng.below(2))]
        rng.shuffle(lines)
        pages[topic] = f"{topic} at our office. {' '.join(lines)}"
    searches = [("search", {"word": old, "skip": skip}) for skip in range(0, len(named), SHOWN)]
    edits = [("replace", {"title": title, "old": old, "new": new}) for title in sorted(named)]
    return qn.Task(
        id=f"{split}-{number}",
        prompt=(
            f"The firm {old} is now called {new}. Write {new} in place of {old} on every page of the wiki that names "
            f"{old}, and change nothing else."
        ),
        start=Wiki(pages=pages, index=dict(pages)),
        truth={title: text.replace(old, new) for title, text in pages.items()},
        solution=(*searches, *edits, ("wait", {"seconds": LAG}), ("search", {"word": old})),
    )


@qn.reward
def renamed(view: qn.EpisodeView[Wiki]) -> qn.Score:
    wrong = sorted(title for title, text in view.task.truth.items() if view.state.pages[title] != text)
    return qn.Score(float(not wrong), f"wrong pages: {', '.join(wrong) or 'none'}")


env = qn.Environment(
    "wiki_search",
    tasks=lambda split: qn.Tasks(12, lambda number: make(split, number)),
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(renamed),
    state=Wiki,
)
