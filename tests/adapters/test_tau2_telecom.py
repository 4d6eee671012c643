"""Telecom's two sides, on a company with one customer; recorded answers were read off the stored cases."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from quintain.adapters.tau2 import load
from quintain.adapters.tau2.convention import respond
from quintain.adapters.tau2.data import Folder
from quintain.adapters.tau2.telecom import Telecom
from quintain.adapters.tau2.world import World, same
from quintain.environment import Environment
from quintain.episode import Episode
from quintain.errors import UsageError
from quintain.trace import Message, Reply, ToolCall

COMPANY = """
[[plans]]
plan_id = "P1"
name = "Basic"
data_limit_gb = 5.0
price_per_month = 40.0
data_refueling_price_per_gb = 1.5

[[devices]]
device_id = "D1"
device_type = "phone"
model = "X"
activation_date = "2025-01-20T14:30:00"

[[lines]]
line_id = "L1"
phone_number = "555"
status = "Active"
plan_id = "P1"
data_used_gb = 1.0

[[bills]]
bill_id = "B1"
customer_id = "C1"
period_start = "2025-03-01"
period_end = "2025-03-31"
issue_date = "2025-03-01"
total_due = 0.0
due_date = "2025-03-15"
status = "Draft"
line_items = []

[[customers]]
customer_id = "C1"
full_name = "Ann Lee"
date_of_birth = "1990-01-01"
email = "ann@example.com"
phone_number = "777"
account_status = "Active"
created_at = "2025-01-15T10:30:00"
payment_methods = []
line_ids = ["L1"]
bill_ids = ["B1"]
address = {street = "1 Elm", city = "Bern", state = "BE", zip_code = "3000"}
"""
PHONE = """
[device]
sim_card_status = "active"
sim_card_missing = false
airplane_mode = false
network_signal_strength = "good"
network_technology_connected = "5G"
network_connection_status = "connected"
battery_level = 80
data_enabled = true
roaming_enabled = false
network_mode_preference = "4g_5g_preferred"
wifi_enabled = false
wifi_connected = false
wifi_signal_strength = "none"
wifi_calling_enabled = false
wifi_calling_mms_over_wifi = false
data_saver_mode = false
vpn_enabled_setting = false
vpn_connected = false
active_apn_settings = {apn_name = "internet"}

[device.app_statuses.messaging]
app_name = "messaging"
permissions = {sms = true, storage = true}
"""
OWNER = {"func_name": "set_user_info", "arguments": {"name": "Ann Lee", "phone_number": "555"}}
TASK = {
    "id": "plane",
    "ticket": "The phone of Ann Lee, 555, has no service.",
    "user_scenario": {"instructions": "You are Ann."},
    "initial_state": {
        "initialization_actions": [OWNER, {"func_name": "turn_airplane_mode_on", "arguments": {}}],
    },
    "evaluation_criteria": {
        "actions": [{"name": "toggle_airplane_mode", "arguments": {}, "requestor": "user"}],
        "env_assertions": [{"func_name": "assert_service_status", "arguments": {"expected_status": "connected"}}],
        "reward_basis": ["ENV_ASSERTION"],
    },
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as upstream's, with a company of one customer."""
    root = tmp_path_factory.mktemp("telecom")
    (root / "telecom").mkdir()
    files = {
        "db.toml": COMPANY,
        "user_db.toml": PHONE,
        "main_policy.md": "# Policy",
        "tech_support_manual.md": "# Manual",
        "tech_support_workflow.md": "# Workflow",
        "tasks.json": json.dumps([TASK]),
        "split_tasks.json": '{"base": ["plane"]}',
    }
    for name, text in files.items():
        (root / "telecom" / name).write_text(text)
    return root


@pytest.fixture
def world(data: Path) -> Telecom:
    world = Folder("telecom", data).world()
    assert isinstance(world, Telecom)
    world.set_user_info("Ann Lee", "555")
    world.settle()
    return world


def agent(world: World, name: str, **arguments: Any) -> str:
    return respond(world, name, arguments)[0]


def user(world: World, name: str, **arguments: Any) -> str:
    return respond(world, name, arguments, requestor="user")[0]


