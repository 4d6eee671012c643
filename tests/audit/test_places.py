"""File and line of findings, found in the sources of a subject."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.loader import About, Component, Source, Subject, describe, load_subject
from quintain.audit.kernel.probe import Probe, call, reset
from quintain.audit.report.details import located

SOURCE = """def look():
    return 0

class Desk:
    async def send(self, to):
        return to

    def call(self, name, arguments):
        if name == "file":
            return 1
        return 2

def graded(world):
    return 1.0
"""


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    path = tmp_path / "desk.py"
    path.write_text(SOURCE)
    return path


def about(*sources: Source) -> About:
    return About("plain", ("ann",), 1, (), frozenset(), {}, sources)


def finding(tool: str, part: Component = "S") -> Finding:
    probe = Probe((reset("ann"), call(tool)))
    return Finding(
        check="x.one", class_="races", part=part, severity="error", confidence="proven", title="t", probes=(probe,)
    )


@pytest.mark.parametrize(
    ("tool", "part", "line"),
    [("send", "S", 5), ("file", "S", 9), ("look", "S", 8), ("send", "V", 13)],
)
def test_a_finding_is_located_at_its_tool_or_scoring_function(
    desk: Path, tool: str, part: Component, line: int
) -> None:
    sources = (Source(str(desk), "S", ("Desk",)), Source(str(desk), "V", ("graded",)))
    assert located(finding(tool, part), about(*sources)) == f"{desk}:{line}"


def test_a_finding_without_readable_sources_has_no_place(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("def (")
    sources = [Source(str(tmp_path / name), "S") for name in ("bad.py", "none.py")]
    assert located(finding("send"), about(*sources)) == ""
    assert located(finding("send"), about()) == ""


def test_a_tool_of_an_environment_is_located_at_its_method() -> None:
    described = describe(load_subject(Subject("sales")))
    path, _, line = located(finding("crm_get"), described).rpartition(":")
    assert "def get(" in "".join(Path(path).read_text().splitlines()[int(line) - 1 : int(line) + 2])
