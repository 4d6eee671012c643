"""Translations from German with a list of accepted answers; also a scoring function alone, with labelled cases."""

import unicodedata

import quintain as qn
from quintain.tasks import Question

PHRASES: dict[str, tuple[str, ...]] = {
    "Guten Morgen": ("good morning",),
    "Wie spät ist es?": ("what time is it", "what is the time", "what's the time"),
    "Ich habe Hunger.": ("i am hungry", "i'm hungry"),
    "Drei Katzen schlafen.": ("three cats are sleeping", "three cats sleep", "three cats are asleep"),
    "Wo ist der Bahnhof?": tuple(
        f"{where} the {station}"
        for where in ("where is", "where's")
        for station in ("train station", "station", "railway station")
    ),
    "Sie wohnt in einem kleinen Haus.": tuple(
        f"{lives} in a {small} house"
        for lives in ("she lives", "she is living", "she's living")
        for small in ("small", "little")
    ),
    "der Handschuh": ("the glove", "glove"),
    "Das Buch ist rot.": ("the book is red", "the book's red"),
}
RULES = (
    "Translate into English. Answer with one translation and nothing else. Capitals, spaces at the ends, double "
    "spaces, the form of the apostrophe, a pair of quotation marks around the whole answer and a final '.', '!' or '?' "
    "are ignored; other differences count. Usual translations are accepted, not only one."
)
_MARKS: dict[str, str | int | None] = {"\N{RIGHT SINGLE QUOTATION MARK}": "'", "\N{LEFT DOUBLE QUOTATION MARK}": '"'}
_MARKS["\N{RIGHT DOUBLE QUOTATION MARK}"] = '"'


def plain(text: str) -> str:
    """Returns a text in the form that is compared."""
    text = " ".join(unicodedata.normalize("NFC", text).translate(str.maketrans(_MARKS)).casefold().split())
    text = unmarked(text)
    return unmarked(text[1:-1].strip()) if len(text) > 1 and text[0] == text[-1] == '"' else text


def unmarked(text: str) -> str:
    return text[:-1].rstrip() if text[-1:] in (".", "!", "?") else text


def score(answer: str, reference: list[str]) -> float:
    """Returns 1 if the answer is one of the accepted translations, else 0."""
    return float(plain(answer) in {plain(accepted) for accepted in reference})


def tasks(split: str) -> list[qn.Task[Question]]:
    return [
        qn.Task(
            id=f"{split}-{n}",
            prompt=f"{RULES}\n\n{phrase}",
            start=Question(),
            truth=list(accepted),
            solution=(),
            answer=accepted[0].capitalize(),
        )
        for n, (phrase, accepted) in enumerate(PHRASES.items(), 1)
    ]


@qn.reward
def accepted(view: qn.EpisodeView[Question]) -> float:
    return score(view.answer, view.task.truth)


env = qn.Environment(
    "translate", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(accepted), state=Question, splits=("test",)
)
