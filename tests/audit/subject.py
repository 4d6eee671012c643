"""Subject for the tests of the auditor's machinery, as the text of a file, with a claim about it."""

from __future__ import annotations

from collections.abc import Sequence

from quintain.audit.kernel.finding import Evidence
from quintain.audit.kernel.probe import Record
from quintain.audit.kernel.registry import relation


@relation
def stale(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if the tool shows another stock than the state holds."""
    look, state = (records[0].at(mark) for mark in evidence.marks)
    return look.fine and state.fine and look.value != state.value["stock"]["left"]


SHOP = '''
"""Things are bought; `Cached` shows a stock that it read before."""

import itertools
import os
import pathlib
import time


class Shop:
    volatile = ("at",)

    def tasks(self):
        return [{"id": f"buy {n}"} for n in range(5)]

    def tools(self):
        count = {"type": "object", "properties": {"count": {"type": "integer", "minimum": 1, "maximum": 3}},
                 "required": ["count"]}
        none = {"type": "object", "properties": {}}
        return [{"name": "buy", "description": "Buy.", "parameters": count},
                {"name": "stock", "description": "How many are there.", "parameters": none},
                {"name": "boom", "description": "Break.", "parameters": none}]

    def reset(self, task, seed):
        self.wanted, self.left, self.cash = int(task["id"].split()[1]), 10, 100
        return f"Buy {self.wanted}."

    def call(self, name, arguments):
        if name == "boom":
            return {}["fuse"]
        if name == "bytes":
            return {"raw": b"\\xff", 3: float("nan")}
        if name == "sleep":
            time.sleep(60)
        if name == "exit":
            os._exit(3)
        if name == "where":
            return [os.environ.get("TZ"), os.environ["PYTHONHASHSEED"], os.environ["TMPDIR"]]
        if name == "buy":
            if arguments["count"] > self.left:
                raise ValueError("so many are not there")
            self.left -= arguments["count"]
            self.cash -= 3 * arguments["count"]
            return {"bought": arguments["count"], "at": time.time()}
        return self.left

    def score(self):
        return {"score": float(self.left == 10 - self.wanted), "cash": self.cash}

    def oracle(self, task):
        count = int(task["id"].split()[1])
        return [["stock", {}], ["buy", {"count": count}]] if count else []

    def state(self):
        return {"stock": {"left": self.left}, "cash": self.cash}

    def explain(self):
        return [{"name": "left", "value": self.left}]


class Cached(Shop):
    seen = None

    def reset(self, task, seed):
        self.seen = None
        return super().reset(task, seed)

    def call(self, name, arguments):
        if name != "stock":
            return super().call(name, arguments)
        if self.seen is None:
            self.seen = super().call(name, arguments)
        return self.seen


class Sometimes(Shop):
    """Shop that sells in every second process."""

    def reset(self, task, seed):
        for count in itertools.count():  # Two processes that play at once must not get one number.
            try:
                pathlib.Path(__file__).with_name(f"count-{count}").touch(exist_ok=False)
            except FileExistsError:
                continue
            return f"plays so far: {count}"


class Wordless(Shop):
    state = explain = None
'''
