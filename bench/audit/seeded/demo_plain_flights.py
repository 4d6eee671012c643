"""The bugs of the airline's service desk, shown."""

from __future__ import annotations

from typing import Any

from .lab import HASHES, Lab, altered, at_once, shows

Data = Any


def own(lab: Lab, name: str) -> str:
    """The reservation that a task is about."""
    return str(lab.oracle(name)[1][1]["reservation_id"])


def seats(world: Any, reservation: str) -> list[Data]:
    """The free seats on the day and the route of a reservation, as a search shows them."""
    flight = world.call("get_reservation", {"reservation_id": reservation})["flight"]
    where = {"origin": flight["origin"], "destination": flight["destination"], "day": flight["departs"][:10]}
    return [one["seats"] for one in world.call("find_flights", where)["flights"]]


@shows(True)  # noqa: FBT003
def search_is_cached(lab: Lab) -> Data:
    world = lab.begin("cancel-new")
    before = seats(world, own(lab, "cancel-new"))
    world.call(*lab.oracle("cancel-new")[-1])
    return seats(world, own(lab, "cancel-new")) != before


@shows(0.0)
def money_is_not_compared(lab: Lab) -> Data:
    return lab.reward("cancel-insured", altered(lab.oracle("cancel-insured"), "cancel_reservation", refund=0))


@shows(2)
def refund_is_only_told(lab: Lab) -> Data:
    world, _ = lab.play("cancel-new", lab.oracle("cancel-new"))
    return len(world.call("get_reservation", {"reservation_id": own(lab, "cancel-new")})["payments"])


@shows(True)  # noqa: FBT003
def refused_change_is_confirmed(lab: Lab) -> Data:
    world = lab.begin("change-cheap")
    key = own(lab, "change-cheap")
    flight = world.call("get_reservation", {"reservation_id": key})["flight_id"]
    return "error" in world.call("change_flight", {"reservation_id": key, "flight_id": flight})


@shows(True)  # noqa: FBT003
def strangers_are_regular(lab: Lab) -> Data:
    return "error" in lab.begin("bags").call("get_customer", {"customer_id": "C000000"})


@shows([1.0, 1.0])
def schedule_is_built_once(lab: Lab) -> Data:
    return [lab.reward("change-cheap", lab.oracle("change-cheap")) for _ in range(2)]


@shows(0.0)
def half_is_whole(lab: Lab) -> Data:
    return lab.reward("cancel-which", lab.oracle("cancel-which")[:-1])


@shows(True)  # noqa: FBT003
def everybody_is_tidy(lab: Lab) -> Data:
    world = lab.begin("bags")
    return any(one["email"] is None for one in world.state()["customers"])


@shows(50)
def bags_became_dearer(lab: Lab) -> Data:
    calls = lab.oracle("bags")
    return lab.play("bags", calls)[1][-1]["paid"] // calls[-1][1]["charged"]


@shows(8)
def payments_are_overwritten(lab: Lab) -> Data:
    world = lab.begin("bags")
    state = world.state()
    keys = [one["reservation_id"] for one in state["reservations"][:8]]
    at_once(
        *(lambda key=key: world.call("add_bags", {"reservation_id": key, "total": 9, "charged": 1}) for key in keys)
    )
    return len(world.state()["payments"]) - len(state["payments"])


@shows(False)  # noqa: FBT003
def remarks_of_the_annotator(lab: Lab) -> Data:
    found = lab.play("cancel-new", lab.oracle("cancel-new")[:1])[1]
    return str(lab.oracle("cancel-new")[-1][1]["refund"]) in str(found)


@shows(1.0)
def fares_of_last_month(lab: Lab) -> Data:
    return lab.reward("change-bags", lab.oracle("change-bags"))


@shows(True)  # noqa: FBT003
def spot_checks(lab: Lab) -> Data:
    wrong = altered(lab.oracle("cancel-insured"), "cancel_reservation", refund=0)
    work = [[lab.task("cancel-insured"), seed, wrong] for seed in range(8)]
    first, *rest = lab.children(work, *HASHES)
    return all(one == first for one in rest)
