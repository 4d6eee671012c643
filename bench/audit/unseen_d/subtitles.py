"""A subtitle desk: an agent corrects the subtitles of a television series with the tools of an editor."""

import hashlib
import re
from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple

import quintain as qn
from quintain.state import Rng
from quintain.task import Call
from quintain.verifier import Criterion

TITLES = ("Harbour Lights", "The Long Ferry", "North of Home", "Cold Ledger", "The Glass Orchard")
NAMES = {"Marit": "Merit", "Jonas": "Jonah", "Sofie": "Sophie", "Aksel": "Axel", "Henrik": "Hendrik", "Tuva": "Tova"}
PLACES = ("Tarnvik", "Solund", "Brekke", "Hovden", "Ulvsund")
NOTES = ("[DOOR SLAMS]", "[PHONE RINGS]", "[DOG BARKS]", "[ENGINE STARTS]", "[RAIN FALLS]", "[GLASS BREAKS]")
NAMED = (
    "NAME, where have you been?",
    "I saw NAME at the quay this morning.",
    "That is NAME's coat, not mine.",
    "Nobody asked you, NAME.",
    "NAME left the keys on the table.",
    "Wait. Was NAME with you?",
    "If NAME calls, I am not here.",
)
PLAIN = (
    "The last bus to PLACE leaves at nine.",
    "My brother lives in PLACE now.",
    "They closed the school in PLACE.",
    "Give me the map. Quickly!",
    "How long has it been? Ten years?",
    "We sold the house in the spring.",
)
TYPOS = {
    "Did you receive my letter?": "Did you recieve my letter?",
    "He was definitely not alone.": "He was definately not alone.",
    "We can decide tomorrow.": "We can decide tommorow.",
    "They came home in separate cars.": "They came home in seperate cars.",
    "Stay here until I come back.": "Stay here untill I come back.",
    "There was a weird light on the water.": "There was a wierd light on the water.",
    "I can't believe you said that.": "I can't beleive you said that.",
}
TIMECODE = re.compile(r"([0-9]{2}):([0-5][0-9]):([0-5][0-9]),([0-9]{3})")


class Cue(NamedTuple):
    """A subtitle: when it appears and disappears, in milliseconds, and its text."""

    start: int
    end: int
    text: str


def timecode(ms: int) -> str:
    """Returns milliseconds as HH:MM:SS,mmm."""
    return f"{ms // 3_600_000:02}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02},{ms % 1000:03}"


class Subtitles(qn.State):
    """The subtitles of one film; a cue keeps its number when others are deleted."""

    cues: dict[str, Cue]

    def _rows(self) -> list[tuple[int, Cue]]:
        return sorted((int(number), cue) for number, cue in self.cues.items())

    def _get(self, number: int) -> Cue:
        if str(number) not in self.cues:
            raise qn.ToolError(f"there is no cue {number}")
        return self.cues[str(number)]

    def _put(self, number: int, cue: Cue | None) -> None:
        if cue is None:
            del self.cues[str(number)]
        else:
            self.cues[str(number)] = cue

    def _matches(self, text: str) -> list[int]:
        return [number for number, cue in self._rows() if text.casefold() in cue.text.casefold()]

    def _milliseconds(self, code: str) -> int:
        if (found := TIMECODE.fullmatch(code)) is None:
            raise qn.ToolError(f"{code!r} is not a timecode such as 00:01:02,500")
        hours, minutes, seconds, ms = map(int, found.groups())
        return ((hours * 60 + minutes) * 60 + seconds) * 1000 + ms

    def _list(self) -> list[tuple[int, str, str, str]]:
        return [(number, timecode(cue.start), timecode(cue.end), cue.text) for number, cue in self._rows()]

    @qn.tool
    def list_cues(self) -> list[tuple[int, str, str, str]]:
        """List all cues with number, start, end and text."""
        return self._list()

    @qn.tool
    def find(self, text: str) -> list[int]:
        """List the numbers of the cues whose text contains these very characters; upper and lower case are equal.

        Args:
            text: What to look for.
        """
        if not text:
            raise qn.ToolError("text is empty")
        return self._matches(text)

    @qn.tool
    def set_text(self, cue: int, text: str) -> str:
        """Replace the whole text of one cue.

        Args:
            cue: Number of the cue.
            text: Its new text.
        """
        old = self._get(cue)
        if not text.strip():
            raise qn.ToolError("text is empty; delete the cue instead")
        self._put(cue, old._replace(text=text))
        return f"cue {cue} changed"

    @qn.tool
    def replace_all(self, old: str, new: str) -> str:
        """Replace a word or phrase in all cues. Only whole words in the same case are replaced.

        Args:
            old: What to replace.
            new: What to write instead.
        """
        if not old.strip() or not new.strip():
            raise qn.ToolError("old and new must not be empty")
        word = re.compile(rf"(?<!\w){re.escape(old)}(?!\w)")
        hits = [(number, cue) for number, cue in self._rows() if word.search(cue.text)]
        if not hits:
            raise qn.ToolError(f"no cue has {old!r}")
        for number, cue in hits:
            self._put(number, cue._replace(text=word.sub(lambda _: new, cue.text)))
        return f"{len(hits)} cues changed"

    @qn.tool
    def delete_cue(self, cue: int) -> str:
        """Delete one cue. The other cues keep their numbers and times.

        Args:
            cue: Number of the cue.
        """
        self._get(cue)
        self._put(cue, None)
        return f"cue {cue} deleted"

    @qn.tool
    def set_timing(self, cue: int, start: str, end: str) -> str:
        """Set when one cue appears and disappears.

        Args:
            cue: Number of the cue.
            start: Timecode as HH:MM:SS,mmm.
            end: Timecode as HH:MM:SS,mmm; later than start.
        """
        old, begin, finish = self._get(cue), self._milliseconds(start), self._milliseconds(end)
        if finish <= begin:
            raise qn.ToolError("end must be later than start")
        self._put(cue, old._replace(start=begin, end=finish))
        return f"cue {cue} changed"


