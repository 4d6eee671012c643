"""Tests of the curious walk, early verdicts and spelled-out solutions, and of sound look-alikes."""

from __future__ import annotations

import base64
import zlib
from pathlib import Path

import pytest

from quintain.audit.auditor import audit
from quintain.audit.checks import leak
from quintain.audit.checks._leak_explore import evened, finds, stands_in
from quintain.audit.facts.codes import decoded
from quintain.audit.kernel.check import checks_of
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.loader import Subject

SUBJECT = """
import base64

GOLD = [4711, 9302, 5520, 7144, 3868, 6091]
LINES = [f"return price * {n} // 7 - rest" for n in range(11, 17)]
TEXT = {"type": "string"}


def tool(name, description="", **properties):
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": description or name, "parameters": schema}


class Archive:
    # Files that point to each other; the answer is submitted, and the last one counts.
    leak = ""

    def tasks(self):
        return [f"t{n}" for n in range(6)]

    def hidden(self, task):
        return {"gold": GOLD[int(task[1:])], "line": LINES[int(task[1:])]}

    def tools(self):
        return [tool("read", path=TEXT), tool("submit", answer=TEXT)]

    def reset(self, task, seed):
        self.task, self.said = task, None
        number = int(task[1:])
        code = base64.b64encode(f"sum={GOLD[number]}".encode()).decode()
        self.files = {
            "start.txt": "The plan of the year stands in plans/year.txt, nothing else.",
            "plans/year.txt": f"Add {GOLD[number] - 100} and 100, then submit the sum of both.",
        }
        if self.leak == "code":
            self.files["plans/year.txt"] += f" etag {code}"
        return "Begin with start.txt and submit what is asked for."

    def state(self):
        return {"files": dict(self.files), "said": self.said}

    def call(self, name, arguments):
        number = int(self.task[1:])
        if name == "read":
            path = arguments.get("path")
            if self.leak == "beside" and path == "plans/year.txt.bak":
                return "The plan of the year stands in plans/year.txt, nothing else.\\n" + LINES[number]
            if self.leak == "later" and path == "start.txt" and self.said is not None:
                return f"Looked for: {GOLD[number]}."
            if path not in self.files:
                return {"error": f"no file {path}"}
            return self.files[path]
        if name == "submit":
            if not str(arguments.get("answer", "")).strip():
                return {"error": "empty" + (f", not like {GOLD[number]}" if self.leak == "error" else "")}
            is_second, self.said = self.said is not None, str(arguments["answer"])
            if self.leak == "second" and is_second:
                return {"ok": True, "replaced": f"an earlier one; key {GOLD[number]}"}
            result = {"ok": True, "correct": self.said == str(GOLD[number])}
            return result if self.leak == "correct" else {"ok": True}
        return {"error": "unknown tool"}

    def oracle(self, task):
        reads = [["read", {"path": "start.txt"}], ["read", {"path": "plans/year.txt"}]]
        return [*reads, ["submit", {"answer": str(GOLD[int(task[1:])])}]]

    def score(self):
        return float(self.said == str(GOLD[int(self.task[1:])]))


class Shop:
    # Two orders to change and others to leave alone; nothing is hidden.
    leak = ""

    def tasks(self):
        return [f"s{n}" for n in range(4)]

    def tools(self):
        hint = ""
        if self.leak == "declared" and getattr(self, "task", None):
            one = self.oracle(self.task)[1][1]
            hint = f" For example {one['order_id']} to {one['street']} in {one['city']}."
        address = tool("change_address", "Changes it." + hint, order_id=TEXT, street=TEXT, city=TEXT)
        rush = tool("rush", "Sends it fast.", order_id=TEXT)
        return [tool("get_order", order_id=TEXT), rush, address]

    def reset(self, task, seed):
        self.task = task
        number = int(task[1:])
        self.orders = {f"O-{number}{n}": {"order_id": f"O-{number}{n}", "rush": False, "street": "", "city": ""}
                       for n in range(6)}
        return "Do what the customer wants."

    def state(self):
        return {"orders": [dict(row) for row in self.orders.values()]}

    def call(self, name, arguments):
        row = self.orders.get(arguments.get("order_id"))
        if row is None:
            return {"error": "no such order"}
        if name == "get_order":
            more = {"is_ready": self.score() == 1.0} if self.leak == "verdict" else {}
            return dict(row) | more | {"complete": row["rush"] and bool(row["city"])}
        row.update({"rush": True} if name == "rush" else arguments)
        return {"ok": True}

    def oracle(self, task):
        key = f"O-{int(task[1:])}3"
        address = {"order_id": key, "street": f"Long Lane {int(task[1:]) + 20}", "city": "Basel"}
        return [["rush", {"order_id": key}], ["change_address", address], ["get_order", {"order_id": key}]]

    def score(self):
        wanted = self.oracle(self.task)[1][1] | {"rush": True}
        rest = [row for key, row in self.orders.items() if key != wanted["order_id"]]
        return float(self.orders[wanted["order_id"]] == wanted and not any(row["rush"] or row["city"] for row in rest))


for kind in ("sound", "code", "beside", "error", "correct", "second", "later"):
    globals()[f"archive_{kind}"] = type(kind, (Archive,), {"leak": kind})
for kind in ("sound", "declared", "verdict"):
    globals()[f"shop_{kind}"] = type(kind, (Shop,), {"leak": kind})
"""
MINE = ("x.curious_agents_learn_nothing", "x.no_verdict_before_the_end", "x.solutions_are_not_shown")


