"""Firing a pottery kiln: heat it, soak the load, cool it and unload, with a burner, a damper and a tank of gas.

One step of the kiln is five minutes. Every piece of the load has a band of temperatures in which it matures, a time
that it needs there, and a largest change of temperature per step that it survives.
"""

import hashlib
import math
import random
from dataclasses import asdict, dataclass
from typing import Any

import quintain as qn
from quintain.state import Rng

STEP = 5
ROOM = 20.0
LIFT = 4.0  # degrees per step and level of the burner
SAFE = 100.0
LONGEST_WAIT = 120
DRAUGHT = 0.2  # thousandths of the excess temperature per step and percent of damper

KILNS = {"the small kiln": 9.0, "the old kiln": 15.0, "the tunnel kiln": 12.0}
CLAYS = {"raku": (880.0, 940.0), "earthenware": (1000.0, 1060.0), "stoneware": (1180.0, 1240.0)}
SHAPES = {
    "tea bowl": (20, 38.0),
    "tall vase": (45, 26.0),
    "platter": (40, 20.0),
    "tile": (30, 34.0),
    "lidded jar": (50, 24.0),
    "figurine": (35, 18.0),
    "mug": (25, 36.0),
}
PROMPT = """Fire this load in {kiln}, which holds {count} pieces at room temperature. `list_load` shows what each needs.
A piece comes out good if it has spent its soak between `low` and `top`, was never hotter than `top`, and if the
temperature never rose or fell by more than its `swing` in five minutes, when cooling too. Every piece should come out
good. The tank holds {gas} units of gas; a level of the burner takes one unit in five minutes. Cool the kiln to 100
degrees Celsius or less, then unload it: only what you unload counts."""

Call = tuple[str, dict[str, Any]]


@dataclass
class Piece:
    """A piece of pottery, what it needs, and what has happened to it."""

    name: str
    clay: str
    low: float
    top: float
    soak: int
    swing: float
    soaked: int = 0
    cracked: bool = False
    slumped: bool = False


