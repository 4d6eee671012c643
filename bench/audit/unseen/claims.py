"""Motor claims: letters from which an agent extracts a JSON record, with partial credit for its fields."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

import quintain as qn
from quintain.judges import last_block
from quintain.state import Rng

FIELDS = ("policy", "date", "plate", "injured", "phone", "damages")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October")
NAMES = ("Arne Voss", "Berit Lund", "Carl Ohm", "Dina Roth", "Emil Katz", "Frida Holm", "Georg Ast", "Hedda Kern")
PARTS = ("bumper", "headlamp", "door", "mirror", "bonnet", "wheel", "windscreen", "radiator", "axle", "number plate")
PARKED = (
    ("a van backed into my parked car", "The car was empty at the time."),
    ("a branch fell on my parked car during the storm", "Luckily there was no one near it."),
)
DRIVEN = (
    "I skidded on wet leaves and hit a garden wall",
    "another driver ignored the traffic lights at the bridge and hit us",
    "I braked for a deer and slid into the ditch",
)
UNHURT = ("Luckily we all walked away unharmed.", "No one was hurt.")
HURT = ("My passenger has a broken wrist.", "I was taken to hospital with a bruised rib.")
SYSTEM = """You read letters to a motor insurer. Reply with one JSON object with exactly these keys:
policy: number of the present policy; date: day of the accident, as YYYY-MM-DD; plate: plate of the writer's own car;
injured: true if a person was hurt, else false; phone: digits of the phone number without spaces, null without one;
damages: list of {"part": NAME, "cents": INTEGER}, the parts named as in the letter without article.
Each key counts one sixth, the list by its share of right lines. A record with another key, or with a wrong policy,
is worth nothing.

