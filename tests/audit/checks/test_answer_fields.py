"""Tests of JSON answers: lost parts that cost nothing, verdicts by chance, and answers that prompts show or lack."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.checks.flaky_verifier import verdict_near_the_solution
from quintain.audit.checks.leak import example
from quintain.audit.checks.reward_clipping import half_filled
from quintain.audit.checks.reward_hack import partial_work
from quintain.audit.checks.unsolvable import task_set, whole_texts
from quintain.audit.facts.fields import fields_of, other_value
from quintain.audit.kernel.check import Check
from quintain.audit.kernel.probe import answer
from tests.audit.checks._found import found

FORMS = '''
import json
import random

KEYS = ("name", "city", "phone", "member", "items")
CITIES = ("Bern", "Graz", "Lund", "Oslo", "Pisa", "Riga")


def record(place):
    rng = random.Random(place)
    items = rng.sample(["lamp", "desk", "chair", "shelf"], 3)
    phone = str(rng.randrange(10**9, 10**10))
    return {"name": f"Ann{place}", "city": CITIES[place % 6], "phone": phone, "member": place % 2 == 0, "items": items}


def letter(place):
    r = record(place)
    role = "a" if r["member"] else "no"
    items = ", ".join(r["items"])
    pad = "I have lived here for many years and like it. " * (place % 3)
    return f"{r['name']} of {r['city']} is {role} member. {pad}Order: {items}. Call {r['phone']} please."


class Exact:
    """Each task is a letter whose facts are asked for as JSON; each field counts a fifth, the list by its entries."""

    ASKED = "Reply with JSON: name, city, phone, member, items."

    def tasks(self):
        return [f"t{place}" for place in range(8)]

    def place(self, task):
        return int(task[1:])

    def shown(self, task):
        return letter(self.place(task))

    def reset(self, task, seed):
        self.truth, self.said = record(self.place(task)), ""
        return f"{self.ASKED} {self.shown(task)}"

    def answer(self, text):
        self.said = text

    def share(self, key, given):
        if key != "items":
            return float(key in given and given[key] == self.truth[key])
        rows = given.get(key) if isinstance(given.get(key), list) else []
        return len({*map(str, rows)} & {*self.truth[key]}) / max(3, len(rows))

    def paid(self, given):
        return sum(self.share(key, given) for key in KEYS) / len(KEYS)

    def score(self):
        try:
            given = json.loads(self.said)
        except ValueError:
            return 0.0
        return self.paid(given) if isinstance(given, dict) else 0.0

    def oracle(self, task):
        return [{"answer": json.dumps(record(self.place(task)))}]


class Bonus(Exact):
    def paid(self, given):
        return min(1.0, super().paid(given) + 0.25)


class SaidBonus(Bonus):
    ASKED = "Reply with JSON: name, city, phone, member, items. Valid JSON is a bonus."


class FourOfFive(Exact):
    def paid(self, given):
        return float(super().paid(given) > 0.79)


class TwoItems(Exact):
    def share(self, key, given):
        rows = given.get(key) or [] if key == "items" else []
        return min(1.0, len({*rows} & {*self.truth[key]}) / 2) if key == "items" else super().share(key, given)


class Given(Exact):
    def paid(self, given):
        return sum(self.share(key, given) for key in given) / len(given) if {*given} <= {*KEYS} and given else 0.0


class SaidGiven(Given):
    ASKED = "Reply with JSON: name, city, phone, member, items. Leave out what you do not know."


class NameAlone(Exact):
    def paid(self, given):
        return self.share("name", given)


class Drawn(Exact):
    def paid(self, given):
        return sum(self.share(key, given) for key in random.sample(KEYS, 3)) / 3


class ShowsATask(Exact):
    def reset(self, task, seed):
        super().reset(task, seed)
        example = f"{letter(self.SHOWN)} {json.dumps(record(self.SHOWN))}"
        return f"{self.ASKED} As in: {example} Letter: {letter(self.place(task))}"

    SHOWN = 5


class ShowsAnother(ShowsATask):
    SHOWN = 50


class ShowsItself(Exact):
    def shown(self, task):
        r = record(self.place(task))
        return f"Name {r['name']}, phone {r['phone']}. {self.more(task)} As in: {self.form(task)}"

    def more(self, task):
        return ""

    def form(self, task):
        r = record(self.place(task))
        return f"Dear reader, {r['name']} can be called on {r['phone']} at any hour of the day or night."

    def score(self):
        return float(self.said == self.form(f"t{self.truth['name'][3:]}"))

    def oracle(self, task):
        return [{"answer": self.form(task)}]


class Choice(ShowsItself):
    def more(self, task):
        return f"\\n{self.form(task).replace('or', 'and')}\\n"


class Cut(Exact):
    def shown(self, task):
        return letter(self.place(task))[:140]


class Spoken(Exact):
    def shown(self, task):
        return letter(self.place(task)).replace("1", "one " if self.place(task) % 3 == 2 else "1")
'''


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("forms") / "forms.py"
    path.write_text(FORMS)
    return path


@pytest.mark.parametrize(
    ("name", "check", "title"),
    [
        ("Bonus", half_filled, "an answer that lacks one of name, city, phone is paid in full, and less without two"),
        pytest.param(
            "TwoItems",
            half_filled,
            "an answer that lacks one of items[0], items[1], items[2] is paid in full, and less without two",
            marks=pytest.mark.slow,
        ),
        ("Given", partial_work, "an answer with name alone is paid as one with all fields"),
        ("Drawn", verdict_near_the_solution, "one and the same nearly right episode is not always scored alike"),
        ("ShowsATask", example, "the prompt shows a task of the audited split with its answer"),
        ("ShowsItself", example, "the example in the prompt is the answer"),
        ("Cut", whole_texts, "texts end in their midst, and the solution uses their rest"),
    ],
)
def test_wrong_record_is_proven(forms: Path, name: str, check: Check, title: str) -> None:
    [one] = found(forms, name, [check])
    likely = name == "ShowsATask"  # The subject has no splits, so that its tasks may be there to learn from.
    assert (one.confidence, one.severity, one.title) == ("likely" if likely else "proven", "error", title)


@pytest.mark.parametrize(
    ("name", "checks"),
    [
        ("Exact", [half_filled, partial_work, verdict_near_the_solution, example, task_set, whole_texts]),
        pytest.param("FourOfFive", [half_filled, partial_work], marks=pytest.mark.slow),
        pytest.param("NameAlone", [half_filled, partial_work], marks=pytest.mark.slow),
        ("ShowsAnother", [example]),
        ("Choice", [example]),
        ("Spoken", [task_set, whole_texts]),
    ],
)
def test_sound_record_is_left_alone(forms: Path, name: str, checks: list[Check]) -> None:
    assert not found(forms, name, checks)


@pytest.mark.parametrize(("name", "check"), [("SaidBonus", half_filled), ("SaidGiven", partial_work)])
def test_prompt_that_asks_for_less_has_no_proven_error(forms: Path, name: str, check: Check) -> None:
    [one] = found(forms, name, [check])
    assert one.confidence == "likely"


def test_fields_lose_values_and_entries() -> None:
    fields = fields_of([answer('So: {"a": 2, "b": ["x1", "y"], "c": null} is it.')])
    assert fields is not None
    assert fields.keys == [("a", -1), ("b", -1)]
    assert fields.without(("a", -1), ("b", 0)) == 'So: {"a": 1083, "b": ["y"], "c": null} is it.'
    assert other_value({"on": True, "of": ["ab"]}) == {"on": False, "of": ["ba"]}
    assert fields_of([answer("{no object}")]) is None
