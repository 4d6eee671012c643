"""Fixtures and settings of all tests."""

import functools
import gc
import os
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import is_hypothesis_test, settings

from tests.audit.templates import PreparedWorkers

# No deadline, because a busy machine is not a bug. CI draws the same examples in each run, other machines new ones.
settings.register_profile("quintain", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("quintain")

SHARE_OF_CORE = 4
SHARE = 8
"""The fast suite draws one in so many of the examples that a test of Hypothesis asks for, `make test-all` all."""
FEWEST = 10
ROOT = Path(__file__).parent

# What collection makes lives as long as the process, so looking for garbage in it is in vain.
gc.disable()


def pytest_collection_finish() -> None:
    """Leaves what was imported and collected out of every later search for garbage."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Draws fewer examples in the fast suite, and measures no coverage of draws.

    Coverage counts what every run reaches, and would make a test of draws up to three times as slow.
    """
    functions = [item for item in items if isinstance(item, pytest.Function)]
    drawn = [item for item in functions if is_hypothesis_test(item.obj)]
    for item in drawn:
        item.add_marker("no_cover")
    if config.getoption("markexpr") != "not slow":
        return
    # A dictionary, because all parameters of a test share one function.
    tests: dict[Any, int] = {getattr(item.obj, "__func__", item.obj): _share(item) for item in drawn}
    for test, share in tests.items():
        given = getattr(test, "_hypothesis_internal_use_settings", settings())
        test._hypothesis_internal_use_settings = _fewer(given, share)
    machines: dict[Any, int] = {item.cls: _share(item) for item in functions}
    for machine, share in machines.items():
        if isinstance(given := getattr(machine, "settings", None), settings):  # the test case of a state machine
            machine.settings = _fewer(given, share)


def _share(item: pytest.Item) -> int:
    return SHARE_OF_CORE if item.path.parent == ROOT else SHARE


def _fewer(given: settings, share: int) -> settings:
    return settings(given, max_examples=min(given.max_examples, max(FEWEST, given.max_examples // share)))


@pytest.fixture(autouse=True, scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Base images of databases lie in a folder of their own, which all workers share."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cache"
    folder.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QUINTAIN_CACHE", str(folder))
        yield folder


@pytest.fixture(autouse=True, scope="session")
def authorities() -> Iterator[None]:
    """Certificates are read once: each HTTP client reads 140 of them in 20 ms, and none of these meets one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", functools.cache(ssl.create_default_context))
        yield


@pytest.fixture(scope="session")
def templates() -> Iterator[PreparedWorkers]:
    """Templates of the audit's workers, one for each set of variables."""
    prepared = PreparedWorkers()
    yield prepared
    prepared.close()


@pytest.fixture(scope="module")
def prepared_workers(templates: PreparedWorkers) -> Iterator[None]:
    """Starts the audit's workers as forks of a template, for tests of what an audit finds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("quintain.audit.kernel.child.subprocess", templates)
        yield


@pytest.fixture(scope="session")
def reference_data() -> Path:
    """The folder of published data sets and the verdicts of their own scorers. The repository doesn't hold it."""
    given = os.environ.get("QUINTAIN_DATA")
    path = Path(given) if given else Path(__file__).parents[2] / "shared" / "data"
    if not path.is_dir():
        pytest.skip(f"no reference data at {path}; set QUINTAIN_DATA to the folder that holds it")
    return path
