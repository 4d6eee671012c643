"""The bugs of the courier's desk, shown."""

from __future__ import annotations

from functools import partial
from typing import Any

from .lab import Lab, at_once, eager_switches, paid, shows

Data = Any
ZONES = ({"TZ": "UTC"}, {"TZ": "Asia/Tokyo"})


def free_places(world: Any, listed: list[Data]) -> dict[str, int]:
    return {slot["id"]: slot["free"] for slot in world.call(*listed)["slots"]}


@shows(0)
def slot_left_behind(lab: Lab) -> Data:
    """Returns the number of places that a pick-up still holds in its former slot."""
    buy, listed, book = lab.oracle("label-0")[2:]
    world, _ = lab.play("label-0", [buy])
    before = free_places(world, listed)
    first, second = (slot for slot, free in list(before.items())[:2] if free)
    world.call("book_pickup", {**book[1], "slot_id": first})
    free_places(world, listed)
    world.call("book_pickup", {**book[1], "slot_id": second})
    return before[first] - free_places(world, listed)[first]


@shows(True)  # noqa: FBT003
def old_address_in_the_index(lab: Lab) -> Data:
    find, move, *_ = lab.oracle("reroute-0")
    world, _ = lab.play("reroute-0", [move])
    found = {row["id"]: row["postcode"] for row in world.call(*find)["shipments"]}
    return found[move[1]["shipment_id"]] == move[1]["postcode"]


@shows(0.0)
def paid_in_all(lab: Lab) -> Data:
    """A cent is paid for the wrong claim."""
    calls = lab.oracle("claim-2")
    settled = [given for name, given in calls if name == "settle_claim"]
    settled[0]["paid_cents"] -= 1
    settled[1]["paid_cents"] += 1
    return lab.reward("claim-2", calls)


@shows(0.0)
def own_shipments_do_not_count(lab: Lab) -> Data:
    """A namesake's shipment goes to the customer's new address too."""
    find, *moves = lab.oracle("reroute-0")
    world, answers = lab.play("reroute-0", [find, *moves])
    moved = {given["shipment_id"] for _, given in moves}
    other = next(
        row["id"] for row in answers[0]["shipments"] if row["status"] == "in_transit" and row["id"] not in moved
    )
    assert "barcode" in world.call("reroute", {**moves[0][1], "shipment_id": other})
    return paid(world)


@shows(True)  # noqa: FBT003
def barcode_stays(lab: Lab) -> Data:
    """The barcode says where the parcel is carried to."""
    calls = lab.oracle("reroute-0")
    world, _ = lab.play("reroute-0", calls)
    assert paid(world) == 1.0
    given = calls[1][1]
    row = world.call("get_shipment", {"shipment_id": given["shipment_id"]})
    return row["barcode"].startswith(given["postcode"])


@shows(True)  # noqa: FBT003
def no_scans_yet(lab: Lab) -> Data:
    world = lab.begin("claim-0")
    world.inject("timeout")
    return "error" in world.call(*lab.oracle("claim-0")[1])


@shows(True)  # noqa: FBT003
def rest_of_the_world(lab: Lab) -> Data:
    """A digit of the postcode has been lost."""
    move = lab.oracle("reroute-0")[1]
    world = lab.begin("reroute-0")
    return "error" in world.call("reroute", {**move[1], "postcode": move[1]["postcode"][:4]})


@shows([1.0, 1.0])
def remembered_plan(lab: Lab) -> Data:
    found: list[Data] = []
    world = lab.make()
    for _ in range(2):
        world.reset("reroute-0", 1)
        for call in lab.oracle("reroute-0"):
            world.call(*call)
        found.append(paid(world))
    return found


@shows([1 / 3, 2 / 3, 1.0])
def whole_rewards(lab: Lab) -> Data:
    calls = lab.oracle("reroute-1")
    return [lab.reward("reroute-1", calls[: 2 + number]) for number in range(3)]


@shows(0)
def delivered_before_pick_up(lab: Lab) -> Data:
    """Returns the number of parcels of a day that were delivered first."""
    times: dict[str, dict[str, str]] = {}
    for scan in lab.begin("label-0").state()["scans"]:
        times.setdefault(scan["shipment_id"], {})[scan["code"]] = scan["at"]
    return sum(one.get("delivered", "9") < one["picked_up"] for one in times.values())


@shows("express")
def bands_begin_early(lab: Lab) -> Data:
    """The fastest service that the quote says can be paid for."""
    quote = lab.oracle("label-1")[1]
    world = lab.begin("label-1")
    limit = world.plan("label-1")["limit"]
    rates = world.call(*quote)["rates"]
    return min((rate for rate in rates if rate["cents"] <= limit), key=lambda rate: rate["days"])["service"]


@shows(1)
def printed_in_between(lab: Lab) -> Data:
    """Returns how many of eight shipments get the only place, at the worst of five times."""
    return max(crowded(lab) for _ in range(5))


def crowded(lab: Lab) -> int:
    buy, _, book = lab.oracle("label-0")[2:]
    world, _ = lab.play("label-0", [buy])
    slot = book[1]["slot_id"]
    zone = world.tables["slots"][slot]["zone"]
    rows = [row for row in world.tables["shipments"].values() if row["status"] == "labelled"]
    chosen = [row for row in rows if f"P{row['id'][2:]}" not in world.tables["pickups"]][:8]
    for row in chosen:
        row["sender_postcode"] = f"{2 * zone - 1}0000"

    def booked(key: str) -> Data:
        return world.call("book_pickup", {"shipment_id": key, "slot_id": slot})

    with eager_switches():
        answers = at_once(*(partial(booked, row["id"]) for row in chosen))
    return sum("error" not in answer for answer in answers)


@shows(1.0)
def goals_of_the_last_reset(lab: Lab) -> Data:
    world, _ = lab.play("label-0", lab.oracle("label-0"))
    lab.begin("claim-0")
    return paid(world)


@shows(False)  # noqa: FBT003
def assessment_in_the_error(lab: Lab) -> Data:
    """True if an agent that offers a cent too much reads the right amount."""
    world = lab.begin("claim-0")
    settle = lab.oracle("claim-0")[2]
    right = settle[1]["paid_cents"]
    answer = world.call("settle_claim", {**settle[1], "paid_cents": right + 2500})
    return str(right) in str(answer)


@shows(0)
def slot_may_be_gone(lab: Lab) -> Data:
    """Under how many of twenty seeds the task cannot be done."""
    calls = lab.oracle("label-0")
    found = [lab.play("label-0", calls, seed)[0] for seed in range(20)]
    return sum(paid(world) != 1.0 for world in found)


@shows(True)  # noqa: FBT003
def local_midnight(lab: Lab) -> Data:
    return lab.same("claim-0", lab.oracle("claim-0"), *ZONES)
