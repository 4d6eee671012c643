"""The bugs of the office's calendar, shown."""

from __future__ import annotations

from typing import Any

from .lab import Lab, paid, shows

Data = Any
DAY = "2031-03-14"
ZONES = ({"TZ": "UTC"}, {"TZ": "Asia/Tokyo"})
BOOKING = {"room": "Töss", "day": DAY, "start": "18:15", "minutes": 15, "title": "x"}


def free_day(lab: Lab, task: str = "move-0") -> Any:
    """A world without other bookings on the last day."""
    world = lab.begin(task)
    world.bookings = {key: row for key, row in world.bookings.items() if row["day"] != DAY}
    return world


@shows(6)
def free_by_day_and_time(lab: Lab) -> Data:
    world = free_day(lab)
    asked = {"day": DAY, "start": "09:00", "minutes": 30}
    world.call("find_free", {**asked, "seats": 20})
    return len(world.call("find_free", asked)["rooms"])


@shows(1)
def agenda_for_a_minute(lab: Lab) -> Data:
    world = free_day(lab)
    world.call("list_bookings", {"day": DAY})
    world.call("book", BOOKING)
    return len(world.call("list_bookings", {"day": DAY})["bookings"])


@shows(0.0)
def others_meetings_are_free(lab: Lab) -> Data:
    world, _ = lab.play("move-0", lab.oracle("move-0"))
    mine = lab.oracle("move-0")[0][1]["booking_id"]
    booked = [row["id"] for row in world.state()["bookings"] if row["status"] == "booked"]
    other = next(key for key in booked if key != mine)
    assert world.call("cancel", {"booking_id": other}) == {"ok": True}
    return paid(world)


@shows(0.0)
def cancelled_counts(lab: Lab) -> Data:
    world, answers = lab.play("book-0", lab.oracle("book-0"))
    world.call("cancel", {"booking_id": answers[-1]["booking_id"]})
    return paid(world)


@shows(0.0)
def notice_is_enough(lab: Lab) -> Data:
    return lab.reward("cancel-0", [lab.oracle("cancel-0")[-1]])


@shows(True)  # noqa: FBT003
def unknown_room_falls_back(lab: Lab) -> Data:
    return "error" in free_day(lab).call("book", {**BOOKING, "room": "Atlantis"})


@shows(True)  # noqa: FBT003
def bad_day_is_today(lab: Lab) -> Data:
    return "error" in lab.begin("book-0").call("list_bookings", {"day": "tomorrow"})


@shows(1)
def seats_ignored(lab: Lab) -> Data:
    return len(lab.begin("book-0").call("list_rooms", {"seats": 20})["rooms"])


@shows(True)  # noqa: FBT003
def local_zone(lab: Lab) -> Data:
    return lab.same("book-0", [["now", {}]], *ZONES)


@shows(True)  # noqa: FBT003
def numbers_of_the_house(lab: Lab) -> Data:
    answers = [free_day(lab).call("book", BOOKING) for _ in range(2)]
    return answers[0] == answers[1]


@shows([])
def undelivered_notices(lab: Lab) -> Data:
    world, _ = lab.play("move-0", lab.oracle("move-0"))
    world.reset(lab.task("cancel-0"), 1)
    world.advance(120)
    return world.call("list_notices", {"person": lab.oracle("move-0")[-1][1]["person"]})["notices"]


@shows("How long, in minutes.")
def length_in_hours(lab: Lab) -> Data:
    one = next(tool for tool in lab.make().tools() if tool["name"] == "book")
    return one["parameters"]["properties"]["minutes"]["description"]


@shows(3)
def seats_are_exact(lab: Lab) -> Data:
    found = free_day(lab).call("find_free", {"day": DAY, "start": "09:00", "minutes": 30, "seats": 10})
    return len(found["rooms"])


@shows(None)
def null_attendees(lab: Lab) -> Data:
    return lab.crash("book-0", ["book", {**BOOKING, "attendees": None}])


@shows(None)
def start_without_colon(lab: Lab) -> Data:
    return lab.crash("move-0", ["move", {"booking_id": "M1", "day": DAY, "start": "0945"}])


@shows(1.0)
def all_rooms_taken(lab: Lab) -> Data:
    return lab.reward("book-1", lab.oracle("book-1"))


@shows(1.0)
def looking_costs(lab: Lab) -> Data:
    return lab.reward("book-0", [["list_rooms", {}], *lab.oracle("book-0")])


@shows(True)  # noqa: FBT003
def office_hours_here(lab: Lab) -> Data:
    return lab.same("book-0", lab.oracle("book-0"), *ZONES)


@shows(True)  # noqa: FBT003
def solution_as_example(lab: Lab) -> Data:
    return lab.begin("book-0").tools() == lab.make().tools()


@shows("16:45")
def move_forgets_the_hour(lab: Lab) -> Data:
    world, key = free_day(lab), lab.oracle("move-0")[0][1]["booking_id"]
    world.bookings[key] = dict(world.plan(lab.task("move-0"))["booking"])
    world.call("move", {"booking_id": key, "day": DAY, "start": "16:45"})
    return world.call("get_booking", {"booking_id": key})["start"]


@shows([])
def notices_survive_a_restore(lab: Lab) -> Data:
    world = lab.begin("move-0")
    saved = world.snapshot()
    for call in lab.oracle("move-0"):
        world.call(*call)
    world.restore(saved)
    return world.state()["notices"]
