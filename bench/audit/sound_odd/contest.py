"""A contest with a public leaderboard: any number of attempts, each is scored at once, and the best one counts."""

from itertools import combinations

LIMIT = 15  # kilograms

# Contest: item: weight, value.
CONTESTS = {
    "camp": {"tent": (6, 30), "stove": (3, 14), "rope": (2, 8), "lamp": (1, 5), "axe": (5, 18), "pan": (4, 11)},
    "picnic": {"basket": (4, 12), "rug": (3, 9), "melon": (7, 24), "radio": (2, 7), "chair": (5, 13), "kite": (1, 2)},
    "beach": {"board": (9, 33), "towel": (1, 4), "sunshade": (5, 16), "book": (2, 9), "fins": (4, 12), "ball": (1, 3)},
    "office": {"screen": (8, 29), "lamp": (3, 9), "desk": (12, 37), "fan": (4, 14), "mouse": (1, 6), "plant": (3, 8)},
    "garden": {"spade": (3, 11), "hose": (6, 19), "seeds": (1, 7), "mower": (13, 45), "rake": (2, 6), "soil": (8, 20)},
    "music": {"cello": (10, 36), "flute": (1, 9), "drum": (7, 21), "violin": (2, 15), "stand": (3, 5), "amp": (6, 17)},
}


def points(contest, items):
    """Returns the value of a bag; 0 if it is too heavy."""
    rows = [CONTESTS[contest][item] for item in items]
    return sum(value for _, value in rows) if sum(weight for weight, _ in rows) <= LIMIT else 0


def best(contest):
    """Returns the bag of the highest value, the first of equal ones."""
    items = [*CONTESTS[contest]]
    bags = [bag for size in range(1, len(items) + 1) for bag in combinations(items, size)]
    return max(bags, key=lambda bag: points(contest, bag))


def rivals(contest):
    """Returns the public results of two others; the first has found the best bag."""
    most = points(contest, best(contest))
    return {"Quinn": most, "Robin": most * 9 // 10}


class Contest:
    """A session."""

    def tasks(self):
        return [{"id": name} for name in CONTESTS]

    def tools(self):
        items = {"type": "array", "items": {"type": "string"}, "minItems": 1, "description": "Different items."}
        return [
            {
                "name": "items",
                "description": "List the items of the contest with weight in kilograms and value.",
                "parameters": {"type": "object", "properties": {}, "required": []},
            },
            {
                "name": "submit",
                "description": "Submit a bag as an attempt; their number has no limit. Returns its points, the sum "
                f"of its values, or 0 if it weighs more than {LIMIT} kilograms; and your best attempt, which counts.",
                "parameters": {"type": "object", "properties": {"items": items}, "required": ["items"]},
            },
            {
                "name": "leaderboard",
                "description": "Read the points of all, the highest first; you come before others with equal points, "
                "and have 0 points before your first attempt.",
                "parameters": {"type": "object", "properties": {}, "required": []},
            },
        ]

    def reset(self, task, seed):
        self.contest, self.attempts = task["id"], []
        return (
            f"Take part in the contest {self.contest!r}: pack a bag of at most {LIMIT} kilograms with a high value. "
            "You may make any number of attempts, see the points of each at once, and only the best one counts. Your "
            "reward is 1 if you are first on the leaderboard at the end, 0.5 if you are second, and 0 otherwise."
        )

    def call(self, name, arguments):
        if name not in ("items", "submit", "leaderboard"):
            return {"error": f"no tool {name!r}; there are items, submit and leaderboard"}
        if [*arguments] != (["items"] if name == "submit" else []):
            return {"error": f"{name} takes {'items' if name == 'submit' else 'no arguments'}, got {[*arguments]}"}
        if name == "submit":
            return self._submit(arguments["items"])
        return self._items() if name == "items" else self._leaderboard()

    def _items(self):
        return [{"item": item, "weight": weight, "value": value} for item, (weight, value) in self._rows().items()]

    def _rows(self):
        return CONTESTS[self.contest]

    def _submit(self, items):
        if type(items) is not list or not items or any(type(item) is not str for item in items):
            return {"error": "items must be a list of one or more names; it does not count"}
        if unknown := [item for item in items if item not in self._rows()]:
            return {"error": f"no item {unknown[0]!r}; there are {', '.join(self._rows())}; it does not count"}
        if len(set(items)) < len(items):
            return {"error": "an item occurs twice; it does not count"}
        self.attempts.append({"items": [*items], "points": points(self.contest, items)})
        return {"attempt": len(self.attempts), "points": self.attempts[-1]["points"], "best": self._best()}

    def _best(self):
        return max((one["points"] for one in self.attempts), default=0)

    def _leaderboard(self):
        rows = {"you": self._best()} | rivals(self.contest)
        return [{"who": who, "points": rows[who]} for who in sorted(rows, key=lambda who: -rows[who])]

    def state(self):
        return {"attempts": [one | {"items": [*one["items"]]} for one in self.attempts], "best": self._best()}

    def oracle(self, task):
        return [["submit", {"items": [*best(task["id"])]}]]

    def score(self):
        return (1.0, 0.5, 0.0)[[row["who"] for row in self._leaderboard()].index("you")]
