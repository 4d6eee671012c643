"""A worker that is forked from a template is like one that was started."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.kernel.child import Child
from quintain.audit.kernel.loader import Subject
from quintain.audit.kernel.probe import Probe, ProcessContext, call, reset
from tests.audit.subject import SHOP
from tests.audit.templates import PreparedWorkers

SETTINGS = """

import locale


class Settings(Shop):
    def call(self, name, arguments):
        zone, place = time.tzname[0], locale.setlocale(locale.LC_ALL)
        return [hash("a"), zone, place, os.getcwd(), os.getsid(0) == os.getppid(), os.environ["TMPDIR"]]
"""


@pytest.mark.parametrize(
    "context", [ProcessContext(hash_seed=3, zone="PST8", locale="C"), ProcessContext(elsewhere=True)]
)
def test_forked_worker_has_the_settings_of_a_started_one(
    tmp_path: Path, templates: PreparedWorkers, monkeypatch: pytest.MonkeyPatch, context: ProcessContext
) -> None:
    (tmp_path / "shop.py").write_text(SHOP + SETTINGS)
    monkeypatch.chdir(tmp_path)
    probe = Probe((reset("buy 1"), call("stock", mark="values")), context)
    abouts, values = [], []
    for forked in (False, True, True):
        if forked:
            monkeypatch.setattr("quintain.audit.kernel.child.subprocess", templates)
        with Child(Subject("shop.py:Settings"), context) as worker:
            abouts.append(worker.about)
            values.append(worker.play(probe, 10).at("values").value)
        assert not Path(values[-1][-1]).exists()
    assert abouts == [abouts[0]] * 3
    *settings, folder, session, temporary = zip(*values, strict=True)
    assert all(len({*setting}) == 1 for setting in settings), values
    assert session == (True,) * 3
    assert len({*temporary}) == 3
    assert all(where.startswith(own) for where, own in zip(folder, temporary, strict=True)) == context.elsewhere
