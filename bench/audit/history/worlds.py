"""Worlds that leaked, forgot or remembered too much; rebuilt from public reports.

A seed that is accepted and dropped: https://github.com/huggingface/OpenEnv/issues/1102
Default lists that all instances share: https://github.com/Kaggle/kaggle-environments/issues/156
A repository that holds its own future: https://github.com/SWE-bench/SWE-bench/issues/465
A cache of results without the conditions in its key: https://github.com/NVIDIA/cloudai/pull/901
A cache of documents by half of their address: https://github.com/NVIDIA-NeMo/Gym/pull/2097
"""

from __future__ import annotations

import copy
import random
from typing import Any, ClassVar

from .plain import Answer, Plain, Solution, one_of, text

# --- a word game over another library's game ---

WORDS = ("amber", "bread", "clock", "flame", "house", "month", "north", "piano", "river", "steam", "tiger", "youth")
TRIES = 6


class _Game:
    """The library's game: its own `reset` takes a seed."""

    def __init__(self) -> None:
        self.secret = ""
        self.tries = 0

    def reset(self, seed: int | None = None) -> None:
        self.secret = random.Random(seed).choice(WORDS)  # noqa: S311 - the world's own generator
        self.tries = 0


class Wordle(Plain):
    """Guess the secret word of five letters within six tries."""

    TOOLS: ClassVar[dict[str, tuple[str, dict[str, Any]]]] = {
        "guess": (f"Guess the word, one of {', '.join(WORDS)}.", {"word": text("Five letters")}),
    }

    def __init__(self, *, passes_seed: bool) -> None:
        self.passes_seed = passes_seed
        self.game = _Game()
        self.solved = False

    def tasks(self) -> list[str]:
        return ["wordle"]

    def reset(self, task: str, seed: int) -> str:
        self.solved = False
        if self.passes_seed:
            self.game.reset(seed=seed)
        else:
            self.game.reset()
        return "Guess the word of five letters: G is right, Y is elsewhere in the word, X is not in it."

    def do_guess(self, word: str) -> Answer:
        if len(word) != 5 or not word.isalpha():
            return {"error": "a guess has five letters"}
        if self.solved or self.game.tries == TRIES:
            return {"error": "the game is over"}
        self.game.tries += 1
        secret = self.game.secret
        self.solved = word.lower() == secret
        marks = ("G" if a == b else "Y" if a in secret else "X" for a, b in zip(word.lower(), secret, strict=True))
        return {"feedback": "".join(marks), "tries_left": TRIES - self.game.tries}

    def score(self) -> float:
        return float(self.solved)

    def state(self) -> dict[str, Any]:
        return {"secret": self.game.secret, "tries": self.game.tries}


def seed_before() -> Wordle:
    return Wordle(passes_seed=False)


def seed_after() -> Wordle:
    return Wordle(passes_seed=True)


# --- rock, paper, scissors, with a record of its moves ---

BEATS = {"rock": "scissors", "paper": "rock", "scissors": "paper"}
OPPONENT = ("rock", "scissors", "scissors", "paper", "rock")


class Duel(Plain):
    """Five rounds against an opponent who always plays the same moves. The score is the share of rounds won."""

    graded = True
    TOOLS: ClassVar[dict[str, tuple[str, dict[str, Any]]]] = {
        "play": ("Play the next round.", {"move": one_of(*BEATS)}),
    }

    def __init__(self, steps: list[str]) -> None:
        self.steps = steps

    def tasks(self) -> list[str]:
        return ["duel"]

    def reset(self, task: str, seed: int) -> str:
        self.steps.clear()
        return f"You play five rounds. The opponent will play {', '.join(OPPONENT)}."

    def do_play(self, move: str) -> Answer:
        if len(self.steps) == len(OPPONENT):
            return {"error": "all rounds are played"}
        self.steps.append(move)
        return {"round": len(self.steps), "opponent": OPPONENT[len(self.steps) - 1]}

    def score(self) -> float:
        won = sum(BEATS[mine] == theirs for mine, theirs in zip(self.steps, OPPONENT, strict=False))
        return won / len(OPPONENT)

    def oracle(self, task: str) -> Solution:
        winners = {loser: winner for winner, loser in BEATS.items()}
        return [["play", {"move": winners[theirs]}] for theirs in OPPONENT]

    def state(self) -> dict[str, Any]:
        return {"steps": list(self.steps)}


