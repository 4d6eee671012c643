"""The reference leaves nothing out, and says nothing that is not there."""

from __future__ import annotations

import re
import typing
from pathlib import Path

import msgspec
import pytest

from docs import generate
from quintain import config, errors, record, trace
from quintain.cli import program

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"

FIRST_CELL = re.compile(r"^\| `([^`]+)` \|", re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\((?!https?:)(?P<path>[^)#\s]*)(?:#(?P<anchor>[\w-]+))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FENCED = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)

RECORD: tuple[type[msgspec.Struct], ...] = (
    trace.Trace, trace.Turn, trace.Reply, trace.Tokens, trace.Usage, trace.Message, trace.ToolCall, trace.Step,
    trace.Reward, errors.Failure, trace.Timing,
)  # fmt: skip


def section(page: str, heading: str) -> str:
    """Returns the text under a heading, up to the next one of any level."""
    text = (REFERENCE / page).read_text()
    found = re.search(rf"^#+ {re.escape(heading)}$(.*?)(?=^#|\Z)", text, re.DOTALL | re.MULTILINE)
    assert found is not None, heading
    return found[1]


def test_generated_pages_are_current() -> None:
    assert not generate.stale(), "run `python docs/generate.py`"


def test_every_config_field_has_a_sentence() -> None:
    fields = FIRST_CELL.findall(generate.config())
    assert fields == list(config.Config.__struct_fields__)


def test_a_config_field_without_a_sentence_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Half(msgspec.Struct):
        """Dials.

        Attributes:
            one: The first.
        """

        one: int = 1
        two: int = 2

    monkeypatch.setattr(generate, "Config", Half)
    with pytest.raises(ValueError, match="two"):
        generate.config()


def test_every_command_is_there() -> None:
    headings = HEADING.findall((REFERENCE / "cli.md").read_text())
    assert {f"quintain {name}" for name in program.commands} <= set(headings)


def test_every_kind_of_failure_has_a_sentence() -> None:
    kinds = FIRST_CELL.findall(section("errors.md", "Kinds of failure"))
    assert sorted(kinds) == sorted(errors.KINDS)


def test_every_stage_has_a_sentence() -> None:
    assert FIRST_CELL.findall(section("errors.md", "Stages")) == list(typing.get_args(errors.Stage))


def test_every_exception_has_a_sentence() -> None:
    classes = {name for name, one in vars(errors).items() if isinstance(one, type) and issubclass(one, Exception)}
    said = FIRST_CELL.findall(section("errors.md", "Exceptions"))
    assert sorted(said) == sorted(classes | {record.PersistenceError.__name__})


@pytest.mark.parametrize("struct", RECORD, ids=lambda struct: struct.__name__)
def test_every_field_of_the_record_has_a_sentence(struct: type[msgspec.Struct]) -> None:
    assert FIRST_CELL.findall(section("traces.md", struct.__name__)) == list(struct.__struct_encode_fields__)


def test_the_first_environment_has_26_lines() -> None:
    for page in (ROOT / "README.md", ROOT / "docs" / "quickstart.md"):
        found = re.search(r'title="library.py"\n(.*?)```', page.read_text(), re.DOTALL)
        assert found is not None, page
        assert sum(bool(line.strip()) for line in found[1].splitlines()) == 26, page


@pytest.mark.parametrize("page", [*generate.pages(), ROOT / "design" / "README.md"], ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.finditer(FENCED.sub("", page.read_text())):
        target = page.parent / link["path"] if link["path"] else page
        assert target.exists(), link[0]
        if link["anchor"]:
            assert link["anchor"] in map(anchor, HEADING.findall(target.read_text())), link[0]


def anchor(heading: str) -> str:
    """As GitHub makes it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("drawn", sorted(generate.PICTURES.glob("*.svg")), ids=lambda drawn: drawn.name)
def test_a_picture_needs_nothing_from_elsewhere(drawn: Path) -> None:
    links = set(re.findall(r"https?://[^\s\"'<>)]+", drawn.read_text()))
    assert links <= {"http://www.w3.org/2000/svg", "https://www.textualize.io"}
