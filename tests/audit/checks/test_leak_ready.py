"""Tests of answers that lie ready: under a key, in an order, in a grader's file, in a grade, or by trying them all."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.checks.leak import curious, order_tells_nothing, undeclared_keys, untold
from quintain.audit.checks.reward_hack import every_number
from tests.audit.checks._found import found

SUBJECT = '''
class ToolError(Exception):
    pass


TEXT = {"type": "string"}


def tool(name, /, **properties):
    return {"name": name, "description": name, "parameters": {
        "type": "object", "properties": properties, "required": list(properties)}}


class Sums:
    """The people of two towns are added up; the first number that is handed in counts."""

    TOWNS = ("Basel", "Chur", "Olten")

    def tasks(self):
        return [f"sum-{number}" for number in range(3)]

    def tools(self):
        return [tool("get_town", name={**TEXT, "enum": list(self.TOWNS)}), tool("submit", number={"type": "number"})]

    def reset(self, task, seed):
        number = int(task[-1])
        self.table = {name: {"people": 1000 + 317 * number + 41 * at} for at, name in enumerate(self.TOWNS)}
        self.right = float(self.table["Basel"]["people"] + self.table["Olten"]["people"])
        self.given = []
        return "How many people live in Basel and Olten together? Half a percent more or less is right."

    def call(self, name, arguments):
        if name == "submit":
            self.given.append(arguments["number"])
            return self.reply(arguments["number"])
        if arguments.get("name") not in self.table:
            raise ToolError("no such town")
        return self.table[arguments["name"]]

    def reply(self, number):
        return {"number": number}

    def is_right(self, number):
        return abs(number - self.right) <= 0.01 * self.right

    def score(self):
        return float(self.is_right(self.given[0])) if self.given else 0.0


class Keyed(Sums):
    """The right number is one more row."""

    def reset(self, task, seed):
        said = super().reset(task, seed)
        self.table["_answer"] = {"people": self.right}
        return said


class Spoken(Keyed):
    """The prompt names the row."""

    def reset(self, task, seed):
        return f"{super().reset(task, seed)} The row _answer has the number of last year."


class Best(Sums):
    """The best number counts."""

    def score(self):
        return float(any(map(self.is_right, self.given)))


class Answered(Best):
    """Each answer says if the number is right."""

    def reply(self, number):
        return {"number": number, "right": self.is_right(number)}


class Files:
    """Reports, the same in each task; what one of them says is to be submitted."""

    def tasks(self):
        return [f"R{10 + 3 * number}" for number in range(8)]

    def tools(self):
        return [tool("list_reports"), tool("read_report", number=TEXT), tool("submit", answer=TEXT)]

    def reset(self, task, seed):
        self.task, self.said = task, ""
        self.rows = {f"R{10 + number}": f"harbour {number * 7919 % 977} grain" for number in range(24)}
        return self.asked(task)

    def asked(self, task):
        return f"Submit what the report {task} is about."

    def order(self):
        return sorted(self.rows)

    def call(self, name, arguments):
        if name == "list_reports":
            return {"reports": [{"number": key} for key in self.order()]}
        if name == "read_report":
            if arguments.get("number") not in self.rows:
                raise ToolError("no such report")
            return {"text": self.rows[arguments["number"]]}
        self.said = arguments["answer"]
        return {"ok": True}

    def oracle(self, task):
        self.reset(task, 0)
        return [["list_reports", {}], ["read_report", {"number": task}], ["submit", {"answer": self.gold(task)}]]

    def gold(self, task):
        return self.rows[task]

    def hidden(self, task):
        self.reset(task, 0)
        return {"answer": self.gold(task)}

    def score(self):
        return float(self.said == self.gold(self.task))


class Ordered(Files):
    """The report that is needed comes first."""

    def order(self):
        return sorted(self.rows, key=lambda key: key != self.task)


class First(Ordered):
    """The task is about the first report."""

    def asked(self, task):
        return "Submit what the first report is about."


class Graded(Files):
    """Two facts are asked for, each in a report; the grader's sheet is a report, too."""

    sheet = "rubric.json"

    def reset(self, task, seed):
        said = super().reset(task, seed)
        first, second = self.gold(task).splitlines()
        self.rows |= {"R100": f"{self.sheet}\\n{first}\\n{second}"} if self.sheet else {}
        return said

    def asked(self, task):
        number = int(task[1:])
        return f"Submit the lines CARGO: and PLACE: with the place of R{number} and the cargo of R{number + 1}."

    def gold(self, task):
        number = int(task[1:])
        return f"CARGO: grain of {number * 7919 % 977}\\nPLACE: harbour {number * 31 % 97}"

    def state(self):
        return {"rows": [[key, *text.splitlines()] for key, text in sorted(self.rows.items())], "said": self.said}


class Clean(Graded):
    """The sheet is not there."""

    sheet = ""


class Reports:
    """A ticket is closed with a report, and the last one counts."""

    FACTS = ("the pump was broken at noon", "a fuse had blown in hall 7", "the gate stood open all night",
             "a hose was cut near dock 3", "the clock ran late since May", "an oil lamp was lit in the yard")
    grade = "quality"

    def tasks(self):
        return [f"ticket-{number}" for number in range(6)]

    def tools(self):
        return [tool("show_ticket", ticket=TEXT), tool("close_ticket", ticket=TEXT, report=TEXT)]

    def reset(self, task, seed):
        self.task, self.said = task, []
        return f"Close {task} and report what had happened."

    def call(self, name, arguments):
        if arguments.get("ticket") != self.task:
            raise ToolError("no such ticket")
        if name == "show_ticket":
            return {"note": self.FACTS[int(self.task[-1])]}
        self.shut(arguments["report"])
        return {"ok": True} | ({self.grade: self.score()} if self.grade else {})

    def shut(self, report):
        self.said = [report]

    def oracle(self, task):
        return [["show_ticket", {"ticket": task}],
                ["close_ticket", {"ticket": task, "report": self.FACTS[int(task[-1])]}]]

    def score(self):
        return float(self.said[:1] == [self.FACTS[int(self.task[-1])]])


class Once(Reports):
    """The first report counts."""

    def shut(self, report):
        self.said.append(report)


class Quiet(Reports):
    """The answer has no grade."""

    grade = ""
'''


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("ready") / "ready.py"
    file.write_text(SUBJECT)
    return file


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("Keyed", "get_town shows what is paid for the name '_answer'"),
        ("Best", "every number, handed in by submit one after the other, is paid in full"),
        ("Ordered", "list_reports begins with the rows that the task needs, in each task"),
        ("Graded", "read_report shows the hidden answer in a file of a grader"),
        ("Reports", "close_ticket tells at /quality whether the episode would be paid now"),
        *((name, "") for name in ("Sums", "Spoken", "Answered", "Files", "First", "Clean", "Once", "Quiet")),
    ],
)
def test_answers_that_lie_ready_are_proven(subject: Path, name: str, title: str) -> None:
    findings = found(subject, name, [curious, every_number, order_tells_nothing, undeclared_keys, untold])
    assert [(one.confidence, one.title) for one in findings] == ([("proven", title)] if title else [])
