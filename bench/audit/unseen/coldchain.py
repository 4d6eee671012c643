"""Cold chain: questions about the temperature log of a truck, each answered by a number with its unit."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

import quintain as qn
from quintain.state import Rng

GOODS = ("peas", "fish fingers", "bread rolls", "spinach", "berries", "pizza")
LIMIT = -4
"""Warmest reading that is allowed, in tenths of °F; -18.0 °C is -0.4 °F."""
NUMBER = r"[-+]?\d+(?:\.\d+)?"
LINE = re.compile(r"^\W*answer\s*:[\s*`]*(.*?)[\s.*`]*$", re.IGNORECASE | re.MULTILINE)
WRITTEN = re.compile(rf"({NUMBER})\s*(°?\s?c|min|minutes)", re.IGNORECASE)


class Truck(qn.State):
    """World of a question: the log stands in the prompt."""


def log(rng: Rng, *, warm: bool) -> list[int]:
    """Returns readings in tenths of °F; with `warm` the door was open for some of them."""
    level, found = -90 + rng.below(40), list[int]()
    count = 12 + rng.below(7)
    opened = rng.below(count - 5)
    for place in range(count):
        level = min(-12, level + rng.below(25) - 12)
        found.append(level + (30 + rng.below(90) if warm and opened <= place < opened + 4 else 0))
    return found


def celsius(tenths: int) -> str:
    """Returns a difference of temperatures in tenths of °F as text in °C with one decimal; 5/9 leaves no ties."""
    return f"{round(Fraction(tenths * 5, 9)) / 10:.1f} °C"


def question(rng: Rng, n: int, logs: dict[str, list[int]]) -> tuple[str, str]:
    """Returns the words of a question, and its answer."""
    probe = rng.choice(("front", "rear"))
    readings = logs[probe]
    if n % 3 == 0:
        asked = f"Which is the warmest reading of the {probe} probe? Convert it to °C and round to one decimal."
        return f"{asked} End with a line such as `Answer: 99.9 °C`.", celsius(max(readings) - 320)
    if n % 3 == 1:
        asked = "A reading of more than -0.4 °F breaks the limit, and stands for 15 minutes. How many minutes did the"
        minutes = 15 * sum(one > LIMIT for one in readings)
        return f"{asked} {probe} probe break it in total? End with a line such as `Answer: 7 min`.", f"{minutes} min"
    asked = f"By how much does the last reading of the {probe} probe differ from its first one? Convert the difference"
    drift = readings[-1] - readings[0]
    asked += " to °C and round to one decimal; it is negative if the last reading is colder."
    return f"{asked} End with a line such as `Answer: 99.9 °C`.", celsius(drift)


def task(split: str, n: int, bug: str) -> qn.Task[Truck]:
    name = f"{split}/{n}"
    if bug == "overlap":
        name = str({"train": 0, "validation": 100, "test": 12}[split] + n)
    rng = Rng(key=hashlib.blake2b(f"coldchain/{name}".encode(), digest_size=16).digest())
    begin = 48 + rng.below(48)
    front, rear = log(rng, warm=rng.below(4) > 0), log(rng, warm=rng.below(4) > 0)
    count = min(len(front), len(rear))
    logs = {"front": front[:count], "rear": rear[:count]}
    head = f"Truck K-{1000 + rng.below(9000)}, load: {rng.choice(GOODS)}, to be kept at -18.0 °C (-0.4 °F) or colder."
    unit = "°C" if bug == "wrong_unit" and n % 4 == 3 else "°F"
    rows = ["time   front   rear"]
    for place in range(count):
        hour, minute = divmod(15 * (begin + place), 60)
        hour = hour if bug == "long_days" else hour % 24
        rows.append(f"{hour:02}:{minute:02}  {front[place] / 10:6.1f} {rear[place] / 10:6.1f}")
    asked, answer = question(rng, n, logs)
    prompt = "\n".join([head, f"The logger read two probes every 15 minutes, in {unit}:", *rows, asked])
    return qn.Task(
        id=f"{split}-{n}", prompt=prompt, start=Truck(), truth=answer, solution=(), answer=f"Answer: {answer}"
    )


def written(text: str) -> str:
    """Returns what the last answer line says, with ASCII minus signs; empty without one."""
    return next(reversed(LINE.findall(text.replace("\N{MINUS SIGN}", "-"))), "")


def quantity(text: str) -> tuple[Decimal, bool] | None:
    """Returns the number that a text consists of, and true if it is in °C; None if the text is something else."""
    found = WRITTEN.fullmatch(text)
    return (Decimal(found[1]), found[2][-1:].casefold() == "c") if found else None


@qn.reward
def right_quantity(view: qn.EpisodeView[Truck]) -> float:
    return float(quantity(written(view.answer)) == quantity(view.task.truth))


# Variants of the sound world.

UNITS = {"c", "°", "min"}


def first(pattern: str, text: str) -> str:
    """Returns the first match of a pattern; empty without one."""
    found = re.search(pattern, text)
    return found[0] if found else ""


@qn.reward
def any_number(view: qn.EpisodeView[Truck]) -> float:
    wanted = Decimal(first(NUMBER, view.task.truth))
    return float(any(Decimal(one) == wanted for one in re.findall(NUMBER, view.answer.replace("\N{MINUS SIGN}", "-"))))


@qn.reward
def unsigned(view: qn.EpisodeView[Truck]) -> float:
    digits = r"\d+(?:\.\d+)?"
    said = Decimal(first(digits, written(view.answer)) or "nan")
    return float(said == Decimal(first(digits, view.task.truth)))


@qn.reward
def stripped_units(view: qn.EpisodeView[Truck]) -> float:
    text = written(view.answer).casefold()
    for unit in UNITS:
        text = text.strip().removesuffix(unit)
    is_number = re.fullmatch(NUMBER, text.strip())
    return float(is_number is not None and Decimal(text.strip()) == Decimal(first(NUMBER, view.task.truth)))


@qn.reward
def blank_is_zero(view: qn.EpisodeView[Truck]) -> float:
    said = Decimal(first(NUMBER, written(view.answer)) or 0)
    return float(said == Decimal(first(NUMBER, view.task.truth)))


VERIFIERS = {
    "any_number": any_number,
    "unsigned": unsigned,
    "stripped_units": stripped_units,
    "blank_is_zero": blank_is_zero,
}


def make(bug: str = "") -> qn.Environment[Truck]:
    """Returns the sound environment, or a variant of it."""

    def tasks(split: str) -> Sequence[qn.Task[Truck]]:
        return qn.Tasks(24, lambda n: task(split, n, bug))

    return qn.Environment(
        "coldchain",
        tasks=tasks,
        harness=qn.ToolLoop(system="You check the temperature logs of frozen food. 1 °C is 1.8 °F, 0 °C is 32 °F."),
        verifier=qn.Verifier(VERIFIERS.get(bug, right_quantity)),
        state=Truck,
        config=qn.Config(max_turns=2),
    )


env = make()
env_any_number = make("any_number")
env_unsigned = make("unsigned")
env_stripped_units = make("stripped_units")
env_blank_is_zero = make("blank_is_zero")
env_overlap = make("overlap")
env_long_days = make("long_days")
env_wrong_unit = make("wrong_unit")
