"""Shop with a bug for each claim of an advisor, its sound version, and right, wrong and hostile proposals."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import msgspec

from quintain.harness import Model, Request
from quintain.trace import Message, Reply
from tests.models.server import Action, Server, serving

SHOP = '''
"""A shop that sells lamps. `Buggy` has a bug for each claim that an advisor may make; `Shop` is sound."""

import itertools
import os
import time


LAMPS = {"one": 1, "two": 2, "none": 0, "ask": 0}


class Shop:
    """Sound, with designs that look like bugs: a cursor, idempotent gifts, an episode that ends with an answer, a task
    for which nothing must be done, and one for which an answer is enough."""

    def tasks(self):
        return [*LAMPS]

    def tools(self):
        count = {"type": "object", "properties": {"count": {"type": "integer", "minimum": 1, "maximum": 9}},
                 "required": ["count"], "additionalProperties": False}
        code = {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}
        none = {"type": "object", "properties": {}}
        return [{"name": "stock", "description": "Number of lamps.", "parameters": none},
                {"name": "next", "description": "The next lamp.", "parameters": none},
                {"name": "buy", "description": "Buy lamps.", "parameters": count},
                {"name": "gift", "description": "Number of the gift for a code.", "parameters": code}]

    def reset(self, task, seed):
        self.wanted, self.left, self.cash, self.gifts, self.place, self.over = task, 8, 100, [], 0, ""
        return f"Buy {task}."

    def call(self, name, arguments):
        if self.over:
            return {}["the episode is over"]
        if name == "stock":
            return {"lamps": self.left}
        if name == "next":
            self.place += 1
            return {"lamp": self.place, "first": min(self.gifts, default=None)}
        if name == "buy":
            if arguments["count"] + 0 > self.left:
                raise ValueError("so many are not there")
            self.left -= arguments["count"]
            self.cash -= 10 * arguments["count"]
            return {"bought": arguments["count"]}
        if arguments["code"] not in self.gifts:
            self.gifts.append(arguments["code"])
        return {"gift": self.gifts.index(arguments["code"])}

    def answer(self, text):
        self.over = text

    def score(self):
        return float(self.over == "8" if self.wanted == "ask" else self.left == 8 - LAMPS[self.wanted])

    def oracle(self, task):
        thanks = ["gift", {"code": "thanks"}]
        return {"none": [thanks], "ask": [thanks, {"answer": "8"}]}.get(task, [["buy", {"count": LAMPS[task]}]])

    def state(self):
        return {"left": self.left, "cash": self.cash, "gifts": list(self.gifts)}

    def snapshot(self):
        return self.left, self.cash, list(self.gifts), self.place

    def restore(self, kept):
        self.left, self.cash, gifts, self.place = kept
        self.gifts = list(gifts)


class Buggy(Shop):
    """Each bug needs a code that stands here and nowhere else."""

    used = []
    numbers = itertools.count()

    def reset(self, task, seed):
        self.seen, self.paid, self.shaky = None, False, False
        return super().reset(task, seed)

    def call(self, name, arguments):
        code = arguments.get("code")
        if code == "ONCE-ONLY":
            self.used.append(code)
            return {"gift": len(self.used)}
        if code == "PROCESS":
            return {"gift": os.getpid() + time.time_ns()}
        if code == "CACHE":
            self.seen = {}
        if code == "FREE":
            self.paid = True
            return {"thanks": True}
        if code in ("SHAKY", "NAN"):
            self.shaky = code
            return {"thanks": True}
        if name == "buy" and arguments["count"] == 7:
            return {}["seven"]
        if name == "buy" and arguments["count"] > self.left:
            self.cash -= 10
        if name == "stock" and self.seen is not None:
            return self.seen.setdefault("stock", {"lamps": self.left})
        return super().call(name, arguments)

    def score(self):
        if self.shaky:
            return float("nan") if self.shaky == "NAN" else next(self.numbers) / 1000
        return 1.0 if self.paid else super().score()

    def restore(self, kept):
        gifts = self.gifts
        super().restore(kept)
        self.gifts = gifts
'''


def op(do: str, name: str = "", value: Any = None, **more: Any) -> dict[str, Any]:
    """Returns an op as a model writes it."""
    return {"do": do} | ({"name": name} if name else {}) | ({"value": value} if value is not None else {}) | more


def gift(code: Any, **more: Any) -> dict[str, Any]:
    return op("call", "gift", {"code": code}, **more)


def buy(count: Any, **more: Any) -> dict[str, Any]:
    return op("call", "buy", {"count": count}, **more)


def probe(relation: str, *ops: dict[str, Any]) -> dict[str, Any]:
    return {"relation": relation, "ops": list(ops)}


def model(*replies: str | Exception) -> Model:
    """Returns a model that gives these replies in turn, the last one for all that follow."""
    left = list(replies)

    async def answer(_request: Request) -> Reply:
        said = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(said, Exception):
            raise said
        return Reply(Message("assistant", said))

    return answer


BEGIN, STOCK, SCORE = op("reset", "one"), op("call", "stock"), op("score")

RIGHT = {
    "leaks": probe("leaks", BEGIN, gift("ONCE-ONLY"), STOCK, BEGIN, STOCK, gift("ONCE-ONLY")),
    "leaks beside": probe("leaks", BEGIN, op("reset", "two", on="b"), gift("ONCE-ONLY", on="b"), gift("ONCE-ONLY")),
    "varies": probe("varies", BEGIN, STOCK, gift("PROCESS")),
    "restores_wrongly": probe(
        "restores_wrongly", BEGIN, STOCK, op("snapshot"), gift("A"), buy(1), op("restore"), STOCK, gift("B")
    ),
    "stale_read": probe("stale_read", BEGIN, gift("CACHE"), buy(2, mark="write"), STOCK),
    "crashes": probe("crashes", BEGIN, STOCK, gift("A"), buy(7)),
    "score_varies": probe("score_varies", BEGIN, STOCK, gift("SHAKY"), SCORE),
    "score_not_finite": probe("score_not_finite", BEGIN, STOCK, gift("NAN"), SCORE),
    "refused_write": probe("refused_write", BEGIN, gift("A"), buy(9)),
    "paid_unchanged": probe("paid_unchanged", BEGIN, STOCK, gift("FREE"), SCORE),
}
"""Probes that show a bug of Buggy, at least one by claim."""

WRONG = [
    probe("leaks", BEGIN, op("call", "next"), op("call", "next")),
    probe("leaks", BEGIN, buy(1), op("reset", "two", on="b"), buy(1, on="b"), SCORE),
    probe("varies", BEGIN, buy(1), op("state")),
    probe(
        "restores_wrongly", BEGIN, op("call", "next"), op("snapshot"), op("call", "next"), op("restore"), op("state")
    ),
    probe("stale_read", BEGIN, gift("A", mark="write"), gift("B")),
    probe("stale_read", BEGIN, op("call", "next", mark="write"), op("call", "next")),
    probe("stale_read", BEGIN, buy(1, mark="write"), SCORE),
    probe("crashes", BEGIN, buy("many")),
    probe("crashes", BEGIN, buy(9)),
    probe("crashes", BEGIN, op("answer", value="done"), STOCK),
    probe("crashes", BEGIN, gift(5), gift("A"), op("call", "next")),
    probe("score_varies", BEGIN, buy(1), SCORE),
    probe("paid_unchanged", BEGIN, buy(1), SCORE),
    probe("paid_unchanged", BEGIN, STOCK, SCORE),
    probe("paid_unchanged", op("reset", "none"), STOCK, SCORE),
    probe("paid_unchanged", op("reset", "ask"), op("answer", value="8"), SCORE),
    probe("refused_write", BEGIN, gift("A")),
]
"""Probes that are well-formed, and whose claims are false for Shop; some mistake a sound design for a bug."""

HOSTILE = {
    "unknown relation 'os:system'": probe("os:system", BEGIN, SCORE),
    "unknown relation 'quintain.audit.kernel.relations": probe("quintain.audit.kernel.relations:varies", BEGIN, SCORE),
    "Invalid enum value 'ask'": probe("varies", BEGIN, op("ask", "os:system", "touch hacked")),
    "Invalid enum value 'inject'": probe("varies", BEGIN, op("inject", "disk_full"), SCORE),
    "Invalid enum value 'together'": probe("varies", BEGIN, op("together", lanes=[[SCORE]])),
    "Invalid enum value 'oracle'": probe("varies", BEGIN, op("oracle", "one"), SCORE),
    "Object contains unknown field `context`": {**probe("varies", BEGIN, SCORE), "context": {"hash_seed": 1}},
    "Object contains unknown field `times`": probe("varies", BEGIN, op("score", times=10**9)),
    "Invalid enum value 'step 1'": probe("varies", BEGIN, op("call", "stock", mark="step 1"), SCORE),
    "call of the unknown name 'os:system'": probe(
        "varies", BEGIN, op("call", "os:system", {"command": "touch hacked"})
    ),
    "reset of the unknown name '../../one'": probe("varies", op("reset", "../../one"), SCORE),
    "state of the unknown name '/etc/passwd'": probe("varies", BEGIN, op("state", "/etc/passwd")),
    "call with a value or mark": probe("varies", BEGIN, op("call", "buy", "import os")),
    "reset with a value or mark": probe("varies", op("reset", "one", "x"), SCORE),
    "advance with a value or mark": probe("varies", BEGIN, op("advance", value=-1.0), SCORE),
    "the subject has no digest": probe("varies", BEGIN, op("digest")),
    "session b does not begin": probe("leaks", BEGIN, op("call", "stock", on="b"), STOCK),
    "matching regex": probe("leaks", op("reset", "one", on="step 1"), STOCK),
    "varies is about one episode": probe("varies", BEGIN, BEGIN, SCORE),
    "restores_wrongly has kept, then back": probe("restores_wrongly", BEGIN, op("restore"), op("snapshot"), STOCK),
    "leaks has no mark": probe("leaks", BEGIN, op("snapshot"), BEGIN, op("restore"), STOCK),
    "stale_read has write": probe("stale_read", BEGIN, buy(1), STOCK),
    "Expected `array` of length <= 60": probe("varies", BEGIN, *[STOCK] * 60),
    "more than 4,000 bytes": probe("varies", BEGIN, gift("x" * 5000)),
    "Expected `object`, got `str`": "import os",
}
"""Proposals that are refused, by the beginning of the reason or a part of it."""


def reply(*probes: Any, suspicions: Any = ()) -> str:
    """Returns the reply of a model that proposes these probes."""
    said = msgspec.json.encode({"suspicions": list(suspicions), "probes": list(probes)}).decode()
    return f"```json\n{said}\n```"


@contextmanager
def endpoint(*actions: Action) -> Generator[Server]:
    """Serves the actions from another thread: the command line has an event loop of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    context = serving(*actions)
    try:
        yield asyncio.run_coroutine_threadsafe(context.__aenter__(), loop).result(10)
    finally:
        asyncio.run_coroutine_threadsafe(context.__aexit__(None, None, None), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
