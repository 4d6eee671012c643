"""The bugs of the office calendar, shown."""

from __future__ import annotations

from typing import Any

from .lab import Lab, at_once, paid, shows
from .plain_calendar import DAYS

Data = Any


@shows(True)  # noqa: FBT003
def day_view_forgets_moves(lab: Lab) -> Data:
    day = {"day": DAYS[0]}
    world, (before, _, after) = lab.play(
        "move-1", [["list_meetings", day], *lab.oracle("move-1"), ["list_meetings", day]]
    )
    return len(after["meetings"]) < len(before["meetings"]) and paid(world) == 1.0


@shows(0.0)
def cancel_them_all(lab: Lab) -> Data:
    world, reason = lab.begin("cancel-1"), lab.task("cancel-1")["reason"]
    for row in world.call("list_meetings", {})["meetings"]:
        world.call("cancel", {"meeting": row["id"], "reason": reason})
    return paid(world)


@shows(0.0)
def any_hour_will_do(lab: Lab) -> Data:
    ((name, given),) = lab.oracle("common-2")
    return lab.reward("common-2", [[name, {**given, "start": "03:00"}]])


@shows(True)  # noqa: FBT003
def moved_into_a_taken_room(lab: Lab) -> Data:
    world = lab.begin("move-1")
    rows = [row for row in world.call("list_meetings", {})["meetings"] if row["room"] and row["status"] == "booked"]
    one, other = rows[0], next(row for row in rows if row["day"] != rows[0]["day"])
    where = {key: other[key] for key in ("day", "start", "room")}
    said = world.call("move", {"meeting": one["id"], **where})
    return "error" in said or world.call("get_meeting", {"meeting": one["id"]}) == said


@shows([True, True])
def unreadable_time_is_nine(lab: Lab) -> Data:
    ((name, given),) = lab.oracle("common-1")
    return ["error" in lab.begin("common-1").call(name, {**given, "start": start}) for start in ("2pm", "25:00")]


@shows(0.0)
def fixture_is_shared(lab: Lab) -> Data:
    lab.play("move-1", lab.oracle("move-1"), 11)
    again, first = lab.begin("move-1", 11), lab.begin("move-1", 12)
    name = lab.oracle("move-1")[0][1]["meeting"]
    return float(again.state()["meetings"][name] != first.state()["meetings"][name])


@shows(4 / 6)
def rounded_share(lab: Lab) -> Data:
    return lab.reward("cancel-1", lab.oracle("cancel-1")[:4])


@shows(True)  # noqa: FBT003
def tidy_office(lab: Lab) -> Data:
    rows = lab.begin("cancel-1").state()["meetings"].values()
    return len({row["minutes"] for row in rows}) > 1 and any(row["status"] == "cancelled" for row in rows)


@shows([])
def prompt_knows_old_names(lab: Lab) -> Data:
    world = lab.make()
    prompt = world.reset(lab.task("move-1"), 1)
    known = {tool["name"] for tool in world.tools()}
    return [word for word in prompt.replace(",", "").split() if "_" in word and word not in known]


@shows(1)
def check_then_wait(lab: Lab) -> Data:
    ((name, given),) = lab.oracle("common-1")
    most = 0
    for _ in range(5):
        world = lab.begin("common-1")
        found = at_once(*[lambda world=world: world.call(name, given)] * 3)
        most = max(most, sum("error" not in one for one in found))
    return most


@shows([])
def fixtures_tag(lab: Lab) -> Data:
    world = lab.begin("cancel-1")
    rows = world.call("list_meetings", {})["meetings"]
    shown = [world.call("get_meeting", {"meeting": row["id"]}) for row in rows]
    return [row["id"] for row in shown if "_expected" in row]


@shows([1.0, 1.0])
def move_to_saturday(lab: Lab) -> Data:
    return [lab.reward(name, lab.oracle(name)) for name in ("move-1", "move-2")]


@shows(1)
def spot_check(lab: Lab) -> Data:
    world, _ = lab.play("cancel-1", lab.oracle("cancel-1")[:3])
    return len({paid(world) for _ in range(40)})
