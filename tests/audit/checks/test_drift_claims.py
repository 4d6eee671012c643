"""Small promises of descriptions: what one says of itself is held against it, and what it does not say is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.checks import _drift_claims
from quintain.audit.kernel.check import checks_of
from tests.audit.checks._found import audited

(CHECK,) = [one for one in checks_of(_drift_claims) if one.id == "x.claims_hold"]
DIARY = '''
import copy


class ToolError(Exception):
    pass


def tool(name, description, **said):
    properties = {key: {"type": "string", "description": one} for key, one in said.items()}
    return {"name": name, "description": description,
            "parameters": {"type": "object", "properties": properties, "required": list(said)}}


class Diary:
    """A tag is one word; one may look for any words, and finds what contains them whole."""

    def tasks(self):
        return ["D1", "D2"]

    def tools(self):
        return [
            tool("add_tag", "Tag a day.", day="A day.", tag="One word."),
            tool("find", "Show the days whose title contains a word.", word="A word."),
            tool("tagged", "Show the days that have a tag.", tag="One word."),
            tool("with_visitor", "Show the days that contain a visitor.", visitor="Who came."),
            tool("search", "Find days by a part of the title.", title="A part of it."),
            tool("close", "Close a day; this can be done only once.", day="A day."),
        ]

    def reset(self, task, seed):
        titles = ("Thunderstorm again", "Visit of Ludwig", "Sunshine at noon")
        self.days = {f"D{n}": {"id": f"D{n}", "title": title, "visitor": "Ludwig", "tags": ["quiet"], "closed": 0}
                     for n, title in enumerate(titles, 1)}
        return f"Tag {task} and close it."

    def call(self, name, arguments):
        return getattr(self, "_" + name)(**arguments)

    def day(self, day):
        if day not in self.days:
            raise ToolError("no such day")
        return self.days[day]

    def _add_tag(self, day, tag):
        if self.forbids(tag):
            raise ToolError("a tag is one word")
        self.day(day)["tags"].append(tag)
        return {"ok": True}

    def forbids(self, tag):
        return len(tag.split()) != 1

    def rows(self, fits):
        return [{"id": one["id"]} for one in self.days.values() if fits(one)]

    def _find(self, word):
        return self.rows(lambda one: word.lower() in one["title"].lower().split())

    def _tagged(self, tag):
        return self.rows(lambda one: tag in one["tags"])

    def _with_visitor(self, visitor):
        return self.rows(lambda one: visitor == one["visitor"])

    def _search(self, title):
        return self.rows(lambda one: self.has(one["title"], title))

    def has(self, title, part):
        return part.lower() in title.lower()

    def _close(self, day):
        if self.day(day)["closed"] >= self.most():
            raise ToolError("it is closed")
        self.day(day)["closed"] += 1
        return {"ok": True}

    def most(self):
        return 1

    def state(self):
        return copy.deepcopy({"days": self.days})

    def oracle(self, task):
        looks = [["find", {"word": "thunderstorm"}], ["tagged", {"tag": "quiet"}], ["with_visitor", {
            "visitor": "Ludwig"}], ["search", {"title": "sunshine"}]]
        return [*looks, ["add_tag", {"day": task, "tag": "storm"}], ["close", {"day": task}]]

    def score(self):
        return 1.0


class Loose(Diary):
    """None of what is promised is so."""

    def forbids(self, tag):
        return False

    def has(self, title, part):
        return part.lower() in title.lower().split()

    def most(self):
        return 9
'''


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "titles"),
    [
        ("Diary", []),
        (
            "Loose",
            [
                "add_tag takes tag='two words', though its description says 'One word.'",
                "close can be done again, though its description says once",
                "search does not find by a part of the title",
            ],
        ),
    ],
)
def test_claims_of_descriptions_are_checked(tmp_path: Path, name: str, titles: list[str]) -> None:
    (tmp_path / "diary.py").write_text(DIARY, encoding="utf-8")
    report = audited(tmp_path / "diary.py", name, [CHECK])
    assert report.checks[0].looked
    assert sorted(one.title for one in report.findings) == titles
    assert all(one.confidence == "likely" for one in report.findings)
