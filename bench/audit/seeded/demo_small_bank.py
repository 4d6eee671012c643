"""The bugs of the small bank, shown."""

from __future__ import annotations

from typing import Any

from .lab import Lab, at_once, eager_switches, shows
from .small_bank import OWNERS

Data = Any
ACCOUNTS = [str(4001 + number) for number in range(len(OWNERS))]


@shows(True)  # noqa: FBT003
def payee_stays_poor(lab: Lab) -> Data:
    _, pay = lab.oracle("pay-1")
    look = ["get_balance", {"account": pay[1]["target"]}]
    _, (before, _, after) = lab.play("pay-1", [look, pay, look])
    return bool(after["cents"] == before["cents"] + pay[1]["cents"])


@shows(True)  # noqa: FBT003
def completed_and_never_booked(lab: Lab) -> Data:
    look, pay = lab.oracle("pay-1")
    world, (before, said, after) = lab.play("pay-1", [look, pay, look])
    assert said == {"status": "completed"}
    assert world.score() == 1.0
    return bool(after["cents"] == before["cents"] - pay[1]["cents"])


@shows(True)  # noqa: FBT003
def last_writer_wins(lab: Lab) -> Data:
    world = lab.begin("pay-1")
    rich = max(ACCOUNTS, key=lambda one: world.call("get_balance", {"account": one})["cents"])
    others = [one for one in ACCOUNTS if one != rich]
    before = world.call("get_balance", {"account": rich})["cents"]

    def pay() -> None:
        for number in range(500):
            world.call("transfer", {"source": rich, "target": others[number % len(others)], "cents": 1})

    with eager_switches():
        at_once(*[pay] * 8)
    return bool(world.call("get_balance", {"account": rich})["cents"] == before - 4000)


@shows(1.0)
def more_than_there_is(lab: Lab) -> Data:
    return lab.reward("pay-2", lab.oracle("pay-2"))
