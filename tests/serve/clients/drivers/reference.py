"""The `counter` and `words` environments on a reference server: `python reference.py ors|openreward PORT`.

What a driver sees here is what its client sees at home; the tests compare it with what the client sees of ours.
"""
# pyright: reportMissingImports=false, reportInvalidTypeForm=false, reportUnknownParameterType=false
# mypy: disable-error-code="import-not-found, misc, untyped-decorator"

from __future__ import annotations

import importlib
import sys
import sysconfig
from pathlib import Path
from typing import Any

from _reference import COUNTS, Add, Submit, listen
from pydantic import BaseModel

sdk: Any = importlib.import_module("ors" if sys.argv[1] == "ors" else "openreward.environments")
TextBlock: Any = getattr(sdk, "TextBlock", None) or importlib.import_module("openreward.environments.types").TextBlock


class Repeat(BaseModel):
    text: str
    times: int


class Source(BaseModel):
    module: str


class Words(BaseModel):
    text: str


def said(text: str, **rest: Any) -> Any:
    return sdk.ToolOutput(blocks=[TextBlock(text=text)], **rest)


class Counter(sdk.Environment):
    count = 0

    @classmethod
    def list_splits(cls) -> Any:
        return list(COUNTS)

    @classmethod
    def list_tasks(cls, split: str) -> Any:
        return [{"id": f"{split}-{number}", "number": number} for number in range(1, COUNTS[split] + 1)]

    def get_prompt(self) -> Any:
        return [TextBlock(text="Be exact."), TextBlock(text=f"Count to {self.task_spec['number']}, then submit it.")]

    @sdk.tool
    def add(self, given: Add) -> sdk.ToolOutput:
        """Count on."""
        self.count += given.by
        return said(f"The count is {self.count}.")

    @sdk.tool
    def submit(self, given: Submit) -> sdk.ToolOutput:
        """Hand in the count. This ends the episode."""
        return said("Handed in.", reward=float(given.answer == self.task_spec["number"]), finished=True)

    @sdk.tool
    def peek(self) -> sdk.ToolOutput:
        """Look at the count."""
        return said(str(self.count))

    @sdk.tool
    def echo(self, given: Source) -> sdk.ToolOutput:
        """Say something back."""
        return said(given.module)

    @sdk.tool
    def repeat(self, given: Repeat) -> sdk.ToolOutput:
        """Say something many times."""
        return said(given.text * given.times)

    @sdk.tool
    def source(self, given: Source) -> sdk.ToolOutput:
        """Read a module of Python's standard library."""
        return said((Path(sysconfig.get_path("stdlib")) / given.module).read_text("utf-8"))


class Look(sdk.Environment):
    """Ends by words, where the SDK knows such an end."""

    @classmethod
    def list_splits(cls) -> Any:
        return ["train"]

    @classmethod
    def list_tasks(cls, split: str) -> Any:
        return [{"word": "ash"}]

    @classmethod
    def name(cls) -> str:
        return "words"

    def get_prompt(self) -> Any:
        return [TextBlock(text="Say the word that is on the shelf.")]

    @sdk.tool
    def look(self) -> sdk.ToolOutput:
        """Read the word on the shelf."""
        return said(self.task_spec["word"])

    if sys.argv[1] != "ors":

        @sdk.tool
        @sdk.terminal
        def answer(self, given: Words) -> sdk.ToolOutput:
            """Take the last words."""
            return said("Heard.", reward=float(given.text == self.task_spec["word"]), finished=True)


if __name__ == "__main__":
    listen(sdk.Server([Counter, Look]).app, int(sys.argv[2]))