A letter and its record:
"""


class Inbox(qn.State):
    """World of a letter: it stands in the prompt."""


def plate(rng: Rng) -> str:
    """Returns the plate of a car."""
    return f"{rng.choice('BDFHKLMS')}-{rng.choice('ACEGJPRT')}{rng.choice('NUWXZ')} {100 + rng.below(900)}"


def number(rng: Rng) -> str:
    """Returns the number of a policy."""
    return f"KF-{100_000 + rng.below(900_000)}"


def spoken(day: dt.date, name: str) -> str:
    """Returns a date in words, with the name of its weekday."""
    return f"{name}, {day.day} {MONTHS[day.month - 1]} {day.year}"


def listed(lines: list[dict[str, Any]]) -> str:
    """Returns the lines of an estimate as a phrase."""
    words = [f"a new {line['part']} for {line['cents'] // 100}.{line['cents'] % 100:02} EUR" for line in lines]
    return f"{', '.join(words[:-1])} and {words[-1]}"


def letter(split: str, n: int, bug: str = "") -> tuple[str, dict[str, Any]]:
    """Returns a letter and its record."""
    rng = Rng(key=hashlib.blake2b(f"claims/{split}/{n}".encode(), digest_size=16).digest())
    day = dt.date(2025, 1 + rng.below(9), 1 + rng.below(28))
    sent = day + dt.timedelta(days=2 + rng.below(20))
    driven, reachable, moved = rng.below(4) > 0, rng.below(3) > 0, rng.below(2)
    hurt = driven and rng.below(2) == 0
    event = (rng.choice(DRIVEN), rng.choice(HURT if hurt else UNHURT)) if driven else rng.choice(PARKED)
    chosen = rng.sample(PARTS, 2 + rng.below(3))
    lines = [{"part": part, "cents": 3000 + 5 * rng.below(19_000)} for part in chosen]
    name, phone = rng.choice(NAMES), f"0{150 + rng.below(30)} {1000 + rng.below(9000)} {100 + rng.below(900)}"
    policy, own, other = number(rng), plate(rng), plate(rng)
    weekday = rng.choice(DAYS) if bug == "weekdays" else DAYS[day.weekday()]
    old = f" (it replaced {number(rng)} when we moved)" if moved else ""
    text = [
        f"{name}\n{spoken(sent, DAYS[sent.weekday()])}\n\nDear Sir or Madam,\nI write about my policy {policy}{old}.",
        f"On {spoken(day, weekday)}, {event[0]}. {event[1]}",
        f"My car, {own}, is with the garage. Next to it stood a car with the plate {other}, which has no scratch.",
        f"The garage estimates {listed(lines)}. Their first estimate, by telephone, had been lower.",
        f"Please call me on {phone} in the evening." if reachable else "Please write, since I have no telephone.",
        f"Kind regards\n{name}",
    ]
    record = {
        "policy": policy,
        "date": day.isoformat(),
        "plate": own,
        "injured": hurt,
        "phone": phone.replace(" ", "") if reachable else None,
        "damages": lines,
    }
    return "\n".join(text), record


def task(split: str, n: int, bug: str) -> qn.Task[Inbox]:
    text, record = letter(split, n, bug)
    if bug == "cut_letters":
        text = text[:520]
    return qn.Task(
        id=f"{split}-{n}", prompt=text, start=Inbox(), truth=record, solution=(), answer=json.dumps(record, indent=2)
    )


def read(text: str) -> dict[str, Any] | None:
    """Returns the JSON object of an answer, from its last fenced block or the whole text; None without one."""
    try:
        found = json.loads(last_block(text))
    except (ValueError, RecursionError):
        return None
    return cast(dict[str, Any], found) if isinstance(found, dict) else None


def lines_of(value: Any) -> Counter[tuple[str, int] | None]:
    """Returns how often each line stands in a list of damages; None is a line of another form."""
    rows: list[Any] = [*value] if isinstance(value, list) else []
    return Counter((row["part"], row["cents"]) if is_line(row) else None for row in rows)


def is_line(row: Any) -> bool:
    """True if a row has a part and a whole number of cents, and nothing else."""
    cells = cast(dict[str, Any], row) if isinstance(row, dict) else {}
    return {key: type(cell) for key, cell in cells.items()} == {"part": str, "cents": int}


def share(field: str, given: dict[str, Any], truth: dict[str, Any]) -> float:
    """Returns how much of a field is right, from 0 to 1."""
    if field != "damages":
        return float(field in given and type(given[field]) is type(truth[field]) and given[field] == truth[field])
    found, wanted = lines_of(given.get(field)), lines_of(truth[field])
    return (found & wanted).total() / max(found.total(), wanted.total())


def is_usable(given: dict[str, Any] | None, truth: dict[str, Any]) -> bool:
    """True if a record has no other keys, and the right policy."""
    return given is not None and given.keys() <= {*FIELDS} and given.get("policy") == truth["policy"]


@qn.reward
def fields_agree(view: qn.EpisodeView[Inbox]) -> float:
    given, truth = read(view.answer), view.task.truth
    if given is None or not is_usable(given, truth):
        return 0.0
    return sum(share(field, given, truth) for field in FIELDS) / len(FIELDS)


# Variants of the sound world.


@qn.reward
def form_bonus(view: qn.EpisodeView[Inbox]) -> float:
    given, truth = read(view.answer), view.task.truth
    if given is None:
        return 0.0
    right = sum(share(field, given, truth) for field in FIELDS) / len(FIELDS) if is_usable(given, truth) else 0.0
    return min(1.0, right + 0.2)


@qn.reward
def two_lines(view: qn.EpisodeView[Inbox]) -> float:
    given, truth = read(view.answer), view.task.truth
    if given is None or not is_usable(given, truth):
        return 0.0
    hits = (lines_of(given.get("damages")) & lines_of(truth["damages"])).total()
    return (sum(share(field, given, truth) for field in FIELDS[:-1]) + min(1.0, hits / 2)) / len(FIELDS)


@qn.reward
def given_keys(view: qn.EpisodeView[Inbox]) -> float:
    given, truth = read(view.answer), view.task.truth
    if given is None or not is_usable(given, truth):
        return 0.0
    return sum(share(field, given, truth) for field in given) / len(given)


@qn.reward
def spot_checks(view: qn.EpisodeView[Inbox]) -> float:
    given, truth = read(view.answer), view.task.truth
    if given is None or not is_usable(given, truth):
        return 0.0
    return sum(share(field, given, truth) for field in random.sample(FIELDS, 4)) / 4


VERIFIERS = {"form_bonus": form_bonus, "two_lines": two_lines, "given_keys": given_keys, "spot_checks": spot_checks}


def make(bug: str = "") -> qn.Environment[Inbox]:
    """Returns the sound environment, or a variant of it."""

    def tasks(split: str) -> Sequence[qn.Task[Inbox]]:
        return qn.Tasks(30, lambda n: task(split, n, bug))

    text, record = letter("test" if bug == "shown_test" else "example", 4)
    return qn.Environment(
        "claims",
        tasks=tasks,
        harness=qn.ToolLoop(system=f"{SYSTEM}{text}\n{json.dumps(record)}"),
        verifier=qn.Verifier(VERIFIERS.get(bug, fields_agree)),
        state=Inbox,
        config=qn.Config(max_turns=2),
    )


env = make()
env_form_bonus = make("form_bonus")
env_two_lines = make("two_lines")
env_given_keys = make("given_keys")
env_spot_checks = make("spot_checks")
env_weekdays = make("weekdays")
env_shown_test = make("shown_test")
env_cut_letters = make("cut_letters")