def default_list_before(steps: list[str] = []) -> Duel:  # noqa: B006 - the bug itself
    return Duel(steps)


def default_list_after() -> Duel:
    return Duel([])


# --- a repository at a commit, and what came after it ---

BASE = {
    "paging.py": "def pages(items, size):\n    return len(items) // size\n",
    "slug.py": "def slug(title):\n    return title.replace(' ', '-')\n",
}
FIXES = {
    "paging": ("paging.py", "def pages(items, size):\n    return -(-len(items) // size)\n"),
    "slug": ("slug.py", "def slug(title):\n    return '-'.join(title.lower().split())\n"),
}
REPORTS = {
    "paging": "The last page is missing when the number of items is not a multiple of the page's size.",
    "slug": "Two spaces in a title give two dashes, and capitals stay; both should go.",
}


class Repository(Plain):
    """Mend a bug. The hidden tests accept the file as the project's own later commit has it."""

    TOOLS: ClassVar[dict[str, tuple[str, dict[str, Any]]]] = {
        "git_log": ("List commits: those behind HEAD, or of every ref.", {"all_refs": {"type": "boolean"}}),
        "git_show": ("Show the files of a commit.", {"commit": text("Its hash")}),
        "read_file": ("Read a file of the working tree.", {"path": text("Such as slug.py")}),
        "write_file": ("Replace a file of the working tree.", {"path": text("As above"), "content": text("All of it")}),
    }

    def __init__(self, *, pruned: bool) -> None:
        self.pruned = pruned
        self.task = "paging"
        self.files = dict(BASE)

    def tasks(self) -> list[str]:
        return list(FIXES)

    def reset(self, task: str, seed: int) -> str:
        self.task, self.files = task, dict(BASE)
        return f"{REPORTS[task]} Mend {FIXES[task][0]}."

    def do_git_log(self, *, all_refs: bool) -> Answer:
        return {
            "commits": [
                {"commit": key, "message": about} for key, (about, _) in self._commits(all_refs=all_refs).items()
            ]
        }

    def do_git_show(self, commit: str) -> Answer:
        # Any object in the store is shown, whether a ref leads to it or not.
        commits = self._commits(all_refs=True)
        return {"files": dict(commits[commit][1])} if commit in commits else {"error": f"bad object {commit!r}"}

    def do_read_file(self, path: str) -> Answer:
        return {"content": self.files[path]} if path in self.files else {"error": f"no file {path!r}"}

    def do_write_file(self, path: str, content: str) -> Answer:
        if path not in self.files:
            return {"error": f"no file {path!r}"}
        self.files[path] = content
        return {"ok": True}

    def score(self) -> float:
        path, fixed = FIXES[self.task]
        return float(self.files[path].split() == fixed.split())

    def oracle(self, task: str) -> Solution:
        path, fixed = FIXES[task]
        return [["write_file", {"path": path, "content": fixed}]]

    def hidden(self, task: str) -> dict[str, str]:
        return {"fixed_line": FIXES[task][1].splitlines()[-1].strip()}

    def state(self) -> dict[str, Any]:
        return {"files": dict(self.files)}

    def _commits(self, *, all_refs: bool) -> dict[str, tuple[str, dict[str, str]]]:
        known: dict[str, tuple[str, dict[str, str]]] = {"3f0a91c": ("Paging and slugs", BASE)}
        if all_refs and not self.pruned:
            path, fixed = FIXES[self.task]
            known["b81d77e"] = (f"Mend {path}", BASE | {path: fixed})
        return known


def future_before() -> Repository:
    return Repository(pruned=False)


def future_after() -> Repository:
    return Repository(pruned=True)


# --- a sweep over machines whose network differs ---

LATENCY = {"quiet network": 1.0, "busy network": 9.0}
NODES = (1, 2, 4, 8, 16, 32)


