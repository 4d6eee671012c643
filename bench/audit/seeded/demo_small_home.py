"""The bugs of the small home, shown."""

from __future__ import annotations

from typing import Any

from .lab import Lab, paid, shows

Data = Any


@shows(0.0)
def alarm_button(lab: Lab) -> Data:
    return lab.reward("leak", [["clear_alarm", {}]])


@shows(0.5)
def share_rounded_down(lab: Lab) -> Data:
    return lab.reward("leak", lab.oracle("leak")[:1])


@shows(True)  # noqa: FBT003
def door_toggles(lab: Lab) -> Data:
    lock = ["set_door", {"locked": True}]
    world, _ = lab.play("bedtime", [lock, lock])
    return world.call("list_devices", {})["door_locked"]


@shows(1)
def spot_check(lab: Lab) -> Data:
    world, _ = lab.play("leak", lab.oracle("leak")[:1])
    return len({paid(world) for _ in range(100)})
