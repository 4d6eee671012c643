"""The bugs of the operations desk, shown."""

from __future__ import annotations

from typing import Any

from .lab import HASHES, Lab, altered, paid, shows

Data = Any


def asked(lab: Lab, task: str, name: str) -> Data:
    """Returns the arguments of the oracle's last call of a tool."""
    return next(given for called, given in reversed(lab.oracle(task)) if called == name)


def reported(lab: Lab, task: str, *lines: str) -> list[Data]:
    """The oracle's calls with another report."""
    return list(altered(lab.oracle(task), "close_ticket", report="\n".join(lines)))


@shows([])
def health_until_its_own_write(lab: Lab) -> Data:
    world, _ = lab.play("repair-0", lab.oracle("repair-0"))
    return world.call("get_service", {"service": "basket"})["symptoms"]


@shows(0.0)
def whoever_gives(lab: Lab) -> Data:
    world = lab.begin("scale-0")
    giver = lab.oracle("scale-0")[-3][1]["service"]
    assert giver == "search"
    replicas = world.call("get_service", {"service": "checkout"})["replicas"]
    world.call("scale", {"service": "checkout", "replicas": 1})
    world.call("scale", {"service": "basket", "replicas": 1})
    assert replicas > 1
    assert world.call("scale", asked(lab, "scale-0", "scale")) == {"ok": True}
    return paid(world)


@shows(0.0)
def set_is_taken_up(lab: Lab) -> Data:
    world, _ = lab.play("repair-0", [call for call in lab.oracle("repair-0") if call[0] != "deploy"])
    assert world.call("get_service", {"service": "basket"})["status"] == "degraded"
    return paid(world)


@shows(0.0)
def rolled_out_once(lab: Lab) -> Data:
    world = lab.begin("rollback-1")
    bad = world.call("get_service", {"service": "search"})["version"]
    for call in lab.oracle("rollback-1"):
        world.call(*call)
    assert world.call("deploy", {"service": "search", "version": bad}) == {"ok": True}
    assert world.call("get_service", {"service": "search"})["status"] == "degraded"
    return paid(world)


@shows(True)  # noqa: FBT003
def unreadable_is_usual(lab: Lab) -> Data:
    world, given = lab.begin("repair-0"), asked(lab, "repair-0", "set_config")
    return "error" in world.call("set_config", {**given, "value": f"{given['value']}ms"})


@shows(True)  # noqa: FBT003
def platforms_are_kept(lab: Lab) -> Data:
    world = lab.begin("outage-3")
    before = world.call("get_service", {"service": "search"})["config"]["log_level"]
    other = next(level for level in ("debug", "info") if level != before)
    world.call("set_config", {"service": "search", "setting": "log_level", "value": other})
    return lab.begin("outage-3").call("get_service", {"service": "search"})["config"]["log_level"] == before


@shows(True)  # noqa: FBT003
def one_of_those_below(lab: Lab) -> Data:
    return lab.same("repair-0", [["get_service", {"service": "web"}]], *HASHES)


@shows([0.5, 0.625, 0.75, 0.875, 1.0])
def pass_mark(lab: Lab) -> Data:
    lines = asked(lab, "repair-0", "close_ticket")["report"].splitlines()
    found = [lab.reward("repair-0", reported(lab, "repair-0", "Done.", *lines[:count])) for count in range(5)]
    return [round(one or 0.0, 9) for one in found]


@shows(True)  # noqa: FBT003
def ticket_for_every_change(lab: Lab) -> Data:
    world = lab.begin("scale-0")
    shares = [
        sum(row["ticket"] is None for row in rows["changes"]) / len(rows["changes"])
        for rows in (world.state(), world.production()["data"])
    ]
    return abs(shares[0] - shares[1]) < 0.15


@shows(0)
def a_day_of_the_log(lab: Lab) -> Data:
    world = lab.begin("repair-0")
    default = next(one for one in world.tools() if one["name"] == "list_changes")["parameters"]["properties"]["hours"]
    rows = [world.call("list_changes", given)["changes"] for given in ({}, {"hours": default["default"]})]
    return len(rows[1]) - len(rows[0])


@shows([{"ok": True}, {"ok": True}])
def one_rollout_in_the_process(lab: Lab) -> Data:
    restart = asked(lab, "repair-0", "deploy")
    return [lab.begin("repair-0").call("deploy", restart) for _ in range(2)]


@shows(0.625)
def any_line_will_do(lab: Lab) -> Data:
    world = lab.begin("repair-0")
    names = [row["name"] for row in world.call("list_services", {})["services"]]
    keys = [row["id"] for row in world.call("list_changes", {})["changes"]][:30]
    lines = [f"Service: {name}" for name in names] + ["Setting: timeout_ms"] + [f"Change: {key}" for key in keys]
    return lab.reward("repair-0", reported(lab, "repair-0", *lines))


@shows(0.5)
def part_of_the_fact(lab: Lab) -> Data:
    return lab.reward("repair-0", reported(lab, "repair-0", "Service:", "Setting:", "Value:", "Change:"))


@shows([])
def log_of_tomorrow(lab: Lab) -> Data:
    world = lab.begin("repair-0")
    now = world.call("wait", {"minutes": 1})["now"]
    return [row["what"] for row in world.call("list_changes", {})["changes"] if row["at"] > now]


@shows([{"ok": True}, {"ok": True}])
def grade_is_told(lab: Lab) -> Data:
    world, _ = lab.play("outage-0", [])
    given = asked(lab, "outage-0", "close_ticket")
    return [world.call("close_ticket", {**given, "report": said}) for said in ("Service: web", given["report"])]


@shows([1.0] * 8)
def windows_of_others(lab: Lab) -> Data:
    calls = lab.oracle("upgrade-1")
    return [paid(lab.play("upgrade-1", calls, seed)[0]) for seed in range(8)]


@shows([0.0] * 30)
def damage_in_a_sample(lab: Lab) -> Data:
    world, _ = lab.play("repair-0", lab.oracle("repair-0"))
    world.call("set_config", {"service": "fax-gateway", "setting": "cache_ttl_s", "value": "7"})
    return [paid(world) for _ in range(30)]
