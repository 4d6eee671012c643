"""A hundred thousand histories beside the reference; a few hundred of them in every run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quintain.resources.database import Database
from quintain.resources.database.connection import Connection
from quintain.resources.database.files import PageFile
from quintain.resources.database.pages import PageImage
from quintain.state import State
from tests.resources.database.histories import base, check_seed, history

FEW = 300
MANY = 100_000
PART = 5_000


@pytest.mark.slow
def test_a_few_hundred_histories() -> None:
    for seed in range(FEW):
        check_seed(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, MANY, PART), ids=lambda first: f"{first}_to_{first + PART - 1}_of_{MANY}")
def test_a_hundred_thousand_histories(first: int) -> None:
    for seed in range(first, first + PART):
        check_seed(seed)


def test_histories_contain_everything() -> None:
    kinds = {operation[0] for seed in range(50) for operation in history(seed)}
    assert kinds == {
        *("run", "transact", "fork", "snapshot", "restore", "timer", "cancel", "advance", "look", "diff"),
    }


# -- an engine that is broken is found out


def restores_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Database, "restore", lambda self, snapshot: None)


def shares_with_its_fork(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(State, "copy", lambda self: self)


def keeps_what_failed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Connection, "abandon", lambda self: self.sqlite.get_autocommit() or self.engine("COMMIT"))
    patch.setattr(PageFile, "forget", lambda self: None)


def believes_every_schema(patch: pytest.MonkeyPatch) -> None:
    def switch(self: PageFile, image: PageImage) -> None:
        self._counter += 1
        self.image, self.count, self.schema = image, image.count, image.schema

    patch.setattr(PageFile, "switch", switch)


def reads_old_pages(patch: pytest.MonkeyPatch) -> None:
    def switch(self: PageFile, image: PageImage) -> None:
        self.image, self.count, self.schema = image, image.count, image.schema

    patch.setattr(PageFile, "switch", switch)


def reads_another_worlds_schema_before_it_says_no(patch: pytest.MonkeyPatch) -> None:
    honest = PageFile.switch

    def switch(self: PageFile, image: PageImage) -> None:
        honest(self, image)
        self.stale = False

    patch.setattr(PageFile, "switch", switch)


def lives_in_its_own_time(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Database, "bind", lambda self, world: setattr(self, "world", State()))


def digests_what_it_read(patch: pytest.MonkeyPatch) -> None:
    reads: list[int] = []
    honest = Database.digest

    def digest(self: Database) -> str:
        reads.append(1)
        return f"{honest(self)}{len(reads)}"

    patch.setattr(Database, "digest", digest)


@pytest.mark.slow
@pytest.mark.parametrize(
    "bug",
    [
        restores_nothing,
        shares_with_its_fork,
        keeps_what_failed,
        believes_every_schema,
        reads_old_pages,
        reads_another_worlds_schema_before_it_says_no,
        lives_in_its_own_time,
        digests_what_it_read,
    ],
    ids=lambda bug: bug.__name__,
)
def test_a_bug_is_found(bug: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base().image.base, "idle", [])  # no other test gets the broken connections
    bug(monkeypatch)
    with pytest.raises(AssertionError, match="made smaller"):
        for seed in range(2 * FEW):
            check_seed(seed)
