"""Questions of one turn: an answer is a fraction, a decimal or LaTeX, and to say "unsure" earns a little."""

import re
from fractions import Fraction

import quintain as qn
from quintain.harnesses import SingleTurn

UNSURE = 0.2
PLACES = 4
FRAC = r"\\[dt]?frac\{(?P<inner>-?)(?P<top>\d{1,9})\}\{(?P<low>\d{1,9})\}"
PLAIN = r"(?P<whole>\d{1,9})(?:/(?P<under>\d{1,9})|\.(?P<places>\d{1,12}))?"
NUMBER = re.compile(f"(?P<sign>-?)(?:{FRAC}|{PLAIN})", re.ASCII)


def right(text: str, truth: Fraction) -> bool:
    """Tells if a text spells the truth: exactly, or as a decimal of four or more places that is rounded to them."""
    found = NUMBER.fullmatch(text.replace("\N{MINUS SIGN}", "-").strip().removeprefix("$").removesuffix("$").strip())
    if not found:
        return False
    top, low = found["top"] or found["whole"], found["low"] or found["under"] or "1"
    if int(low) == 0:
        return False
    places = found["places"] or ""
    sign = -1 if (found["sign"] == "-") != (found["inner"] == "-") else 1
    value = sign * Fraction(int(top + places), int(low) * 10 ** len(places))
    tolerance = Fraction(1, 2 * 10 ** len(places)) if len(places) >= PLACES else Fraction(0)
    return abs(value - truth) <= tolerance


# Each: the question, the answer, how the solution spells it.
QUESTIONS: list[tuple[str, Fraction, str]] = [
    ("What is one half plus one third?", Fraction(5, 6), "5/6"),
    ("What is 3 divided by 8?", Fraction(3, 8), "0.375"),
    ("What is two thirds times two?", Fraction(4, 3), r"\frac{4}{3}"),
    ("What is 1/7 minus 1/2?", Fraction(-5, 14), r"$-\frac{5}{14}$"),
    ("What is 22 divided by 7?", Fraction(22, 7), "3.142857"),
    ("What is 6 times 7?", Fraction(42), "42.0"),
    ("What is 7 divided by 2, plus 1?", Fraction(9, 2), "18/4"),
    ("What is 5 minus 5?", Fraction(0), "0"),
]
RULE = (
    "End with a line 'answer: X', the only such line, and no more in it. X is a fraction such as -3/4, in any terms; "
    r"or LaTeX such as \frac{3}{4} with or without dollar signs; or a decimal such as 0.75, exact or rounded to four "
    "or more places. "
    "Each number has at most nine digits before the point and twelve after it. "
    f"Your reward is 1 if X is right. If X is 'unsure', it is {UNSURE}. Else it is 0."
)


def tasks(split: str) -> list[qn.Task[qn.State]]:
    return [
        qn.Task(
            id=f"{split}-{n}",
            prompt=f"{question} {RULE}",
            start=qn.State(),
            truth=[truth.numerator, truth.denominator],
            solution=(),
            answer=f"answer: {spelled}",
        )
        for n, (question, truth, spelled) in enumerate(QUESTIONS, 1)
    ]


@qn.reward
def equal(view: qn.EpisodeView[qn.State]) -> qn.Score:
    lines = [line.strip() for line in view.answer.splitlines() if line.strip().lower().startswith("answer:")]
    if len(lines) != 1 or not view.answer.strip().endswith(lines[0]):
        return qn.Score(0.0, f"{len(lines)} lines with an answer, or more after it")
    said = lines[0][len("answer:") :].strip()
    if said.lower() == "unsure":
        return qn.Score(UNSURE, "unsure")
    return qn.Score(float(right(said, Fraction(*view.task.truth))), f"said {said}")


env = qn.Environment(
    "sums", tasks=tasks, harness=SingleTurn(), verifier=qn.Verifier(equal), state=qn.State, splits=("test",)
)