class Kiln(qn.State):
    """The kiln, its load and its tank."""

    load: list[Piece]
    loss: float
    gas: int
    celsius: float = ROOM
    minute: int = 0
    burner: int = 0
    damper: int = 0
    unloaded: bool = False

    @qn.tool
    def list_load(self) -> list[dict[str, str | float]]:
        """List the pieces: clay, band in degrees Celsius, soak in minutes, swing in degrees per five minutes."""
        keys = ("name", "clay", "low", "top", "soak", "swing")
        return [{key: value for key, value in asdict(piece).items() if key in keys} for piece in self.load]

    @qn.tool
    def gauges(self) -> dict[str, float]:
        """Read the gauges: minute of the firing, degrees Celsius, burner, damper and units of gas that are left."""
        keys = ("minute", "celsius", "burner", "damper", "gas")
        return {key: getattr(self, key) for key in keys}

    @qn.tool
    def peek(self, piece: str) -> dict[str, str | int | bool]:
        """Look at a piece through the spy hole: minutes soaked so far, and whether it is cracked or slumped.

        Args:
            piece: Its name.
        """
        one = next((one for one in self.load if one.name == piece), None)
        if one is None:
            raise qn.ToolError(f"no {piece!r} in this load")
        return {"name": piece, "soaked": self.soaked(one), "cracked": one.cracked, "slumped": one.slumped}

    @qn.tool
    def set_burner(self, level: int) -> str:
        """Set the burner. It goes out by itself when the tank cannot feed its level.

        Args:
            level: From 0 (off) to 10.
        """
        self._firing()
        if not 0 <= level <= 10:
            raise qn.ToolError(f"the burner has the levels 0 to 10, not {level}")
        self.burner = level
        return f"burner at {level}"

    @qn.tool
    def set_damper(self, percent: int) -> str:
        """Set the damper. Open, it lets heat out.

        Args:
            percent: From 0 (closed) to 100 (open).
        """
        self._firing()
        if not 0 <= percent <= 100:
            raise qn.ToolError(f"the damper opens from 0 to 100 percent, not {percent}")
        self.damper = percent
        return f"damper open by {percent} percent"

    @qn.tool
    def wait(self, minutes: int) -> str:
        """Let time pass; returns the temperature afterwards.

        Args:
            minutes: A multiple of 5, up to 120.
        """
        self._firing()
        if minutes % STEP or not STEP <= minutes <= LONGEST_WAIT:
            raise qn.ToolError(f"wait a multiple of {STEP} minutes, {STEP} to {LONGEST_WAIT}, not {minutes}")
        for _ in range(minutes // STEP):
            self.tick()
        return f"{self.celsius} degrees Celsius in minute {self.minute}"

    @qn.tool
    def unload(self) -> str:
        """Open the kiln and take the load out, which ends the firing. The door stays locked above 100 degrees."""
        self._firing()
        if self.celsius > SAFE:
            raise qn.ToolError(f"the door is locked: {self.celsius} degrees Celsius")
        self.unloaded = True
        self.finish("unloaded")
        return f"unloaded {len(self.load)} pieces"

    def tick(self) -> None:
        """Lets one step pass."""
        self.burner = self.burner if self.gas >= self.burner else 0
        self.gas -= self.burner
        after = self.warmed()
        swing = round(abs(after - self.celsius), 1)
        for piece in self.load:
            piece.cracked = piece.cracked or swing > piece.swing
            piece.slumped = piece.slumped or after > piece.top
            piece.soaked += STEP * (piece.low <= after <= piece.top)
        self.celsius, self.minute = after, self.minute + STEP

    def warmed(self) -> float:
        """Returns the temperature after one more step."""
        lost = (self.celsius - ROOM) * (self.loss + DRAUGHT * self.damper) / 1000
        return round(self.celsius + LIFT * self.burner - lost, 1)

    def soaked(self, piece: Piece) -> int:
        """Returns the minutes that a piece has soaked."""
        return piece.soaked

    def is_good(self, piece: Piece) -> bool:
        """Returns whether a piece is mature and whole."""
        return self.soaked(piece) >= piece.soak and not piece.cracked and not piece.slumped

    def _firing(self) -> None:
        if self.unloaded:
            raise qn.ToolError("the firing is over")


class PanelKiln(Kiln):
    """A kiln whose panel asks the sensors once per minute of the firing."""

    panel: dict[str, Any] | None = None

    def gauges(self) -> dict[str, float]:
        """Returns what the panel shows."""
        if self.panel is None or self.panel["minute"] != self.minute:
            self.panel = super().gauges()
        return self.panel


_CURVE: dict[tuple[float, int, int], float] = {}


class FastKiln(Kiln):
    """A kiln that computes each point of the heating curve once."""

    def warmed(self) -> float:
        """Returns the temperature after one more step."""
        point = (self.celsius, self.burner, self.damper)
        if point not in _CURVE:
            _CURVE[point] = super().warmed()
        return _CURVE[point]


class LoggedKiln(Kiln):
    """A kiln with a logbook, from which the soak is read."""

    log: tuple[float, ...] = ()

    def tick(self) -> None:
        """Lets one step pass, and logs it."""
        super().tick()
        self.log = (*self.log, self.celsius)

    def gauges(self) -> dict[str, float]:
        """Reads the gauges, and logs the reading."""
        self.log = (*self.log, self.celsius)
        return super().gauges()

    def soaked(self, piece: Piece) -> int:
        """Returns the minutes in the band, by the logbook."""
        return STEP * sum(piece.low <= celsius <= piece.top for celsius in self.log)


def plan(start: Kiln) -> tuple[list[Call], int]:
    """Returns a firing of a kiln, and the gas that it takes."""
    kiln, calls = start.copy(), list[Call]()
    first, swing = kiln.load[0], min(piece.swing for piece in kiln.load)

    def fits(burner: int, damper: int, minutes: int) -> bool:
        twin = kiln.copy()
        twin.burner, twin.damper = burner, damper
        for _ in range(minutes // STEP):
            before = twin.celsius
            twin.tick()
            if round(abs(twin.celsius - before), 1) > swing or twin.celsius > first.top - 5:
                return False
        return True

    def go(burner: int, damper: int, minutes: int) -> None:
        same, longer = (kiln.burner, kiln.damper) == (burner, damper), minutes
        if same and calls and calls[-1][1]["minutes"] + minutes <= LONGEST_WAIT:
            longer += calls.pop()[1]["minutes"]
        calls.extend([("set_burner", {"level": burner})] * (burner != kiln.burner))
        calls.extend([("set_damper", {"percent": damper})] * (damper != kiln.damper))
        calls.append(("wait", {"minutes": longer}))
        kiln.burner, kiln.damper = burner, damper
        for _ in range(minutes // STEP):
            kiln.tick()

    while any(piece.soaked < piece.soak for piece in kiln.load if piece.clay == first.clay):
        go(max((level for level in range(11) if fits(level, 0, 15)), default=0), 0, 15)
    while kiln.celsius > SAFE:
        ways = ((burner, damper) for burner in range(11) for damper in (100, 75, 50, 25, 0))
        go(*next((way for way in ways if fits(*way, 30)), (0, 0)), 30)
    return [*calls, ("unload", {})], start.gas - kiln.gas


def make(split: str, n: int, world: type[Kiln], *, sort: bool) -> qn.Task[Kiln]:
    """Returns a task of a split, with a load of one clay if the raw pieces are sorted."""
    rng = Rng(key=hashlib.blake2b(f"kiln/{split}/{n}".encode(), digest_size=16).digest())
    name, shapes = rng.choice(list(KILNS)), rng.sample(list(SHAPES), 3 + rng.below(4))
    clays = [rng.choice(list(CLAYS)) for _ in shapes]
    clays = clays[:1] * len(shapes) if sort else clays
    load = [Piece(shape, clay, *CLAYS[clay], *SHAPES[shape]) for shape, clay in zip(shapes, clays, strict=True)]
    calls, used = plan(Kiln(load=load, loss=KILNS[name], gas=100_000))
    gas = math.ceil(1.15 * used)
    return qn.Task(
        id=f"{split}-{n}",
        prompt=PROMPT.format(kiln=name, count=len(load), gas=gas),
        start=world(load=load, loss=KILNS[name], gas=gas),
        solution=(("list_load", {}), *calls),
        answer="The load is out.",
        tags={"kiln": name, "clay": load[0].clay},
    )


@qn.reward
def unloaded(view: qn.EpisodeView[Kiln]) -> float:
    """Whether the load is out of the kiln."""
    return float(view.state.unloaded)


@qn.reward
def good(view: qn.EpisodeView[Kiln]) -> qn.Score:
    """The share of the pieces that are good."""
    fine = [one.name for one in view.state.load if view.state.is_good(one)]
    return qn.Score(len(fine) / len(view.state.load), f"good: {', '.join(fine) or 'none'}")


@qn.reward
def grade(view: qn.EpisodeView[Kiln]) -> float:
    """The grade of the firing, in halves."""
    fine = sum(view.state.is_good(one) for one in view.state.load)
    return math.ceil(2 * fine / len(view.state.load)) / 2


@qn.reward
def sampled(view: qn.EpisodeView[Kiln]) -> float:
    """Whether two pieces, taken from the shelf for inspection, are good."""
    return float(all(view.state.is_good(one) for one in random.sample(view.state.load, 2)))


def build(world: type[Kiln] = Kiln, *criteria: Any, sort: bool = True) -> qn.Environment[Kiln]:
    """Returns the environment with a class of kiln, criteria that are multiplied, and loads of one clay or any."""
    counts = {"train": 16, "test": 10}
    return qn.Environment(
        "kiln",
        tasks=lambda split: [make(split, n, world, sort=sort) for n in range(counts[split])],
        harness=qn.ToolLoop(system="You fire kilns. Use the tools, one step at a time."),
        verifier=qn.Verifier(*(criteria or (unloaded, good)), combine="product"),
        state=world,
        config=qn.Config(max_turns=150),
        splits=("train", "test"),
    )


env = build()
env_panel = build(PanelKiln)
env_curve = build(FastKiln)
env_logbook = build(LoggedKiln)
env_halves = build(Kiln, unloaded, grade)
env_early = build(Kiln, good)
env_sampled = build(Kiln, unloaded, sampled)
env_mixed = build(sort=False)
