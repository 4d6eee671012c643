"""The bugs of the support desk, shown."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

from .lab import Lab, altered, at_once, eager_switches, paid, shows

Data = Any


def ids(lab: Lab, task: str) -> tuple[str, str]:
    plan = lab.make().plan(task)
    return plan["first"]["id"], plan["second"]["id"]


@shows(True)  # noqa: FBT003
def stale_read_after_merge(lab: Lab) -> Data:
    source, target = ids(lab, "merge-0")
    read = ["list_comments", {"ticket_id": target}]
    world, answers = lab.play("merge-0", [read, ["merge_tickets", {"source": source, "target": target}], read])
    return len(answers[-1]["comments"]) == sum(row["ticket_id"] == target for row in world.state()["comments"])


@shows("carmen")
def hot_ticket_cache(lab: Lab) -> Data:
    read = ["get_ticket", {"ticket_id": ids(lab, "solve-0")[0]}]
    write = ["assign", {**read[1], "agent": "carmen"}]
    return lab.play("solve-0", [read, read, write, read])[1][-1]["assignee"]


@shows({"solved"})
def search_key_without_status(lab: Lab) -> Data:
    calls = [["search_tickets", {"query": ""}], ["search_tickets", {"query": "", "status": "solved"}]]
    return {row["status"] for row in lab.play("solve-0", calls)[1][-1]["tickets"]}


@shows(0.0)
def solved_by_status(lab: Lab) -> Data:
    return lab.reward("solve-0", [["set_status", {"ticket_id": ids(lab, "solve-0")[0], "status": "solved"}]])


@shows(0)
def merge_moves_nothing(lab: Lab) -> Data:
    world, _ = lab.play("merge-0", lab.oracle("merge-0"))
    assert paid(world) == 1.0
    return sum(row["ticket_id"] == ids(lab, "merge-0")[0] for row in world.state()["comments"])


@shows(0.0)
def internal_note_counts(lab: Lab) -> Data:
    return lab.reward("solve-0", altered(lab.oracle("solve-0"), "add_comment", public=False))


@shows(0.0)
def other_rows_unread(lab: Lab) -> Data:
    world, _ = lab.play("solve-0", lab.oracle("solve-0"))
    named = {row["id"] for row in world.plan("solve-0")["rows"]["customers"]}
    other = next(row["id"] for row in world.state()["customers"] if row["id"] not in named)
    world.call("update_email", {"customer_id": other, "email": "mine@x.example"})
    return paid(world)


@shows(True)  # noqa: FBT003
def search_empty_on_error(lab: Lab) -> Data:
    world = lab.begin("solve-0")
    world.inject("timeout")
    return "error" in world.call("search_tickets", {"query": ""})


@shows(None)
def score_zero_on_fault(lab: Lab) -> Data:
    world = lab.begin("solve-0")
    world.inject("500")
    return world.score()


@shows(True)  # noqa: FBT003
def half_thread(lab: Lab) -> Data:
    world = lab.begin("solve-0")
    world.inject("truncated")
    return "error" in world.call("list_comments", {"ticket_id": ids(lab, "solve-0")[0]})


@shows(True)  # noqa: FBT003
def nothing_for_unknown(lab: Lab) -> Data:
    return "error" in lab.play("solve-0", [["list_comments", {"ticket_id": "T1"}]])[1][0]


@shows("C1000001")
def comment_ids_go_on(lab: Lab) -> Data:
    world, _ = lab.play("solve-0", lab.oracle("solve-0"))
    world.reset("solve-0", 1)
    return world.call("add_comment", {"ticket_id": ids(lab, "solve-0")[0], "body": "hello"})["comment_id"]


@shows(True)  # noqa: FBT003
def two_comments_each(lab: Lab) -> Data:
    rows = lab.begin("solve-0").state()["comments"]
    return len(set(Counter(row["ticket_id"] for row in rows).values())) > 5


@shows(True)  # noqa: FBT003
def even_gaps(lab: Lab) -> Data:
    times = sorted(row["created"] for row in lab.begin("solve-0").state()["tickets"])
    return len({after - before for before, after in itertools.pairwise(times)}) > 20


@shows(True)  # noqa: FBT003
def tidy_customers(lab: Lab) -> Data:
    rows = lab.begin("solve-0").state()["customers"]
    return sum(row["phone"] is None for row in rows) > 8


@shows(True)  # noqa: FBT003
def oldest_first(lab: Lab) -> Data:
    world, (found,) = lab.play("solve-0", [["search_tickets", {"query": "", "limit": 9}]])
    times = [world.call("get_ticket", {"ticket_id": row["id"]})["created"] for row in found["tickets"]]
    return times == sorted(times, reverse=True)


@shows(True)  # noqa: FBT003
def hidden_purge(lab: Lab) -> Data:
    return "error" in lab.play("solve-0", [["delete_ticket", {"ticket_id": ids(lab, "solve-0")[0]}]])[1][0]


@shows(0)
def public_by_default(lab: Lab) -> Data:
    world, (made,) = lab.play("solve-0", [["add_comment", {"ticket_id": ids(lab, "solve-0")[0], "body": "hello"}]])
    return next(row["public"] for row in world.state()["comments"] if row["id"] == made["comment_id"])


@shows(None)
def quote_breaks_search(lab: Lab) -> Data:
    return lab.crash("solve-0", ["search_tickets", {"query": "O'Brien"}])


@shows(None)
def bytes_of_a_comment(lab: Lab) -> Data:
    return lab.crash("solve-0", ["add_comment", {"ticket_id": ids(lab, "solve-0")[0], "body": "ok \ud83d"}])


@shows(True)  # noqa: FBT003
def scratch_is_shared(lab: Lab) -> Data:
    worlds = [lab.begin("solve-0", 1), lab.begin("merge-0", 2)]
    calls = [["search_tickets", {"query": ""}], ["search_tickets", {"query": "in"}]]
    right = [world.call(*call) for world, call in zip(worlds, calls, strict=True)]

    def again(number: int) -> Data:
        worlds[number].cache.clear()
        return worlds[number].call(*calls[number])

    with eager_switches():
        return all(at_once(lambda: again(0), lambda: again(1)) == right for _ in range(40))


@shows(True)  # noqa: FBT003
def address_unsaid(lab: Lab) -> Data:
    world = lab.make()
    return world.plan("email-0")["email"] in world.reset("email-0", 1)


@shows([1.0, 1.0])
def score_moves_the_baseline(lab: Lab) -> Data:
    world, _ = lab.play("solve-0", lab.oracle("solve-0"))
    return [world.score(), world.score()]


@shows({"ok": True})
def verdict_in_the_answer(lab: Lab) -> Data:
    return lab.play("solve-0", [["set_status", {"ticket_id": ids(lab, "solve-0")[0], "status": "solved"}]])[1][0]


@shows(True)  # noqa: FBT003
def ticket_of_the_house(lab: Lab) -> Data:
    call = ["add_comment", {"ticket_id": ids(lab, "solve-0")[0], "body": "hello"}]
    return lab.play("solve-0", [call])[1] == lab.play("solve-0", [call])[1]


@shows(True)  # noqa: FBT003
def replica_behind(lab: Lab) -> Data:
    key = {"ticket_id": ids(lab, "solve-0")[0]}
    calls = [["add_comment", {**key, "body": "hello"}], ["list_comments", key]]
    return all(lab.play("solve-0", calls)[1][-1]["comments"][-1]["body"] == "hello" for _ in range(5))