def found(folder: Path, kind: str) -> list[Finding]:
    """Returns the findings of these checks in a variant of the subject."""
    path = folder / "subject.py"
    path.write_text(SUBJECT, "utf-8")
    report = audit(Subject(f"{path}:{kind}"), [one for one in checks_of(leak) if one.id in MINE])
    assert all("broke" not in one.reason for one in report.checks), report.checks
    return list(report.findings)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "check", "words"),
    [
        ("archive_code", MINE[0], "read shows the hidden gold in base64"),
        ("archive_beside", MINE[0], "read shows the hidden line"),
        ("archive_error", MINE[0], "submit shows the hidden gold in an error"),
        ("archive_second", MINE[0], "submit shows the hidden gold once something else was done"),
        ("archive_later", MINE[0], "read shows the hidden gold once something else was done"),
        ("archive_correct", MINE[1], "submit tells at /correct"),
        ("shop_verdict", MINE[1], "get_order tells at /is_ready"),
        ("shop_declared", MINE[2], "the tools' declaration spells out"),
    ],
)
def test_early_disclosure_is_proven(tmp_path: Path, kind: str, check: str, words: str) -> None:
    said = found(tmp_path, kind)
    (mine,) = [one for one in said if one.check == check and words in one.title]
    assert mine.confidence == "proven"
    assert mine.severity == "error"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["archive_sound", pytest.param("shop_sound", marks=pytest.mark.slow)])
def test_files_and_fields_of_the_world_are_left_alone(tmp_path: Path, kind: str) -> None:
    """A computable sum and a complete order are not verdicts on other work."""
    assert not found(tmp_path, kind)


@pytest.mark.parametrize(
    "text",
    [
        base64.b64encode(b"gold=90210").decode(),
        base64.b64encode(zlib.compress(b"the gold is 90210, and nothing else")).decode(),
        base64.b64encode(b"gold 90210".hex().encode()).decode(),
        b"gold=90210".hex(),
        base64.b85encode(b"it is 90210!").decode(),
        " ".join(str(one) for one in b"90210"),
        " ".join(f"{one:08b}" for one in b"90210"),
        "%39%30%32%31%30",
        "&#57;&#48;&#50;&#49;&#48;",
        "\\u0039\\u0030\\u0032\\u0031\\u0030",
        "9\u200b02\u200b10",
        "nine zero two one zero",
    ],
)
def test_a_number_is_found_in_each_code(text: str) -> None:
    assert finds(f"Report of May. ref {text} .", "90210")


def test_numbers_are_found_by_themselves_and_however_they_are_spelled() -> None:
    assert stands_in("90210", evened("it is 90,210."))
    assert not stands_in("90210", "190210")
    assert not stands_in("90210", "90210.5")
    assert finds("It was 90'210 in all", "90210") == ""


def test_plain_prose_decodes_to_little_that_could_be_taken_for_a_secret() -> None:
    text = "Depot of Bern, March. Parcels shipped: 12,345. Remarks: Dock 4 closed until further notice (K. Ott)."
    assert finds(text, "90210") is None
    assert all(name not in ("hex", "bits", "base85") for name, _ in decoded(text))
