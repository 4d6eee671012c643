"""Unmodified client libraries on a product at a real address."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from quintain.products import zendesk
from quintain.resources.web.door import Door, serving
from tests.products.conftest import fresh
from tests.serve.clients.venvs import Venv, clean, install

DRIVERS = Path(__file__).parent / "drivers"
ZENPY = (("zenpy==2.0.57",),)
NODE = "node-zendesk@6.0.1"
NPM = "https://registry.npmjs.org/"


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    kept = os.environ.get("QUINTAIN_VENVS")
    return Path(kept) if kept else tmp_path_factory.mktemp("clients")


@pytest.mark.slow
def test_zenpy_works_on_zendesk(folder: Path) -> None:
    python = Venv(folder, ZENPY)
    door = Door()
    door.add("acme", fresh())
    with serving(door) as address:
        found = python.facts(
            str(DRIVERS / "zenpy_flow.py"), address.removeprefix("http://"), zendesk.ADMIN, zendesk.TOKEN
        )
    assert door.failures == {}
    assert found == {
        "user": ["Eve", "Eve Two", "admin@acme.example"],
        "duplicate": "DuplicateValue",
        "bulk users": ["Created"] * 5,
        "search users": 5,
        "too many": '{"error": "TooManyValues", "description": "Maximum 100 users',
        "update_or_create": True,
        "identities": ["eve@mail.example"],
        "deleted": True,
        "created": ["new", "high", True, ["printer"]],
        "create events": ["Comment", "Create", "Notification"],
        "updated": "pending",
        "comments": [["It is stuck", "Ada Admin", True], ["Please wait", "Ada Admin", True]],
        "audits": [["Comment", "Create", "Notification"], ["Change", "Comment", "Notification"]],
        "add tags": ["a", "b", "printer"],
        "metrics": 1,
        "missing": "RecordNotFoundException",
        "bulk tickets": 3,
        "show_many": True,
        "bulk update": True,
        "merged": ["closed", ["closed_by_merge"]],
        "deleted ticket": True,
        "restored": True,
        "listed": 14,
        "domain": True,
        "membership": True,
        "search": ["Paper jam"],
        "search count": 1,
        "search export": ["Paper jam"],
        "incremental": True,
        "metric events": ["activate", "fulfill", "measure", "pause", "update_status"],
        "view": True,
        "view count": [False, True],
        "macro": "Up",
        "trigger": ["seen"],
        "attachment": ["flow.py", True],
        "429": ["admin@acme.example", True],
    }


@pytest.mark.slow
def test_node_zendesk_works_on_zendesk(folder: Path) -> None:
    if not shutil.which("npm"):
        pytest.skip("node-zendesk needs npm")
    home = folder / "node-zendesk"
    if not (home / "node_modules").exists():
        home.mkdir(parents=True, exist_ok=True)
        options = ["--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(home)]
        install(["npm", "install", *options, NODE], NPM, home)
    shutil.copy(DRIVERS / "node_flow.cjs", home)
    door = Door()
    door.add("acme", fresh())
    with serving(door) as address:
        command = ["node", str(home / "node_flow.cjs"), address.removeprefix("http://"), zendesk.ADMIN, zendesk.TOKEN]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=clean())
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.partition("FACTS ")[2])
    assert door.failures == {}
    assert found.pop("duplicate").startswith("Request processing failed: Zendesk Error (422)")
    assert found.pop("missing").startswith("Request processing failed: Zendesk Error (404)")
    assert found == {
        "user": "Nora Two",
        "users": 10,
        "created": ["From node", "new"],
        "updated": "pending",
        "comments": ["hello", "wait"],
        "audits": 2,
        "listed": True,
        "job": ["number"] * 3,
        "high": ["high"] * 3,
        "merged": ["closed", ["closed_by_merge"]],
        "search": ["From node"],
        "incremental": True,
        "groups": ["Support", "Level 2"],
        "views": 7,
        "macro": "M",
        "organization": "Hooli",
        "limited": 429,
    }
