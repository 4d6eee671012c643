"""A smart home: a tool `toggle` beside a setting "toggle", and a door that locks itself again after some calls."""

from typing import Literal

import quintain as qn

Device = Literal["lamp", "fan", "heater", "radio"]
Parcel = Literal["books", "shoes", "seeds"]
START = {"lamp": True, "fan": False, "heater": True, "radio": False}
CALLS = 3


class Home(qn.State):
    on: dict[str, bool]
    calls: int = 0
    """Calls after which the door is locked; 0 if it is locked."""
    inside: list[Parcel] = []

    def _done(self) -> dict[str, str]:
        """Counts a call; returns what the home looks like after it."""
        self.calls = max(0, self.calls - 1)
        return self._view()

    def _view(self) -> dict[str, str]:
        devices = {name: "on" if on else "off" for name, on in self.on.items()}
        door = f"unlocked, locks itself after {self.calls} more calls" if self.calls else "locked"
        return devices | {"door": door, "inside": ", ".join(self.inside) or "nothing"}

    @qn.tool
    def look(self) -> dict[str, str]:
        """Read devices, door and the parcels inside, as they are after this call, which counts for the door's lock."""
        return self._done()

    @qn.tool
    def set_state(self, device: Device, state: Literal["on", "off", "toggle"]) -> dict[str, str]:
        """Set a device; returns the home as `look` does.

        Args:
            device: The device.
            state: on, off, or toggle: a device that is on is switched off, one that is off is switched on.
        """
        self.on[device] = not self.on[device] if state == "toggle" else state == "on"
        return self._done()

    @qn.tool
    def toggle(self, device: Device) -> dict[str, str]:
        """Switch a device off if it is on, and on if it is off; the same as set_state with toggle.

        Args:
            device: The device.
        """
        return self.set_state(device, "toggle")

    @qn.tool
    def unlock(self) -> dict[str, str]:
        """Unlock the front door. It locks itself after the third call that follows.

        Calls of all tools count, also of `look`; a call that is refused does not. To unlock an unlocked door counts
        from the beginning again.
        """
        self.calls = CALLS
        return self._view()

    @qn.tool
    def lock(self) -> dict[str, str]:
        """Lock the front door at once; a locked door stays locked."""
        self.calls = 0
        return self._view()

    @qn.tool
    def take_in(self, parcel: Parcel) -> dict[str, str]:
        """Take in a parcel that stands before the front door, which must be unlocked.

        Args:
            parcel: The parcel.
        """
        if parcel in self.inside:
            raise qn.ToolError(f"{parcel} is inside already")
        if not self.calls:
            raise qn.ToolError("the front door is locked")
        self.inside.append(parcel)
        return self._done()


# Each: what is asked for, devices that are on at the end, parcels inside, a solution.
JOBS: list[tuple[str, set[str], list[str], str]] = [
    ("Switch the lamp off.", {"heater"}, [], "set_state lamp off"),
    ("Switch each of the four devices: on becomes off, off becomes on.", {"fan", "radio"}, [],
     "toggle lamp; toggle fan; set_state heater toggle; set_state radio toggle"),
    ("Take in the books.", {"lamp", "heater"}, ["books"], "unlock; take_in books; lock"),
    ("Take in all three parcels: books, shoes and seeds.", {"lamp", "heater"}, ["books", "seeds", "shoes"],
     "unlock; take_in books; take_in shoes; take_in seeds"),
    ("Take in shoes and seeds, and switch on the radio.", {"lamp", "heater", "radio"}, ["seeds", "shoes"],
     "unlock; take_in shoes; take_in seeds; toggle radio"),
    ("See that only the fan is on.", {"fan"}, [], "set_state fan on; set_state lamp off; toggle heater"),
    ("Take in the seeds and switch off everything.", set(), ["seeds"],
     "look; toggle lamp; toggle heater; unlock; take_in seeds; look; look"),
]  # fmt: skip


def call(text: str) -> tuple[str, dict[str, object]]:
    name, *values = text.split()
    keys = ("parcel",) if name == "take_in" else ("device", "state")
    return name, dict(zip(keys, values, strict=False))


def tasks(split: str) -> list[qn.Task[Home]]:
    rule = "At the end the front door is locked. Leave other devices as they are and other parcels outside."
    return [
        qn.Task(
            id=f"{split}-{n}",
            prompt=f"{prompt} {rule}",
            start=Home(on=dict(START)),
            truth={"on": sorted(on), "inside": inside},
            solution=tuple(call(one) for one in steps.split("; ")),
        )
        for n, (prompt, on, inside, steps) in enumerate(JOBS, 1)
    ]


@qn.reward
def as_asked(view: qn.EpisodeView[Home]) -> qn.Score:
    world = view.state
    found = {"on": sorted(name for name, on in world.on.items() if on), "inside": sorted(world.inside)}
    return qn.Score(float(found == view.task.truth and not world.calls), f"{found}, door: {world.calls} calls left")


env = qn.Environment(
    "home", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(as_asked), state=Home, splits=("test",)
)
