"""The bugs of the questions about reports, shown."""

from __future__ import annotations

import json
import re
from typing import Any

from .lab import Lab, at_once, paid, shows

Data = Any


def said(lab: Lab, task: str, answer: str) -> float | None:
    world = lab.begin(task)
    world.answer(answer)
    return paid(world)


def gold(lab: Lab, task: str) -> str:
    return str(lab.make().hidden(task)["gold"])


@shows(0.0)
def gold_somewhere(lab: Lab) -> Data:
    return said(lab, "sum-0", " or ".join(gold(lab, f"sum-{number}") for number in range(10)))


@shows(0.0)
def any_number_of_many(lab: Lab) -> Data:
    return said(lab, "sum-0", f"12 or {gold(lab, 'sum-0')} or 14")


@shows(0.0)
def first_name_decides(lab: Lab) -> Data:
    one, two, three = gold(lab, "rank-0").split(", ")
    return said(lab, "rank-0", f"{one}, {three}, {two}")


@shows(0.0)
def nothing_is_contained(lab: Lab) -> Data:
    return said(lab, "rank-0", "")


@shows(0.0)
def not_a_number_passes(lab: Lab) -> Data:
    return said(lab, "sum-0", "nan")


@shows(0.0)
def absolute_tolerance(lab: Lab) -> Data:
    return said(lab, "rate-0", "0")


@shows(0.0)
def three_digits(lab: Lab) -> Data:
    return said(lab, "sum-0", str(int(gold(lab, "sum-0")) + 1))


def answer_text(lab: Lab, calls: list[Data]) -> str:
    return json.dumps(lab.play("sum-0", calls)[1])


@shows(False)  # noqa: FBT003
def gold_in_the_error(lab: Lab) -> Data:
    return gold(lab, "sum-0") in answer_text(lab, [["submit", {"answer": " "}]])


@shows(False)  # noqa: FBT003
def encoded_footer(lab: Lab) -> Data:
    world = lab.begin("sum-0")
    reports = world.call("list_reports", {})["reports"]
    return any("Checksum" in world.call("read_report", {"report_id": one["id"]})["text"] for one in reports)


@shows(False)  # noqa: FBT003
def key_after_the_second(lab: Lab) -> Data:
    return gold(lab, "sum-0") in answer_text(lab, [["submit", {"answer": "1"}], ["submit", {"answer": "2"}]])


@shows(True)  # noqa: FBT003
def needed_come_first(lab: Lab) -> Data:
    needed = {call[1]["report_id"] for call in lab.oracle("sum-0") if call[0] == "read_report"}
    lists = [lab.play("sum-0", [["list_reports", {}]], seed)[1][0]["reports"] for seed in range(5)]
    return any({one["id"] for one in reports[:3]} != needed for reports in lists)


@shows(0.0)
def answer_of_yesterday(lab: Lab) -> Data:
    world, _ = lab.play("sum-0", lab.oracle("sum-0"))
    world.reset("sum-0", 1)
    return world.score()


@shows(True)  # noqa: FBT003
def read_before(lab: Lab) -> Data:
    world, (before,) = lab.play("sum-0", [["list_reports", {}]])
    world.call("read_report", {"report_id": before["reports"][-1]["id"]})
    return lab.play("sum-0", [["list_reports", {}]])[1][0] == before


@shows(1)
def seed_of_zero(lab: Lab) -> Data:
    return len({json.dumps(lab.play("sum-0", [["list_reports", {}]], 0)[1]) for _ in range(3)})


@shows(1.0)
def gold_of_another_depot(lab: Lab) -> Data:
    return lab.reward("sum-3", lab.oracle("sum-3"))


@shows(True)  # noqa: FBT003
def gold_without_a_month(lab: Lab) -> Data:
    _, answers = lab.play("sum-4", lab.oracle("sum-4"))
    return str(answers[-2]["result"]) == gold(lab, "sum-4")


@shows(True)  # noqa: FBT003
def report_not_there(lab: Lab) -> Data:
    return not any("error" in answer for answer in lab.play("rank-5", lab.oracle("rank-5"))[1])


@shows(1.0)
def letter_by_letter(lab: Lab) -> Data:
    return said(lab, "sum-0", f"{int(gold(lab, 'sum-0')):,}")


@shows(True)  # noqa: FBT003
def calculator_of_two_digits(lab: Lab) -> Data:
    _, answers = lab.play("rate-0", lab.oracle("rate-0"))
    return f"{answers[-2]['result']:.4f}" == gold(lab, "rate-0")


@shows({1.0})
def one_in_twenty(lab: Lab) -> Data:
    world, _ = lab.play("sum-0", lab.oracle("sum-0"))
    return {world.score() for _ in range(400)}


@shows([1.0])
def gold_of_the_thread(lab: Lab) -> Data:
    return at_once(lab.play("sum-0", lab.oracle("sum-0"))[0].score)


@shows(0)
def everything_kept(lab: Lab) -> Data:
    world = lab.begin("sum-0")
    before = len(getattr(world, "kept", []))
    for _ in range(5):
        world.call("list_reports", {})
    return len(getattr(world, "kept", [])) - before


@shows(None)
def search_is_a_pattern(lab: Lab) -> Data:
    return lab.crash("sum-0", ["search_reports", {"query": "late!! ("}])


@shows(True)  # noqa: FBT003
def index_of_the_first(lab: Lab) -> Data:
    world = lab.begin("sum-0")
    world.call("search_reports", {"query": "bern"})
    world.reset("sum-1", 1)
    text = world.call("read_report", {"report_id": "R1037"})["text"]
    shipped = re.findall(r"Parcels shipped: (.+)", text)[0]
    return "R1037" in world.call("search_reports", {"query": shipped})["ids"]


@shows(True)  # noqa: FBT003
def divided_by_nothing(lab: Lab) -> Data:
    return "error" in lab.begin("sum-0").call("calculate", {"left": 1, "operation": "/", "right": 0})


@shows({"result": 2})
def minus_turned_round(lab: Lab) -> Data:
    return lab.begin("sum-0").call("calculate", {"left": 5, "operation": "-", "right": 3})


@shows(False)  # noqa: FBT003
def etag_of_the_list(lab: Lab) -> Data:
    return gold(lab, "sum-0")[::-1] in answer_text(lab, [["list_reports", {}]])
