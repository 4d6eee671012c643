"""Seminars with a fixed number of seats; a person who comes too late waits, and moves up when a seat gets free."""

PEOPLE = ["Ada", "Bo", "Cy", "Dee", "Eli", "Fay", "Gus", "Hal"]
START = {
    "Logic": (2, ["Ada", "Bo"], ["Cy", "Dee"]),
    "Optics": (3, ["Cy", "Eli"], []),
    "Topology": (1, ["Fay"], ["Gus"]),
    "Rhetoric": (2, [], []),
}
MOST = 3  # places, seats and waiting together, of one person

JOBS = {
    "enroll-hal": ("Enroll Hal in Rhetoric.", ["enroll Rhetoric Hal"]),
    "last-seat": ("Enroll first Gus and then Hal in Optics.", ["enroll Optics Gus", "enroll Optics Hal"]),
    "free-a-seat": ("Bo gives up Logic. Take him off it.", ["drop Logic Bo"]),
    "stop-waiting": ("Dee no longer wants Logic.", ["drop Logic Dee"]),
    "switch": ("Move Eli from Optics to Rhetoric.", ["drop Optics Eli", "enroll Rhetoric Eli"]),
    "two-leave": ("Ada and Fay leave all their seminars.", ["drop Logic Ada", "drop Topology Fay"]),
    "to-the-end": (
        "Cy wants to be last in line for Logic instead of first.",
        ["drop Logic Cy", "enroll Logic Cy"],
    ),
    "seat-for-dee": (
        "Ada gives up Logic, and Cy no longer wants it. See that Dee has a seat in Logic, and that Fay waits for it.",
        ["drop Logic Ada", "drop Logic Cy", "enroll Logic Fay"],
    ),
}

SEMINAR = {"type": "string", "enum": [*START], "description": "Name of the seminar."}
PERSON = {"type": "string", "enum": PEOPLE, "description": "Who."}


def schema(**properties):
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


TOOLS = {
    "seminars": ("List all seminars with the number of free seats and of people who wait.", schema()),
    "roster": ("Read who has a seat in a seminar, and who waits, the first in line first.", schema(seminar=SEMINAR)),
    "enroll": (
        (
            "Give a person a seat, or the last place of the waiting list if the seminar is full. "
            f"A person has at most {MOST} places, seats and waiting lists together."
        ),
        schema(seminar=SEMINAR, person=PERSON),
    ),
    "drop": (
        "Take a person off a seminar or off its waiting list. If a seat gets free, the first who waits gets it.",
        schema(seminar=SEMINAR, person=PERSON),
    ),
}


class Seminars:
    """A session."""

    def tasks(self):
        return [{"id": name} for name in JOBS]

    def tools(self):
        return [{"name": name, "description": text, "parameters": spec} for name, (text, spec) in TOOLS.items()]

    def reset(self, task, seed):
        self.task = task["id"]
        self.rows = {name: {"seats": n, "in": [*seated], "wait": [*wait]} for name, (n, seated, wait) in START.items()}
        return f"{JOBS[self.task][0]} Change nothing else. The order on waiting lists counts, that of seats does not."

    def call(self, name, arguments):
        if name not in TOOLS:
            return {"error": f"no tool {name!r}; there are {', '.join(TOOLS)}"}
        if set(arguments) != set(TOOLS[name][1]["required"]):
            return {"error": f"{name} takes exactly {TOOLS[name][1]['required']}, got {sorted(arguments)}"}
        seminar, person = arguments.get("seminar", "Logic"), arguments.get("person", "Ada")
        if seminar not in [*START]:
            return {"error": f"no seminar {seminar!r}; there are {', '.join(START)}"}
        if person not in PEOPLE:
            return {"error": f"no person {person!r}; there are {', '.join(PEOPLE)}"}
        return getattr(self, "_" + name)(**arguments)

    def _seminars(self):
        return [
            {"seminar": name, "free": row["seats"] - len(row["in"]), "waiting": len(row["wait"])}
            for name, row in self.rows.items()
        ]

    def _roster(self, seminar):
        row = self.rows[seminar]
        return {"seminar": seminar, "capacity": row["seats"], "enrolled": [*row["in"]], "waiting": [*row["wait"]]}

    def _enroll(self, seminar, person):
        row = self.rows[seminar]
        if person in row["in"] + row["wait"]:
            return {"error": f"{person} is on {seminar} already"}
        if sum(person in other["in"] + other["wait"] for other in self.rows.values()) >= MOST:
            return {"error": f"{person} has {MOST} places, the most that are allowed"}
        if len(row["in"]) < row["seats"]:
            row["in"].append(person)
            return {"person": person, "seminar": seminar, "status": "enrolled"}
        row["wait"].append(person)
        return {"person": person, "seminar": seminar, "status": "waiting", "position": len(row["wait"])}

    def _drop(self, seminar, person):
        row = self.rows[seminar]
        if person not in row["in"] + row["wait"]:
            return {"error": f"{person} is not on {seminar}"}
        row["in" if person in row["in"] else "wait"].remove(person)
        moved = row["wait"].pop(0) if row["wait"] and len(row["in"]) < row["seats"] else None
        row["in"] += [moved] if moved else []
        return {"person": person, "seminar": seminar, "status": "dropped", "moved_up": moved}

    def state(self):
        return {name: self._roster(name) for name in self.rows}

    def oracle(self, task):
        split = [step.split() for step in JOBS[task["id"]][1]]
        return [[verb, {"seminar": seminar, "person": person}] for verb, seminar, person in split]

    def score(self):
        other = Seminars()
        other.reset({"id": self.task}, 0)
        for name, arguments in self.oracle({"id": self.task}):
            other.call(name, arguments)
        return float(all(self._sets(self.rows[name]) == self._sets(other.rows[name]) for name in START))

    @staticmethod
    def _sets(row):
        return sorted(row["in"]), row["wait"]
