"""A metered API: login, three look-ups a day, and a quota that is full again at midnight of the simulated clock."""

from datetime import UTC, datetime
from typing import Annotated

import msgspec

import quintain as qn

DAILY = 3
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=20)]
Level = Annotated[int, msgspec.Meta(ge=-1_000_000, le=1_000_000)]
EVENING = datetime(2026, 3, 3, 21, tzinfo=UTC).timestamp()
READINGS = {"weir": 118, "mill": 74, "lock": 203, "dam": 391, "ford": 46, "quay": 155, "pond": 12}
PINS = {"ana": "5150", "ben": "2741"}


class Api(qn.State):
    readings: qn.Table[int]
    user: str = ""
    used: dict[str, int] = {}
    """Look-ups per user and day, under "user date"."""
    published: dict[str, int] = {}

    def _me(self) -> str:
        if not self.user:
            raise qn.ToolError("not logged in: call login first")
        return self.user

    def _today(self) -> str:
        return f"{self._me()} {self.clock.date:%Y-%m-%d}"

    @qn.tool
    def now(self) -> str:
        """Read the simulated time in UTC."""
        return f"{self.clock.date:%Y-%m-%d %H:%M}"

    @qn.tool
    def wait(self, hours: Annotated[int, msgspec.Meta(ge=1, le=48)]) -> str:
        """Let hours pass; returns the new time. You stay logged in.

        Args:
            hours: How many.
        """
        self.clock.advance(3600 * hours)
        return self.now()

    @qn.tool
    def login(self, user: str, pin: str) -> str:
        """Log in. Somebody who is logged in must log out first.

        Args:
            user: Name of the user.
            pin: The user's PIN.
        """
        if self.user:
            raise qn.ToolError(f"{self.user} is logged in: log out first")
        if PINS.get(user) != pin:
            raise qn.ToolError("wrong user or PIN")
        self.user = user
        return f"{user} is logged in"

    @qn.tool
    def logout(self) -> str:
        """Log out."""
        left, self.user = self._me(), ""
        return f"{left} is logged out"

    @qn.tool
    def stations(self) -> list[str]:
        """List the names of the stations. Needs a login, and no quota."""
        self._me()
        return list(self.readings)

    @qn.tool
    def quota(self) -> dict[str, int]:
        """Read how many look-ups you have left today. Needs a login."""
        return {"per_day": DAILY, "left": DAILY - self.used.get(self._today(), 0)}

    @qn.tool
    def look_up(self, station: str) -> int:
        """Read the level of a station in centimetres. Needs a login.

        A user has 3 look-ups a day, each successful one counts. Days begin at midnight UTC.

        Args:
            station: Its name.
        """
        today = self._today()
        if station not in self.readings:
            raise qn.ToolError(f"unknown station {station!r}; this look-up does not count")
        if self.used.get(today, 0) >= DAILY:
            raise qn.ToolError("no look-ups are left today; the quota is full again at midnight UTC")
        self.used[today] = self.used.get(today, 0) + 1
        return self.readings[station]

    @qn.tool
    def publish(self, name: Name, value: Level) -> str:
        """Publish a number under a name. Needs a login. It replaces what stood there.

        Args:
            name: 1 to 20 characters.
            value: A whole number from -1000000 to 1000000.
        """
        self._me()
        self.published[name] = value
        return f"{name} = {value}"


# Each: user, stations, name to publish under, what is published.
JOBS: list[tuple[str, list[str], str, str]] = [
    ("ana", ["weir", "mill"], "sum", "the sum of the levels"),
    ("ben", ["lock", "dam", "ford"], "highest", "the highest of the levels"),
    ("ana", ["weir", "mill", "lock", "dam"], "sum", "the sum of the levels"),
    ("ben", ["quay", "pond", "ford", "mill", "weir"], "lowest", "the lowest of the levels"),
    ("ben", ["quay"], "quay", "the level"),
    ("ana", list(READINGS), "sum", "the sum of the levels"),
    ("ana", ["dam", "ford", "quay", "pond"], "highest", "the highest of the levels"),
]


def solution(user: str, names: list[str], name: str, value: int) -> list[tuple[str, dict[str, object]]]:
    calls: list[tuple[str, dict[str, object]]] = [("login", {"user": user, "pin": PINS[user]})]
    for n, station in enumerate(names):
        if n and n % DAILY == 0:
            calls.append(("wait", {"hours": 24}))
        calls.append(("look_up", {"station": station}))
    return [*calls, ("publish", {"name": name, "value": value})]


def tasks(split: str) -> list[qn.Task[Api]]:
    world = Api(readings=qn.Table(int, READINGS))
    world.clock.now = EVENING
    made: list[qn.Task[Api]] = []
    for n, (user, names, name, what) in enumerate(JOBS, 1):
        levels = [READINGS[station] for station in names]
        value = {"highest": max(levels), "lowest": min(levels)}.get(name, sum(levels))
        prompt = (
            f"Log in as {user} with PIN {PINS[user]}. Publish under the name {name!r} {what} of these stations: "
            f"{', '.join(names)}. Publish nothing else. Levels do not change; time does not matter."
        )
        calls = tuple(solution(user, names, name, value))
        made.append(qn.Task(id=f"{split}-{n}", prompt=prompt, start=world, truth={name: value}, solution=calls))
    return made


@qn.reward
def published(view: qn.EpisodeView[Api]) -> qn.Score:
    found = view.state.published
    return qn.Score(float(found == view.task.truth), f"published {found}, asked for {view.task.truth}")


env = qn.Environment(
    "quota", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(published), state=Api, splits=("test",)
)
