"""Sokoban with a stated limit of steps, an undo that gives the step back, and a restart that does not."""

from collections import deque

STEPS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
# Walls #, player @, crates $, goals .; each with the limit of steps.
LEVELS = {
    "corridor": (["######", "#@ $.#", "######"], 6),
    "corner": (["#####", "#@  #", "# $ #", "# . #", "#####"], 6),
    "two-in-line": (["########", "#@$ .  #", "#  $  .#", "########"], 20),
    "room": (["######", "#.   #", "# $  #", "#  $ #", "#@  .#", "######"], 25),
    "door": (["#######", "#@ #  #", "# $  .#", "#  #  #", "#######"], 8),
    "turn": (["#######", "#  @  #", "# $#$ #", "#.   .#", "#     #", "#######"], 26),
    "hall": (["########", "#  #   #", "#@$    #", "#   $ ##", "#  . . #", "########"], 30),
}


class Sokoban:
    """A game."""

    def tasks(self):
        return [{"id": name} for name in LEVELS]

    def tools(self):
        way = {"type": "string", "enum": [*STEPS], "description": "Where to step."}
        return [
            {
                "name": "step",
                "description": "Step into a direction. A crate in the way is pushed if the field behind it is free. "
                "A step against a wall, or against a crate that cannot move, is refused and not counted.",
                "parameters": {"type": "object", "properties": {"way": way}, "required": ["way"]},
            },
            *(
                {"name": name, "description": text, "parameters": {"type": "object", "properties": {}}}
                for name, text in (
                    ("look", "Look: # wall, @ you, $ crate, . goal, * crate on a goal, + you on a goal."),
                    ("undo", "Take the last step back, as often as you like; it then counts no more."),
                    (
                        "restart",
                        "Put everything back to its place. Steps so far stay counted and cannot be undone.",
                    ),
                )
            ),
        ]

    def reset(self, task, seed):
        self.level = task["id"]
        rows, self.limit = LEVELS[self.level]
        cells = {(r, c): mark for r, row in enumerate(rows) for c, mark in enumerate(row)}
        self.walls = {cell for cell, mark in cells.items() if mark == "#"}
        self.goals = {cell for cell, mark in cells.items() if mark in ".*+"}
        self.start = next(c for c, mark in cells.items() if mark in "@+"), {c for c, m in cells.items() if m in "$*"}
        self.player, self.crates = self.start[0], set(self.start[1])
        self.past, self.used = [], 0
        return (
            f"Push every crate onto a goal in at most {self.limit} steps. You push one crate at a time, never pull. "
            "The level is solved while all crates stand on goals.\n" + self._board()
        )

    def _board(self):
        rows, _ = LEVELS[self.level]

        def mark(cell):
            if cell in self.walls:
                return "#"
            if cell == self.player:
                return "+" if cell in self.goals else "@"
            if cell in self.crates:
                return "*" if cell in self.goals else "$"
            return "." if cell in self.goals else " "

        return "\n".join("".join(mark((r, c)) for c in range(len(rows[0]))) for r in range(len(rows)))

    def call(self, name, arguments):
        wanted = {"step": ["way"], "look": [], "undo": [], "restart": []}.get(name)
        if wanted is None:
            return {"error": f"no tool {name!r}"}
        if [*arguments] != wanted:
            return {"error": f"{name} takes {wanted or 'no arguments'}, got {[*arguments]}"}
        if name != "look" and (problem := getattr(self, "_" + name)(*arguments.values())):
            return {"error": problem}
        return {"board": self._board(), "steps": self.used, "limit": self.limit, "solved": self.crates == self.goals}

    def _step(self, way):
        if not isinstance(way, str) or way not in STEPS:
            return f"way must be one of {', '.join(STEPS)}, got {way!r}"
        if self.used == self.limit:
            return f"all {self.limit} steps are used"
        moved = move(self.walls, self.player, frozenset(self.crates), way)
        if moved is None:
            return f"something blocks the way {way}"
        self.past.append((self.player, set(self.crates)))
        self.player, self.crates = moved[0], set(moved[1])
        self.used += 1
        return None

    def _undo(self):
        if not self.past:
            return "no step is left to undo"
        self.player, self.crates = self.past.pop()
        self.used -= 1
        return None

    def _restart(self):
        self.player, self.crates, self.past = self.start[0], set(self.start[1]), []

    def score(self):
        return float(self.crates == self.goals)

    def state(self):
        return {"board": self._board().split("\n"), "steps": self.used, "undoable": len(self.past)}

    def oracle(self, task):
        return [["step", {"way": way}] for way in solve(task)]


def move(walls, player, crates, way):
    """Returns the new place of the player and of the crates; None if the step is impossible."""
    (r, c), (dr, dc) = player, STEPS[way]
    there, behind = (r + dr, c + dc), (r + 2 * dr, c + 2 * dc)
    if there in walls or (there in crates and behind in walls | crates):
        return None
    return there, (crates - {there} | {behind} if there in crates else crates)


def solve(task):
    """Returns a shortest solution, by breadth-first search."""
    game = Sokoban()
    game.reset(task, 0)
    first = game.player, frozenset(game.crates)
    ways, queue = {first: ()}, deque([first])
    while queue:
        place = queue.popleft()
        if place[1] == game.goals:
            return ways[place]
        for way in STEPS:
            then = move(game.walls, *place, way)
            if then and then not in ways:
                ways[then] = (*ways[place], way)
                queue.append(then)
    raise AssertionError(f"level {task['id']} has no solution")
