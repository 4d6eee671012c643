"""Tools that a world or a harness can take: what each says, refuses and writes."""

from __future__ import annotations

from pathlib import Path

import pytest

import quintain as qn
from quintain.harnesses import AskUser, FinalAnswer, Notes, Sections, Skills, Todo
from quintain.harnesses.tools import TodoItem
from quintain.tools import collect


def test_tools_say_what_they_write() -> None:
    kinds = (Todo, Notes, Sections, FinalAnswer, Skills, AskUser)
    written = {one.name: one.contract.writes for kind in kinds for one in collect(kind).values()}
    assert {name for name, fields in written.items() if fields == ()} == {
        "todo_read",
        "notes_read",
        "report_read",
        "skills_list",
        "skill",
    }
    assert None not in written.values()


def test_a_todo_list_is_replaced_and_read() -> None:
    world = Todo()
    assert world.todo_read() == "the list is empty"
    assert world.todo_write([TodoItem("a", "done"), TodoItem("b")]) == "2 items, 1 left"
    assert world.todo_read() == "[done] a\n[open] b"
    assert world.copy().todo == world.todo


def test_notes_are_kept_in_order() -> None:
    world = Notes()
    assert world.notes_read() == "there are no notes"
    assert [world.note("a"), world.note("b")] == ["note 1 kept", "note 2 kept"]
    assert world.notes_read() == "1. a\n2. b"


def test_sections_are_written_replaced_and_removed() -> None:
    world = Sections()
    assert world.report_read() == "the report is empty"
    world.section_write("B", "b")
    assert world.section_write("A", "a") == "2 sections"
    world.section_write("B", "c")
    assert world.report_read() == "# B\n\nc\n\n# A\n\na"
    assert world.section_write("B", "") == "1 sections"
    with pytest.raises(qn.ToolError, match="the report has no section 'B'"):
        world.section_write("B", "")


def skill(folder: Path, name: str, text: str, **files: str) -> None:
    (folder / name).mkdir()
    (folder / name / "SKILL.md").write_text(text)
    for file, words in files.items():
        (folder / name / file).write_text(words)


def test_skills_are_loaded_from_a_folder(tmp_path: Path) -> None:
    skill(tmp_path, "one", "---\nname: refunds\ndescription: How to refund: rules\n---\nAsk first.", rules="No rules.")
    world = Skills.from_folder(tmp_path).copy()
    assert world.skills_list() == {"refunds": "How to refund: rules"}
    assert world.skill("refunds").endswith("Ask first.")
    assert world.skill("refunds", "rules") == "No rules."
    with pytest.raises(qn.ToolError, match="no skill is named 'x'; known: refunds"):
        world.skill("x")
    with pytest.raises(qn.ToolError, match=r"the skill 'refunds' has no file 'x'; it has SKILL\.md, rules"):
        world.skill("refunds", "x")
    with pytest.raises(qn.ToolError, match="known: none"):
        Skills().skill("x")


@pytest.mark.parametrize(
    "text", ["", "name: a\ndescription: b\n", "---\nname: a\n---\n", "x\n---\nname: a\ndescription: b"]
)
def test_a_skill_without_its_head_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(qn.DefinitionError, match=r"has no skill; each is a subfolder with a SKILL\.md"):
        Skills.from_folder(tmp_path)
    skill(tmp_path, "one", text)
    with pytest.raises(qn.DefinitionError, match="must begin with ---, name: TEXT, description: TEXT, ---"):
        Skills.from_folder(tmp_path)
