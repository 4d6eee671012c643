"""A folder that compares names without case, in any script, and keeps deleted files until they are restored."""

import unicodedata
from typing import Annotated

import msgspec

import quintain as qn

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=40)]
Body = Annotated[str, msgspec.Meta(max_length=80)]


def fold(name: str) -> str:
    """Returns what two names of one file have in common."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


class File(msgspec.Struct):
    name: str
    text: str


class Folder(qn.State):
    files: dict[str, File]
    """By folded name."""
    trash: dict[str, File] = {}

    def _file(self, name: str) -> File:
        if fold(name) not in self.files:
            raise qn.ToolError(f"no file {name!r}")
        return self.files[fold(name)]

    @qn.tool
    def files_here(self) -> list[str]:
        """List the names of the files as they were spelled, sorted without case.

        All tools compare names without case and in Unicode form NFC: README and readme are one file, also STRASSE and
        Straße.
        """
        return [self.files[key].name for key in sorted(self.files)]

    @qn.tool
    def read(self, name: Name) -> str:
        """Read the text of a file.

        Args:
            name: Its name in any spelling of case, 1 to 40 characters.
        """
        return self._file(name).text

    @qn.tool
    def write(self, name: Name, text: Body) -> File:
        """Write a text into a file. A file that is there keeps the spelling of its name; else a new one is made.

        Args:
            name: Its name, 1 to 40 characters.
            text: The whole text, 0 to 80 characters.
        """
        old = self.files.get(fold(name))
        self.files[fold(name)] = File(old.name if old else name, text)
        return self.files[fold(name)]

    @qn.tool
    def rename(self, old: Name, new: Name) -> File:
        """Rename a file. The new name may be another spelling of the old one; it may not be that of another file.

        Args:
            old: Its name in any spelling of case, 1 to 40 characters.
            new: The new name as it shall be spelled, 1 to 40 characters.
        """
        file = self._file(old)
        if fold(new) != fold(old) and fold(new) in self.files:
            raise qn.ToolError(f"there is a file {self.files[fold(new)].name!r}")
        del self.files[fold(old)]
        self.files[fold(new)] = File(new, file.text)
        return self.files[fold(new)]

    @qn.tool
    def delete(self, name: Name) -> str:
        """Move a file to the trash. It replaces a file of this name that is in the trash already.

        Args:
            name: Its name in any spelling of case, 1 to 40 characters.
        """
        file = self._file(name)
        del self.files[fold(name)]
        self.trash[fold(name)] = file
        return f"{file.name} is in the trash"

    @qn.tool
    def trashed(self) -> list[File]:
        """List the files in the trash, sorted by name without case."""
        return [self.trash[key] for key in sorted(self.trash)]

    @qn.tool
    def restore(self, name: Name) -> File:
        """Take a file out of the trash, with name and text as they were. Refused if a file has this name.

        Args:
            name: Its name in any spelling of case, 1 to 40 characters.
        """
        if fold(name) not in self.trash:
            raise qn.ToolError(f"no file {name!r} in the trash")
        if fold(name) in self.files:
            raise qn.ToolError(f"there is a file {self.files[fold(name)].name!r}")
        self.files[fold(name)] = self.trash.pop(fold(name))
        return self.files[fold(name)]


Call = tuple[str, dict[str, object]]
START = {"ReadMe.txt": "hello", "Straße.csv": "a;b", "Ωmega": "last", "notes": "12345678901234567890123"}
GONE = {"Plan.md": "step 1", "Σίσυφος": "uphill"}

# Each: what is asked for, the files at the end, a solution.
JOBS: list[tuple[str, dict[str, str], list[Call]]] = [
    ("Write 'hello world' into the file readme.TXT; its name keeps its spelling.",
     START | {"ReadMe.txt": "hello world"}, [("write", {"name": "readme.txt", "text": "hello world"})]),
    ("Restore the file plan.md from the trash.", START | {"Plan.md": "step 1"}, [("restore", {"name": "plan.md"})]),
    ("Spell the name of the file notes in capitals: NOTES.",
     {name: text for name, text in START.items() if name != "notes"} | {"NOTES": START["notes"]},
     [("rename", {"old": "notes", "new": "NOTES"})]),
    ("Delete STRASSE.CSV and ωMEGA.", {"ReadMe.txt": "hello", "notes": START["notes"]},
     [("delete", {"name": "STRASSE.CSV"}), ("delete", {"name": "ωMEGA"})]),
    ("Restore σίσυφοσ from the trash, and then let its text be 'top'.", START | {"Σίσυφος": "top"},
     [("restore", {"name": "σίσυφοσ"}), ("write", {"name": "ΣΊΣΥΦΟΣ", "text": "top"})]),
    ("Swap the texts of ReadMe.txt and Ωmega.", START | {"ReadMe.txt": "last", "Ωmega": "hello"},
     [("write", {"name": "ReadMe.txt", "text": "last"}), ("write", {"name": "Ωmega", "text": "hello"})]),
    ("Add 1 to the number in the file notes.", START | {"notes": "12345678901234567890124"},
     [("write", {"name": "notes", "text": "12345678901234567890124"})]),
]  # fmt: skip


def keyed(files: dict[str, str]) -> dict[str, File]:
    return {fold(name): File(name, text) for name, text in files.items()}


def tasks(split: str) -> list[qn.Task[Folder]]:
    rule = (
        "You are judged by the files of the folder at the end, their texts and the spelling of their names to the "
        "letter; leave the others as they are. What is in the trash does not count."
    )
    return [
        qn.Task(
            id=f"{split}-{n}",
            prompt=f"{prompt} {rule}",
            start=Folder(files=keyed(START), trash=keyed(GONE)),
            truth=files,
            solution=tuple(calls),
        )
        for n, (prompt, files, calls) in enumerate(JOBS, 1)
    ]


@qn.reward
def as_asked(view: qn.EpisodeView[Folder]) -> qn.Score:
    found = {file.name: file.text for file in view.state.files.values()}
    return qn.Score(float(found == view.task.truth), f"the files are {sorted(found)}")


env = qn.Environment(
    "folder", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(as_asked), state=Folder, splits=("test",)
)
