"""Settings on two nodes: the copy follows three minutes later, and a write must name the version that it replaces."""

from typing import Annotated, Literal

import msgspec

import quintain as qn

Key = Literal["colour", "limit", "region", "theme"]
Value = Annotated[str, msgspec.Meta(min_length=1, max_length=20)]
Minutes = Annotated[int, msgspec.Meta(ge=1, le=10)]
LAG = 3  # minutes


class Setting(msgspec.Struct):
    value: str
    version: int = 1


START = {"colour": "red", "limit": "10", "region": "north", "theme": "plain"}


def settings() -> dict[str, Setting]:
    return {key: Setting(value) for key, value in START.items()}


class Cluster(qn.State):
    main: dict[str, Setting]
    copied: dict[str, Setting]

    @qn.tool
    def read(self, key: Key, node: Literal["main", "copy"]) -> Setting:
        """Read value and version of a setting from a node.

        The copy gets each write exactly three minutes after the main node. Until then it shows what it had.

        Args:
            key: The setting.
            node: "main", which is always up to date, or "copy".
        """
        return (self.main if node == "main" else self.copied)[key]

    @qn.tool
    def write(self, key: Key, value: Value, version: int) -> Setting:
        """Write a setting on the main node; returns it with its new version, one higher, also for an equal value.

        The copy follows three minutes later. Time passes only in `wait`.

        Args:
            key: The setting.
            value: The new value, 1 to 20 characters.
            version: The version on the main node that this replaces. Another one is refused, and nothing is written.
        """
        now = self.main[key].version
        if version != now:
            raise qn.ToolError(f"conflict: {key} has version {now}, not {version}; nothing is written")
        self.main[key] = Setting(value, now + 1)
        self.clock.after(60 * LAG, self.arrive, key=key, value=value, version=now + 1)
        return self.main[key]

    def arrive(self, key: str, value: str, version: int) -> None:
        self.copied[key] = Setting(value, version)

    @qn.tool
    def wait(self, minutes: Minutes) -> str:
        """Let time pass.

        Args:
            minutes: 1 to 10.
        """
        self.clock.advance(60 * minutes)
        return f"{int(self.clock.now) // 60} minutes have passed since the beginning"


Call = tuple[str, dict[str, object]]


def put(key: str, value: str, version: int = 1) -> Call:
    return "write", {"key": key, "value": value, "version": version}


# Each: what is asked for, settings of the main node that change, those of the copy, a solution.
JOBS: list[tuple[str, dict[str, str], dict[str, str], list[Call]]] = [
    ("Set the colour to blue on both nodes.", {"colour": "blue"}, {"colour": "blue"},
     [put("colour", "blue"), ("wait", {"minutes": 3})]),
    ("Set the limit to 25 on the main node, and stop while the copy still shows the old one.", {"limit": "25"}, {},
     [put("limit", "25")]),
    ("Let main and copy show the region south and the theme dark.", {"region": "south", "theme": "dark"},
     {"region": "south", "theme": "dark"}, [put("region", "south"), put("theme", "dark"), ("wait", {"minutes": 5})]),
    ("At the end the main node shows the colour green while the copy shows the colour blue.", {"colour": "green"},
     {"colour": "blue"}, [put("colour", "blue"), ("wait", {"minutes": 3}), put("colour", "green", 2)]),
    ("Swap the values of region and theme, on both nodes.", {"region": "plain", "theme": "north"},
     {"region": "plain", "theme": "north"},
     [put("region", "plain"), put("theme", "north"), ("wait", {"minutes": 3})]),
    ("At the end the copy shows the limit 99 while the main node shows the limit 10 again.", {}, {"limit": "99"},
     [put("limit", "99"), ("wait", {"minutes": 2}), put("limit", "10", 2), ("wait", {"minutes": 1})]),
]  # fmt: skip
RULE = (
    "Both nodes show now: colour red, limit 10, region north, theme plain, all of version 1. The copy lags by three "
    "minutes. You are judged by the values on both nodes at the end: as asked, and all others as they are now. "
    "Versions and time do not count."
)


def tasks(split: str) -> list[qn.Task[Cluster]]:
    return [
        qn.Task(
            id=f"{split}-{n}",
            prompt=f"{prompt} {RULE}",
            start=Cluster(main=settings(), copied=settings()),
            truth={"main": START | main, "copy": START | copied},
            solution=tuple(calls),
        )
        for n, (prompt, main, copied, calls) in enumerate(JOBS, 1)
    ]


@qn.reward
def as_asked(view: qn.EpisodeView[Cluster]) -> qn.Score:
    nodes = {"main": view.state.main, "copy": view.state.copied}
    found = {name: {key: one.value for key, one in node.items()} for name, node in nodes.items()}
    return qn.Score(float(found == view.task.truth), f"found {found}")


env = qn.Environment(
    "cluster", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(as_asked), state=Cluster, splits=("test",)
)
