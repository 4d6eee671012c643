"""Actions: one row changes as the description says, and further rows by the functions here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import quintain as qn
from quintain.environments.faults import reach

from .description import actions, tables
from .state import ROWS, Production
from .telemetry import stamp

ME = "desk"
"""Author of the changes that the agent makes."""
CERTIFICATE_DAYS = 90
DAY = 86400.0


def act(world: Production, tool: str, arguments: Mapping[str, Any]) -> str:
    """Carries an action out, wholly or not at all; returns what the agent reads."""
    reach(world)
    action = actions()[tool]
    key = arguments[tables()[action.on].one]
    row = world.need(action.on, key)
    for name, values in action.needs.items():
        if (found := getattr(row, name)) not in values:
            raise qn.ToolError(f"{key} has {name} {found!r}; {tool} needs {' or '.join(map(repr, values))}")
    if action.does:
        _DOES[action.does](world, key, arguments)
    if action.set:
        new = {name: _value(world, row, value, arguments=arguments) for name, value in action.set.items()}
        grown = {name: new[name] + getattr(row, name) for name, value in action.set.items() if value == "+"}
        world.write(action.on, key, **new | grown)
    world.settle()
    return f"done at {world.now}"


def _value(world: Production, row: Any, value: Any, *, arguments: Mapping[str, Any]) -> Any:
    """Returns what a value of the description means for a row."""
    named = {"$now": world.now, "$me": ME, "$in_90_days": stamp(world.clock.now + CERTIFICATE_DAYS * DAY), "+": 1}
    if not isinstance(value, str):
        return value
    if value.startswith("="):
        return getattr(row, value[1:])
    return arguments[value[1:]] if value[1:] in arguments else named.get(value, value)


def _create_index(world: Production, key: str, arguments: Mapping[str, Any]) -> None:
    column = arguments["column"].strip()
    _, _, known = world.table("files")[f"schema/{key}"].text.partition("columns: ")
    if column not in known.split(", "):
        raise qn.ToolError(f"{key} has no column {column!r}; its columns are {known}")
    name = f"{key}.{column}"
    if name in world.table("indexes"):
        raise qn.ToolError(f"the index {name} exists already")
    world.table("indexes")[name] = ROWS["indexes"](table=key, columns=column, state="valid", scans=0)


def _drop_index(world: Production, key: str, arguments: Mapping[str, Any]) -> None:
    del arguments
    del world.table("indexes")[key]


def _roll_back(world: Production, key: str, arguments: Mapping[str, Any]) -> None:
    del arguments
    deploys = world.table("deploys")
    own = sorted((row.at, name, row.status) for name, row in deploys.items() if row.service == key)
    ((begun, live),) = [(at, name) for at, name, status in own if status == "live"]
    before = [name for at, name, status in own if status == "superseded" and at < begun]
    if not before:
        raise qn.ToolError(f"no version of {key} lies before the live one")
    world.write("deploys", live, status="rolled back")
    world.write("deploys", before[-1], status="live")
    world.write("workloads", key, image=f"{key}:{deploys[before[-1]].version}")
    _renew_pods(world, key)


def _scale(world: Production, key: str, arguments: Mapping[str, Any]) -> None:
    replicas: int = arguments["replicas"]
    pods = world.table("pods")
    own = [name for name, pod in pods.items() if pod.workload == key]
    if replicas == len(own):
        raise qn.ToolError(f"{key} has {replicas} replicas already")
    for name in own[replicas:]:
        del pods[name]
    nodes = [name for name, node in world.table("nodes").items() if not node.cordoned]
    for place in range(len(own), replicas):
        facts = {"workload": key, "node": nodes[place % len(nodes)], "status": "Running", "restarts": 0}
        pods[f"{key}-{place}"] = ROWS["pods"](**facts, started=world.now, memory_mb=300)
    world.write("workloads", key, replicas=replicas, changed=world.now, changed_by=ME)


def _restart(world: Production, key: str, arguments: Mapping[str, Any]) -> None:
    del arguments
    world.write("workloads", key, restarts=world.need("workloads", key).restarts + 1)
    for name, secret in world.table("secrets").items():
        if secret.service == key:
            world.write("secrets", name, mounted=secret.version)
    _renew_pods(world, key)


def _renew_pods(world: Production, key: str) -> None:
    for name, pod in list(world.table("pods").items()):
        if pod.workload == key:
            world.write("pods", name, started=world.now, restarts=0)


def _drain(world: Production, key: str, arguments: Mapping[str, Any]) -> None:
    del arguments
    nodes = [name for name, node in world.table("nodes").items() if not node.cordoned and name != key]
    if not nodes:
        raise qn.ToolError("no other node takes pods")
    world.write("nodes", key, cordoned=True)
    moved = [name for name, pod in world.table("pods").items() if pod.node == key]
    for place, name in enumerate(moved):
        world.write("pods", name, node=nodes[place % len(nodes)], started=world.now)


def _resize(world: Production, key: str, arguments: Mapping[str, Any]) -> None:
    volume, size = world.need("volumes", key), arguments["gigabytes"]
    if size <= volume.size_gb:
        raise qn.ToolError(f"{key} has {volume.size_gb} GB; a volume cannot be made smaller")
    used = round(volume.used_percent * volume.size_gb / size)
    world.write("volumes", key, size_gb=size, used_percent=used)


_DOES: dict[str, Callable[[Production, str, Mapping[str, Any]], None]] = {
    "create_index": _create_index,
    "drop_index": _drop_index,
    "roll_back": _roll_back,
    "scale": _scale,
    "restart": _restart,
    "drain": _drain,
    "resize": _resize,
}
