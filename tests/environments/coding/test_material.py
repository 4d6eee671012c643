"""Packages and functions of `coding`: sound without a defect, and each defect fails the tests that it names."""

import itertools
from collections.abc import Iterable
from typing import Any

import pytest

from quintain.environments.coding.description import Function, Package, functions, packages
from quintain.judges import HiddenTests
from quintain.judges import code as judging
from quintain.resources.sandbox import Policy, Sandbox
from quintain.resources.workspace import Workspace
from tests.resources.sandbox import house

BOX = Sandbox(Policy(pool=2))


def some(material: Iterable[tuple[str, Any]], *, every: int, first: int = 0) -> list[Any]:
    """Parameters of a test: one of so many is fast, the others are slow."""
    slow = pytest.mark.slow
    return [pytest.param(one, id=name, marks=[slow] * (n % every != first)) for n, (name, one) in enumerate(material)]


EACH = some(packages().items(), every=8, first=4)
FUNCTIONS = some([(function.name, function) for function in functions()], every=10)


def failing(outcomes: list[judging.TestOutcome]) -> dict[str, str]:
    return {one.name: one.failure for one in outcomes if one.failure}


async def hidden(files: dict[str, str], package: Package) -> dict[str, str]:
    return failing(await judging.run_tests(BOX, Workspace(files), HiddenTests(tests=package.tests)))


async def visible(files: dict[str, str]) -> int:
    words = ["/usr/bin/python3", "-m", "unittest", "discover", "-s", "tests", "-t", "."]
    result = await BOX.run(Workspace(files), words)
    assert "Ran 0 tests" not in result.err
    return result.status


@pytest.mark.parametrize("package", EACH)
def test_a_package_passes_its_tests_without_and_with_its_changes(package: Package) -> None:
    async def check() -> None:
        for edits in ((), package.changes):
            files = package.edited(edits)
            assert await hidden(files, package) == {}
            assert await visible(files) == 0

    house.need(BOX.policy)
    house.run(check)


@pytest.mark.parametrize("package", EACH)
def test_a_defect_fails_exactly_its_tests(package: Package) -> None:
    async def check() -> None:
        for defect in package.defects:
            failed = await hidden(package.edited([*package.changes, defect]), package)
            assert sorted(failed) == sorted(defect.tests), (defect.id, failed)

    house.need(BOX.policy)
    house.run(check)


@pytest.mark.parametrize("package", EACH)
def test_two_defects_can_be_seeded_together(package: Package) -> None:
    for pair in itertools.combinations(package.defects, 2):
        both = [*package.changes, *pair]
        for edits in (both, both[::-1]):
            files = package.edited(edits)
            assert all(files[one.file].count(one.new) == 1 for one in pair), [one.id for one in pair]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_passes_its_tests_and_its_stub_none(function: Function) -> None:
    async def check() -> None:
        for source, count in ((function.solution, 0), (function.stub, len(function.tests))):
            tests = HiddenTests(tests=function.tests, names={function.name: function.name})
            failed = failing(await judging.run_tests(BOX, Workspace(), tests, code=source))
            assert len(failed) == count, failed

    house.need(BOX.policy)
    house.run(check)
