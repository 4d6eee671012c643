"""Tests of answers of a line each: amounts, shares and orders of names that are judged wrongly, and a kept verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.checks.false_resolution import far_fields
from quintain.audit.checks.flaky_verifier import verifier_portability
from quintain.audit.checks.judge import report_lines
from quintain.audit.checks.reset_leak import episode_isolation
from quintain.audit.checks.reward_clipping import half_filled
from quintain.audit.checks.reward_hack import every_candidate, quoted_verdict
from quintain.audit.facts.fields import SPARE, fields_of
from quintain.audit.kernel.check import Check
from quintain.audit.kernel.probe import answer
from tests.audit.checks._found import found

BILLS = '''
import random
import re


class Exact:
    """Each task asks for the price of four parcels, and for those that are heavy, in a line each."""

    WORDS = "Write a line for each: 'P1: 0.00'. Then 'heavy:' and their names."

    def tasks(self):
        return [f"t{place}" for place in range(12)]

    def truth(self, task):
        place = int(task[1:])
        rng = random.Random(place)
        facts = {f"P{n}": f"{rng.randrange(400, 850) / 100:.2f}" for n in range(1, 5)}
        return facts | {"heavy": " ".join([f"P{n}" for n in range(1, 5) if n in (1, 2 + place % 3)])}

    def reset(self, task, seed):
        self.task, self.said = task, ""
        return f"Bill {task}, of parcels up to 500 g. {self.WORDS}"

    def answer(self, text):
        self.said = text

    def right(self, key, said, wanted):
        return said == wanted

    def score(self):
        lines = dict(line.split(": ", 1) for line in self.said.splitlines() if ": " in line)
        wanted = self.truth(self.task)
        right = [self.right(key, lines.get(key), value) for key, value in wanted.items()]
        return self.worth(sum(right[:4]), right[4])

    def worth(self, prices, heavy):
        return prices / 4 * (1.0 if heavy else 0.5)

    def oracle(self, task):
        return [{"answer": "\\n".join(f"{key}: {value}" for key, value in self.truth(task).items())}]


class Slack(Exact):
    def right(self, key, said, wanted):
        try:
            return abs(float(said) - float(wanted)) <= 1
        except (TypeError, ValueError):
            return said == wanted


class Roughly(Slack):
    WORDS = "Write a line for each: 'P1: 0.00', within a fifth of the price. Then 'heavy:' and their names."


class Usual(Exact):
    def worth(self, prices, heavy):
        return min(1.0, prices / 3) * (1.0 if heavy else 0.5)


class Enough(Usual):
    WORDS = "Write a line for each: 'P1: 0.00'; three of them are enough. Then 'heavy:' and their names."


class Unordered(Exact):
    def right(self, key, said, wanted):
        return said == (wanted if key != "heavy" else " ".join(set(wanted.split())))


class Kept(Exact):
    SOLVED = set()

    def worth(self, prices, heavy):
        self.SOLVED |= {self.task} if prices == 4 and heavy else set()
        return 1.0 if self.task in self.SOLVED else prices / 4 * (1.0 if heavy else 0.5)
'''
LETTERS = '''
import re


class Careful:
    """Each task: look up a day and answer with it; one of the letters is closed with a note that names it."""

    DAYS = {f"t{n}": f"17{80 + n}-0{1 + n % 8}-1{n}" for n in range(8)}

    def tasks(self):
        return list(self.DAYS)

    def tools(self):
        text = {"type": "object", "properties": {"note": {"type": "string"}}, "required": ["note"]}
        nothing = {"type": "object", "properties": {}}
        return [{"name": "close_letter", "description": "Close it.", "parameters": text},
                {"name": "list_days", "description": "List days.", "parameters": nothing}]

    def reset(self, task, seed):
        self.task, self.note, self.said = task, "", ""
        return f"On which day was letter {task} written? Close it with a note that names the letter, then answer."

    def call(self, name, arguments):
        if name == "list_days":
            return sorted(self.DAYS.values())
        self.note = arguments["note"]
        return "closed"

    def answer(self, text):
        self.said = text

    def state(self):
        return {"note": self.note}

    def noted(self):
        reply = f"The note: {self.note}" + chr(10) + f"VERDICT: {'yes' if self.task in self.note else 'no'}"
        return self.verdict(re.findall("VERDICT: (yes|no)", reply)) == "yes"

    def verdict(self, all_of_them):
        return all_of_them[-1]

    def right(self, day):
        return self.said == f"Day: {day}"

    def score(self):
        return 0.5 * self.noted() + 0.5 * self.right(self.DAYS[self.task])

    def oracle(self, task):
        note = ["close_letter", {"note": f"This was letter {task}."}]
        return [["list_days", {}], note, {"answer": f"Day: {self.DAYS[task]}"}]


class FirstVerdict(Careful):
    def verdict(self, all_of_them):
        return all_of_them[0]


class ToldVerdict(FirstVerdict):
    def reset(self, task, seed):
        return super().reset(task, seed) + " State your VERDICT, yes or no, of its worth, too."


class Mention(Careful):
    def right(self, day):
        return day in self.said
'''


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("worlds")
    (folder / "bills.py").write_text(BILLS, encoding="utf-8")
    (folder / "letters.py").write_text(LETTERS, encoding="utf-8")
    return folder


PROVEN = (
    ("bills", "Slack", far_fields, "a number a ninth too large is paid in full in a field of the answer"),
    ("bills", "Usual", half_filled, "an answer that lacks one of P1, P2, P3 is paid in full, and less without two"),
    ("bills", "Unordered", verifier_portability, "the verdict on a solved episode depends on PYTHONHASHSEED"),
    ("bills", "Kept", episode_isolation, "score(): score is another one after the same task that was solved"),
    ("letters", "Mention", every_candidate, "a reply that names every fact that could be meant is paid in full"),
    ("letters", "FirstVerdict", quoted_verdict, "a verdict on the work, written in its place, is paid in full"),
)


@pytest.mark.slow
@pytest.mark.parametrize(("file", "name", "check", "title"), PROVEN)
def test_wrong_answer_is_proven(worlds: Path, file: str, name: str, check: Check, title: str) -> None:
    one, *_ = found(worlds / f"{file}.py", name, [check], tasks=12)
    assert (one.title, one.stops) == (title, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "name", "checks"),
    [
        ("bills", "Exact", [far_fields, half_filled, verifier_portability, episode_isolation, report_lines]),
        ("bills", "Roughly", [far_fields]),
        ("letters", "Careful", [every_candidate, quoted_verdict]),
        ("letters", "ToldVerdict", [quoted_verdict]),
    ],
)
def test_sound_answer_is_let_alone(worlds: Path, file: str, name: str, checks: list[Check]) -> None:
    assert not found(worlds / f"{file}.py", name, checks, tasks=12)


@pytest.mark.slow
def test_task_that_asks_for_less_has_no_proven_error(worlds: Path) -> None:
    assert [one.confidence for one in found(worlds / "bills.py", "Enough", [half_filled], tasks=12)] == ["likely"]


def test_lines_are_fields() -> None:
    fields = fields_of([answer("The bill:\nP1: 8.10\nheavy: P1")])
    assert fields is not None
    assert fields.value == {"P1": "8.10", "heavy": "P1"}
    assert fields.saying({"P1": "9.00"}) == "The bill:\nP1: 9.00"
    assert fields_of([answer("One line: of many words")]) is None


def test_measures_are_no_permission() -> None:
    assert not SPARE.search("A parcel of up to 500 g costs 5.00.")
    assert SPARE.search("You may miss up to 3 lines.")