def task(world: type[Subtitles], split: str, index: int, number: int) -> qn.Task[Subtitles]:
    """Makes a task of a split from the film with a number, in a world of a class."""
    rng = Rng(key=hashlib.blake2b(f"subtitles/{number}".encode(), digest_size=16).digest())
    name, place, title = rng.choice(list(NAMES)), rng.choice(PLACES), rng.choice(TITLES)
    script = [*NAMED, *rng.sample(PLAIN, 5), *rng.sample(list(TYPOS), 6), *rng.sample(NOTES, 4 + rng.below(3))]
    rng.shuffle(script)
    right: dict[str, Cue] = {}
    at = 4000 + rng.below(9000)
    for n, line in enumerate(script, 1):
        text = line.replace("NAME", name).replace("PLACE", place)
        right[str(n)] = Cue(at, at + max(1200, 500 + 60 * len(text)), text)
        at = right[str(n)].end + 120 + rng.below(2400)
    start = dict(right)
    calls: list[Call] = [("list_cues", {})]

    def some(lines: Iterable[str]) -> list[str]:
        among = [str(n) for n, line in enumerate(script, 1) if line in lines]
        return sorted(rng.sample(among, 5 + rng.below(2)), key=int)

    family = ("name", "spelling", "notes", "timing")[number % 4]
    if family == "name":
        request = f'{name} is spelled "{NAMES[name]}" in some cues. Correct the name in all of them.'
        for n in some(NAMED):
            start[n] = right[n]._replace(text=right[n].text.replace(name, NAMES[name]))
        calls = [("find", {"text": NAMES[name]}), ("replace_all", {"old": NAMES[name], "new": name})]
    elif family == "spelling":
        request = "Correct the spelling mistakes; all names are right."
        for n in some(TYPOS):
            start[n] = right[n]._replace(text=TYPOS[right[n].text])
            calls.append(("set_text", {"cue": int(n), "text": right[n].text}))
    elif family == "notes":
        request = "The broadcaster wants no sound notes: delete every cue that is a note in brackets."
        right = {n: cue for n, cue in start.items() if cue.text not in NOTES}
        calls += [("delete_cue", {"cue": int(n)}) for n in start if n not in right]
    else:
        request = "The editor has new times:"
        for n in some((*NAMED, *PLAIN)):
            slip = (150 + 10 * rng.below(60)) * rng.choice((1, -1))
            start[n] = right[n]._replace(start=right[n].start + slip, end=right[n].end + slip)
            times = {"start": timecode(right[n].start), "end": timecode(right[n].end)}
            request += f" cue {n} from {times['start']} to {times['end']};"
            calls.append(("set_timing", {"cue": int(n), **times}))
        request = request[:-1] + "."
    return qn.Task(
        id=f"{split}-{index}",
        prompt=f'These are the subtitles of "{title}", episode {number + 1}. {request} Change nothing else.',
        start=lambda: world(cues=dict(start)),
        truth={n: list(cue) for n, cue in right.items()},
        solution=tuple(calls),
        tags={"family": family},
    )


