"""Tools: what they show, what they refuse, and what they change."""

from __future__ import annotations

import json
from typing import Any

import pytest

import quintain as qn
from quintain.environments.ops import env, make
from quintain.environments.ops.description import SERVICES, actions, tables
from quintain.environments.ops.state import Production
from quintain.environments.ops.tools import PAGE
from quintain.errors import UsageError
from quintain.trace import plain

from .desk import play, task_of


@pytest.fixture
def world() -> Production:
    world: Production = task_of("memory_leak").world().copy()
    return world


def test_six_services_have_more_than_a_hundred_tools() -> None:
    counts = {service: sum(name.startswith(f"{service}_") for name in env.tools) for service in SERVICES}
    assert sum(counts.values()) >= 100
    assert min(counts.values()) >= 8


def test_every_list_shows_each_row_once_over_its_pages(world: Any) -> None:
    for name, spec in tables().items():
        seen: list[str] = []
        page = 1
        while rows := getattr(world, f"{spec.service}_list_{name}")(page=page)["rows"]:
            assert len(rows) <= PAGE
            seen += [row[spec.one] for row in rows]
            page += 1
        assert sorted(seen) == sorted(world.table(name))


def test_lists_are_narrowed_by_filters_and_sorted(world: Any) -> None:
    rows = world.deployments_list_deploys(service="cart", status="superseded")["rows"]
    assert {(row["service"], row["status"]) for row in rows} == {("cart", "superseded")}
    assert [row["at"] for row in rows] == sorted((row["at"] for row in rows), reverse=True)
    with pytest.raises(qn.ToolError, match="service 'chart' does not exist; deployments_list_services lists services"):
        world.deployments_list_deploys(service="chart")


def test_search_finds_text_in_any_case(world: Any) -> None:
    assert [row["page"] for row in world.docs_search_pages(text="WHOLE TABLE")["rows"]] == ["runbook/missing_index"]
    assert world.docs_search_pages(text="no such words")["found"] == 0
    assert [row["record"] for row in world.database_search_records(text="TAX_")["rows"]] == ["checkout.tax_DE"]


def test_logs_are_filtered_by_service_level_and_text(world: Any) -> None:
    every = world.errors_search_logs()
    some = world.errors_search_logs(service="cart", level="INFO", text="DONE")
    assert 0 < some["found"] < every["found"]
    assert all(" cart INFO request done" in line for line in some["rows"])
    counted = {(row["service"], row["level"]): row["lines"] for row in world.errors_count_logs()}
    assert counted["cart", "INFO"] == some["found"]


def test_curves_end_now_and_repeat(world: Any) -> None:
    first = world.cluster_memory(workload="cart", minutes=60)
    assert first == world.cluster_memory(workload="cart", minutes=60)
    assert len(first["points"]) == 12
    assert first["points"][-1][0] == world.now[11:16]


REFUSED = [
    ("cluster_uncordon_node", {"node": "node-01"}, "node-01 has cordoned False; cluster_uncordon_node needs True"),
    ("database_create_index", {"table": "shop-db.orders", "column": "color"}, "has no column 'color'"),
    ("database_create_index", {"table": "shop-db.orders", "column": "customer_id"}, "exists already"),
    ("cluster_resize_volume", {"volume": "cart-data", "gigabytes": 1}, "cannot be made smaller"),
    ("cluster_scale_workload", {"workload": "cart", "replicas": 4}, "has 4 replicas already"),
    ("database_end_session", {"session": "S-0"}, "session 'S-0' does not exist"),
]


@pytest.mark.parametrize(("tool", "arguments", "words"), REFUSED)
def test_action_is_refused_and_changes_nothing(tool: str, arguments: dict[str, Any], words: str) -> None:
    task = task_of("certificate_expired")
    trace = play(task, [(tool, arguments)])
    (step,) = trace.turns[0].steps
    assert step.is_error
    assert words in plain(step.observation)
    assert {reward.name: reward.value for reward in trace.rewards}["untouched"] == 1.0


def test_roll_back_goes_one_version_back_and_not_before_the_first(world: Any) -> None:
    before = [row.version for row in world.table("deploys").values() if row.service == "cart"]
    world.deployments_roll_back(service="cart")
    assert world.table("workloads")["cart"].image == f"cart:{before[-2]}"
    world.deployments_roll_back(service="cart")
    with pytest.raises(qn.ToolError, match="no version of cart lies before the live one"):
        world.deployments_roll_back(service="cart")


def test_drain_moves_all_pods_to_other_nodes(world: Any) -> None:
    world.cluster_drain_node(node="node-01")
    assert not world.cluster_list_pods(node="node-01")["rows"]
    for node in world.table("nodes"):
        if node not in {"node-01", "node-08"}:
            world.cluster_drain_node(node=node)
    with pytest.raises(qn.ToolError, match="no other node takes pods"):
        world.cluster_drain_node(node="node-08")


def test_scale_adds_and_removes_pods(world: Any) -> None:
    for replicas in (7, 2):
        world.cluster_scale_workload(workload="cart", replicas=replicas)
        assert world.cluster_list_pods(workload="cart")["found"] == replicas
        assert world.cluster_get_workload(workload="cart")["replicas"] == replicas


def test_failure_goes_on_until_its_whole_cure_is_there(world: Any) -> None:
    (name,) = world.ills
    service = task_of("memory_leak").truth.findings[0].service
    world.cluster_restart_workload(workload=service)
    assert not world.ills[name].ended
    world.deployments_roll_back(service=service)
    assert world.ills[name].ended == world.clock.now
    assert not world.errors_list_alerts(status="firing")["rows"]


def test_tool_reports_a_fault_of_its_service_and_changes_nothing(world: Any) -> None:
    for tool, arguments in (
        ("deployments_roll_back", {"service": "cart"}),
        ("errors_list_alerts", {}),
        ("errors_search_logs", {}),
    ):
        before = world.table("deploys").digest()
        world.inject("timeout")
        with pytest.raises(qn.ToolError, match="did not answer in time; nothing was changed"):
            getattr(world, tool)(**arguments)
        assert world.table("deploys").digest() == before


def test_every_action_changes_only_what_its_tool_names_and_readers_change_nothing(world: Any) -> None:
    for name, tool in env.tools.items():
        writes = name in actions() or name in {"wait", "report"}
        assert (tool.contract.writes == ()) != writes, name


def test_description_of_a_tool_names_what_it_needs() -> None:
    tool = env.tools["database_end_session"]
    assert "It needs state active or idle or idle in transaction or waiting." in tool.description
    assert json.loads(json.dumps(tool.parameters))["required"] == ["session"]


def test_options_of_the_environment_are_checked() -> None:
    assert make() is env
    with pytest.raises(UsageError, match="unknown service 'mail'; known: errors, database"):
        make(service="mail")
    with pytest.raises(UsageError, match="unknown harness 'deep'; known: flat, hierarchical"):
        make(harness="deep")
