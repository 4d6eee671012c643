"""Tanks with a noisy gauge. The noise comes from the seed of the session; each reading draws new noise."""

import random

TANKS = ("red", "blue", "green", "black")
NOISE = 0.45
BATTERY = 12

ASKED = [("red",), ("blue", "green"), ("black", "red"), ("green",), ("red", "blue", "green"), ("blue",), TANKS]


def levels(task):
    """Returns the true levels of a task: whole numbers from 0 to 99, the same for every seed."""
    rng = random.Random(f"levels of {task}")  # noqa: S311 -- a simulation, not a secret
    return {tank: rng.randrange(100) for tank in TANKS}


class Gauge:
    """A session."""

    def tasks(self):
        return [{"id": f"tanks-{n}", "tanks": [*asked]} for n, asked in enumerate(ASKED)]

    def tools(self):
        tank = {"type": "string", "enum": [*TANKS], "description": "Colour of the tank."}
        level = {"type": "integer", "minimum": 0, "maximum": 99, "description": "The level, a whole number."}
        return [
            {
                "name": "read",
                "description": f"Read the gauge of a tank: its level plus an error of at most {NOISE} up or down. Two "
                f"readings of one tank differ. Each uses one of the battery's {BATTERY} units.",
                "parameters": {"type": "object", "properties": {"tank": tank}, "required": ["tank"]},
            },
            {
                "name": "battery",
                "description": "Read how many readings are left. It uses no unit.",
                "parameters": {"type": "object", "properties": {}, "required": []},
            },
            {
                "name": "report",
                "description": "Report the level of a tank. A report is final; it uses no unit of the battery.",
                "parameters": {
                    "type": "object",
                    "properties": {"tank": tank, "level": level},
                    "required": ["tank", "level"],
                },
            },
        ]

    def reset(self, task, seed):
        self.asked, self.levels = task["tanks"], levels(task["id"])
        self.seed, self.readings, self.reports = f"{task['id']}/{seed}", dict.fromkeys(TANKS, 0), {}
        return (
            f"Report the level of {'this tank' if len(self.asked) == 1 else 'these tanks'}: {', '.join(self.asked)}. "
            "Levels are whole numbers from 0 to 99 and do not change. Your reward is the share of these tanks that "
            "you report rightly; it is 0 if you report any other tank."
        )

    def call(self, name, arguments):
        wanted = {"read": {"tank"}, "battery": set(), "report": {"tank", "level"}}.get(name)
        if wanted is None:
            raise ValueError(f"no tool {name!r}; there are read, battery and report")
        if set(arguments) != wanted:
            raise ValueError(f"{name} takes {sorted(wanted)}, got {sorted(arguments)}")
        if name == "battery":
            return {"left": self._left()}
        if arguments["tank"] not in TANKS:
            raise ValueError(f"no tank {arguments['tank']!r}; there are {', '.join(TANKS)}")
        return self._read(**arguments) if name == "read" else self._report(**arguments)

    def _left(self):
        return BATTERY - sum(self.readings.values())

    def _read(self, tank):
        if not self._left():
            raise ValueError("the battery is empty; report what you know")
        self.readings[tank] += 1
        rng = random.Random(f"{self.seed}/{tank}")  # noqa: S311 -- as above
        drawn = rng.sample(range(-45, 46), BATTERY)  # All readings of a tank, so that no two of them are equal.
        return {"tank": tank, "reading": round(self.levels[tank] + drawn[self.readings[tank] - 1] / 100, 2)}

    def _report(self, tank, level):
        if type(level) is not int or not 0 <= level <= 99:
            raise ValueError(f"level must be a whole number from 0 to 99, got {level!r}")
        if tank in self.reports:
            raise ValueError(f"{tank} is reported already, with {self.reports[tank]}; a report is final")
        self.reports[tank] = level
        return {"tank": tank, "reported": level}

    def score(self):
        if set(self.reports) - set(self.asked):
            return 0.0
        return sum(self.reports.get(tank) == self.levels[tank] for tank in self.asked) / len(self.asked)

    def state(self):
        return {"readings": dict(self.readings), "reports": dict(self.reports), "battery": self._left()}

    def oracle(self, task):
        calls = []
        for tank in task["tanks"]:
            calls += [["read", {"tank": tank}], ["report", {"tank": tank, "level": levels(task["id"])[tank]}]]
        return calls
