"""The test suites of the two reference servers, as they are published, pointed at our server.

Their sources come with the SDKs from PyPI when these tests run; nothing of them is kept here. Where a test wants what
we do otherwise on purpose, it is named with the reason, and has to fail: should it ever pass, the reason is gone.
"""

from __future__ import annotations

import subprocess
import tarfile
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.serve.clients.venvs import OPENREWARD, ORS, Venv, clean, install, pypi
from tests.serve.serving import serve

pytestmark = pytest.mark.slow

Install = Callable[[Sequence[Sequence[str]]], Venv]
FILE = Path(__file__).with_name("upstream_environments.py")
HIDDEN = "a task's spec names it, and does not hold its content"
LISTED = "last words are a tool, which is listed"

POINTED_ORS = """
import httpx, pytest
from test_server import *

@pytest.fixture
def server():
    return None

@pytest.fixture
async def client():
    async with httpx.AsyncClient(base_url="{url}", follow_redirects=True) as one:
        yield one
"""
POINTED_OPENREWARD = """
import pytest
from test_environment import *
from test_environment import _BLOCKING_PROMPT_SETUP_DELAY

@pytest.fixture(scope="module")
def server():
    return "{url}"
"""

ORS_OTHERWISE = {"test_list_tools": LISTED, "test_get_task": HIDDEN}


def failed(venv: Venv, package: str, pointed: str, folder: Path) -> tuple[set[str], int]:
    """Returns the tests of a package's suite that fail, and the number of all its tests."""
    pip = [str(venv.python), "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder)]
    install([*pip, "--no-binary", package.partition("=")[0], package], pypi())
    (sources,) = folder.glob("*.tar.gz")
    with tarfile.open(sources) as archive:
        archive.extractall(folder, filter="data")
    (tests,) = folder.glob("*/tests")
    (tests / "test_pointed.py").write_text(pointed)
    report = folder / "report.xml"
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "asyncio_mode=auto", f"--junitxml={report}"]
    done = subprocess.run(
        [str(venv.python), *command, "test_pointed.py"],
        cwd=tests, capture_output=True, text=True, check=False, timeout=600, env=clean(),
    )  # fmt: skip
    assert report.exists(), done.stdout[-3000:] + done.stderr[-3000:]
    cases = list(ET.parse(report).getroot().iter("testcase"))
    broken = {
        case.get("name", "") for case in cases if case.find("failure") is not None or case.find("error") is not None
    }
    return broken, len(cases)


def test_the_suite_of_ors_sdk(installed: Install, tmp_path: Path) -> None:
    with serve("gsm8k", folder=tmp_path, file=FILE) as served:
        broken, count = failed(installed(ORS), "ors-sdk==0.1.0", POINTED_ORS.format(url=served.url), tmp_path)
    assert count >= 17
    assert broken == set(ORS_OTHERWISE)


SPECS = """
    default_variant_list_tasks explicit_variant_bar_list_tasks async_env_list_tasks multiple_variants_different_tasks
    get_task_foo get_task_bar get_task_async_env client_get_task_foo client_get_task_bar client_get_task_async_env
    large_env_get_task_first large_env_get_task_mid large_env_get_task_last client_large_env_get_task
    get_task_range_basic get_task_range_none_start get_task_range_none_stop get_task_range_negative_start
    get_task_range_negative_stop get_task_range_foo client_get_task_range_basic client_get_task_range_negative
"""
OPENREWARD_OTHERWISE = {
    **{f"test_{name}": HIDDEN for name in SPECS.split()},
    "test_env_list_tools_returns_shared_tools": LISTED,
    "test_large_env_list_tasks_returns_400": "every environment can list its tasks",
    "test_session_list_tools_returns_task_tools": "all tasks of an environment have the same tools",
}
ENVIRONMENTS = ("foo", "bar", "baz", "large", "task_tools", "slow_setup", "blocking_prompt", "blocking_list",
                "blocking_tool", "blocking_init")  # fmt: skip


def test_the_suite_of_openreward(installed: Install, tmp_path: Path) -> None:
    with serve(*ENVIRONMENTS, folder=tmp_path, file=FILE) as served:
        pointed = POINTED_OPENREWARD.format(url=served.url)
        broken, count = failed(installed(OPENREWARD), "openreward==0.1.167", pointed, tmp_path)
    assert count >= 70
    assert broken == set(OPENREWARD_OTHERWISE)
