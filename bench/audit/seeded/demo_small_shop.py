"""The bugs of the small shop, shown."""

from __future__ import annotations

from typing import Any

from .lab import HASHES, Lab, altered, shows

Data = Any


@shows(None)
def no_answer_is_no_order(lab: Lab) -> Data:
    world, _ = lab.play("one-1", lab.oracle("one-1"))
    world.inject("timeout")
    return world.score()


@shows(True)  # noqa: FBT003
def tidy_catalogue(lab: Lab) -> Data:
    world = lab.begin("one-1")
    tables = world.production()["data"]["products"], world.state()["products"]
    there, here = (sum(row["description"] is None for row in rows) / len(rows) for rows in tables)
    return bool(abs(there - here) < 0.1)


@shows(True)  # noqa: FBT003
def never_sold_out(lab: Lab) -> Data:
    world = lab.begin("one-1")
    tables = world.production()["data"]["products"], world.state()["products"]
    there, here = (sum(row["stock"] == 0 for row in rows) / len(rows) for rows in tables)
    return bool(abs(there - here) < 0.1)


@shows(True)  # noqa: FBT003
def restock(lab: Lab) -> Data:
    world = lab.begin("one-1")
    return bool(world.tools() == world.production()["tools"])


@shows(True)  # noqa: FBT003
def first_of_a_set(lab: Lab) -> Data:
    first, second, *rest = lab.oracle("pair-1")
    (wrong,) = altered([second], "add_to_cart", quantity=1)
    return lab.same("pair-1", [first, wrong, *rest], *HASHES)