class Sweep(Plain):
    """Find the number of nodes with which a job takes the least time. Measured runs are expensive and are kept."""

    graded = True
    TOOLS: ClassVar[dict[str, tuple[str, dict[str, Any]]]] = {
        "measure": ("Run the job and read its time in seconds.", {"nodes": {"type": "integer", "enum": list(NODES)}}),
    }

    def __init__(self, *, whole_key: bool) -> None:
        self.whole_key = whole_key
        self.task = next(iter(LATENCY))
        self.kept: dict[tuple[str, int], float] = {}
        self.times: list[float] = []

    def tasks(self) -> list[str]:
        return list(LATENCY)

    def reset(self, task: str, seed: int) -> str:
        self.task, self.times = task, []
        return f"Find the best number of nodes for the job on a {task}."

    def do_measure(self, nodes: int) -> Answer:
        key = (self.task if self.whole_key else "", nodes)
        if key not in self.kept:
            self.kept[key] = _seconds(self.task, nodes)
        self.times.append(self.kept[key])
        return {"seconds": self.kept[key]}

    def score(self) -> float:
        best = min(_seconds(self.task, nodes) for nodes in NODES)
        return best / min(self.times) if self.times else 0.0

    def oracle(self, task: str) -> Solution:
        return [["measure", {"nodes": min(NODES, key=lambda nodes: _seconds(task, nodes))}]]

    def state(self) -> dict[str, Any]:
        return {"network": self.task, "latency": LATENCY[self.task], "measured": len(self.times)}


def _seconds(network: str, nodes: int) -> float:
    return 240 / nodes + LATENCY[network] * nodes


def sweep_before() -> Sweep:
    return Sweep(whole_key=False)


def sweep_after() -> Sweep:
    return Sweep(whole_key=True)


# --- filings of companies, each of several documents ---

FILINGS = {
    "edgar/data/320/0001/annual-report.htm": "Harbour Tools, annual report: revenue 812 million, 4120 employees.",
    "edgar/data/320/0001/exhibit-21.htm": "Harbour Tools, exhibit 21: subsidiaries in 17 countries.",
    "edgar/data/320/0001/exhibit-10.htm": "Harbour Tools, exhibit 10: credit line of 95 million.",
    "edgar/data/771/0004/annual-report.htm": "Brightwater, annual report: revenue 233 million, 640 employees.",
    "edgar/data/771/0004/exhibit-21.htm": "Brightwater, exhibit 21: subsidiaries in 3 countries.",
}
ASKED = {
    "harbour-countries": ("In how many countries has Harbour Tools subsidiaries?", "320/0001", 17),
    "harbour-credit": ("How large is Harbour Tools' credit line, in millions?", "320/0001", 95),
    "brightwater-countries": ("In how many countries has Brightwater subsidiaries?", "771/0004", 3),
}


class Filings(Plain):
    """Answer a question from a company's filings. Documents are fetched once and then kept."""

    TOOLS: ClassVar[dict[str, tuple[str, dict[str, Any]]]] = {
        "search": ("List the documents of all filings.", {}),
        "fetch": ("Read a document.", {"url": text("As `search` names it")}),
        "report": ("Report the answer.", {"number": {"type": "integer"}}),
    }

    def __init__(self, *, whole_key: bool) -> None:
        self.whole_key = whole_key
        self.task = next(iter(ASKED))
        self.kept: dict[str, str] = {}
        self.reported: int | None = None

    def tasks(self) -> list[str]:
        return list(ASKED)

    def reset(self, task: str, seed: int) -> str:
        self.task, self.reported = task, None
        return ASKED[task][0]

    def do_search(self) -> Answer:
        return {"urls": list(FILINGS)}

    def do_fetch(self, url: str) -> Answer:
        if url not in FILINGS:
            return {"error": f"404: {url}"}
        key = url if self.whole_key else url.rpartition("/")[0]
        return {"content": self.kept.setdefault(key, FILINGS[url])}

    def do_report(self, number: int) -> Answer:
        self.reported = number
        return {"ok": True}

    def score(self) -> float:
        return float(self.reported == ASKED[self.task][2])

    def oracle(self, task: str) -> Solution:
        _, filing, number = ASKED[task]
        urls = [url for url in FILINGS if filing in url]
        fetched: Solution = [["fetch", {"url": url}] for url in urls]
        return [["search", {}], *fetched, ["report", {"number": number}]]

    def state(self) -> dict[str, Any]:
        return {"documents": copy.deepcopy(FILINGS), "reported": self.reported}


def filings_before() -> Filings:
    return Filings(whole_key=False)


def filings_after() -> Filings:
    return Filings(whole_key=True)
