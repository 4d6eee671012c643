"""Tools that any State can take as a base or a part, and that a harness can hold: plan, notes, sections, answer.

A class such as `Todo` is a State of its own: for a harness, or as a part or the base of a world. Its `TodoTools` has no
field, so that a world can take several; the world declares the field. Each method names what it writes; one that writes
nothing only reads. All are deterministic but `ask_user`, which depends on what the user says.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from quintain.errors import DefinitionError, ToolError
from quintain.harness import run_until_text
from quintain.state import State
from quintain.tools import tool
from quintain.trace import Message

from .held import Errand, Host

Line = Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)]
Words = Annotated[str, msgspec.Meta(min_length=1, max_length=100_000)]


class TodoItem(msgspec.Struct, frozen=True):
    """Step of a plan."""

    text: Line
    status: Literal["open", "doing", "done", "dropped"] = "open"


class TodoTools(State):
    """Tools of `Todo`, for a State with the same field (stateful)."""

    if TYPE_CHECKING:
        todo: list[TodoItem]

    @tool(writes=("todo",))
    def todo_write(self, items: Annotated[list[TodoItem], msgspec.Meta(max_length=100)]) -> str:
        """Replace the to-do list.

        Args:
            items: All items in order, each with its text and status.
        """
        self.todo = items
        left = sum(item.status in {"open", "doing"} for item in items)
        return f"{len(items)} items, {left} left"

    @tool(writes=())
    def todo_read(self) -> str:
        """Read the to-do list."""
        return "\n".join(f"[{item.status}] {item.text}" for item in self.todo) or "the list is empty"


class Todo(TodoTools):
    """To-do list (stateful)."""

    todo: list[TodoItem] = []


class NotesTools(State):
    """Tools of `Notes`, for a State with the same field (stateful)."""

    if TYPE_CHECKING:
        notes: list[str]

    @tool(writes=("notes",))
    def note(self, text: Words) -> str:
        """Keep a note that outlives a shortened context.

        Args:
            text: The note; cite results as [r:...].
        """
        self.notes.append(text)
        return f"note {len(self.notes)} kept"

    @tool(writes=())
    def notes_read(self) -> str:
        """Read all notes."""
        return "\n".join(f"{number}. {text}" for number, text in enumerate(self.notes, 1)) or "there are no notes"


class Notes(NotesTools):
    """Notes of the agent (stateful)."""

    notes: list[str] = []


class SectionsTools(State):
    """Tools of `Sections`, for a State with the same field (stateful)."""

    if TYPE_CHECKING:
        sections: dict[str, str]

    @tool(writes=("sections",))
    def section_write(self, title: Line, text: Annotated[str, msgspec.Meta(max_length=100_000)]) -> str:
        """Write a section of the report; one of the same title is replaced, and an empty text removes it.

        Args:
            title: Title of the section.
            text: Its whole text.
        """
        if text:
            self.sections[title] = text
        elif self.sections.pop(title, None) is None:
            raise ToolError(f"the report has no section {title!r}")
        return f"{len(self.sections)} sections"

    @tool(writes=())
    def report_read(self) -> str:
        """Read the report as it stands."""
        return self.report or "the report is empty"

    @property
    def report(self) -> str:
        """The whole report."""
        return "\n\n".join(f"# {title}\n\n{text}" for title, text in self.sections.items())


class Sections(SectionsTools):
    """Report in sections (stateful)."""

    sections: dict[str, str] = {}


class AnswerTools(State):
    """Tools of `FinalAnswer`, for a State with the same field (stateful)."""

    if TYPE_CHECKING:
        final_answer: str | None

    @tool(writes=("final_answer",))
    def answer(self, text: Words) -> str:
        """Give the final answer and end the episode.

        Args:
            text: The answer.
        """
        self.final_answer = text
        self.finish("the agent answered")
        return "answered"


class FinalAnswer(AnswerTools):
    """Final answer by a call, which ends the episode (stateful)."""

    final_answer: str | None = None


class Skill(msgspec.Struct, frozen=True):
    """Instructions for one kind of work, which are read when needed."""

    description: str
    files: dict[str, str]
    """Texts by path within the skill's folder; `SKILL.md` is the first to read."""


class SkillsTools(State):
    """Tools of `Skills`, for a State with the same field (deterministic)."""

    if TYPE_CHECKING:
        skills: dict[str, Skill]

    @tool(writes=())
    def skills_list(self) -> dict[str, str]:
        """List the names of the skills, with what each is for."""
        return {name: skill.description for name, skill in self.skills.items()}

    @tool(writes=())
    def skill(self, name: Line, file: Line = "SKILL.md") -> str:
        """Load a skill.

        Args:
            name: Its name.
            file: A file of it that its instructions mention.
        """
        if name not in self.skills:
            raise ToolError(f"no skill is named {name!r}; known: {', '.join(self.skills) or 'none'}")
        files = self.skills[name].files
        if file not in files:
            raise ToolError(f"the skill {name!r} has no file {file!r}; it has {', '.join(files)}")
        return files[file]


class Skills(SkillsTools):
    """Agent skills, loaded on demand (deterministic)."""

    skills: dict[str, Skill] = {}

    @classmethod
    def from_folder(cls, folder: str | Path) -> Skills:
        """Returns the skills of a folder: each subfolder with a `SKILL.md` whose first lines name and describe it.

        Raises:
            DefinitionError: The folder has no skill, or a `SKILL.md` begins without `name` and `description`.
        """
        found: dict[str, Skill] = {}
        for path in sorted(Path(folder).glob("*/SKILL.md")):
            before, _, rest = path.read_text("utf-8").partition("---\n")
            pairs = (line.partition(":") for line in ("" if before else rest).partition("\n---")[0].splitlines())
            head = {key.strip(): value.strip() for key, _, value in pairs}
            if not head.get("name") or not head.get("description"):
                raise DefinitionError(f"{path} must begin with ---, name: TEXT, description: TEXT, ---")
            files = {one.relative_to(path.parent).as_posix(): one for one in path.parent.rglob("*") if one.is_file()}
            texts = {name: one.read_text("utf-8") for name, one in sorted(files.items())}
            found[head["name"]] = Skill(head["description"], texts)
        if not found:
            raise DefinitionError(f"{str(folder)!r} has no skill; each is a subfolder with a SKILL.md")
        return cls(skills=found)


class AskUser(State):
    """Questions to the user, for a harness to hold: the actor `user` answers (stateful, not deterministic)."""

    questions: int = 0

    @tool(writes=("questions",))
    def ask_user(self, question: Words) -> Errand:
        """Ask the user a question and wait for the answer.

        Args:
            question: The question.
        """
        self.questions += 1

        async def run(host: Host) -> str:
            user = host.actor("user")
            user.append(Message("user", question))
            return await run_until_text(user, host.model) or "the user said nothing"

        return Errand(run)