def test_each_side_has_its_own_tools(world: Telecom, data: Path) -> None:
    assert agent(world, "toggle_data") == "Error: Tool 'toggle_data' not found."
    assert user(world, "resume_line") == "Error: Tool 'resume_line' not found."
    assert user(world, "grant_app_permission", app_name="messaging") == (
        "Error: TelecomUserTools.grant_app_permission() missing 1 required positional argument: 'permission'"
    )
    talking = load("telecom", data=data, customer="simulated")
    assert (len(talking.tools_of("agent")), len(talking.tools_of("user"))) == (13, 30)
    alone = load("telecom", data=data)
    assert (len(alone.tools_of("agent")), len(alone.tools_of("user"))) == (43, 30)


LINE = {"customer_id": "C1", "line_id": "L1"}


@pytest.mark.parametrize(
    ("name", "arguments", "refusal"),
    [
        ("enable_roaming", LINE | {"customer_id": "C2"}, "Customer with ID C2 not found"),
        ("enable_roaming", LINE | {"line_id": "L2"}, "Line L2 not found for customer C1"),
        ("refuel_data", LINE | {"gb_amount": 0}, "Refuel amount must be positive"),
        ("send_payment_request", {"customer_id": "C1", "bill_id": "B2"}, "Bill B2 not found for customer C1"),
        ("resume_line", LINE, "Line must be suspended to resume"),
        ("get_details_by_id", {"id": "X1"}, "Unknown ID: X1"),
        ("get_customer_by_phone", {"phone_number": "1"}, "Customer with phone number 1 not found"),
    ],
)
def test_agents_call_is_refused_and_changes_nothing(
    world: Telecom, name: str, arguments: dict[str, Any], refusal: str
) -> None:
    before = world.copy()
    assert agent(world, name, **arguments) == f"Error: {refusal}"
    assert same(before, world)


def test_lookups_find_the_customer_by_line_name_and_id(world: Telecom) -> None:
    ann = json.loads(agent(world, "get_customer_by_id", customer_id="C1"))
    assert ann["created_at"] == "2025-01-15 10:30:00"
    assert json.loads(agent(world, "get_customer_by_phone", phone_number="555")) == ann
    assert json.loads(agent(world, "get_customer_by_name", full_name="ann lee", dob="1990-01-01")) == [ann]
    assert json.loads(agent(world, "get_details_by_id", id="C1")) == ann
    assert [bill["bill_id"] for bill in json.loads(agent(world, "get_bills_for_customer", customer_id="C1"))] == ["B1"]


def test_refueling_restores_data_and_is_put_on_the_next_bill(world: Telecom) -> None:
    world.set_data_usage("C1", "L1", 5.1)
    world.settle()
    assert user(world, "run_speed_test") == "Speed Test Failed: no connection."
    agent(world, "refuel_data", **LINE, gb_amount=2.0)
    assert user(world, "run_speed_test") == "Speed Test Result: 220.00 Mbps (Excellent)."
    bill = world.bills["B1"]
    assert (bill.total_due, bill.line_items[0].description) == (3.0, "Data refueling: 2.0 GB at $1.5/GB")
    assert world.assert_data_refueling_amount("C1", "L1", 2.0)
    assert json.loads(agent(world, "get_data_usage", **LINE))["data_refueling_gb"] == "2.0"


def test_overdue_bill_is_paid_by_the_customer_before_the_line_works_again(world: Telecom) -> None:
    world.suspend_line_for_overdue_bill("C1", "L1", "B9", contract_ended=False)
    world.settle()
    world.simulate_network_search()
    assert not world.assert_no_overdue_bill("B9")
    assert user(world, "make_payment") == "You do not have a payment request."
    assert agent(world, "send_payment_request", customer_id="C1", bill_id="B9") == (
        "Payment request sent to the customer for bill B9"
    )
    assert "already awaiting" in agent(world, "send_payment_request", customer_id="C1", bill_id="B1")
    assert user(world, "check_payment_request") == "You have a payment request for bill B9 of 40.0 USD."
    assert user(world, "make_payment") == "Payment of 40.0 USD has been made for bill B9."
    assert world.assert_no_overdue_bill("B9")
    assert user(world, "check_payment_request") == "No payment request has been made."
    assert agent(world, "resume_line", **LINE).startswith(
        '{"message": "Line resumed successfully", "line": {"line_id": "L1"'
    )
    assert user(world, "check_status_bar") == "Status Bar: 📵 No Signal | 📵 Data Disabled | 🔋 80%"
    assert user(world, "reboot_device") == (
        "Restarting network services...\nStatus Bar: 📶⁴ Excellent | 5G | 📱 Data Enabled | 🔋 80%"
    )
    assert agent(world, "suspend_line", **LINE, reason="asked").startswith(
        '{"message": "Line suspended successfully. Reason: asked"'
    )
    assert not world.surroundings.line_active


