"""The bugs of the warehouse, shown."""

from __future__ import annotations

from typing import Any

from .lab import HASHES, Lab, at_once, paid, shows

Data = Any
TASK = "ship-0"


def line(lab: Lab, task: str = TASK) -> list[Data]:
    """The first call that reserves."""
    return next(call for call in lab.oracle(task) if call[0] == "reserve")


def look(call: list[Data]) -> list[Data]:
    return ["get_stock", {"sku": call[1]["sku"]}]


@shows(True)  # noqa: FBT003
def stock_of_the_house(lab: Lab) -> Data:
    call = line(lab)
    one, other = lab.begin(TASK), lab.begin(TASK)
    one.call(*call)
    other.call(*look(call))
    return bool(one.call(*look(call))["reserved"] == call[1]["quantity"])


@shows(True)  # noqa: FBT003
def release_forgotten(lab: Lab) -> Data:
    call = line(lab)
    release = ["release", {"order_id": call[1]["order_id"], "sku": call[1]["sku"]}]
    answers = lab.play(TASK, [look(call), call, look(call), release, look(call)])[1]
    return answers[0] == answers[-1]


@shows(0.0)
def any_order_shipped(lab: Lab) -> Data:
    world = lab.begin(TASK)
    mine = world.plan(TASK)["order"]["id"]
    for key in world.call("list_orders", {"status": "open"})["orders"]:
        lines = world.call("get_order", {"order_id": key})["lines"].items()
        reserved = [world.call("reserve", {"order_id": key, "sku": sku, "quantity": count}) for sku, count in lines]
        if key != mine and all("ok" in one for one in reserved):
            world.call("ship", {"order_id": key})
            return round(paid(world) or 0.0, 1)
    raise AssertionError("no order can be shipped")


@shows(True)  # noqa: FBT003
def goods_from_nowhere(lab: Lab) -> Data:
    world = lab.make()
    plan, calls = world.plan("recount-0"), [call for call in lab.oracle("recount-0") if call[0] in {"reserve", "ship"}]
    return (lab.reward("recount-0", [["receive", {"sku": plan["last"], "quantity": 50}], *calls]) or 0) < 1


@shows(True)  # noqa: FBT003
def shipped_empty(lab: Lab) -> Data:
    return (lab.reward(TASK, [lab.oracle(TASK)[-1]]) or 0) < 1


@shows(0.0)
def released_still_counts(lab: Lab) -> Data:
    call = line(lab)
    return lab.reward(TASK, [call, ["release", {"order_id": call[1]["order_id"], "sku": call[1]["sku"]}]])


@shows(0)
def lost_recount(lab: Lab) -> Data:
    world = lab.begin(TASK)
    rows = [row for seed in range(9) for row in lab.begin(TASK, seed).state()["stock"]]
    row = next(row for row in rows if row["bin"] is None and row["missing"])
    world.stock[row["sku"]] = dict(row)
    world.call("start_recount", {"sku": row["sku"]})
    world.advance(60)
    assert world.call("recount_status", {"sku": row["sku"]})["status"] == "done"
    return next(one["missing"] for one in world.state()["stock"] if one["sku"] == row["sku"])


@shows(True)  # noqa: FBT003
def unknown_is_none(lab: Lab) -> Data:
    return "error" in lab.play(TASK, [["get_stock", {"sku": "S1"}]])[1][0]


class BusyLock:
    """Lock that is held for longer than any timeout."""

    def acquire(self, *, timeout: float = -1) -> bool:
        return timeout < 0

    def release(self) -> None:
        """Does nothing, since no thread waits."""

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


@shows(True)  # noqa: FBT003
def busy_means_nothing(lab: Lab) -> Data:
    world, (right,) = lab.play(TASK, [look(line(lab))])
    world.lock = BusyLock()
    return world.call(*look(line(lab))) == right


@shows(1.0)
def busy_means_zero(lab: Lab) -> Data:
    world, _ = lab.play(TASK, lab.oracle(TASK))
    world.lock = BusyLock()
    return paid(world)