def changes(view: qn.EpisodeView[Subtitles]) -> dict[str, Any]:
    """Returns the cues that the task changes, by number; None for one that it deletes."""
    right = view.task.truth
    return {n: right.get(n) for n, cue in view.start.cues.items() if right.get(n) != list(cue)}


@qn.reward
def corrected(view: qn.EpisodeView[Subtitles]) -> float:
    """Share of the cues that the task changes and that are now right."""
    wanted, left = changes(view), {n: list(cue) for n, cue in view.state.cues.items()}
    return sum(left.get(n) == right for n, right in wanted.items()) / len(wanted)


@qn.reward
def untouched(view: qn.EpisodeView[Subtitles]) -> float:
    """1 without changes that nobody asked for, 1/2 with one, 1/3 with two."""
    kept = view.start.cues.keys() - changes(view).keys()
    return 1 / (1 + sum(view.state.cues.get(n) != view.start.cues[n] for n in kept))


class ListedOnce(Subtitles):
    """Keeps the listing until a text changes."""

    listing: list[tuple[int, str, str, str]] | None = None

    def _list(self) -> list[tuple[int, str, str, str]]:
        self.listing = self.listing or super()._list()
        return self.listing

    def _put(self, number: int, cue: Cue | None) -> None:
        if cue is None or cue.text != self._get(number).text:
            self.listing = None
        super()._put(number, cue)


class IndexedSearch(Subtitles):
    """Keeps what it found until something changes."""

    index: ClassVar[dict[str, list[int]]] = {}

    def _matches(self, text: str) -> list[int]:
        if text not in self.index:
            self.index[text] = super()._matches(text)
        return self.index[text]

    def _put(self, number: int, cue: Cue | None) -> None:
        self.index.clear()
        super()._put(number, cue)


class PatternSearch(Subtitles):
    """Searches with the regular expressions of the standard library."""

    def _matches(self, text: str) -> list[int]:
        try:
            return [number for number, cue in self._rows() if re.search(text, cue.text, re.IGNORECASE)]
        except re.error as error:
            raise qn.ToolError(f"cannot search for {text!r}") from error


class LenientTimes(Subtitles):
    """Reads timecodes without complaints."""

    def _milliseconds(self, code: str) -> int:
        return super()._milliseconds(code) if TIMECODE.fullmatch(code) else 0


@qn.reward
def no_mistakes_left(view: qn.EpisodeView[Subtitles]) -> float:
    """Share of the cues that the task changes and that are not wrong any more."""
    wanted = changes(view)
    wrong = [n for n, cue in view.state.cues.items() if n in wanted and list(cue) != wanted[n]]
    return 1 - len(wrong) / len(wanted)


@qn.reward
def mostly_corrected(view: qn.EpisodeView[Subtitles]) -> float:
    """Share of the cues that the task changes and that are now right, of which four in five are good work."""
    wanted, left = changes(view), {n: list(cue) for n, cue in view.state.cues.items()}
    return min(1.0, sum(left.get(n) == right for n, right in wanted.items()) / (0.8 * len(wanted)))


def build(
    bug: str = "", *, state: type[Subtitles] = Subtitles, main: Criterion[Subtitles] = corrected, test_from: int = 24
) -> qn.Environment[Subtitles]:
    """Builds the environment: 24 films to train on, and 16 to test with from the number `test_from` on."""
    films = {"train": range(24), "test": range(test_from, test_from + 16)}

    def tasks(split: str) -> list[qn.Task[Subtitles]]:
        return [task(state, split, index, number) for index, number in enumerate(films[split])]

    parts: dict[str, Any] = {"verifier": qn.Verifier(main, untouched, combine="product"), "splits": ("train", "test")}
    return qn.Environment(f"subtitles{bug}", tasks=tasks, harness=qn.ToolLoop(), state=state, **parts)


env = build()
env_listed_once = build("_listed_once", state=ListedOnce)
env_indexed_search = build("_indexed_search", state=IndexedSearch)
env_pattern_search = build("_pattern_search", state=PatternSearch)
env_lenient_times = build("_lenient_times", state=LenientTimes)
env_no_mistakes_left = build("_no_mistakes_left", main=no_mistakes_left)
env_four_in_five = build("_four_in_five", main=mostly_corrected)
env_overlapping_films = build("_overlapping_films", test_from=20)