def test_roaming_needs_the_line_and_the_phone(world: Telecom) -> None:
    world.set_user_location(abroad=True)
    assert user(world, "toggle_roaming").startswith("Data Roaming is now ON.\n")
    assert not world.assert_mobile_data_status(expected_status=True)
    assert agent(world, "enable_roaming", **LINE) == "Roaming enabled successfully"
    assert agent(world, "enable_roaming", **LINE) == "Roaming was already enabled"
    assert world.assert_mobile_data_status(expected_status=True)
    assert agent(world, "disable_roaming", **LINE) == "Roaming disabled successfully"
    assert not world.assert_mobile_data_status(expected_status=True)


BROKEN: list[tuple[tuple[str, dict[str, Any]], list[tuple[str, dict[str, Any]]]]] = [
    (("unseat_sim_card", {}), [("reseat_sim_card", {})]),
    (("break_apn_settings", {}), [("reset_apn_settings", {}), ("reboot_device", {})]),
    (("break_apn_mms_setting", {}), [("reset_apn_settings", {}), ("reboot_device", {})]),
    (("break_apn_settings", {}), [("set_apn_settings", {"apn_name": "internet", "mmsc_url": "http://x"})]),
    (("turn_airplane_mode_on", {}), [("toggle_airplane_mode", {})]),
    (("turn_data_off", {}), [("toggle_data", {})]),
    (("set_wifi_calling", {"enabled": True, "mms_over_wifi": True}), [("toggle_wifi_calling", {})]),
    (
        ("remove_app_permission", {"app_name": "messaging", "permission": "sms"}),
        [("grant_app_permission", {"app_name": "messaging", "permission": "sms"})],
    ),
    (("set_network_mode_preference", {"mode": "2g_only"}), [("set_network_mode_preference", {"mode": "3g_only"})]),
]


@pytest.mark.parametrize(("broken", "fixes"), BROKEN)
def test_fixes_let_picture_messages_through_again(
    world: Telecom, broken: tuple[str, dict[str, Any]], fixes: list[tuple[str, dict[str, Any]]]
) -> None:
    assert user(world, "can_send_mms") == "Your messaging app can send MMS messages."
    getattr(world, broken[0])(**broken[1])
    assert world.assert_can_send_mms(expected_status=False)
    for name, arguments in fixes:
        assert "\nStatus Bar: " in user(world, name, **arguments)
    assert world.assert_can_send_mms(expected_status=True)


def test_vpn_and_data_saver_slow_the_phone_down(world: Telecom) -> None:
    world.break_vpn()
    assert world.assert_internet_speed(22.0, "fair")
    assert "poor" in user(world, "check_vpn_status")
    assert user(world, "connect_vpn").startswith("VPN already connected.\n")
    assert user(world, "disconnect_vpn").startswith("VPN disconnected successfully.\n")
    assert user(world, "disconnect_vpn").startswith("No active VPN connection to disconnect.\n")
    assert "🔒 VPN Connected" in user(world, "connect_vpn")
    assert world.assert_internet_speed(200, "excellent")
    world.turn_data_saver_mode_on()
    assert "🔽 Data Saver" in user(world, "check_status_bar")
    assert user(world, "check_data_restriction_status") == "Data Saver mode is ON."
    assert user(world, "toggle_data_saver_mode").startswith("Data Saver Mode is now OFF.\n")
    assert world.assert_internet_speed(200, "excellent")


