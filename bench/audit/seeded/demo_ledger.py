"""The bugs of the bank, shown."""

from __future__ import annotations

from typing import Any

from .lab import HASHES, Lab, altered, paid, shows

Data = Any
TASK = "orders-0"


def first(lab: Lab, task: str = TASK) -> str:
    return str(lab.make().plan(lab.task(task))["accounts"][0]["id"])


def close(found: float | None) -> float | None:
    return None if found is None else round(found, 3)


@shows(5000)
def short_memory(lab: Lab) -> Data:
    read = ["get_account", {"account_id": first(lab)}]
    write = ["set_limit", {"account_id": first(lab), "limit_cents": 5000}]
    return min(lab.play(TASK, [read, write, read])[1][-1]["limit"] for _ in range(5))


@shows(1.0)
def first_score_stays(lab: Lab) -> Data:
    world = lab.begin(TASK)
    assert paid(world) == 0.0
    for call in lab.oracle(TASK):
        world.call(*call)
    return paid(world)


@shows(0.333)
def refunds_counted(lab: Lab) -> Data:
    wrong = lab.make().plan(lab.task(TASK))["bookings"][3]["id"]
    return close(lab.reward(TASK, altered(lab.oracle(TASK), "refund", booking_id=wrong)))


@shows(0.333)
def amount_unread(lab: Lab) -> Data:
    return close(lab.reward(TASK, altered(lab.oracle(TASK), "transfer", amount_cents=1)))


@shows(0.5)
def damage_unread(lab: Lab) -> Data:
    other = lab.make().plan(lab.task(TASK))["accounts"][1]["id"]
    return lab.reward(TASK, [*lab.oracle(TASK), ["freeze", {"account_id": other}]])


@shows(True)  # noqa: FBT003
def refund_without_money(lab: Lab) -> Data:
    world = lab.begin(TASK)
    call = next(call for call in lab.oracle(TASK) if call[0] == "refund")
    booking = world.call("get_booking", {"booking_id": call[1]["booking_id"]})
    before = world.call("get_account", {"account_id": booking["account"]})["balance"]
    world.call(*call)
    after = world.call("get_account", {"account_id": booking["account"]})["balance"]
    return bool(after - before == -booking["amount"])


@shows(True)  # noqa: FBT003
def frozen_still_pays(lab: Lab) -> Data:
    transfer = next(call for call in lab.oracle(TASK) if call[0] == "transfer")
    return "error" in lab.play(TASK, [["freeze", {"account_id": transfer[1]["source"]}], transfer])[1][-1]


@shows(0.667)
def sticky_goals(lab: Lab) -> Data:
    return close(lab.reward(TASK, [*lab.oracle(TASK), ["set_limit", {"account_id": first(lab), "limit_cents": 0}]]))


def fault(lab: Lab, name: str, call: list[Data]) -> bool:
    world = lab.begin(TASK)
    world.inject(name)
    return "error" in world.call(*call)


@shows(True)  # noqa: FBT003
def rate_of_one(lab: Lab) -> Data:
    return fault(lab, "timeout", ["exchange_rate", {"base": "EUR", "quote": "JPY"}])


@shows(True)  # noqa: FBT003
def empty_statement(lab: Lab) -> Data:
    return fault(lab, "empty", ["list_bookings", {"account_id": first(lab)}])


@shows(None)
def neutral_on_fault(lab: Lab) -> Data:
    world = lab.begin(TASK)
    world.inject("refused")
    return world.score()


@shows(True)  # noqa: FBT003
def owners_in_a_set(lab: Lab) -> Data:
    return lab.same(TASK, [["find_accounts", {"owner": "a"}]], *HASHES)


@shows([])
def not_cleaned_after_error(lab: Lab) -> Data:
    world, _ = lab.play(TASK, [*lab.oracle(TASK), ["get_account", {"account_id": "A1"}]])
    world.reset(lab.task("orders-1"), 1)
    return world.state()["transfers"]


@shows(True)  # noqa: FBT003
def language_of_money(lab: Lab) -> Data:
    languages = ({"LC_ALL": "C"}, {"LC_ALL": "de_CH.UTF-8"})
    return lab.same(TASK, [["get_account", {"account_id": first(lab)}]], *languages)


@shows([0.0, 0.333, 0.667, 1.0])
def whole_reward(lab: Lab) -> Data:
    calls = lab.oracle(TASK)
    return [close(lab.reward(TASK, calls[:count])) for count in range(1, 5)]


@shows(0.667)
def dead_limits(lab: Lab) -> Data:
    return close(lab.reward(TASK, [call for call in lab.oracle(TASK) if call[0] != "set_limit"]))


@shows(0.667)
def bonus_hides_a_miss(lab: Lab) -> Data:
    return close(lab.reward(TASK, lab.oracle(TASK)[:3]))


@shows(0.25)
def one_damage_fits_all(lab: Lab) -> Data:
    others = [row["id"] for row in lab.make().plan(lab.task(TASK))["accounts"][1:]]
    wrong = [["set_limit", {"account_id": one, "limit_cents": 9}] for one in others]
    return lab.reward(TASK, [*lab.oracle(TASK), *wrong])


@shows(True)  # noqa: FBT003
def uniform_amounts(lab: Lab) -> Data:
    return max(abs(row["amount"]) for row in lab.begin(TASK).state()["bookings"]) > 100000


@shows(True)  # noqa: FBT003
def memos_all_there(lab: Lab) -> Data:
    return sum(row["memo"] is None for row in lab.begin(TASK).state()["bookings"]) > 10


@shows(True)  # noqa: FBT003
def currency_shuffled(lab: Lab) -> Data:
    rows = [row for seed in range(4) for row in lab.begin(TASK, seed).state()["accounts"] if row["currency"] == "JPY"]
    return min(row["balance"] for row in rows) > 250000


@shows(True)  # noqa: FBT003
def nobody_disputes(lab: Lab) -> Data:
    return any(row["disputed"] for row in lab.begin(TASK).state()["bookings"])


@shows("How much, in minor units.")
def amount_in_units(lab: Lab) -> Data:
    one = next(tool for tool in lab.make().tools() if tool["name"] == "transfer")
    return one["parameters"]["properties"]["amount_cents"]["description"]


@shows(True)  # noqa: FBT003
def account_renamed(lab: Lab) -> Data:
    world = lab.make()
    return world.tools() == world.production()["tools"]


@shows(True)  # noqa: FBT003
def rate_upside_down(lab: Lab) -> Data:
    world = lab.begin(TASK)
    return all(world.call(name, given) == answer for name, given, answer in world.production()["calls"])


@shows([None, None])
def logged_before_checked(lab: Lab) -> Data:
    given = lab.oracle(TASK)[3][1]
    return [lab.crash(TASK, ["transfer", {**given, "amount_cents": amount}]) for amount in (10**400, None)]


@shows(None)
def memo_is_none(lab: Lab) -> Data:
    key = next(row["id"] for row in lab.begin(TASK).state()["bookings"] if row["memo"] is None)
    return lab.crash(TASK, ["get_booking", {"booking_id": key}])


@shows([1.0])
def sum_over_a_set(lab: Lab) -> Data:
    work = [[task, 1, lab.make().oracle(task)] for task in lab.make().tasks()]
    return sorted({episode[-1]["score"] for episodes in lab.children(work, *HASHES) for episode in episodes})


@shows(0.0)
def already_carried_out(lab: Lab) -> Data:
    return lab.reward("orders-4", [])


@shows(1.0)
def no_money_to_move(lab: Lab) -> Data:
    return lab.reward("orders-7", lab.oracle("orders-7"))