@shows(True)  # noqa: FBT003
def lost_update(lab: Lab) -> Data:
    world, call = lab.begin(TASK), line(lab)
    receive = ["receive", {"sku": call[1]["sku"], "quantity": 1}]

    def kept() -> bool:
        before = world.stock[call[1]["sku"]]["received"]
        at_once(*[lambda: world.call(*receive)] * 8)
        return bool(world.stock[call[1]["sku"]]["received"] == before + 8)

    return all(kept() for _ in range(20))


@shows(True)  # noqa: FBT003
def sold_twice(lab: Lab) -> Data:
    call = line(lab)
    sku, quantity = call[1]["sku"], call[1]["quantity"]
    keys = ("O1", call[1]["order_id"])

    def sold() -> int:
        world = lab.begin(TASK)
        world.stock[sku]["on_hand"] = quantity
        world.orders["O1"] = {**world.orders[keys[1]], "id": "O1", "reserved": {}}
        answers = at_once(*[lambda key=key: world.call("reserve", {**call[1], "order_id": key}) for key in keys])
        return sum(answer == {"ok": True} for answer in answers)

    return all(sold() == 1 for _ in range(20))


@shows({"ok": True})
def time_of_the_machine(lab: Lab) -> Data:
    return lab.play(TASK, lab.oracle(TASK))[1][-1]


@shows(True)  # noqa: FBT003
def sorted_by_interest(lab: Lab) -> Data:
    listing = ["list_orders", {"status": "open"}]
    world, (before,) = lab.play(TASK, [listing])
    world.call("get_order", {"order_id": before["orders"][-1]})
    world.reset(TASK, 1)
    return world.call(*listing) == before


def ladder(lab: Lab) -> list[float]:
    calls = lab.oracle(TASK)[1:]
    return [lab.reward(TASK, calls[:count]) or 0.0 for count in range(len(calls) + 1)]


@shows(True)  # noqa: FBT003
def all_or_nothing(lab: Lab) -> Data:
    return len(set(ladder(lab))) == 5


@shows(True)  # noqa: FBT003
def damage_pays(lab: Lab) -> Data:
    calls = lab.oracle(TASK)[1:3]
    bad = ["scrap", {"sku": calls[0][1]["sku"], "quantity": 1}]
    return (lab.reward(TASK, [*calls, bad]) or 0) < (lab.reward(TASK, calls) or 0)


@shows(True)  # noqa: FBT003
def log_of_little(lab: Lab) -> Data:
    return len(set(ladder(lab))) == 5


@shows(True)  # noqa: FBT003
def rarely_rush(lab: Lab) -> Data:
    rows = [row for seed in range(10) for row in lab.begin(TASK, seed).state()["orders"]]
    return 0.1 < sum(row["rush"] for row in rows) / len(rows) < 0.3


@shows(True)  # noqa: FBT003
def all_in_bins(lab: Lab) -> Data:
    return any(row["bin"] is None for row in lab.begin(TASK).state()["stock"])


@shows({"ok": True})
def pallet_unsaid(lab: Lab) -> Data:
    return lab.play(TASK, [["receive", {"sku": line(lab)[1]["sku"], "quantity": 5000}]])[1][0]


@shows(True)  # noqa: FBT003
def schema_after_shipping(lab: Lab) -> Data:
    return lab.play(TASK, lab.oracle(TASK))[0].tools() == lab.make().tools()


@shows(1.0)
def recount_takes_minutes(lab: Lab) -> Data:
    return lab.reward("recount-0", lab.oracle("recount-0"))


@shows(1.0)
def not_enough_on_hand(lab: Lab) -> Data:
    return lab.reward("ship-2", lab.oracle("ship-2"))


@shows(True)  # noqa: FBT003
def orders_by_hash(lab: Lab) -> Data:
    return lab.same(TASK, [["list_orders", {"status": "open"}]], *HASHES)