def test_wrong_values_are_answered_as_recorded(world: Telecom) -> None:
    bar = "\nStatus Bar: 📶³ Good | 5G | 📱 Data Enabled | 🔋 80%"
    assert user(world, "set_network_mode_preference", mode="6g") == (
        "Failed to set network mode: '6g' is not a valid option. "
        f"Please use one of: 4g_5g_preferred, 4g_only, 3g_only, 2g_only{bar}"
    )
    assert user(world, "grant_app_permission", app_name="messaging", permission="x") == (
        "Error. Permission 'x' not tracked for app 'messaging', "
        f"available permissions: ['sms', 'storage', 'phone', 'network']{bar}"
    )
    assert user(world, "grant_app_permission", app_name="x", permission="sms") == (
        f"Error. App 'x' not found. Cannot grant permission.{bar}"
    )


def test_checks_show_the_settings(world: Telecom) -> None:
    world.lock_sim_card("pin")
    checks = {
        "check_sim_status": "The SIM card is locked with a PIN code.",
        "check_network_mode_preference": "Network Mode Preference: 4g_5g_preferred",
        "check_wifi_status": "Wi-Fi is OFF and not connected.",
        "check_wifi_calling_status": "Wi-Fi Calling is OFF.",
        "check_vpn_status": "VPN is OFF.",
        "check_installed_apps": "Installed apps: messaging",
    }
    assert {name: user(world, name) for name in checks} == checks
    assert "Cellular Connection: no_service" in user(world, "check_network_status")
    assert "MMSC URL (for picture messages): http" in user(world, "check_apn_settings")
    assert user(world, "check_app_permissions", app_name="messaging") == (
        "App 'messaging' has permission for: sms, storage."
    )
    assert json.loads(user(world, "check_app_status", app_name="messaging"))["permissions"]["sms"] is True
    for name in ("check_app_status", "check_app_permissions"):
        assert user(world, name, app_name="x") == "App 'x' not found on this phone."
    assert "📡 Enabled" in user(world, "toggle_wifi")


def test_agent_alone_gets_the_ticket_and_solves_the_task(data: Path) -> None:
    env = load("telecom", data=data)
    task = env.task("base", "plane")
    assert str(task.prompt).endswith("has no service.")
    assert task.solution == (("toggle_airplane_mode", {}),)

    async def score(*calls: ToolCall) -> float | None:
        episode = await Episode[World].begin(env, task)
        await episode.session.step(Reply(Message("assistant", "done", calls=calls)))
        episode.terminate("the agent answered")
        return await episode.verify()

    assert asyncio.run(score(ToolCall("1", "toggle_airplane_mode", "{}"))) == 1.0
    assert asyncio.run(score()) == 0.0


def _system(env: Environment[World]) -> str:
    return str(getattr(env.harness, "system"))  # noqa: B009 (both harnesses have one)


def test_policy_is_the_manual_or_the_workflow(data: Path) -> None:
    assert _system(load("telecom", data=data)).endswith("# Policy\n\n# Manual")
    talking = load("telecom", data=data, customer="simulated", policy="workflow")
    assert _system(talking).endswith("# Policy\n\n# Workflow")
    assert talking.task("base", "plane").solution is None, "the agent cannot toggle what the customer holds"
    wrong: Any = "oracle"
    with pytest.raises(UsageError, match="policy must be one of manual, workflow, got 'oracle'"):
        load("telecom", data=data, policy=wrong)


def test_unknown_assertion_is_named(data: Path, tmp_path: Path) -> None:
    (tmp_path / "telecom").mkdir()
    for file in (data / "telecom").iterdir():
        (tmp_path / "telecom" / file.name).write_text(file.read_text().replace("assert_service_status", "settle"))
    env = load("telecom", data=tmp_path)

    async def score() -> None:
        episode = await Episode[World].begin(env, env.task("base", "plane"))
        episode.terminate("done")
        await episode.verify()
        assert episode.trace.failure is not None
        assert "asserts 'settle', a function that Solo lacks" in episode.trace.failure.message

    asyncio.run(score())
