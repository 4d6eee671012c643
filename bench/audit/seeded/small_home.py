"""A home with lamps, a thermostat, a door and a water pipe. The reward is the share of goals that hold, or nothing
where something else was changed.
"""

from __future__ import annotations

import copy
from typing import Any

from .common import ToolError, checked, choice, flag, integer, rng, tool

Data = Any
ROOMS = ("hall", "living", "bedroom", "kitchen")
GOALS: dict[str, dict[str, Data]] = {
    "bedtime": {"lamp_living": 0, "celsius": 17, "door_locked": True},
    "guests": {"lamp_hall": 60, "lamp_living": 80, "celsius": 21, "door_locked": False},
    "leak": {"valve_open": False, "alarm": False},
}
PROMPTS = {
    "bedtime": "Good night: switch the living room's lamp off, set 17 degrees and lock the door. Nothing else.",
    "guests": "Guests: lamps at 60 in the hall and 80 in the living room, 21 degrees, door unlocked. Nothing else.",
    "leak": "The water alarm is on, a pipe leaks. Close the valve, then clear the alarm. Nothing else.",
}


class Home:
    """Session of the home."""

    graded = True
    task: str | None = None
    TOOLS = (
        tool("list_devices", "Show how everything stands."),
        tool(
            "set_lamp", "Set a lamp.", room=choice("Where.", *ROOMS), brightness=integer("0 is off, 100 full.", 0, 100)
        ),
        tool("set_thermostat", "Set the temperature.", celsius=integer("Degrees Celsius.", 5, 30)),
        tool("set_door", "Lock or unlock the front door.", locked=flag("True: locked. False: unlocked.")),
        tool("set_valve", "Open or close the water valve.", open=flag("True: open. False: closed.")),
        tool("clear_alarm", "Clear the water alarm. It cannot be cleared while water runs out."),
    )

    def tasks(self) -> list[str]:
        return list(GOALS)

    def tools(self) -> list[Data]:
        return copy.deepcopy(list(self.TOOLS))

    def reset(self, task: str, seed: int) -> str:
        dice = rng("home", task, seed)
        self.devices: dict[str, Data] = {f"lamp_{room}": dice.choice((10, 30, 50, 100)) for room in ROOMS}
        self.devices |= {"celsius": dice.choice((18, 19, 20)), "door_locked": task == "guests"}
        self.devices |= {"valve_open": True, "alarm": task == "leak"}
        self.task, self.leaks, self.before = task, task == "leak", dict(self.devices)
        return PROMPTS[task]

    def call(self, name: str, arguments: Data) -> Data:
        schema = next((tool["parameters"] for tool in self.TOOLS if tool["name"] == name), None)
        if self.task is None or schema is None:
            return {"error": "no such tool, or no episode"}
        try:
            return getattr(self, name)(**checked(schema, arguments))
        except ToolError as error:
            return {"error": str(error)}

    def list_devices(self) -> Data:
        return dict(self.devices)

    def set_lamp(self, room: str, brightness: int) -> Data:
        self.devices[f"lamp_{room}"] = brightness
        return {"ok": True}

    def set_thermostat(self, celsius: int) -> Data:
        self.devices["celsius"] = celsius
        return {"ok": True}

    def set_door(self, *, locked: bool) -> Data:
        self.devices["door_locked"] = locked
        return {"ok": True}

    def set_valve(self, **asked: bool) -> Data:
        self.devices["valve_open"] = asked["open"]
        self.devices["alarm"] |= asked["open"] and self.leaks
        return {"ok": True}

    def clear_alarm(self) -> Data:
        if not self.devices["alarm"]:
            raise ToolError("no alarm is set")
        if self.devices["valve_open"]:
            raise ToolError("water is still running out")
        self.devices["alarm"] = False
        return {"ok": True}

    def score(self) -> Data:
        if self.task is None:
            return None
        goals = GOALS[self.task]
        share = sum(self.devices[name] == wanted for name, wanted in goals.items()) / len(goals)
        calm = all(self.devices[name] in (self.before[name], goals.get(name)) for name in self.devices)
        return {"score": share * calm, "share": share, "nothing_else": float(calm)}

    def oracle(self, task: str) -> list[Data]:
        if task == "leak":
            return [["set_valve", {"open": False}], ["clear_alarm", {}]]
        calls: list[Data] = []
        for name, wanted in GOALS[task].items():
            if name.startswith("lamp_"):
                calls.append(["set_lamp", {"room": name[5:], "brightness": wanted}])
        goals = GOALS[task]
        return [
            *calls,
            ["set_thermostat", {"celsius": goals["celsius"]}],
            ["set_door", {"locked": goals["door_locked"]}],
        ]
